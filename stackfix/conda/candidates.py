"""The torch builds of channels that a stack may take, in the order in which they are tried."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from stackfix.conda.builds import PYTORCH, torch_builds
from stackfix.conda.records import Channel, Channels, CondaTorch
from stackfix.matrix.query import CPU
from stackfix.resolve.pep508 import parse_version

_READ: WeakKeyDictionary[Channels, dict[tuple[str, str], tuple[CondaTorch, ...]]] = WeakKeyDictionary()
TORCH_CHANNELS = ("pytorch", "nvidia")      # beside the default channel: the second has the CUDA of the first's builds


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One kind of torch build: a release for one CUDA in one channel."""

    torch: CondaTorch               # its newest build for the Python
    channels: tuple[Channel, ...]   # that are solved with it, in order of priority

    @property
    def spec(self) -> str:
        """`pytorch ==2.3.1 py3.11_cuda12.1_*`: every build of the kind."""
        return f"{PYTORCH} =={self.torch.record.version} {build_pattern(self.torch)}"

    @property
    def label(self) -> str:
        """`torch 2.3.1 for CUDA 12.1 of the channel pytorch`."""
        cuda = "the CPU" if self.torch.cuda == CPU else f"CUDA {self.torch.cuda}"
        return f"torch {self.torch.record.version} for {cuda} of the channel {self.channel.name}"

    @property
    def channel(self) -> Channel:
        """The channel that the build is in."""
        return next(channel for channel in self.channels if channel.url == self.torch.record.channel)

    @property
    def repacked(self) -> bool:
        """Whether it is a repacked wheel, whose CUDA is chosen by `pytorch-cuda`."""
        return self.torch.record.build.startswith("py")


def build_pattern(torch: CondaTorch) -> str:
    """`cuda126*`, `py3.11_cuda12.1_*`, `cpu*`: what the build strings of one kind have in common."""
    build = torch.record.build
    if build.startswith("py"):
        return f"py{torch.python}_cpu_*" if torch.cuda == CPU else f"py{torch.python}_cuda{torch.cuda}*"
    kind = CPU if torch.cuda == CPU else f"cuda{torch.cuda.replace('.', '')}"
    return f"{kind}*" if build.startswith(kind) else f"*{kind}*"


def searched(channels: Channels) -> tuple[Channel, ...]:
    """Every channel that may give a build: the user's alone where they were named, else with those of torch."""
    if channels.explicit:
        return channels.channels
    extra = tuple(channels.named(name) for name in TORCH_CHANNELS)
    return tuple(dict.fromkeys((*channels.channels, *extra)))


def bundled(channels: Channels) -> str:
    """`, as bundled on 2026-11-29`, where not the channels were asked but the records that come with stackfix."""
    return f", as bundled on {channels.snapshot.date}" if channels.snapshot is not None else ""


def builds_of(channels: Channels, channel: Channel, platform: str) -> tuple[CondaTorch, ...]:
    """The torch builds of one channel, each record read once: a search asks for them again and again."""
    known = _READ.setdefault(channels, {})
    key = channel.url, platform
    if key not in known:
        known[key] = torch_builds(channels.records((channel,), platform, PYTORCH))
    return known[key]


def choices(
    channels: Channels, *, platform: str, python: str, version: str | None = None, cuda: str | None = None,
) -> tuple[Choice, ...]:
    """The builds for a Python, newest release first; of one release those of the wanted CUDA first, then by channel.

    `cuda` (of the wheel): without builds of its minor, those of the same major are taken. Raises Unreachable.
    """
    wanted = parse_version(version) if version is not None else None
    found: dict[tuple[str, str, str], Choice] = {}
    places = searched(channels)
    for place, channel in enumerate(places):
        for torch in builds_of(channels, channel, platform):
            if torch.python != python or (wanted is not None and parse_version(torch.record.version) != wanted):
                continue
            if cuda is None or _same_kind(cuda, torch.cuda):
                key = (torch.record.version, torch.cuda, channel.url)
                found.setdefault(key, Choice(torch=torch, channels=_solved_with(channels, places, place, platform)))
    order = {channel.url: place for place, channel in enumerate(places)}
    return tuple(sorted(found.values(), key=lambda choice: _rank(choice, cuda, order), reverse=True))


def _same_kind(cuda: str, other: str) -> bool:
    """Both the CPU, or the same major of CUDA."""
    return cuda == other if CPU in {cuda, other} else cuda.partition(".")[0] == other.partition(".")[0]


def _rank(choice: Choice, cuda: str | None, order: dict[str, int]) -> tuple[object, ...]:
    """Higher is tried first."""
    torch = choice.torch
    minor = () if torch.cuda == CPU else tuple(int(part) for part in torch.cuda.split("."))
    return parse_version(torch.record.version), torch.cuda == cuda, minor, -order[torch.record.channel]


def _solved_with(channels: Channels, places: tuple[Channel, ...], place: int, platform: str) -> tuple[Channel, ...]:
    """The channels in order of priority: under strict priority one before it that has torch would hide the build."""
    own = places[place]
    if channels.explicit:
        before = (one for one in places[:place] if not channels.records((one,), platform, PYTORCH))
        return (*before, *places[place:])
    if own in channels.channels:
        return _without_hiding(channels, own, platform)
    torch = tuple(channels.named(name) for name in TORCH_CHANNELS)
    return tuple(dict.fromkeys((own, *torch, *channels.channels)))


def _without_hiding(channels: Channels, own: Channel, platform: str) -> tuple[Channel, ...]:
    """The settings' channels without those before `own` that have torch too."""
    kept: list[Channel] = []
    for one in channels.channels:
        before = own not in kept and one != own
        if not before or not channels.records((one,), platform, PYTORCH):
            kept.append(one)
    return tuple(kept)
