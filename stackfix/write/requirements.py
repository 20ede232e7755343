"""A target's lock as `requirements.txt` with hashes, in pip-compile's style."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stackfix.platforms import PLATFORMS
from stackfix.resolve.records import LockedPackage, Target, TargetLock
from stackfix.write.clean import comment_text, locked_sha256, locked_url
from stackfix.write.names import tag_of
from stackfix.write.records import Entry

FIRST_WORDS = "This file is locked by stackfix for"     # how a lock of ours is known again
FILE_ORIGIN = re.compile(r"(?P<file>.+) line \d+$")


def requirements_entries(lock: TargetLock, *, step: int = 1) -> tuple[Entry, ...]:
    """The pins of one step, sorted by name."""
    return package_entries(lock.packages, step=step)


def package_entries(packages: tuple[LockedPackage, ...], *, step: int = 1) -> tuple[Entry, ...]:
    """The pins of one step among these packages, sorted by name."""
    parents: dict[str, set[str]] = {}
    for package in packages:
        for name in package.requires:
            if name != package.name:
                parents.setdefault(name, set()).add(package.name)
    entries = (entry_of(package, parents.get(package.name, set())) for package in packages if package.step == step)
    return tuple(sorted(entries, key=lambda entry: entry.name))


def entry_of(package: LockedPackage, parents: set[str]) -> Entry:
    """One pin, needed by these packages.

    A direct package has one file: the URL names it, so its siblings' hashes have no place.
    """
    files = package.files[:1] if package.direct else package.files
    return Entry(
        name=package.name,
        version=None if package.direct else package.version,
        url=locked_url(package.files[0].url) if package.direct else None,
        sha256=tuple(sorted({locked_sha256(file) for file in files})),
        extras=tuple(sorted(set(package.extras))),
        via=tuple(sorted(parents | {via for origin in package.requested_by if (via := via_of(origin))})),
    )


def via_of(origin: str) -> str:
    """What `# via` says of a root: `-r requirements.in` for a file as pip-compile has it, else the option."""
    match = FILE_ORIGIN.fullmatch(origin)
    return comment_text(f"-r {match['file']}" if match else origin)


def render_requirements(
    entries: Iterable[Entry], target: Target, *, command: str, second_step: str | None = None,
    after: str | None = None,
) -> str:
    """The file's text. `second_step` names the file to install next; `after`: this one is it, and follows `after`."""
    lines = [*header_lines(target, command=command, second_step=second_step, after=after)]
    for entry in entries:
        lines += entry_lines(entry)
    return "\n".join(lines) + "\n"


def header_lines(
    target: Target, *, command: str, second_step: str | None, after: str | None,
) -> list[str]:
    """The leading comment: the target (read back by `stackfix sync`), the steps, the command."""
    lines = [
        "#",
        f"# {FIRST_WORDS} {tag_of(target)}",
        f"# ({told_target(target)})",
        "# by the following command:",
        "#",
        f"#    {comment_text(command)}",
        "#",
    ]
    if second_step:
        lines += [f"# second step: {second_step}",
                  "# (`stackfix sync` installs both; by hand: after this file, with --no-build-isolation)", "#"]
    if after:
        lines += [f"# second step of: {after}",
                  "# (built from source: install it after that file, with --no-build-isolation)", "#"]
    return lines


def told_target(target: Target) -> str:
    """`Python 3.11 on linux-64, glibc 2.28 or newer`: what it is for, and what its wheels need of the system."""
    needs = {"Linux": f"glibc {target.glibc} or newer", "Darwin": f"macOS {target.macos} or newer"}
    system = PLATFORMS[target.platform].system if target.platform in PLATFORMS else ""
    words = (f"Python {target.python} on {target.platform}", "the CPU build" if target.variant else "",
             needs.get(system, ""))
    return ", ".join(word for word in words if word)


def entry_lines(entry: Entry) -> list[str]:
    """The lines of one pin, the last without a continuation."""
    extras = f"[{','.join(entry.extras)}]" if entry.extras else ""
    pin = f"{entry.name}{extras} @ {entry.url}" if entry.url else f"{entry.name}{extras}=={entry.version}"
    parts = [pin, *(f"    --hash=sha256:{digest}" for digest in entry.sha256)]
    lines = [f"{part} \\" for part in parts[:-1]] + parts[-1:]
    if len(entry.via) == 1:
        lines.append(f"    # via {entry.via[0]}")
    elif entry.via:
        lines += ["    # via", *(f"    #   {via}" for via in entry.via)]
    return lines
