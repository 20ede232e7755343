"""Pins of projects to indexes, as routes: where a project is looked up, and nowhere else."""

from __future__ import annotations

import re

from stackfix.errors import BadInput
from stackfix.sources.address import parse_address, shown
from stackfix.sources.records import IndexPin, Route

_TORCH = frozenset({"torch", "torchvision", "torchaudio", "xformers", "triton", "pytorch-triton"})
TORCH_PATH = r"cpu|cu\d{2,4}|rocm[\d.]+|xpu"        # of the torch index: what its builds are for
_AT_PATH = re.compile(rf"/whl(?:/nightly)?/(?:{TORCH_PATH})\Z")


def routes_of(pins: tuple[IndexPin, ...]) -> tuple[Route, ...]:
    """The indexes of each pinned project, in the order of its pins; none for one that comes from no index."""
    found: dict[str, list[IndexPin]] = {}
    for pin in pins:
        found.setdefault(pin.project, []).append(pin)
    return tuple(Route(
        project=project, indexes=tuple(dict.fromkeys(pin.url for pin in own if pin.url is not None)),
        why=f"{own[0].origin} takes it from {' or '.join(dict.fromkeys(_words(pin) for pin in own))}",
    ) for project, own in found.items())


def has_own_rules(pin: IndexPin) -> bool:
    """Whether a pin is about what is asked for by rules of its own: flash-attn, and torch on the torch index."""
    return pin.project == "flash-attn" or (
        pin.project in _TORCH and pin.url is not None and _AT_PATH.search(pin.url) is not None)


def _words(pin: IndexPin) -> str:
    return f"the index {pin.name}" if pin.url is not None else f"a {pin.name}"


def cuda_of_path(path: str) -> str:
    """`12.8` of cu128; `cpu`, and names of other kinds of device, as they are."""
    digits = path.removeprefix("cu")
    return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() else path


def check_pin(pin: IndexPin) -> None:
    """Raises BadInput for a pin to an index that is no web address: the project could be looked up nowhere."""
    if pin.url is None:
        return
    try:
        parse_address(pin.url)
    except ValueError as fault:
        local = "holds for this machine alone"
        reason = local if "://" not in pin.url or pin.url.startswith("file:") else str(fault)
        raise BadInput(pin.origin, f"{pin.project} is pinned to the index {pin.name} at {shown(pin.url)}, which"
                       f" {reason}", "name one by its https:// address, or set UV_NO_SOURCES=1") from None
