"""Notes on versions that were left out because nobody says when their files were uploaded."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.resolve.closure import Closure


def undated_notes(closure: Closure) -> Iterator[str]:
    """A note for each locked project of which a newer version is left out for want of an upload time."""
    if not closure.problem.evidence.limits_dates:
        return
    for name, candidate in sorted(closure.chosen.items()):
        if candidate.direct or name in closure.problem.only:
            continue
        needs = [edge.need for edge in closure.edges if edge.need.name == name]
        project = closure.problem.project(name)
        newer = [version for version in project.admitted(needs) if version > candidate.version]
        left_out = [str(version) for version in newer if project.undated(version)]
        if left_out:
            more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
            yield (f"{candidate.label} was taken: {', '.join(left_out[:3])}{more} left out, since the index does"
                   " not say when their files were uploaded")
