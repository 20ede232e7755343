"""Whether a locked stack will load, told before anything of it is installed. Pure, over records."""
