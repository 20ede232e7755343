"""Parts of one library, such as cuDNN's sublibraries, that come from different versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.families_parts import Part, bringer, named, owner_at, parts_of, plain, same_version
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.provenance import Provenance, trace
from stackfix.diagnose.records import Failure, MissingSymbol, MissingVersion
from stackfix.diagnose.situation import Opening, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A part of a family that comes from elsewhere than the main one."""

    home: Part                      # a part of the copy that the rest comes from
    foreign: Part
    same: bool | None               # version; None where one is not known
    opening: Opening
    parts: tuple[Part, ...]         # all of the family and major


def find_mixed_origins(view: View) -> Iterator[Finding]:
    """SF302: one finding for each pair of folders that parts of one library come from."""
    groups: dict[tuple[str, str, str], list[Mix]] = {}
    told = set()
    for opening, parts in parts_of(view).openings:
        for each in find_mixes(view, opening, parts):
            if each.foreign.path not in told:
                told.add(each.foreign.path)
                groups.setdefault((each.foreign.family.name, each.home.folder, each.foreign.folder), []).append(each)
    for group in groups.values():
        yield describe_mix(view, group)


def find_mixes(view: View, opening: Opening, parts: Sequence[Part]) -> Iterator[Mix]:
    """Foreign parts among those that the opening maps anew.

    A bundled copy with a hash in its name is only found by those that were linked with that name, and the driver's
    libraries have checks of their own.
    """
    groups: dict[tuple[str, int | None], dict[str, Part]] = {}
    for part in parts:
        if part.stem in part.family.stems and part.family.level != "driver":
            groups.setdefault((part.family.name, part.major), {}).setdefault(part.stem, part)
    new = set(opening.outcome.loaded)
    for group in map(list, map(dict.values, groups.values())):
        if len({part.folder for part in group}) < 2 or not any(part.number in new for part in group):
            continue
        home = home_of(view, group)
        for part in group:
            same = same_version(home.version, part.version)
            if part.folder != home.folder and not is_copy(part, home, group) and not (
                    same is None and not part.family.one_per_process):      # nor does it matter there as a rule
                yield Mix(home=home, foreign=part, same=same, opening=opening, parts=tuple(group))


def home_of(view: View, group: Sequence[Part]) -> Part:
    """The part that the rest should come with: of the environment, of the library's main file, mapped first."""
    stems = group[0].family.stems
    return min(group, key=lambda each: (
        not view.is_own(each.path, each.object.real_path),
        not each.soname.startswith(f"{stems[0]}.so"), each.number))


def is_copy(part: Part, home: Part, group: Sequence[Part]) -> bool:
    """Whether a part was installed together with the home one, into another folder (a split package)."""
    if part.owner is not None and part.owner == home.owner:
        return True
    return any(other.folder == home.folder and other.object.identity == part.object.identity for other in group)


def describe_mix(view: View, group: Sequence[Mix]) -> Finding:
    """One finding for the foreign parts of one folder."""
    unsure = [each for each in group if each.same is None]
    differ = [each for each in group if each.same is False]
    one = (differ or unsure or list(group))[0]
    foreign, home, family = one.foreign, one.home, one.foreign.family
    failures = broken_by(view, group)
    severity = severity_of(one, differ, unsure, failures)
    names = sorted({each.foreign.soname for each in differ or unsure or group})
    asking = bringer(foreign, one.opening.outcome.attempted)
    asking_path = asking.path if asking else caller_of(one)
    asking_path = plain(view, asking_path) if asking_path else None
    traced = trace(view, foreign.object, foreign.path, foreign.object.found_via)
    inside = view.is_own(foreign.path, foreign.object.real_path)
    return make_finding(
        "SF302", severity, level=family.level,
        summary=f"{', '.join(names)} {'comes' if len(names) == 1 else 'come'} from {foreign.origin()} and the rest of "
                f"{family.name} from {home.origin()}",
        why=reason(one, traced, severity),
        culprit=Culprit(path=foreign.path, package=named(foreign.owner),
                        variable=traced.variable),
        requester=Requester(path=asking_path, package=named(owner_at(view, asking_path))),
        symbols=tuple(dict.fromkeys(each.name for each in failures if isinstance(each, MissingSymbol))),
        evidence=(*(f"{part.soname}: {part.path} ({part.origin()}), found via {via(part)}" for part in one.parts),
                  *traced.lines, f"seen at: {one.opening.what}"),
        error=failures[0].message() if failures else expected_error(home, severity),
        winner=foreign.path, loser=hidden_by(view, one), cure=cure(one, traced, inside=inside),
        why_not=why_not(one, traced, inside=view.is_inside(foreign.path), severity=severity),
    )


