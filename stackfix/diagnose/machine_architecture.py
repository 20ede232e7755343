"""Files for another processor or another system than the environment's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.faults import find_faults
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.records import MissingLibrary, Tried
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution, Owner
from stackfix.inspect.records import ElfObject, FileAt
from stackfix.platforms import CHECKED_MACHINES

FOREIGN = ("machine ", "wrong ELF class")
LINUX = re.compile(r"(?:linux|manylinux\w*?|musllinux_\d+_\d+)_(x86_64|i\d86|aarch64|armv\dl|ppc64le|s390x|riscv64)$")
PLATFORM = re.compile(r"-(x86_64|i\d86|aarch64|powerpc64le|s390x|riscv64)-linux-")   # cpython-311-aarch64-linux-gnu
MOST_FILES = 8


@dataclass(slots=True, kw_only=True)
class Foreign:
    """What of one package is for another machine."""

    label: str                      # "numpy 1.26.4", or a path
    path: str | None = None         # the first file
    severity: str = "note"
    error: str | None = None
    requester: Requester | None = None
    lines: dict[str, None] = field(default_factory=dict)

    def worsen(self, severity: str) -> None:
        """Keep the worse severity."""
        self.severity = min(self.severity, severity, key=SEVERITIES.index)


def check_architecture(view: View) -> Iterator[Finding]:
    """SF905, one for each package: by the tags of its wheel, and by files that the loader passes over."""
    wanted, found = architecture(view), dict[str, Foreign]()
    for each in view.distributions.values():
        if wanted is not None and (tags := foreign_tags(each, wanted)):
            known = found.setdefault(f"{each.name} {each.version}", Foreign(label=f"{each.name} {each.version}"))
            known.lines.setdefault(f"its wheel is for {', '.join(tags)}")
            path = first_file(view, each)
            known.path = path
            known.worsen("error" if path is not None else "note")
    for fault in find_faults(view):
        failure = fault.failure
        if fault.category == "missing" and isinstance(failure, MissingLibrary):
            for tried in failure.tried:
                if is_foreign(view, tried):
                    path = plain(view, tried.path)
                    module = all(each.opening.phase == "module" for each in fault.sightings)
                    add_file(view, found, path, failure, severity="note" if module and has_fitting(
                        view, path) else "error" if module else fault.severity)
    for known in found.values():
        yield describe(view, known, wanted)


def is_foreign(view: View, tried: Tried) -> bool:
    """Whether the loader passed over a file of the environment, or over one that is to be judged, for its processor."""
    return tried.why.startswith(FOREIGN) and (view.is_own(tried.path) or tried.path in view.situation.extra)


def add_file(view: View, found: dict[str, Foreign], path: str, failure: MissingLibrary, *, severity: str) -> None:
    """Put a file that the loader passed over to its package."""
    owners = view.owners(path)
    label = f"{owners[0].name} {owners[0].version}" if owners else path
    known = found.setdefault(label, Foreign(label=label))
    known.path = known.path or path
    known.error = known.error or error_of(view, path, failure)
    known.requester = known.requester or (Requester(
        path=plain(view, failure.requester), package=named(owner_at(view, failure.requester)))
        if failure.requester else None)
    known.lines.setdefault(f"{path} is for {what_it_is(view, path)}")
    known.worsen(severity)


def error_of(view: View, path: str, failure: MissingLibrary) -> str:
    """The loader's line; Python does not even look for a module that has another platform in its name."""
    module = next((each for each in view.environment.shared_objects if each.path == path and each.module), None)
    suffix, wanted = PLATFORM.search(module.tag or "") if module else None, architecture(view)
    if module is not None and suffix is not None and wanted is not None and suffix[1] != wanted:
        return f"ModuleNotFoundError: No module named '{module.module}'"
    return failure.message()


def architecture(view: View) -> str | None:
    """The processor that the environment's interpreter was built for."""
    if view.start.objects:
        return view.start.objects[0].elf.machine
    python = view.environment.python
    return CHECKED_MACHINES.get(python.platform or "") if python else view.machine.architecture


def foreign_tags(distribution: Distribution, wanted: str) -> tuple[str, ...]:
    """Platforms of a wheel, where none of them is the environment's; empty where one is."""
    platforms = tuple(dict.fromkeys(part for each in distribution.tags for part in each.rpartition("-")[2].split(".")))
    fits = {"any"} | {each for each in platforms if (match := LINUX.match(each)) and match[1] == wanted}
    known = all(LINUX.match(each) or each.startswith(("win", "macosx")) for each in platforms)
    return platforms if platforms and known and not fits & set(platforms) else ()


def first_file(view: View, distribution: Distribution) -> str | None:
    """The first compiled file of a distribution."""
    return next((each.path for each in view.environment.shared_objects
                 if any(owner.name == distribution.name for owner in each.owners)), None)


def has_fitting(view: View, path: str) -> bool:
    """Whether the package also has files for this machine: debuggers bring one for each that they know."""
    wanted, owners = architecture(view), view.owners(path)
    for each in view.environment.shared_objects:
        if owners and each.owners and each.owners[0] == owners[0] and each.path != path:
            at = view.files.at(each.path)
            if isinstance(at, FileAt) and isinstance(at.elf, ElfObject) and (at.elf.machine, at.elf.bits) == (
                    wanted, view.situation.loader.machine.bits):
                return True
    return False


def what_it_is(view: View, path: str) -> str:
    """The machine of a file: "aarch64", "32-bit EM_386"."""
    at = view.files.at(path)
    if not isinstance(at, FileAt) or not at.elf.bits:
        return "another machine"
    width = f"{at.elf.bits}-bit " if at.elf.bits != view.situation.loader.machine.bits else ""
    return f"{width}{at.elf.machine or 'file'}"


def describe(view: View, known: Foreign, wanted: str | None) -> Finding:
    """SF905 of one package."""
    lines = tuple(known.lines)
    name, _, version = known.label.partition(" ")
    package, made = known.label if version else None, "build" if known.path in view.situation.extra else "install"
    return make_finding(
        "SF905", known.severity, level="extensions", summary=f"{known.label} is not for this machine: {lines[0]}"
        if package else f"{lines[0]}, and the environment is for {wanted or 'another processor'}",
        why=f"The environment is for {wanted or 'another processor'}. The loader passes over files for another one, so "
            "it says that there is no such file.",
        culprit=Culprit(path=known.path or (None if package else known.label), package=package),
        requester=known.requester,
        evidence=(*lines[:MOST_FILES], *((f"and {len(lines) - MOST_FILES} more files",) if len(lines) > MOST_FILES
                                         else ())), error=known.error,
        cure=(reinstall(view, Owner(manager="pip", name=name, version=version)),) if package else
        (f"{made} {known.label.rpartition('/')[2]} for {wanted or 'its processor'}",),
        why_not=None if package else "no package is known that has the file for this machine")
