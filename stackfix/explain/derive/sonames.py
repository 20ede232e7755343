"""Libraries by their file names: which family, which wheels carry one, where these put it, which torch brings them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stackfix.explain.derive.pins import asked_for, libraries_of, linux_builds
from stackfix.explain.derive.words import key_of
from stackfix.explain.records import Facts
from stackfix.matrix.library_records import LibraryFamily, OpenedByName
from stackfix.matrix.records import TorchBuild

# "libcudart.so.11.0", also "libcublas.so.*[0-9]" as torch looks for one, and "libcublas-a1b2c3d4.so.12" of a wheel
SONAME = re.compile(r"(?P<stem>lib[A-Za-z0-9_+-]+?)(?:-[0-9a-f]{8})?\.so(?:\.(?P<version>\d+(?:\.\d+)*))?(?:\.\*\S*)?$")
SITE = "$(python -c 'import site; print(site.getsitepackages()[0])')"       # where a text names none
SUFFIX = re.compile(r"-cu(\d\d)$")
NUMBERED = re.compile(r"/cu\d+/")
OUTSIDE = frozenset({"libcusparseLt"})      # that of nvidia-cusparselt-cu12 0.6.2 is in cusparselt/lib
UNSUFFIXED = "13"               # CUDA 13's wheels have no CUDA in their names


def family_of_stem(stem: str, families: Iterable[LibraryFamily]) -> LibraryFamily | None:
    """The library that a file name without its version belongs to."""
    return next((each for each in families if stem in each.stems), None)


def cuda_of_package(package: str) -> str:
    """The CUDA major of a wheel of NVIDIA's by its name."""
    match = SUFFIX.search(package)
    return match[1] if match else UNSUFFIXED


def carriers(soname: str, family: LibraryFamily, facts: Facts) -> tuple[str, ...]:
    """Wheels with a library: by the almanac, else those of the family whose version begins as the soname ends."""
    known = facts.books.nvidia.packages(soname)
    version = SONAME.fullmatch(soname)
    if known or version is None or not version["version"]:
        return known
    names = {f"{project}{suffix}" for project in family.projects for suffix in ("", "-cu11", "-cu12", "-cu13")}
    major = version["version"].partition(".")[0]
    return tuple(dict.fromkeys(each.package for each in facts.matrix.components
                               if each.package in names and each.version.partition(".")[0] == major))


def cuda_majors(packages: Iterable[str]) -> tuple[str, ...]:
    """CUDA majors that wheels are for, oldest first."""
    return tuple(sorted({cuda_of_package(each) for each in packages}))


def folders(stems: Sequence[str], cuda: str | None, facts: Facts) -> tuple[str, ...]:
    """Folders of a site folder in which wheels have a library: those in which torch looks for it."""
    found: dict[str, None] = {}
    for row in facts.libraries.imports:
        for step in row.steps if row.project == "torch" else ():
            for pattern in (step.file, *step.also):
                folder, _, name = pattern.rpartition("/")
                if any(name.startswith(f"{stem}.so") for stem in stems) and (
                        folder.startswith("nvidia/") or stems[0] in OUTSIDE):
                    found[folder.replace("{cuda}", cuda or UNSUFFIXED)] = None
    numbered = [each for each in found if NUMBERED.search(each)]
    if cuda is None or not numbered:
        return tuple(found)
    return tuple(numbered if int(cuda) >= int(UNSUFFIXED) else [each for each in found if each not in numbered])


def searched_since(stem: str, facts: Facts) -> str | None:
    """The oldest torch that looks for a library in every folder of sys.path, where the loader does not find it."""
    floor: str | None = None
    for row in facts.libraries.imports:
        if row.project != "torch":
            continue
        since = re.search(r"[>=]=\s*(\d+(?:\.\d+)*)", row.versions or "")
        looks = any(step.when in {"failed", "loaded"} and f"/{stem}.so" in step.file for step in row.steps)
        if looks and since and (floor is None or key_of(since[1]) < key_of(floor)):
            floor = since[1]
    return floor


def builds_bringing(packages: Sequence[str], soname: str, facts: Facts) -> tuple[TorchBuild, ...]:
    """Builds of torch whose own requirements, or what these need, bring the library."""
    found: list[TorchBuild] = []
    asked = asked_for(facts) & set(packages)
    for build in linux_builds(facts) if asked else ():
        libraries = libraries_of(build, facts) if build.cuda != "cpu" else {}
        if any(each in asked and each in libraries and has(each, libraries[each], soname, facts) for each in packages):
            found.append(build)
    return tuple(found)


def has(package: str, version: str, soname: str, facts: Facts) -> bool:
    """Whether a version of a wheel has a library: by the almanac; of an unread one cuDNN's own number tells."""
    exported = facts.books.nvidia.exported(package, version, soname)
    if exported is not None:
        return bool(exported)
    wanted = SONAME.fullmatch(soname)
    counts = wanted is not None and wanted["version"] is not None and "cudnn" in package
    return not counts or (wanted is not None and version.startswith(f"{wanted['version']}."))


def openers(name: str, facts: Facts) -> str:
    """Libraries that open one by this name while they run, and what for."""
    return opening(rows_opening(name, facts))


def optional_for(name: str, family: LibraryFamily, facts: Facts) -> str:
    """The same, of a plugin: one that libraries of its own family open, and do without; else ""."""
    rows = rows_opening(name, facts)
    own = all(each.optional and family_of_stem(each.library.partition(".so")[0], (family,)) for each in rows)
    return opening(rows) if own else ""


def rows_opening(name: str, facts: Facts) -> list[OpenedByName]:
    return [row for row in facts.libraries.opened
            if any(name == each.replace("{cuda}", cuda) for each in row.names for cuda in ("11", "12", "13"))]


def opening(rows: Iterable[OpenedByName]) -> str:
    """Who opens it, and what for, in words."""
    told = [f"{row.library}" + (f" ({row.versions})" if row.versions else "") + f", for {row.why}" for row in rows]
    return "; ".join(dict.fromkeys(told))
