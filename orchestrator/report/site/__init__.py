"""The page as a folder: an index, one page a configuration, what they share once."""
