"""A proof for people, and its summary for scripts; the whole of it is the file beside the lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from stackfix.prove.proof_records import CANNOT_TELL, CLEAN, LOADS, Proof, ProvenTarget, Tried, Trouble
from stackfix.report.style import Style

WORDS = {"loads": "loads", "cannot-tell": "cannot be told", "fails": "fails"}


def proof_lines(proof: Proof, style: Style) -> Iterator[str]:
    """One line for each target: the verdict, and in how many of the other environments it holds."""
    for target in proof.targets:
        tried = Counter(each.verdict for each in others(target))
        count = sum(number for verdict, number in tried.items() if verdict in WORDS)
        beside = f"; holds in {tried[LOADS]} of {count} environments with something in the way" if count else ""
        beside += f", in {tried[CANNOT_TELL]} it cannot be told" if tried[CANNOT_TELL] else ""
        files = len({path for each in target.imports for path in each.maps})
        word = style(WORDS[target.verdict], "green" if target.verdict == LOADS else "yellow")
        yield (f"  proof, Python {target.python} on {target.platform}: {word} where nothing is in the way "
               f"({len(target.wheels)} wheels, {files} files mapped){beside}")


def others(target: ProvenTarget) -> tuple[Tried, ...]:
    """The environments beside the clean one."""
    return tuple(each for each in target.environments if each.name != CLEAN)


def proof_document(proof: Proof, file: str) -> dict[str, Any]:
    """`"proof"` of `lock --json`: the verdict of each target and environment, with what fails."""
    return {"file": file, "targets": [target_document(each) for each in proof.targets]}


def target_document(target: ProvenTarget) -> dict[str, Any]:
    return {
        "python": target.python, "platform": target.platform, "verdict": target.verdict,
        "outside": [{"name": each.name, "version": each.version, "why": each.why} for each in target.outside],
        "unknown": list(target.unknown),
        "environments": [{"name": each.name, "title": each.title, "holds": list(each.holds), "verdict": each.verdict,
                          "why": each.why, "troubles": [trouble_document(one) for one in each.troubles],
                          "beware": list(each.beware)}
                         for each in target.environments],
    }


def trouble_document(trouble: Trouble) -> dict[str, Any]:
    return {"kind": trouble.kind, "summary": trouble.summary, "error": trouble.error, "library": trouble.library,
            "provider": trouble.provider, "requester": trouble.requester, "symbols": list(trouble.symbols),
            "versions": list(trouble.versions), "avoid": list(trouble.avoid)}