def severity_of(one: Mix, differ: Sequence[Mix], unsure: Sequence[Mix], failures: Sequence[Failure]) -> str:
    """Parts of one version from two places harm nobody; what may not be needed at all, and the unknown, may."""
    if failures:
        return "error"
    if not differ:
        return "warning" if unsure else "note"
    # an optional part harms as much as any other once it is found: cuDNN compares versions
    return "warning" if one.opening.phase == "module" else "error"


def broken_by(view: View, group: Sequence[Mix]) -> list[Failure]:
    """What the loader does not find between the parts of the mix."""
    parts = {path for each in group for part in each.parts for path in (part.object.path, part.object.real_path)}
    sonames = {part.soname for each in group for part in each.parts}
    found = dict.fromkeys(failure for opening in view.openings for failure in opening.outcome.failures
                          if isinstance(failure, MissingSymbol | MissingVersion) and failure.requester in parts
                          and provider_name(failure) in sonames)
    return list(found)


def provider_name(failure: MissingSymbol | MissingVersion) -> str | None:
    """Soname of the library that should have what is missing."""
    if isinstance(failure, MissingSymbol):
        return failure.file
    return failure.provider.rpartition("/")[2]


def caller_of(mix: Mix) -> str | None:
    """Path of the object that opens the part by name."""
    identity = mix.opening.request.caller
    found = mix.opening.outcome.attempted.by_identity(identity) if identity is not None else None
    return found.path if found else None


def via(part: Part) -> str:
    found = part.object.found_via
    return found.step + (f" ({found.element or 'the current folder'})" if found.element is not None else "")


def reason(mix: Mix, traced: Provenance, severity: str) -> str:
    """How the parts come to differ, and what follows."""
    if severity == "note":
        return f"It is the same version, so nothing breaks now: {traced.how}."
    unknown = ", and the foreign part's version is not known" if mix.same is None else ""
    return f"Parts of one version only fit each other{unknown}: {traced.how}."


def hidden_by(view: View, mix: Mix) -> str:
    """The file that ought to be loaded: the one of that name beside the home part, else the home part."""
    wanted = f"{mix.home.path.rpartition('/')[0]}/{mix.foreign.path.rpartition('/')[2]}"
    return wanted if view.files.at(wanted) is not None else mix.home.path


def expected_error(home: Part, severity: str) -> str | None:
    """What cuDNN 9 says at first use; older ones have no such status. Source: cuDNN API reference, cudnnStatus_t."""
    told = home.family.name == "cuDNN" and home.major == 9 and severity == "error"
    return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH" if told else None


def cure(mix: Mix, traced: Provenance, *, inside: bool) -> tuple[str, ...]:
    """Take the foreign part away; no file is ever copied into a wheel's folder."""
    name, home = mix.foreign.family.name, mix.home
    if traced.variable is not None:
        return (*traced.undo, f"or put {home.path.rpartition('/')[0]} first on LD_LIBRARY_PATH")
    if inside:
        return (f"remove {mix.foreign.origin()}, or install both parts in one version",)
    return (f"ask an administrator to remove the system's {name}, the package that owns {mix.foreign.object.real_path}",
            *traced.undo, f"or to install the system's {name} in version {home.version}")


def why_not(mix: Mix, traced: Provenance, *, inside: bool, severity: str) -> str | None:
    if severity == "note":
        return "nothing is broken"
    if inside or traced.variable is not None:
        return None
    return f"{mix.foreign.path} lies outside of the environment, and nothing inside it is missing"
