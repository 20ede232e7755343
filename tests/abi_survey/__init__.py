"""A survey of published extension wheels: what their symbols tell, against what they declare and what a loader does."""
