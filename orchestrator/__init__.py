"""gate0: deploy a serving configuration, prove that it is right, measure it, keep the record."""

__version__ = "0.1.0"
