"""Judges of a lock that share no code with stackfix: the index page itself, uv, pip, packaging."""
