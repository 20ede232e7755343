"""`stackfix check --json` of an environment, as its users run it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.judges.command import Run, run
from tests.real_environments.workshop import Made, Workshop

QUIET = {"note"}
ABOVE_NOTE = ("error", "warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one check said."""

    run: Run
    findings: tuple[Mapping[str, Any], ...]

    @property
    def loud(self) -> tuple[Mapping[str, Any], ...]:
        """Findings above a note."""
        return tuple(each for each in self.findings if each["severity"] in ABOVE_NOTE)

    def of(self, code: str) -> tuple[Mapping[str, Any], ...]:
        """Findings of one code."""
        return tuple(each for each in self.findings if each["code"] == code)

    def told(self) -> str:
        """The findings as text, for a failing assertion."""
        return json.dumps(self.findings, indent=1)


def check(workshop: Workshop, made: Made, *words: str, **variables: str) -> Answer:
    """Judge an environment; `variables` are those of the shell in which it would be used."""
    cache = workshop.folder.with_name(workshop.folder.name + "-stackfix")
    settings = workshop.quiet(**variables, STACKFIX_CACHE_DIR=str(cache), PIP_CONFIG_FILE="/dev/null")
    done = run([sys.executable, "-m", "stackfix", "check", "--json", "--prefix", made.prefix, *words],
               cwd=workshop.folder, env=settings)
    assert done.status in {0, 1}, done
    said = done.json
    assert said["schema_version"] == 1
    assert not done.stderr, done
    findings: Sequence[Mapping[str, Any]] = said["findings"]
    assert done.status == int(any(each["severity"] == "error" for each in findings)), done
    return Answer(run=done, findings=tuple(findings))
