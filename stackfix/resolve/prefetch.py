"""Ask for what will be needed before it is needed: pages of the whole expected closure at once, then metadata as the
pages arrive. Nothing here decides; a wrong guess costs one request and no answer.
"""

from __future__ import annotations

from stackfix.matrix import query
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.question import TORCH, Question


class Prefetch:
    """The eager pass before the solver."""

    def __init__(self, evidence: Evidence, question: Question) -> None:
        self._evidence, self._question = evidence, question

    def run(self) -> None:
        """Asks; returns as soon as nothing more can be foreseen."""
        names = (TORCH, *(line.name for line in self._question.lines if "@" not in line.requirement.text))
        self._evidence.index.prefetch_pages(query.closure_hint(self._evidence.matrix, names))
