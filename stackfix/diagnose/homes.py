"""Other environments that this one imports from: the base of a venv, one whose site folder a .pth file names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stackfix.diagnose.provenance import SITE
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution, Python
from stackfix.inspect.records import FileAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Such an environment, as far as this one shows it."""

    prefix: str
    python: Python
    distributions: tuple[Distribution, ...]


def home_at(view: View, path: str) -> Home | None:
    """The other environment that a file lies in; None: it is this one's, or no environment is known there."""
    if view.environment.python is None or view.is_inside(path) or not view.is_at_hand(path):
        return None
    for prefix in prefixes(view, path):
        program = program_of(view, prefix)
        if program is not None:
            return Home(prefix=prefix, python=replace(view.environment.python, executable=program),
                        distributions=tuple(each for each in view.environment.distributions
                                            if each.site.startswith(f"{prefix}/")))
    return None


def prefixes(view: View, path: str) -> Iterator[str]:
    """What the folder of a file says of the environment, and what pyvenv.cfg says of the base."""
    python = view.environment.python
    site = next((each for each in view.environment.sites if path.startswith(f"{each.path}/")), None)
    if python is not None and site is not None and site.kind == "base":
        yield python.base_prefix
    elif (match := SITE.match(path)) is not None:
        yield match[1]


def program_of(view: View, prefix: str) -> str | None:
    """The Python of a prefix."""
    minor = view.environment.python.minor if view.environment.python is not None else ""
    return next((path for name in (f"python{minor}", "python3", "python")
                 if isinstance(view.files.at(path := f"{prefix}/bin/{name}"), FileAt)), None)
