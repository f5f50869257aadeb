"""What was computed once from raw records and is kept beside them: deletable, never the truth."""
