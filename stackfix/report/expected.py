"""An environment beside a lock and its proof, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stackfix.prove.compare_records import Deviation
from stackfix.report.printable import printable
from stackfix.report.style import Style

TITLES = {
    "package": "not installed", "version": "another version", "origin": "another file",
    "proof": "the proof is of another lock", "file": "not the wheel's file", "resolution": "resolved otherwise",
    "import": "does not happen",
}


def expected_lines(lock: str, proof: str | None, found: Sequence[Deviation], style: Style) -> Iterator[str]:
    """What is not as expected, a line each; a sentence where all is."""
    beside = f" and {printable(proof)}" if proof is not None else ""
    if not found:
        without = "" if proof is not None else "; there is no proof beside it, so only packages were compared"
        yield style(f"as {printable(lock)}{beside} expect it{without}", "green")
        return
    yield style(f"not as {printable(lock)}{beside} expect it: {len(found)} deviation{'s' * (len(found) != 1)}", "red")
    for each in found:
        how = f" (via {each.how})" if each.how else ""
        yield printable(f"  {TITLES[each.kind]}: {each.what}: expected {each.expected}, found "
                        f"{'nothing' if each.found is None else each.found}{how}")


def expected_document(lock: str, proof: str | None, found: Sequence[Deviation]) -> dict[str, Any]:
    """`"expected"` of `check --json`."""
    return {"lock": lock, "proof": proof, "deviations": [
        {"kind": each.kind, "what": each.what, "expected": each.expected, "found": each.found, "how": each.how}
        for each in found]}
