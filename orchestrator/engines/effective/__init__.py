"""What a running server tells of itself, and how that compares with what was declared; pure.

`reading.read` and `comparing.compare` are the two doors; each engine's wordings stand in a module of its own.
"""
