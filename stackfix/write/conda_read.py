"""Conda lockfiles read back: which kind one is, what it holds, what of it a new lock keeps."""

from __future__ import annotations

import re
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.write.names import check_name
from stackfix.write.read import named, read_text
from stackfix.write.records import CondaEnvironment, CondaLockFile
from stackfix.write.requirements import FIRST_WORDS
from stackfix.write.yaml_read import Source

TAG = re.compile(r"cp3(?P<minor>\d{1,3})-(?P<platform>[a-z]+-[a-z0-9]+)")
GLIBC = re.compile(r"# \(Python \S+ on \S+,(?: the CPU build,)? glibc (?P<glibc>\d+\.\d+) or newer\)")
SECOND_STEP = re.compile(r"# second step: (?P<name>requirements-flash-attn[A-Za-z0-9_-]*\.txt)")
HINT = "write it again with `stackfix lock`, or with the tool that wrote it"
Pairs = tuple[tuple[str, str], ...]
PYTHON = r"cp3\d{1,3}"


def read_conda_file(path: Path) -> CondaLockFile:
    """What the file holds. Raises BadInput, with the line, for one that is no conda lockfile or is damaged."""
    return parse_conda_file(read_text(path), str(path))


def parse_conda_file(text: str, path: str) -> CondaLockFile:
    """As read_conda_file; `path` is for its errors."""
    header = header_lines(text)
    kind = kind_of(text, path)
    targets = targets_of(header)
    return CondaLockFile(
        path=path, kind=kind, environments=environments(text, kind, path, targets), targets=targets,
        glibc=next((found["glibc"] for line in header if (found := GLIBC.fullmatch(line))), None),
        second_steps=tuple(found["name"] for line in header if (found := SECOND_STEP.fullmatch(line))),
        ours=any(line.startswith(f"# {FIRST_WORDS} ") for line in header))


def header_lines(text: str) -> list[str]:
    """The leading comment."""
    lines = text.splitlines()
    return lines[:next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))]


def targets_of(header: list[str]) -> tuple[tuple[str, str], ...]:
    """(Python, platform) of each target that our header names."""
    first = next((line for line in header if line.startswith(f"# {FIRST_WORDS} ")), "")
    return tuple((f"3.{found['minor']}", found["platform"]) for found in TAG.finditer(first))


def kind_of(text: str, path: str) -> str:
    """One of CONDA_KINDS, by what stands at the beginning of a line. Raises BadInput for none."""
    if re.search(r"(?m)^@EXPLICIT[ \t]*$", text):
        return "explicit"
    keys = set(re.findall(r"(?m)^([a-z]+):", text))
    if {"version", "metadata", "package"} <= keys:
        return "conda-lock"
    if {"version", "environments", "packages"} <= keys:
        return "pixi"
    if "dependencies" in keys:
        return "environment"
    raise BadInput(path, "is no conda-lock.yml, pixi.lock, explicit file or environment.yml")


def environments(
    text: str, kind: str, path: str, targets: tuple[tuple[str, str], ...],
) -> tuple[CondaEnvironment, ...]:
    """Its environments."""
    source = Source(path=path, hint=HINT)
    if kind == "conda-lock":
        from stackfix.write.conda_read_lock import parse_conda_lock

        return parse_conda_lock(text, source)
    if kind == "pixi":
        from stackfix.write.conda_read_pixi import parse_pixi

        return parse_pixi(text, source)
    from stackfix.write.conda_read_text import parse_environment_file, parse_explicit

    if kind == "explicit":
        return parse_explicit(text, source)
    return parse_environment_file(text, source, targets[0][1] if targets else "linux-64")


def read_kept_conda(directory: Path, name: str | None) -> tuple[Pairs, Pairs]:
    """(address, name) of the packages of channels, (name, version) of those of pip, each sorted.

    From the existing conda-lock.yml, else pixi.lock, else explicit files. A damaged file keeps nothing: `lock` writes
    it again, and `lock --check` names its lines. Raises BadInput for a file that cannot be read at all.
    """
    check_name(name)
    start = rf"(?:{re.escape(name)}(?:-{PYTHON})?\.)" if name else rf"(?:{PYTHON}\.)?"
    for pattern in (rf"{start}conda-lock\.yml", rf"{re.escape(name) + '.' if name else ''}pixi\.lock",
                    rf"{start}conda-[a-z]+-[a-z0-9]+\.lock"):
        found = [environment for path in named(directory, re.compile(pattern))
                 for environment in environments_of(read_text(path), str(path))]
        if found:
            conda = {(pin.url, pin.name) for one in found for pin in one.conda if pin.url}
            pip = {(pin.name, pin.version) for one in found for pin in one.pip if pin.version}
            return tuple(sorted(conda)), tuple(sorted(pip))
    return (), ()


def environments_of(text: str, path: str) -> tuple[CondaEnvironment, ...]:
    """What one file holds; nothing where it is damaged."""
    try:
        return parse_conda_file(text, path).environments
    except BadInput:
        return ()
