"""[tool.uv.sources] followed: the index of each project on the targets of a lock, and the torch that a pin means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from stackfix.cli.followed import Followed
from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.load import load_matrix
from stackfix.platforms import CPU, split_place
from stackfix.quick import dataclass, replace
from stackfix.resolve.places import follows_cuda
from stackfix.resolve.question import FLASH_ATTN
from stackfix.resolve.records import StackRequest, Target
from stackfix.resolve.target import TargetView
from stackfix.resolve.torch_family import FAMILY, libraries_of
from stackfix.sources.address import shown, without_credentials
from stackfix.sources.records import IndexPin, Route
from stackfix.sources.routes import TORCH_PATH, cuda_of_path, routes_of

PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))     # that the solver may choose from
_PATH = re.compile(rf"(?P<base>.+?)(?P<nightly>/nightly)?/(?P<path>{TORCH_PATH})")
FREE = "set UV_NO_SOURCES_PACKAGE={} to leave its source out"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchPath:
    """A path of the torch index, or of a copy of it."""

    pin: IndexPin
    base: str                       # may hold credentials
    path: str                       # "cu128"
    nightly: bool = False

    @property
    def cuda(self) -> str:
        """`12.8` of cu128; `cpu`, and names of other kinds of device, as they are."""
        return cuda_of_path(self.path)


def with_pins(followed: Followed, directory: Path | None) -> Followed:
    """The pins on the targets of this lock. Raises BadInput where they differ, or name what no stack is made of."""
    matrix = load_matrix(directory)
    official, libraries = matrix.sources.torch_index, libraries_of(matrix)
    bases = {without_credentials(base).rstrip("/") for base in (official, followed.torch_index) if base is not None}
    torch_paths = [found for pin in followed.settings.pins if (found := torch_path_of(pin, bases)) is not None]
    named = dict.fromkeys(found.pin.project for found in torch_paths if in_family(found.pin.project, libraries))
    family = {project for project in named if is_of_torch_index(project, torch_paths, followed)}
    routes: list[Route] = []
    projects = dict.fromkeys(pin.project for pin in followed.settings.pins if pin.project not in {*family, FLASH_ATTN})
    for project in projects:
        own = tuple(pin for pin in followed.settings.pins if pin.project == project)
        routes += routes_of(pins_that_hold(own, followed.stack))
    followed = replace(followed, settings=replace(followed.settings, routes=tuple(routes)),
                       notes=(*followed.notes, *flash_notes(followed)))
    of_torch = [found for found in torch_paths if found.pin.project == "torch"] or [
        found for found in torch_paths if found.pin.project in FAMILY]
    return with_torch(followed, of_torch, official) if of_torch else followed


def flash_notes(followed: Followed) -> Iterator[str]:
    """That a source of flash-attn is not followed, whose wheels have rules of their own."""
    kinds = [pin.name if pin.url is None else f"index {pin.name}" for pin in followed.settings.pins
             if pin.project == FLASH_ATTN]
    if kinds and not followed.stack.no_flash_attn:
        yield (f"the source of {FLASH_ATTN} in the project's settings ({', '.join(kinds)}) is not followed: its wheel"
               " is chosen from its releases (--flash-attn-source)")


def in_family(project: str, libraries: frozenset[str]) -> bool:
    """Whether the torch index is asked for the project by rules of its own. `libraries`: which fall back on it."""
    return project in FAMILY or project in libraries or project == "pytorch-triton"


def is_of_torch_index(project: str, torch_paths: list[TorchPath], followed: Followed) -> bool:
    """Whether a project's pins that hold are paths of the torch index, and not others. Raises BadInput for both."""
    paths = [found.pin for found in torch_paths]
    own = tuple(pin for pin in followed.settings.pins if pin.project == project)
    held = [pin for pin in own if any(holds(pin, target) for target in targets_of(followed.stack))]
    others = [pin for pin in held if pin not in paths]
    if not others:
        return True
    if len(others) == len(held):
        return False
    index = next(pin for pin in held if pin in paths)
    raise BadInput(
        others[0].origin, f"{project} comes from the torch index ({index.name}) and from"
        f" {'another' if others[0].url is not None else 'none'} ({others[0].name}), and one lock takes it from one of"
        " them", f"lock each --platform by itself, or {FREE.format(project)}")


def torch_path_of(pin: IndexPin, bases: Iterable[str]) -> TorchPath | None:
    """The path that a pin names, where its address is the torch index's, or that of a copy with the same paths."""
    found = None if pin.url is None else _PATH.fullmatch(pin.url)
    if found is None:
        return None
    base = found["base"]
    if without_credentials(base) not in bases and not urlsplit(base).path.endswith("/whl"):
        return None
    return TorchPath(pin=pin, base=base, path=found["path"], nightly=found["nightly"] is not None)


def pins_that_hold(pins: tuple[IndexPin, ...], stack: StackRequest) -> tuple[IndexPin, ...]:
    """The pins of one project whose markers hold. Raises BadInput where that differs between the lock's targets."""
    held = {target: tuple(pin for pin in pins if holds(pin, target)) for target in targets_of(stack)}
    answers = list(dict.fromkeys(held.values()))
    if len(answers) == 1:
        return answers[0]
    project = pins[0].project
    one, other = (next(target for target, own in held.items() if own == answer) for answer in answers[:2])
    differ = "python" if one.platform == other.platform else "platform"
    raise BadInput(
        pins[0].origin, f"{project} comes from one index for {_words(one)} and from another for {_words(other)}, and"
        " one lock asks one index for it", f"lock each --{differ} by itself, or {FREE.format(project)}")


