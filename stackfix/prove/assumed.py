"""What a proof takes for granted of the machine: the system's libraries that are needed, and their newest versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View
from stackfix.prove.base import C_VERSION, Base, numbers
from stackfix.prove.facts import Short, caller_of
from stackfix.prove.proof_records import Assumption

PYTHON = "Python"


def assumptions(view: View, base: Base, short: Short) -> tuple[Assumption, ...]:
    """One for each library of the system that a mapped file needs or opens, by name; then Python itself."""
    asking = askers(view, base)
    found = [assumption(base, soname, tuple(asking[soname].values())) for soname in sorted(asking)]
    modules = {object_.identity for each in view.openings for number in each.outcome.loaded
               if is_module(object_ := each.outcome.attempted.objects[number], short)}
    program = view.environment.python
    return (*found, Assumption(part=PYTHON, library=f"python{program.minor if program else ''}", level=None,
                               versions=(), needed_by=len(modules)))


def askers(view: View, base: Base) -> Mapping[str, Mapping[str, LoadedObject]]:
    """Files of the stack by identity that came to each library of the system."""
    found: dict[str, dict[str, LoadedObject]] = {}
    for opening in view.openings:
        objects = opening.outcome.attempted.objects
        caller = caller_of(opening)
        for edge in opening.outcome.edges:
            soname = objects[edge.provider].elf.soname
            asking = objects[edge.requester] if edge.requester is not None else caller
            if asking is not None and soname is not None and soname in base.libraries and view.is_own(asking.real_path):
                found.setdefault(soname, {})[asking.identity] = asking
        for number in opening.outcome.loaded:
            for need in objects[number].elf.needed_versions:
                if need.file in base.libraries and view.is_own(objects[number].real_path):
                    found.setdefault(need.file, {})[objects[number].identity] = objects[number]
    return found


def is_module(object_: LoadedObject, short: Short) -> bool:
    """Whether Python imports a file."""
    name = object_.path.rpartition("/")[2].partition(".")[2]
    return name.startswith(("cpython-", "abi3", "so")) and any(
        object_.real_path.startswith(f"{site}/") for site in short.sites)


def assumption(base: Base, soname: str, asking: Sequence[LoadedObject]) -> Assumption:
    """What is asked of one library."""
    library = base.libraries[soname]
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for need in (need for each in asking for need in each.elf.needed_versions if need.file == soname):
        prefix, _, number = need.version.rpartition("_")
        if prefix in library.versions and numbers(number):
            newest[prefix] = max(newest.get(prefix, ((), "")), (numbers(number), need.version))
    level = base.glibc if C_VERSION in library.versions else ", ".join(
        f"{prefix}_{'.'.join(map(str, base.newest[prefix]))}" for prefix in sorted(newest) if prefix in base.newest)
    return Assumption(part=library.part, library=soname, level=level or None, needed_by=len(asking),
                      versions=tuple(version for _, (_, version) in sorted(newest.items())))
