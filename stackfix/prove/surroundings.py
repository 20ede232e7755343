"""The environments of the table for one locked stack: which releases lie in the way, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from stackfix.matrix.proof_records import Surroundings
from stackfix.matrix.records import ToolkitComponent
from stackfix.platforms import LINUX_MACHINES
from stackfix.prove.base import numbers
from stackfix.prove.records import PlannedWheel, TableSource, WheelTables
from stackfix.prove.simulate import Met
from stackfix.prove.tree import Placed, placed

TOOLKIT = "toolkit"
OLDER, NEWER, MAJOR_BEFORE = "older minor", "newer minor", "older major"


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What of a lock decides which releases are another minor."""

    cuda: str                       # of torch: "12.1"; "cpu"
    platform: str
    versions: Mapping[str, str]     # by project: {"nvidia-cudnn-cu12": "8.9.2.26"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """One environment, ready to be tried. `met` None: it cannot be, and `why` says why."""

    row: Surroundings
    met: Met | None
    holds: tuple[str, ...]          # "nvidia-nvjitlink-cu12 12.0.140"
    variables: tuple[tuple[str, str], ...]
    why: str | None = None


def lay(row: Surroundings, locked: Locked, components: Sequence[ToolkitComponent], source: TableSource) -> Laid:
    """One row of the table beside one locked stack."""
    if not row.brings:
        return Laid(row=row, met=Met(without=row.without), holds=(), variables=())
    if locked.cuda == "cpu":
        return not_tried(row, "the stack is for the CPU")
    wheels = tuple(wheels_of(row, locked, components, source))
    if not wheels:
        return not_tried(row, f"no release that is the {row.release} of what is locked has tables that ship")
    known = source.known(wheels)
    files: dict[str, Placed] = {}
    for each in wheels:
        if each.sha256 in known:
            files |= place_flat(known[each.sha256], row.folder or "", source)
    if not files:
        return not_tried(row, "nothing is known of the wheels that stand for it")
    variables = tuple(variables_of(row, files))
    said = dict(variables)
    return Laid(row=row, variables=variables, holds=tuple(f"{each.name} {each.version}" for each in wheels),
                met=Met(files=files, library_path=said.get("LD_LIBRARY_PATH"), preload=said.get("LD_PRELOAD"),
                        without=row.without))


def not_tried(row: Surroundings, why: str) -> Laid:
    return Laid(row=row, met=None, holds=(), variables=(), why=why)


def variables_of(row: Surroundings, files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The variable that brings the folder into the loader's way."""
    if row.variable == "LD_LIBRARY_PATH" and row.folder is not None:
        yield row.variable, row.folder
    elif row.variable is not None and row.preload is not None:
        named = sorted(path for path in files if fnmatchcase(path.rpartition("/")[2], row.preload))
        yield row.variable, ":".join(named)


def place_flat(tables: WheelTables, folder: str, source: TableSource) -> dict[str, Placed]:
    """The libraries of a wheel in one folder, as a toolkit has them."""
    found = {}
    for each in tables.libraries:
        name = each.path.rpartition("/")[2]
        if name.startswith("lib") and ".so" in name:
            place = f"{folder}/{name}"
            found[place] = placed(tables.sha256, each.path, each.elf, place, source)
    return found


# --- which releases ---


def wheels_of(row: Surroundings, locked: Locked, components: Sequence[ToolkitComponent],
              source: TableSource) -> Iterator[PlannedWheel]:
    """What a row brings beside this stack."""
    for project in row.brings:
        if project == TOOLKIT:
            yield from of_toolkit(row.release, locked, components, source)
        else:
            name = locked_name(project, locked)
            wheel = of_project(row.release, name, locked, source) if name is not None else None
            if wheel is not None:
                yield wheel


def of_toolkit(release: str | None, locked: Locked, components: Sequence[ToolkitComponent],
               source: TableSource) -> Iterator[PlannedWheel]:
    """The library wheels of another toolkit: of the newest that fits, of those of which the most ship."""
    by_toolkit: dict[str, list[ToolkitComponent]] = {}
    for each in components:
        by_toolkit.setdefault(each.toolkit, []).append(each)
    best: tuple[PlannedWheel, ...] = ()
    for toolkit in sorted((each for each in by_toolkit if is_wanted(release, each, locked.cuda)), key=numbers):
        found = tuple(wheel for each in by_toolkit[toolkit]
                      for wheel in for_platform(source.shipped(each.package), locked.platform)
                      if wheel.version == each.version)
        best = found if len(found) >= len(best) else best
    yield from sorted(best, key=lambda each: each.name)


def of_project(release: str | None, name: str, locked: Locked, source: TableSource) -> PlannedWheel | None:
    """Another release of one library: the nearest older or the newest newer minor of the same major."""
    wanted = [each for each in for_platform(source.shipped(name), locked.platform)
              if is_wanted(release, each.version, locked.versions[name])]
    return max(wanted, key=lambda each: numbers(each.version), default=None)


def is_wanted(release: str | None, version: str, own: str) -> bool:
    """Whether a version is another minor, or of the major before, as a row asks."""
    parts, mine = numbers(version), numbers(own)
    if len(parts) < 2 or len(mine) < 2:
        return False
    if release == MAJOR_BEFORE:
        return parts[0] == mine[0] - 1
    if parts[0] != mine[0]:
        return False
    return parts[1] < mine[1] if release == OLDER else parts[1] > mine[1]


def locked_name(project: str, locked: Locked) -> str | None:
    """The locked project of a library: "nvidia-cudnn-cu12" of "nvidia-cudnn"."""
    return next((each for each in sorted(locked.versions)
                 if each == project or each.rpartition("-cu")[0] == project), None)


def for_platform(wheels: Iterable[PlannedWheel], platform: str) -> Iterator[PlannedWheel]:
    """Those for one processor."""
    end = f"{LINUX_MACHINES.get(platform, platform)}.whl"
    return (each for each in wheels if each.file.endswith(end))
