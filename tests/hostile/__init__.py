"""A corpus of hostile servers: what each does, and what `stackfix lock` must make of it."""
