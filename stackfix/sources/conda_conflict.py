"""Why a solve by py-rattler has no answer, as our record: a short chain, and its own text without addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from stackfix.conda.records import CondaAsk, CondaCause, CondaConflict, CondaRecord
from stackfix.sources.conda_causes import causes_of
from stackfix.sources.conda_errors import without_secrets
from stackfix.sources.conda_names import Place, public_address
from stackfix.sources.conda_tree import parse_tree

_ADDRESS = re.compile(r"(?P<address>[a-z][a-z0-9+.-]*://[^\s'\"]+)")
_FEW = 12                           # lines of a text that cannot be read


class ChannelFacts:
    """What the channels of one solve have, asked only once there is something to explain."""

    def __init__(self, places: Sequence[Place], records: Callable[[Place, str], tuple[CondaRecord, ...]]) -> None:
        self._places, self._records = places, records

    def versions(self, name: str) -> tuple[str, ...]:
        from rattler import Version

        found = {record.version for place in self._places for record in self._records(place, name)}
        return tuple(sorted(found, key=Version))

    def channel(self, address: str) -> str:
        """The name of the channel at an address as py-rattler shows it, with stars for a login."""
        public = public_address(address)
        known = ((place, {place.channel.url, public_address(place.fetch)}) for place in self._places)
        return next((_label(place) for place, addresses in known if public in addresses), "a channel")

    def owner(self, name: str) -> str | None:
        return next((_label(place) for place in self._places if self._records(place, name)), None)

    def file(self, option: str, needs: str) -> str:
        name, _, versions = option.partition(" ")
        wanted = set(versions.split(" | "))
        every = (record for place in self._places for record in self._records(place, name))
        return next((record.file_name for record in every if record.version in wanted
                     and any(same_spec(each, needs) for each in (*record.depends, *record.constrains))), "")


def conflict_of(raw: str, ask: CondaAsk, facts: ChannelFacts) -> CondaConflict:
    """The conflict that py-rattler tells of. A text of an unknown shape is kept as it is, shortened."""
    plain = without_secrets(_ADDRESS.sub(lambda match: facts.channel(match["address"]), raw))
    causes = causes_of(parse_tree(plain), ask, facts)
    if not causes:
        lines = dict.fromkeys(line.strip(" │├└─") for line in plain.splitlines())
        causes = tuple(CondaCause(text=line) for line in lines if line)[:_FEW]
    return CondaConflict(causes=causes, raw=plain)


def same_spec(stated: str, shown: str) -> bool:
    """Whether a dependency of a record is the one that py-rattler shows: it writes the name alone as "name *"."""
    if stated == shown:
        return True
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    if stated.partition(" ")[0] != shown.partition(" ")[0]:
        return False
    try:
        text = str(MatchSpec(stated))
    except InvalidMatchSpecError:
        return False
    return shown in {text, f"{text} *"}


def _label(place: Place) -> str:
    """The channel's name; of one that has none the end of its address, without the path of a folder."""
    name = place.channel.name
    return name.rstrip("/").rpartition("/")[2] if "://" in name else name
