"""Wheels reduced to the tables of their ELF files: what ships of them, what a cache keeps, what a download gives."""
