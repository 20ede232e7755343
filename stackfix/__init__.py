"""Consistent GPU Python stacks: lockfiles chosen from a compatibility matrix."""

__version__ = "0.1.0"
