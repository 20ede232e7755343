"""A stack and one target as a closure problem: root needs, the user's limits, what is preferred, what is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urldefrag, urlsplit

from packaging.version import Version

from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.judged import judged_exclusion, judgements
from stackfix.resolve.needs import Candidate, Exclusion, FromStack, FromUser, Need
from stackfix.resolve.pep508 import ANY, normalise, parse_specifier, parse_version
from stackfix.resolve.problem import Problem, needs_of
from stackfix.resolve.question import FLASH_ATTN, TORCH, Question, UserLine
from stackfix.resolve.records import Target
from stackfix.resolve.stack import Stack
from stackfix.resolve.target import TargetView
from stackfix.sources.records import IndexFile

# Without build isolation nothing brings these; every setup.py needs both.
BUILD_TOOLS = ("setuptools", "wheel")


def closure_problem(
    evidence: Evidence, question: Question, stack: Stack, target: Target, plan: FlashPlan | None, flash: FlashAttn
) -> Problem:
    """The closure problem of one target."""
    build = stack.builds[target.place]
    view = evidence.view(target)
    roots = [torch_need(stack, build)]
    limits: dict[str, tuple[Need, ...]] = {}
    direct: dict[str, Candidate] = {}
    only: dict[str, Candidate | None] = {}
    why_not: dict[str, tuple[Exclusion, ...]] = {}
    for line in question.lines:
        for need in line.needs(view):
            if line.requirement.constraint:
                limits[need.name] = (*limits.get(need.name, ()), need)
            else:
                roots.append(need)
            if need.url is not None and need.extra is None:
                given = direct[need.name] = direct_candidate(need.url, line, view, direct.get(need.name))
                against = judged_exclusion(judgements(evidence.books, given.files[0], build), given.text)
                only[need.name] = given if against is None else None
                why_not[need.name] = () if against is None else (against,)
    planned = _flash_attn(evidence, question, target, plan, flash)
    if FLASH_ATTN not in only:
        roots.extend(planned.roots)
        only[FLASH_ATTN] = planned.candidate
        why_not[FLASH_ATTN] = planned.why_not
    fixed = {TORCH: stack.version}
    flash_attn = _flash_attn_version(only.get(FLASH_ATTN), plan, target)
    if flash_attn is not None:
        fixed[FLASH_ATTN] = flash_attn
    return Problem(
        evidence=evidence, target=target, build=build, roots=tuple(roots), limits=limits, only=only,
        only_exclusions=why_not, only_requires=planned.requires, fixed=fixed,
        preferred=preferred_versions(evidence, question, build, target), allowed=question.allowed_hashes(view),
        present=frozenset(need.name for need in roots),
    )


def _flash_attn_version(given: Candidate | None, plan: FlashPlan | None, target: Target) -> Version | None:
    """The flash-attn that the environment will hold, in whichever step it comes."""
    if given is not None:
        return given.version
    return parse_version(plan.version) if plan is not None and target in plan.sdists else None


def torch_need(stack: Stack, build: TorchBuild) -> Need:
    """The pin of torch, which nothing may move."""
    return Need(
        name=TORCH, extra=None, specifier=parse_specifier(f"=={stack.text}") or ANY, text=f"torch=={stack.text}",
        origin=FromStack(part=TORCH, source=build.source),
    )


def preferred_versions(
    evidence: Evidence, question: Question, build: TorchBuild, target: Target | None = None,
) -> Mapping[str, tuple[Version, ...]]:
    """Versions to try before the newest: the kept lock's, then those of torch's own toolkit release.

    A lock of another torch keeps nothing of torch's toolkit: its libraries would be a mixture of two releases.
    """
    # Locks of several targets may pin one project at several versions: each target keeps its own, or takes the newest
    # of them that fits it.
    own = {} if target is None else versions_of(pin for python, place, pins in question.request.kept_of_targets
                                                if (python, place) == (target.python, target.place) for pin in pins)
    found = {name: (*own.get(name, ()), *(version for version in versions if version not in own.get(name, ())))
             for name, versions in versions_of(question.request.kept).items()}
    torch = parse_version(build.version)
    another = TORCH in found and torch not in found[TORCH]
    for name, text in query.preferred_versions(evidence.matrix, build).items():
        version = parse_version(text)
        if version is not None:
            found[name] = (version,) if another else (*found.get(name, ()), version)
    return found


def versions_of(pins: Iterable[tuple[str, str]]) -> dict[str, tuple[Version, ...]]:
    """The versions of each name, newest first."""
    found: dict[str, set[Version]] = {}
    for name, text in pins:
        version = parse_version(text)
        if version is not None:
            found.setdefault(normalise(name), set()).add(version)
    return {name: tuple(sorted(versions, reverse=True)) for name, versions in found.items()}


class _Given:
    """What flash-attn brings into the problem."""

    def __init__(self) -> None:
        self.candidate: Candidate | None = None
        self.roots: tuple[Need, ...] = ()
        self.requires: dict[str, tuple[str, ...]] = {}
        self.why_not: tuple[Exclusion, ...] = ()


def _flash_attn(
    evidence: Evidence, question: Question, target: Target, plan: FlashPlan | None, flash: FlashAttn
) -> _Given:
    given = _Given()
    if plan is None or not plan.covers(target):
        given.why_not = (_not_in_the_stack(question),)
        return given
    release = query.flash_attn_release(evidence.matrix, plan.version)
    if release is None:
        raise AssertionError(f"a plan for flash-attn {plan.version}, which the matrix has no row for")
    origin = FromStack(part=FLASH_ATTN, source=release.source)
    if target in plan.wheels:
        file = flash.file(plan.wheels[target])
        given.candidate = Candidate(
            name=FLASH_ATTN, extra=None, version=parse_version(plan.version) or Version("0"), text=plan.version,
            files=(file,), direct=True,
        )
        given.requires = {FLASH_ATTN: (TORCH, *release.requires)}
        pin = f"{FLASH_ATTN}=={plan.version}"
        given.roots = tuple(needs_of(pin, origin))
    else:
        lines = (*release.requires, *release.build_requires, *BUILD_TOOLS)
        given.roots = tuple(need for line in dict.fromkeys(lines) for need in needs_of(line, origin))
        given.why_not = (_in_the_second_step(plan),)
    return given


def _not_in_the_stack(question: Question) -> Exclusion:
    asks = question.ask("no-flash-attn")
    reason = "is left out, as asked" if asks else "has no prebuilt wheel for this stack"
    return Exclusion(
        version="any", kind="matrix", reason=reason, source="--no-flash-attn" if asks else "flash-attn in the matrix",
        by_torch=not asks, by_python=not asks, by_flash_attn=True,
    )


def _in_the_second_step(plan: FlashPlan) -> Exclusion:
    return Exclusion(
        version=plan.version, kind="matrix", reason="can only be built after everything else is installed",
        source="flash-attn in the matrix", by_torch=True, by_python=True, by_flash_attn=True,
    )


def direct_candidate(url: str, line: UserLine, view: TargetView, other: Candidate | None) -> Candidate:
    """The candidate of a direct address. Raises BadInput for one that cannot be pinned or does not fit the target."""
    place = line.requirement.origin
    address, fragment = urldefrag(url)
    hashes = [part.removeprefix("sha256=") for part in fragment.split("&") if part.startswith("sha256=")]
    if line.name == TORCH:
        raise BadInput(place, "torch is chosen from the index", "ask for a version with --torch")
    if len(hashes) != 1 or len(hashes[0]) != 64 or set(hashes[0].lower()) - set("0123456789abcdef"):
        raise BadInput(place, "an address is only locked with its hash", "append #sha256=<64 hexadecimal digits>")
    filename = unquote(urlsplit(address).path.rpartition("/")[2])
    parts = filename.removesuffix(".whl").split("-")
    if not filename.endswith(".whl") or len(parts) not in {5, 6} or "/" in filename or "\\" in filename:
        raise BadInput(place, f"{filename!r} is no wheel's file name", "name the address of a wheel")
    version = parse_version(parts[1])
    if normalise(parts[0]) != line.name or version is None:
        raise BadInput(place, f"{filename} is not a wheel of {line.name}", "check the address")
    if view.rank(filename) is None:
        target = view.target
        raise BadInput(place, f"{filename} does not fit Python {target.python} on {target.platform}",
                       "restrict the requirement to its target with a marker")
    if other is not None:
        raise BadInput(place, f"{line.name} is asked for at two addresses", "give one of them")
    file = IndexFile(
        project=line.name, filename=filename, version=parts[1], url=address, sha256=hashes[0].lower(),
        requires_python=None, yanked=None, size=None, upload_time=None, core_metadata=None,
        index=address.rpartition("/")[0],
    )
    public = parse_version(version.public) or version
    return Candidate(
        name=line.name, extra=None, version=public, text=str(public), files=(file,), direct=True,
    )


def asked_by(need: Need) -> str:
    """Who asks for a need, for `requested_by`."""
    if isinstance(need.origin, FromUser):
        return need.origin.place
    if isinstance(need.origin, FromStack):
        return need.origin.part
    return need.origin.parent.name
