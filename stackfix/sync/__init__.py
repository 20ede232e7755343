"""Bring an environment to a lockfile, through uv or pip."""
