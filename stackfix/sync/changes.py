"""What a sync would change: the lock against what is installed. Asks nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from packaging.specifiers import SpecifierSet

from stackfix.sync.fits import marker_holds
from stackfix.sync.records import Change, Installed, Interpreter, Step
from stackfix.write.records import Entry

VARIANT = re.compile(r"\+(?:cpu|cu\d+|git[0-9a-f]+|[0-9a-f]{10})\Z")     # the last two: triton of a nightly


def plan_changes(
    steps: tuple[Step, ...], installed: Mapping[str, Installed], interpreter: Interpreter, installer: str,
) -> tuple[Change, ...]:
    """One for each pin that holds for the interpreter, in the order of the lock. What is not in the lock stays."""
    return tuple(change for step in steps for change in changes_of(step, installed, interpreter, installer))


def changes_of(
    step: Step, installed: Mapping[str, Installed], interpreter: Interpreter, installer: str,
) -> Iterator[Change]:
    """The changes of one step."""
    for entry in step.entries:
        where = f"{step.path.name} line {entry.line}"
        if entry.marker is not None and not marker_holds(entry.marker, where, interpreter):
            continue
        before = installed.get(entry.name)
        action = "install" if before is None else "keep" if is_met(entry, before, installer) else "change"
        yield Change(
            action=action, name=entry.name, installed=before.version if before else None,
            locked=entry.version or version_in(entry.url or "") or entry.url or "", build=step.build,
        )


def is_met(entry: Entry, installed: Installed, installer: str) -> bool:
    """Whether the installer leaves what is there: uv wants a pin by URL from that URL, pip goes by its version."""
    if entry.url is not None and installer == "uv":
        return installed.url == entry.url
    version = entry.version or version_in(entry.url or "")
    if version is None or installed.version is None:
        return False
    try:
        return SpecifierSet(f"=={version}").contains(installed.version, prereleases=True)
    except ValueError:      # InvalidSpecifier, InvalidVersion, or a number that int() refuses
        return installed.version == version


def version_in(url: str) -> str | None:
    """The version in a wheel's file name, as its metadata has it; None for another file.

    A local part that names a variant of torch (`+cu118`, `+cpu`) or a revision of triton is in the metadata too, any
    other is not.
    """
    file = unquote(urlsplit(url).path.rpartition("/")[2])
    parts = file.split("-")
    if not file.endswith(".whl") or len(parts) not in {5, 6}:
        return None
    return parts[1] if VARIANT.search(parts[1]) else parts[1].partition("+")[0]


def describe(change: Change) -> str:
    """`change numpy 2.0.0 -> 1.26.4`."""
    built = " (second step, built from source)" if change.build and change.action != "keep" else ""
    if change.action == "change":
        return f"change {change.name} {change.installed or 'of unknown version'} -> {change.locked}{built}"
    version = change.locked if change.action == "install" else change.installed
    return f"{change.action} {change.name} {version}{built}"
