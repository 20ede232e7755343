"""One solve by py-rattler."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from stackfix.conda.records import CondaAsk, CondaCause, CondaConflict, Spec
from stackfix.errors import BadInput
from stackfix.sources.conda_live import Live
from stackfix.sources.conda_loop import run

if TYPE_CHECKING:
    from rattler import GenericVirtualPackage, MatchSpec, RepoDataRecord


def solve_asked(
    ask: CondaAsk, sources: list[Any], live: Live, locked: list[RepoDataRecord],
) -> list[RepoDataRecord] | CondaConflict:
    """The records, or why there are none. Raises BadInput for a spec that is none."""
    from rattler import ChannelPriority, solve
    from rattler.exceptions import SolverError

    priority = ChannelPriority.Strict if ask.priority == "strict" else ChannelPriority.Disabled
    newest = None if ask.exclude_newer is None else _moment(ask.exclude_newer)
    work = solve(
        sources, [match_spec(spec) for spec in ask.specs], gateway=live.gateway, platforms=[ask.platform, "noarch"],  # type: ignore[list-item]
        locked_packages=locked, virtual_packages=_virtual(ask), channel_priority=priority, exclude_newer=newest,
        constraints=[match_spec(spec) for spec in ask.constraints], channel_relations="disabled")
    try:
        return run(work)
    except SolverError as fault:
        raw = str(fault)
        return CondaConflict(causes=tuple(CondaCause(text=line.strip()) for line in raw.splitlines()), raw=raw)


def match_spec(spec: Spec) -> MatchSpec:
    """The spec as rattler has it. Raises BadInput."""
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(spec.text)
    except InvalidMatchSpecError as fault:
        raise BadInput(f"{spec.text} ({spec.origin})", f"is no conda spec: {str(fault).splitlines()[0]}") from None


def _virtual(ask: CondaAsk) -> list[GenericVirtualPackage]:
    from rattler import BuildString, GenericVirtualPackage, PackageName, Version

    return [GenericVirtualPackage(PackageName(each.name), Version(each.version), BuildString(each.build))
            for each in ask.virtual]


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo is None else moment.astimezone(timezone.utc)
