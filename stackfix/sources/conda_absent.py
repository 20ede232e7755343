"""What is said of channels that nobody answers for: which of them are left out, and what else may be done."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from stackfix.sources.conda_errors import ChannelUnreachable
from stackfix.sources.conda_names import DEFAULT, Place, Places


def told(missed: Mapping[str, str], places: Places) -> str:
    """Which channels could not be reached, and why. `missed`: reasons by address."""
    names = {place.channel.url: place.channel.name for place in places.known()}
    by_reason: dict[str, list[str]] = {}
    for url, reason in missed.items():
        by_reason.setdefault(reason, []).append(names[url])
    return "; ".join(f"{', '.join(found)} cannot be reached ({reason})" for reason, found in by_reason.items())


def told_left_out(left_out: Sequence[Place], places: Places) -> str:
    """`; defaults (pkgs/main, pkgs/r) is left out: …`, or nothing."""
    by_name: dict[str, list[str]] = {}
    for place in left_out:
        by_name.setdefault(places.written(place), []).append(place.channel.name)
    return "".join(f"; {_named(name, found)} is left out: no records of it come with stackfix"
                   for name, found in by_name.items())


def no_records(place: Place, reason: str, places: Places, *, own: Sequence[Place], offline: bool, why: str,
               ) -> ChannelUnreachable:
    """The error about a channel in whose place nothing can stand. `own`: the channels of the settings, if they count.

    `why`: what the bundled records lack.
    """
    name = places.written(place)
    hint = "--offline forbids asking for it" if offline else "check the network, its name or its address"
    if own:
        rest = dict.fromkeys(places.written(each) for each in own if places.written(each) != name)
        others = [text for text in rest if text] or [DEFAULT]
        hint += f"; or lock without it: {' '.join(f'--channel {shlex.quote(text)}' for text in others)}"
    return ChannelUnreachable(_named(name, [place.channel.name]), f"cannot be reached ({reason}), and {why}", hint)


def _named(name: str, channels: Sequence[str]) -> str:
    """`defaults (pkgs/main, pkgs/r)`: what the user wrote, and which channels that is."""
    return name if list(channels) == [name] else f"{name} ({', '.join(channels)})"
