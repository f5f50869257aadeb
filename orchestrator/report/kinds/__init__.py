"""How each kind of load is shown; `kinds.families` finds the one of a cell."""