def holds(pin: IndexPin, target: Target) -> bool:
    """Whether the pin's marker holds on the target. Raises BadInput for one that cannot be read."""
    if pin.marker is None:
        return True
    from packaging.markers import InvalidMarker, Marker

    try:
        Marker(pin.marker)
    except InvalidMarker:
        raise BadInput(pin.origin, f"sources.{pin.project} has the marker {pin.marker[:200]!r}, which cannot be read",
                       "write it as in PEP 508: sys_platform == 'linux'") from None
    return TargetView(target).applies(f"{pin.project} ; {pin.marker}", None)


def targets_of(stack: StackRequest) -> list[Target]:
    """The targets that the lock may have: every Python where none is asked for."""
    return [Target(python=python, platform=split_place(place)[0], glibc=stack.glibc, macos=stack.macos)
            for place in stack.platforms for python in stack.pythons or PYTHONS]


def with_torch(followed: Followed, found: list[TorchPath], official: str) -> Followed:
    """The request with the build of torch that its pins mean, where no option says another."""
    stack = followed.stack
    named = {place: paths for place in filter(follows_cuda, stack.platforms)
             if (paths := paths_for(place, found, stack))}
    cudas = {place: sorted({path.cuda for path in paths}) for place, paths in named.items()}
    meant = sorted({cuda for each in cudas.values() for cuda in each})
    if not meant:
        return followed
    if any(path.nightly for paths in named.values() for path in paths) and not any(
            mark in (stack.torch or "") for mark in (".dev", "nightly-")):
        note = "the project's sources take torch from nightly builds: one is locked by its exact day alone (--torch)"
        followed = replace(followed, notes=(*followed.notes, note))
    words = "; ".join(dict.fromkeys(_pin_words(path) for paths in named.values() for path in paths))
    if stack.cuda is not None:
        followed = _beside_option(followed, stack.cuda, meant, words)
    elif any(len(each) > 1 for each in cudas.values()):
        choices = ", ".join(f"--cuda {cuda}" for cuda in meant if _is_build(cuda))
        note = f"which build of torch is meant is not said by the project's sources ({words}): choose with {choices}"
        return replace(followed, notes=(*followed.notes, note))
    elif len(meant) > 1:
        raise _several(cudas, words)
    else:
        followed = _by_pin(followed, meant[0], words)
    used = [path for paths in named.values() for path in paths
            if followed.stack.cuda is not None and _matches(followed.stack.cuda, path.cuda)]
    copies = {path.base for path in used if without_credentials(path.base).rstrip("/") != official.rstrip("/")}
    if followed.torch_index is None and copies:
        followed = replace(followed, torch_index=min(copies))
    return followed


def paths_for(place: str, found: list[TorchPath], stack: StackRequest) -> list[TorchPath]:
    """The paths whose pins hold on a platform; those without a further condition first of all."""
    pins = pins_that_hold(tuple(path.pin for path in found), stack.with_(platforms=(place,)))
    held = [path for path in found if path.pin in pins]
    return [path for path in held if path.pin.condition is None] or held


def _beside_option(followed: Followed, asked: str, meant: list[str], words: str) -> Followed:
    """`--cuda` wins; where the sources mean the same more exactly, that is asked."""
    fitting = [cuda for cuda in meant if _matches(asked, cuda)]
    if not fitting:
        note = f"--cuda {asked} was followed, though the project's sources mean {_cuda_words(meant)} ({words})"
        return replace(followed, notes=(*followed.notes, note))
    exact = fitting[0] if len(fitting) == 1 and "." in fitting[0] and "." not in asked else asked
    return replace(followed, stack=followed.stack.with_(cuda=exact))


def _by_pin(followed: Followed, cuda: str, words: str) -> Followed:
    if not _is_build(cuda):
        raise BadInput(words, f"it pins torch to builds for {cuda}, and stacks are made of builds for CUDA or the CPU",
                       f"say which with --cuda, or {FREE.format('torch')}")
    stack = followed.stack.with_(cuda=cuda, places=(*followed.stack.places, ("cuda", words)))
    note = f"the build of torch for {_cuda_words([cuda])} was taken, as the project's sources say ({words})"
    return replace(followed, stack=stack, notes=(*followed.notes, note))


def _several(cudas: dict[str, list[str]], words: str) -> BadInput:
    own = "; ".join(f"{_cuda_words(each)} for {place}" for place, each in cudas.items())
    other = next((each[0] for each in cudas.values() if each[0] != CPU), CPU)
    places = " ".join(f"--platform {place}{f'-{CPU}' if each[0] == CPU != other else ''}"
                      for place, each in cudas.items() if each[0] in (CPU, other))
    return BadInput(words, f"torch is pinned to builds for {own}, and one lock has one CUDA",
                    f"ask for what one lock can hold: --cuda {other} {places}")


def _matches(asked: str, cuda: str) -> bool:
    return asked == cuda if not _is_build(cuda) or asked == CPU else query.cuda_matches(asked, cuda)


def _is_build(cuda: str) -> bool:
    return cuda == CPU or cuda[:1].isdigit()


def _cuda_words(cudas: list[str]) -> str:
    return " or ".join("the CPU" if cuda == CPU else f"CUDA {cuda}" if cuda[:1].isdigit() else cuda for cuda in cudas)


def _pin_words(path: TorchPath) -> str:
    condition = f", {path.pin.condition}" if path.pin.condition else ""
    base = shown(path.base) + ("/nightly" if path.nightly else "")
    return f"{path.pin.origin}: {path.pin.project} from {base}/{path.path}{condition}"


def _words(target: Target) -> str:
    return f"Python {target.python} on {target.platform}"
