"""Measurements beside rivals. `nox -s bench` runs them; none is part of the package."""
