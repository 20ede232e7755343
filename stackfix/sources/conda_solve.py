"""One solve by py-rattler."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from stackfix.conda.records import CondaAsk, CondaConflict, Spec
from stackfix.errors import BadInput
from stackfix.sources.conda_conflict import ChannelFacts, conflict_of
from stackfix.sources.conda_errors import HINT, BadChannel, bad_channel, blamed, last_cause, without_secrets
from stackfix.sources.conda_live import Live, subdirs
from stackfix.sources.conda_loop import anew, run
from stackfix.sources.conda_names import Place

if TYPE_CHECKING:
    from rattler import GenericVirtualPackage, MatchSpec, RepoDataRecord

LONGEST = timedelta(minutes=10)     # of one solve; the hardest seen took a second


def solve_asked(
    ask: CondaAsk, places: Sequence[Place], sources: Sequence[Any], live: Live, locked: list[RepoDataRecord],
    facts: ChannelFacts,
) -> list[RepoDataRecord] | CondaConflict:
    """The records, or why there are none. Raises BadInput for a spec that is none, Unreachable."""
    from rattler import ChannelPriority, solve
    from rattler.exceptions import GatewayError, SolverError

    specs, constraints, virtual = _specs(ask.specs), _specs(ask.constraints), _virtual(ask)
    newest = None if ask.exclude_newer is None else cutoff(ask.exclude_newer)
    priority = ChannelPriority.Strict if ask.priority == "strict" else ChannelPriority.Disabled
    try:
        return run(anew(lambda: solve(
            sources, specs, gateway=live.gateway, platforms=subdirs(ask.platform), locked_packages=locked,
            virtual_packages=virtual, timeout=LONGEST, channel_priority=priority, exclude_newer=newest,
            constraints=constraints, channel_relations="disabled")))
    except SolverError as fault:
        return conflict_of(str(fault), ask, facts)
    except GatewayError as fault:
        place = blamed(fault, places)
        if place is not None:
            raise bad_channel(place, fault) from None
        names = ", ".join(channel.name for channel in ask.channels)
        raise BadChannel(names, f"their repodata cannot be read ({last_cause(fault)})", HINT) from None


def _specs(specs: Sequence[Spec]) -> list[MatchSpec]:
    return [match_spec(spec) for spec in specs]


def match_spec(spec: Spec) -> MatchSpec:
    """The spec as rattler has it. Raises BadInput."""
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        read = MatchSpec(spec.text)     # not strict: in strict mode a build with a dot and a glob is none
    except InvalidMatchSpecError as fault:
        reason = without_secrets(str(fault).partition("\n")[0])
        raise BadInput(f"{spec.text} ({spec.origin})", f"is no conda spec: {reason}") from None
    if read.build is not None and " " in str(read.build) and not str(read.build).startswith("^"):
        raise BadInput(f"{spec.text} ({spec.origin})", "is no conda spec: it has more parts than name, version, build")
    return read


def _virtual(ask: CondaAsk) -> list[GenericVirtualPackage]:
    from rattler import BuildString, GenericVirtualPackage, PackageName, Version
    from rattler.exceptions import InvalidVersionError

    found = []
    for each in ask.virtual:
        try:
            version = Version(each.version)
        except InvalidVersionError:
            raise BadInput(f"{each.name} {each.version}", f"is no version ({each.origin})") from None
        found.append(GenericVirtualPackage(PackageName(each.name), version, BuildString(each.build)))
    return found


def cutoff(text: str) -> datetime:
    """The last moment that is not too new. A date stands for its end (UTC), as in uv. Raises BadInput."""
    written = text.strip()
    try:
        moment = datetime.fromisoformat(f"{written[:-1]}+00:00" if written.endswith(("Z", "z")) else written)
    except ValueError:
        raise BadInput(f"--exclude-newer {text}", "is no ISO 8601 date or time", "write it as 2026-01-31") from None
    moment = moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    whole_day = not {"T", "t", ":", " "} & set(written)
    return moment + timedelta(days=1 if whole_day else 0, milliseconds=-1)
