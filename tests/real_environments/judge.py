"""Whether a check names the root of what is broken, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real_environments.asked import Answer
from tests.real_environments.child import Told
from tests.real_environments.scenarios import Scenario
from tests.real_environments.workshop import Made, Workshop

SYMBOL = re.compile(r"undefined symbol: (\w+)")


def judge_healthy(answer: Answer) -> None:
    """Nothing above a note."""
    assert not answer.loud, answer.told()


def judge_broken(scenario: Scenario, answer: Answer, told: Told, workshop: Workshop, made: Made) -> None:
    """The root, once, with culprit, requester and symbols, an error where the child fails; nothing false beside it."""
    root = scenario.root
    found = [each for each in answer.of(root.code) if is_named(each, root.package, absolute(root.path, workshop, made))]
    assert len(found) == 1, answer.told()
    finding = found[0]
    assert finding["severity"] == "error", finding
    judge_requester(finding, root.requester, made)
    symbols = set(finding["symbols"])
    assert len(symbols) == len(finding["symbols"]), finding
    assert root.among <= symbols, finding
    assert root.symbols is None or symbols == root.symbols, finding
    assert set(SYMBOL.findall(told.error or "")) <= symbols, (told.error, finding)
    assert {each["code"] for each in answer.loud} <= {root.code, *scenario.beside}, answer.told()
    assert finding["summary"]
    assert any(each.startswith(root.evidence) for each in finding["evidence"]), finding


def absolute(path: str | None, workshop: Workshop, made: Made) -> str | None:
    """The path of a culprit: a stray file beside the environment, else one that is or was in it."""
    if path is None:
        return None
    stray = workshop.folder / path
    return str(stray if stray.exists() else made.site / path)


def is_named(finding: Mapping[str, Any], package: str | None, path: str | None) -> bool:
    """Whether the finding's culprit is this package and file."""
    culprit = finding["culprit"]
    return (package is None or culprit.get("package") == package) and (path is None or same(culprit.get("path"), path))


def judge_requester(finding: Mapping[str, Any], requester: str | None, made: Made) -> None:
    """Who needs it, by any spelling of its path."""
    if requester is not None:
        assert same((finding["requester"] or {}).get("path"), str(made.site / requester)), finding


def same(stated: str | None, path: str) -> bool:
    """Whether a stated path is this file, `torch/lib/../..` and the like resolved."""
    return stated is not None and str(Path(stated).resolve()) == str(Path(path).resolve())
