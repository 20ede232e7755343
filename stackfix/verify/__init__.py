"""Proves an environment: loads its packages and runs kernels, each in a child process."""
