"""A target's lock as `constraints.txt`: versions only, for other tools to stay within."""

from __future__ import annotations

from stackfix.resolve.records import TargetLock
from stackfix.write.requirements import header_lines


def render_constraints(lock: TargetLock, *, command: str) -> str:
    """The file's text: one `name==version` a line, both steps, sorted."""
    header = header_lines(lock.target, command=command, second_step=None, after=None)
    pins = sorted(f"{package.name}=={package.version}" for package in lock.packages)
    return "\n".join([*header, *pins]) + "\n"
