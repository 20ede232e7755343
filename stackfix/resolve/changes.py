"""Changes of one thing that was asked, nearest first. Whether a change helps is for the caller to solve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.matrix import query
from stackfix.matrix.records import Matrix
from stackfix.platforms import CPU, split_place
from stackfix.quick import dataclass, replace
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_version
from stackfix.resolve.places import follows_cuda, has_cuda
from stackfix.resolve.question import TORCH, requirement_ask, with_cuda, without
from stackfix.resolve.records import Asked, Requirement, StackRequest

NAMES = {"cuda": "CUDA ", "python": "Python ", "channel": "channel ", "platform": "platform ",
         "exclude-newer": "files uploaded before "}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed request. `settle` names a project whose found version is then asked for in so many words."""

    request: StackRequest
    text: str                       # "--cuda 12.1 in place of 13.0"
    settle: str | None = None


def changes_of(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    """Changes of `asked`, nearest first; leaving it out comes last."""
    others = {"torch": _other_torch, "cuda": _other_cuda, "python": _other_python, "platform": _other_place,
              "driver": _other_driver, "no-driver": _with_driver, "requirement": _other_requirement}
    if asked.kind in {"driver", "gpu-arch"}:
        yield from _variants_that_run(matrix, request)
    if asked.kind in others:
        yield from others[asked.kind](matrix, request, asked)
    if asked.kind == "flash-attn":
        yield Change(request=request.with_(flash_attn=None), text="", settle="flash-attn")
        left_out = request.with_(flash_attn=None, no_flash_attn=True)
        yield Change(request=left_out, text="--no-flash-attn in place of --flash-attn")
    alone = asked.kind == "platform" and request.platforms == (asked.value,)     # another machine's lock is no answer
    if asked.kind not in {"flash-attn", "torch", "cuda", "no-driver"} and not alone:
        yield Change(request=without(request, asked), text=f"without {option(asked)}")


def option(asked: Asked) -> str:
    """The option as it was given, or the requirement and its place."""
    if asked.flag.startswith("--") or not asked.value:
        return f"{asked.flag} {asked.value}".strip()
    return f"{_named(asked, asked.value)} ({asked.flag})"


def _named(asked: Asked, value: str) -> str:
    """`CUDA 12.1`, `Python 3.11`, `the CPU`: what stands in a file without its option."""
    return "the CPU" if asked.kind == "cuda" and value == query.CPU else f"{NAMES.get(asked.kind, '')}{value}"


def _in_place(asked: Asked, value: str) -> str:
    if not asked.flag.startswith("--"):
        return f"{_named(asked, value)} in place of {option(asked)}"
    return f"{asked.flag} {value} in place of {asked.value}"


def _other_torch(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    for minor in _torch_by_distance(matrix, _first_minor(asked.value)):
        if minor != asked.value:
            yield Change(request=request.with_(torch=f"=={minor}.*"), text=_in_place(asked, minor))


def _torch_by_distance(matrix: Matrix, minor: str) -> list[str]:
    """Minors of torch of the same CUDA major first, then the nearest."""
    majors: dict[str, set[str]] = {}
    for build in query.builds(matrix, index=query.DEFAULT_INDEX):
        if build.cuda != query.CPU:
            majors.setdefault(query.minor_of(build.version), set()).add(build.cuda.partition(".")[0])
    own = majors.get(minor, set())
    ordered = _nearest(sorted(majors, key=_numbers), minor)
    return sorted(ordered, key=lambda other: not (majors[other] & own))


def _first_minor(text: str) -> str:
    """The minor that a specifier names first: "2.3" of ">=2.3.1,<2.5"."""
    digits = text.lstrip("=<>!~ ")
    version = parse_version(digits.split(",")[0].removesuffix(".*").strip())
    return query.minor_of(str(version)) if version is not None else "2.0"


def _other_cuda(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    own = _first_minor(request.torch) if request.torch is not None else None
    places = tuple(filter(follows_cuda, request.platforms))     # the others are for the CPU whatever is asked
    variants = {
        b.cuda for b in query.builds(matrix) if b.platform in places
        and (b.index == query.DEFAULT_INDEX or (own == query.minor_of(b.version) and b.cuda != query.CPU))
    }
    ordered = sorted(variants - {query.CPU}, key=_numbers)
    for cuda in _nearest(ordered, asked.value if asked.value != query.CPU else ordered[-1] if ordered else "12"):
        if not query.cuda_matches(asked.value, cuda):
            yield Change(request=with_cuda(request, cuda), text=_in_place(asked, cuda))
    if (query.CPU in variants or not places) and asked.value != query.CPU:
        yield Change(request=with_cuda(request, query.CPU), text=_in_place(asked, query.CPU))


def _other_python(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    known = sorted({python for build in matrix.torch for python in build.pythons}, key=_numbers)
    for python in _nearest(known, asked.value):
        if python not in request.pythons:
            pythons = tuple(python if one == asked.value else one for one in request.pythons)
            yield Change(request=request.with_(pythons=pythons), text=_in_place(asked, python))


def _other_place(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    """The CPU build there, or the one that the others have; without a CUDA, one that all places may have."""
    platform, variant = split_place(asked.value)
    other = platform if variant else f"{platform}-{CPU}"
    if other not in request.platforms:
        places = tuple(other if place == asked.value else place for place in request.platforms)
        yield Change(request=request.with_(platforms=places), text=_in_place(asked, other))
    own = _first_minor(request.torch) if request.torch is not None else None
    rows = [build for build in query.builds(matrix) if own in (None, query.minor_of(build.version))]
    for_cpu = any(build.platform == platform and build.index == query.DEFAULT_INDEX and build.cuda == CPU
                  for build in rows)
    if request.cuda is None and (len(request.platforms) > 1 or for_cpu):
        held = [{build.cuda for build in rows if build.platform == place}
                for place in request.platforms if follows_cuda(place)]
        common = set.intersection(*held) if held else set()
        usual = {build.cuda for build in rows if build.index == query.DEFAULT_INDEX}
        runs = {cuda: _runs_where_asked(matrix, request, cuda) for cuda in common - {query.CPU}}
        order = sorted(runs, key=lambda each: (runs[each] is not None, each in usual, _numbers(each)), reverse=True)
        for cuda in (each for each in order if runs[each] is not False):
            yield Change(request=with_cuda(request, cuda), text=f"--cuda {cuda} added: builds on the torch index")


def _runs_where_asked(matrix: Matrix, request: StackRequest, cuda: str) -> bool | None:
    """Whether the driver that was asked for runs this CUDA on each place that may have one; None: cannot tell."""
    driver = request.driver
    told = {query.driver_supports(matrix, driver, cuda, split_place(place)[0])
            for place in request.platforms if driver is not None and follows_cuda(place) and has_cuda(place)}
    return False if False in told else None if None in told else True


def _variants_that_run(matrix: Matrix, request: StackRequest) -> Iterator[Change]:
    """Builds of the torch that is asked for, on the torch index, for a CUDA that the driver and the GPUs take."""
    if request.cuda is not None or request.torch is None:
        return
    minor = _first_minor(request.torch)
    fitting = {
        build.cuda for build in query.builds(matrix)
        if build.index != query.DEFAULT_INDEX and build.cuda != query.CPU and build.platform in request.platforms
        and query.minor_of(build.version) == minor
        and all(query.gpu_runs(build.gpu_archs, gpu) for gpu in request.gpu_archs)
    }
    runs = {cuda: _runs_where_asked(matrix, request, cuda) for cuda in fitting}
    order = sorted(fitting, key=lambda each: (runs[each] is not None, _numbers(each)), reverse=True)
    for cuda in (each for each in order if runs[each] is not False):
        yield Change(request=with_cuda(request, cuda), text=f"--cuda {cuda} added: a build on the torch index")


def _other_driver(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    platforms = {split_place(place)[0] for place in request.platforms if has_cuda(place)}
    windows = platforms == {"win-64"}
    floors = {family.floor for each in matrix.driver_families for platform in platforms or {"linux-64"}
              if (family := query.driver_floor(matrix, f"{each.cuda_major}.0", platform)) is not None}
    newer = [
        Change(request=request.with_(driver=floor), text=_in_place(asked, floor))
        for floor in sorted(floors, key=_numbers) if _numbers(floor) > _numbers(asked.value)
    ]
    compat = request.with_(cuda_compat=True)
    yield from newer[:1]
    if not windows:
        yield Change(request=compat, text="--cuda-compat added: a forward-compatibility package on a data-centre GPU")
    yield from newer[1:]


def _with_driver(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    """The oldest driver of each CUDA, that of the wheels first: the option counts whatever the variable says."""
    usual = {build.cuda.partition(".")[0] for build in query.builds(matrix, index=query.DEFAULT_INDEX)
             if request.torch is None or query.minor_of(build.version) == _first_minor(request.torch)}
    for family in sorted(matrix.driver_families, key=lambda one: (str(one.cuda_major) not in usual, one.cuda_major)):
        text = f"--driver {family.floor} in place of {option(asked)}"
        yield Change(request=request.with_(driver=family.floor, no_driver=False), text=text)


def _other_requirement(matrix: Matrix, request: StackRequest, asked: Asked) -> Iterator[Change]:
    """The same project without its specifier, then (once solved) with the version that was found."""
    parsed = parse_requirement(asked.value)
    if parsed is None:
        return
    if normalise(parsed.name) == TORCH:
        for minor in _torch_by_distance(matrix, _first_minor(str(parsed.specifier))):
            text = f"torch=={minor}.*"
            yield Change(request=replaced(request, asked, text), text=f"{text} in place of {option(asked)}")
    elif len(parsed.specifier):
        extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
        bare = f"{parsed.name}{extras}"
        yield Change(request=replaced(request, asked, bare), text="", settle=normalise(parsed.name))


def replaced(request: StackRequest, asked: Asked, text: str) -> StackRequest:
    """The request with the text of one requirement replaced; its marker stays."""
    def changed(one: Requirement) -> Requirement:
        if requirement_ask(one) != asked:
            return one
        marker = one.text.partition(";")[2]
        new = f"{text} ;{marker}" if marker else text
        origin = f"{asked.flag} {new}" if asked.flag in {"--with", "--constraint"} else one.origin
        return replace(one, text=new, origin=origin)

    return request.with_(requirements=tuple(changed(one) for one in request.requirements))


def settled(request: StackRequest, asked: Asked, project: str, version: str) -> Change:
    """The change that asks for the version that was found."""
    if asked.kind == "flash-attn":
        return Change(request=request.with_(flash_attn=f"=={version}"), text=_in_place(asked, version))
    parsed = parse_requirement(asked.value)
    extras = f"[{','.join(sorted(parsed.extras))}]" if parsed and parsed.extras else ""
    text = f"{parsed.name if parsed else project}{extras}=={version}"
    return Change(request=replaced(request, asked, text), text=f"{text} in place of {option(asked)}")


def _nearest(ordered: Iterable[str], wanted: str) -> list[str]:
    """The values by their distance from `wanted` in this order, the newer first of two equally far."""
    values = list(ordered)
    below = sum(1 for value in values if _numbers(value) < _numbers(wanted))
    place = {value: index for index, value in enumerate(values)}
    exact = wanted in place
    return sorted(values, key=lambda value: (
        abs(place[value] - below) if exact or place[value] < below else place[value] - below + 1, -place[value],
    ))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
