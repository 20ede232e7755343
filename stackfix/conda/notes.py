"""What the user should know of the conda side beyond its packages. In a fixed order, each a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.records import CondaTarget, VirtualPackage

SERVER_ARM = "linux-aarch64"
STACK = {"torch", "python", "cuda", "c++ abi", "cudnn", "nvjitlink", "flash-attn", "triton"}     # told one by one
LAYOUTS_IN_WORDS = {
    "native": "everything comes from channels",
    "mixed": "torch comes from a channel, and what no channel has for it from pip",
    "wheels": "channels give Python and system libraries, and the stack comes from pip",
}


def conda_notes(targets: Iterable[CondaTarget], *, beside: bool) -> tuple[str, ...]:
    """The notes of all targets, each once; `beside`: there is a pip lock too."""
    targets = tuple(targets)
    several = len(targets) > 1
    notes = (
        note for target in targets
        for note in _notes(target, f" for {_words(target)}" if several else "", beside=beside)
    )
    return tuple(dict.fromkeys((*notes, *_of_platforms(targets))))


def _notes(target: CondaTarget, of: str, *, beside: bool) -> Iterator[str]:
    layout = LAYOUTS_IN_WORDS[target.layout]
    yield f"conda layout{of}: {target.layout}, in which {layout} (channels {_channels(target)})"
    for layout, why in target.passed:
        yield f"layout {layout}{of} does not hold: {why}"
    if target.also_cuda:
        yield (
            f"torch{of} is a CPU build, as the index's wheel is; the channels have it for CUDA"
            f" {', '.join(target.also_cuda)}: a lock of conda formats alone takes it for CUDA"
        )
    yield from () if beside else _second_step(target, of)
    yield from _of_the_solve(target, of)
    libraries = [one.about for one in target.departures if one.about not in STACK]
    for one in target.departures:
        if one.about in STACK:
            pip = f" and {one.pip or 'absent'} for pip" if beside else ""
            yield f"{one.about}{of} is {one.conda or 'absent'} for conda{pip}: {one.reason}"
    if libraries:
        names = ", ".join(libraries)
        yield f"of other versions than in the pip lock{of}: {names}; each has its reason in the files and in --json"


def _of_the_solve(target: CondaTarget, of: str) -> Iterator[str]:
    """Under which terms the channels were solved."""
    if target.priority != "strict":
        yield (
            f"channel priority{of} is {target.priority}, by .condarc, or since a channel would hide packages that this"
            " stack needs from one further down"
        )
    for virtual in target.virtual:
        if virtual.name == "__cuda":
            yield f"__cuda{of} is {virtual.version}: {_origin(virtual)}"
    if target.guesses:
        names = ", ".join(package for package, _ in target.guesses)
        yield f"taken for the projects of their names{of}, which nothing but the names says: {names} of the channels"
    if target.snapshot is not None:
        snapshot = target.snapshot
        yield (
            f"conda records are stackfix's own of {snapshot.date} ({snapshot.digest}), which have holes:"
            f" {snapshot.reason}"
        )


def _second_step(target: CondaTarget, of: str) -> Iterator[str]:
    """That something is built after all else; a pip lock beside it has a note of its own."""
    for package in target.pip:
        if package.step > 1:
            yield (
                f"{package.name} {package.version}{of} is the second step, installed after all else and built from its"
                " sdist: no wheel with a known sha256 is for this build of torch"
            )


def _origin(virtual: VirtualPackage) -> str:
    return virtual.origin or "as the machine that locks has it"


def _channels(target: CondaTarget) -> str:
    return ", ".join(channel.name for channel in target.channels)


def _words(target: CondaTarget) -> str:
    return f"Python {target.target.python} on {target.target.platform}"


def _of_platforms(targets: tuple[CondaTarget, ...]) -> Iterator[str]:
    if any(target.target.platform == SERVER_ARM for target in targets):
        yield (
            "linux-aarch64 means servers (SBSA): Jetson boards have their own CUDA and their own torch wheels, which"
            " this lock does not hold"
        )
