"""Applies a plan as a transaction with a journal: the only code that changes an environment."""
