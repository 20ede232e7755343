"""An installed environment beside a lock and its proof: what is not as it was locked, and as it was proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.version import InvalidVersion, Version

from stackfix.diagnose.situation import View
from stackfix.inspect.records import ElfObject, FileAt
from stackfix.prove.compare_records import Deviation, Expected
from stackfix.prove.facts import Short, answers, facts_of
from stackfix.prove.proof_records import ProvenFile, ProvenImport, ProvenTarget, Resolved


def deviations(view: View, expected: Sequence[Expected], proof: ProvenTarget | None) -> Iterator[Deviation]:
    """What differs: packages first, then the files that are mapped."""
    yield from of_packages(view, expected)
    if proof is not None:
        yield from of_proof(expected, proof)
        yield from of_files(view, proof.files)
        yield from of_imports(view, proof)


# --- packages ---


def of_packages(view: View, expected: Sequence[Expected]) -> Iterator[Deviation]:
    """Packages of the lock that are not there, or in another version."""
    for each in expected:
        found = view.distributions.get(each.name)
        if found is None:
            yield Deviation(kind="package", what=each.name, expected=each.version or "any version", found=None)
        elif each.version is not None and not is_version(found.version, each.version):
            yield Deviation(kind="version", what=each.name, expected=each.version, found=found.version)
        elif found.origin is not None and found.origin.sha256 is not None and each.sha256 and (
                found.origin.sha256 not in each.sha256):
            yield Deviation(kind="origin", what=f"{each.name} {found.version}", found=f"sha256:{found.origin.sha256}",
                            expected=" or ".join(f"sha256:{digest}" for digest in each.sha256[:3]))


def is_version(found: str, locked: str) -> bool:
    """Whether they are one version; where one has no local part, that of the other does not count."""
    try:
        one, other = Version(found), Version(locked)
    except InvalidVersion:
        return found == locked
    return one == other or ((one.local is None or other.local is None) and one.public == other.public)


def of_proof(expected: Sequence[Expected], proof: ProvenTarget) -> Iterator[Deviation]:
    """Where the proof is not that of the lock."""
    by_name = {each.name: each for each in expected}
    outside = {each.name for each in proof.outside}
    if by_name and by_name.keys() <= outside:
        return                          # the second step of the lock that was proven
    proven = {each.name for each in proof.wheels} | outside
    for each in expected:
        if each.name not in proven:
            yield Deviation(kind="proof", what=each.name, expected=f"{each.version or 'any version'}, as locked",
                            found=None)
    for wheel in proof.wheels:
        locked = by_name.get(wheel.name)
        if locked is None:
            yield Deviation(kind="proof", what=wheel.name, expected="not in the lock",
                            found=f"{wheel.version} is proven")
        elif locked.sha256 and wheel.sha256 not in locked.sha256:
            yield Deviation(kind="proof", what=wheel.name, found=f"{wheel.version} sha256:{wheel.sha256} is proven",
                            expected=f"{locked.version}, of which no file has that hash")


# --- files ---


def of_files(view: View, files: Sequence[ProvenFile]) -> Iterator[Deviation]:
    """Files that are mapped and are not those of the wheels, by their size and their build."""
    site = installed_site(view)
    for each in files:
        inside = each.path.removeprefix("../")
        at = view.files.at(f"{site if inside == each.path else view.environment.prefix}/{inside}") if not (
            {"", ".", ".."} & set(inside.split("/"))) else None     # nothing else of this machine is looked at
        if not isinstance(at, FileAt):
            yield Deviation(kind="file", what=each.path, expected="a file", found=None)
        elif not isinstance(at.elf, ElfObject):
            yield Deviation(kind="file", what=each.path, expected="a shared object", found=at.elf.reason)
        elif at.elf.build_id != each.build_id and each.build_id is not None:
            yield Deviation(kind="file", what=each.path, expected=f"build {each.build_id}",
                            found=f"build {at.elf.build_id}" if at.elf.build_id else "a file without a build id")
        elif at.elf.size != each.size:
            yield Deviation(kind="file", what=each.path, expected=f"{each.size} bytes", found=f"{at.elf.size} bytes")


def installed_site(view: View) -> str:
    """The site folder that the stack lies in: torch's, else the environment's own."""
    torch = view.distributions.get("torch")
    if torch is not None:
        return torch.site
    return next((each.path for each in view.environment.sites if each.kind == "environment"), view.environment.prefix)


# --- imports ---


def of_imports(view: View, proof: ProvenTarget) -> Iterator[Deviation]:
    """Names that are resolved otherwise than it was proven, each once; imports that no longer happen."""
    short = Short(view, system_names(proof))
    here = facts_of(view, short)
    yield from fewer_imports(here, proof.imports)
    proven, system, told = answers(proof.imports), system_names(proof), set[Resolved]()
    for one in here:
        for each in one.resolved:
            winners = proven.get((one.project, one.phase, each.requester, each.name), {each.winner})
            if each.winner not in winners and not winners & system and each not in told:
                told.add(each)
                yield Deviation(kind="resolution", what=asks(each), expected=" or ".join(sorted(winners)),
                                found=each.winner, how=each.how)


def system_names(proof: ProvenTarget) -> frozenset[str]:
    """Libraries of the system, which a proof tells by their sonames and which may lie anywhere; and Python."""
    return frozenset((*(each.library for each in proof.assumed), "python"))


def asks(resolved: Resolved) -> str:
    """A question in words."""
    return f"{resolved.requester} needs {resolved.name}" if resolved.requester else f"Python opens {resolved.name}"


def fewer_imports(here: Sequence[ProvenImport], proven: Sequence[ProvenImport]) -> Iterator[Deviation]:
    """Imports of the proof that open nothing here: their package is not there, or not importable."""
    known = {each.project for each in here}
    for each in proven:
        if each.phase == "import" and each.project not in known:
            yield Deviation(kind="import", what=f"import {each.imports}", expected=f"maps {len(each.maps)} files",
                            found=None)


__all__ = ["Deviation", "Expected", "deviations"]
