"""What makes the channels' side like the pip lock where it can be: the nearest CUDA, and the same releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.bounds import lines_for
from stackfix.conda.candidates import Choice
from stackfix.conda.layouts_records import Scene, Wish
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.names import project_version
from stackfix.conda.records import CondaRecord, Spec
from stackfix.matrix.query import CPU
from stackfix.resolve.pep508 import parse_version

MAX_NEAREST = 5         # versions of cuda-version that are tried
OF_THE_STACK = frozenset({"torch", "flash-attn", "pip"})     # asked for otherwise, if at all


def nearest_cuda(scene: Scene, choice: Choice, asked: Iterable[str]) -> tuple[Wish, ...]:
    """`cuda-version` of the major that this torch takes, the one nearest to the wheel's CUDA first.

    `asked`: specs that hold whatever is wished; one of them may be about cuda-version.
    """
    own = minor_of(choice.torch.cuda)
    if choice.torch.cuda == CPU or choice.repacked:
        return ()
    records = scene.channels.records(choice.channels, scene.target.platform, "cuda-version")
    bounds = [line.text for line in lines_for((*choice.torch.record.depends, *asked), "cuda-version")]
    usable = {
        record.version for record in records if minor_of(record.version)[:1] == own[:1]
        and all(admits_version(bound, record.version) is not False for bound in bounds)
    }
    wanted = minor_of(scene.cuda) if scene.cuda != CPU else own
    origin = f"the CUDA nearest to {scene.cuda} that this torch and its channel have"
    order = sorted(usable, key=lambda cuda: (_away(minor_of(cuda), wanted), minor_of(cuda)))
    return tuple(Wish(spec=Spec(text=f"cuda-version {cuda}.*", origin=origin)) for cuda in order[:MAX_NEAREST])


def _away(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, int]:
    return abs(one[0] - other[0]), abs(sum(one[1:2]) - sum(other[1:2]))


def minor_of(cuda: str) -> tuple[int, ...]:
    """`(12, 1)` of "12.1"; () for the CPU."""
    return tuple(int(part) for part in cuda.split(".") if part.isdigit())


def like_pip(scene: Scene, choice: Choice, pip: tuple[str, ...]) -> Iterator[Wish]:
    """The versions that the pip lock has of what the request names, where the channels have them too."""
    for line in scene.lines:
        version = scene.pip_versions.get(line.name)
        package = scene.package(choice, line.name) if version is not None and line.name not in pip else None
        if package is None or line.requirement.constraint:
            continue
        text = f"{package.name} =={version}"
        records = scene.channels.records(choice.channels, scene.target.platform, package.name)
        if any(admits(text, record) for record in records):
            yield Wish(spec=Spec(text=text, origin=f"{line.name} {version} of the pip lock"), project=line.name)


def favoured(scene: Scene, choice: Choice, cuda: str | None) -> Iterator[tuple[str, str]]:
    """Address and name of a record for each release of the pip lock that the channels have: taken where it fits.

    `cuda`: the cuda-version that is asked for. A preference costs no solve, unlike a wish that is taken back.
    """
    for project, version in sorted(scene.pip_versions.items()):
        for name in _bringing(scene, choice, project) if project not in OF_THE_STACK else ():
            records = scene.channels.records(choice.channels, scene.target.platform, name)
            fitting = [
                record for record in records if record.channel == records[0].channel
                and _same(record.version, version) and _fits(record, scene.target.python, cuda)
            ]
            if fitting:
                best = max(fitting, key=lambda record: (record.build_number, record.timestamp or 0))
                yield best.url, best.name


def _bringing(scene: Scene, choice: Choice, project: str) -> Iterator[str]:
    """The packages that bring a project: of cuDNN, which comes in two, both."""
    known = [package.name for package in scene.names.packages(project, choice.torch.cuda) if package.sure]
    package = None if known else scene.package(choice, project)
    yield from known if package is None else (package.name,)


def _same(conda: str, pip: str) -> bool:
    """conda's 2.20.5.1 is the project's 2.20.5 where a package has a part more."""
    wanted = parse_version(pip)
    found = (project_version(conda), project_version(conda, longer=True))
    return wanted is not None and any(one is not None and parse_version(one) == wanted for one in found)


def _fits(record: CondaRecord, python: str, cuda: str | None) -> bool:
    """Whether a record's bounds on Python and on cuda-version take these."""
    for line in lines_for(record.depends, "python", "cuda-version", "python_abi"):
        if line.name == "python_abi":
            if line.build is not None and not line.build.endswith(f"_cp{python.replace('.', '')}"):
                return False
        elif line.name == "python":
            if all(admits_version(line.text, f"{python}.{patch}") is False for patch in (0, 99)):
                return False
        elif cuda is not None and admits_version(line.text, cuda) is False:
            return False
    return True
