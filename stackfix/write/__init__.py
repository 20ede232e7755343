"""A decided lock as lockfile text, and lockfile text read back. Pure."""
