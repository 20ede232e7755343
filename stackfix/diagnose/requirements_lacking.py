"""What one installed package requires and does not have: told beside an installation, which brings nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.requirements_judge import Judge, Unmet
from stackfix.diagnose.requirements_lines import cut
from stackfix.diagnose.requirements_stack import named
from stackfix.diagnose.situation import View


def lacking(view: View, project: str) -> Iterator[str]:
    """"torchvision 0.18.1 requires pillow>=5.3.0, and it is not installed", for each that is not there at all."""
    for each in unmet_of(view, project):
        if each.found is None:
            yield told(each)


def unmet_of(view: View, project: str) -> Iterator[Unmet]:
    """Its own requirements, and those of others on it, that are not met."""
    for each in Judge(view).unmet():
        if isinstance(each, Unmet) and project in {each.by.name, each.line.name}:
            yield each


def told(unmet: Unmet) -> str:
    """In the words of SF601."""
    is_there = f"{unmet.found.version} is installed" if unmet.found else "it is not installed"
    return f"{named(unmet.by)} requires {cut(f'{unmet.line.name}{unmet.line.specifier}')}, and {is_there}"
