"""What pixi.lock leaves out of a record because the file's name tells it, by rattler's own rules."""

from __future__ import annotations


def told_build_number(build: str) -> int:
    """The digits that the build string ends with, wherever they come from: 311 for `5_cp311`; 0 without."""
    digits = build[len(build.rstrip("0123456789")):]
    return int(digits) if digits and len(digits) < 19 else 0


def told_noarch(subdir: str, build: str) -> str | None:
    """The kind of a package without platform: of Python wherever the build string has `py` in it."""
    if subdir != "noarch":
        return None
    return "python" if "py" in build else "generic"
