"""The conda side of a stack: what channels have, which layout holds it, and what agrees with the pip side. Pure."""
