"""How much one closure may ask of one project: metadata is anybody's text, and the solver asks for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stackfix.resolve.needs import Candidate, Need
from stackfix.sources.errors import BadMetadata

MOST_EXTRAS = 500       # of one project, in one closure: all of apache-airflow's are some 150
MOST_IN_ALL = 1_000     # extras of all projects of a closure together
MOST_TIMES = 500        # that one file requires one project here: real ones have a line for each of some Pythons


def check_demands(candidate: Candidate, needs: Sequence[Need], extras: dict[str, set[str]]) -> None:
    """Raises BadMetadata where a candidate asks for too much; `extras` of each project is what was asked for so far."""
    for key, times in Counter(need.key for need in needs).items():
        if times > MOST_TIMES:
            raise refused(candidate, f"requires {key[:100]} {times} times: no real one does so more than {MOST_TIMES}"
                                     " times")
    for need in needs:
        if need.extra is None:
            continue
        asked = extras.setdefault(need.name, set())
        asked.add(need.extra)
        if len(asked) > MOST_EXTRAS:
            raise refused(candidate, f"asks for one more than {MOST_EXTRAS} extras of {need.name[:100]} in one stack:"
                                     " no real one asks for so many")
        if sum(map(len, extras.values())) > MOST_IN_ALL:
            raise refused(candidate, f"asks for one more than {MOST_IN_ALL} extras of all projects of one stack"
                                     f" ({need.key[:100]}): no real one asks for so many")


def refused(candidate: Candidate, reason: str) -> BadMetadata:
    """The error about the candidate's file."""
    return BadMetadata(candidate.files[0].filename, candidate.files[0].url, reason)
