"""The notebook page: sections in the order in which a reader asks. Each section is a module of its own."""
