"""Why a plan does not cure a finding: no means, none that works, none by this method, or something out of reach."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stackfix.diagnose.finding_records import Finding
from stackfix.plan.effect_records import Effect
from stackfix.plan.install_choice import NoChoices
from stackfix.plan.names import key_of
from stackfix.plan.planner_check import Check
from stackfix.plan.planner_search import DEPTH, Search
from stackfix.plan.records import Left
from stackfix.plan.rules import INSTALLING, Means
from stackfix.plan.rules_install import wants

CONDA = re.compile(r"(?:^|\s)conda (?:install|remove|update) ")


class Told:
    """Says it of each finding that a search has left."""

    def __init__(self, search: Search, check: Check, method: str, findings: Sequence[Finding]) -> None:
        """findings: all that the search was for."""
        self._search, self._method, self._findings = search, method, findings
        self._whole: Effect | None = None           # what auto would do for all of them
        # No index is asked only to say what another method would do
        self._auto = Search(search.simulation, NoChoices("is not asked for"), Means(method="auto"), check.why_not,
                            search.standing)

    def left(self, finding: Finding) -> Left:
        """The finding with the reason."""
        if not finding.repairable:
            return Left(code=finding.code, summary=finding.summary,
                        reason=finding.why_not or "no change inside of the environment cures it")
        if key_of(finding) in self._search.by_scripts:
            return Left(code=finding.code, summary=finding.summary, by_scripts=True,
                        reason="the scripts of an earlier repair cure it once the environment is activated anew")
        unreached = self._search.refusals.unreached(key_of(finding))
        of_conda = any(CONDA.search(line) for line in finding.cure)
        return Left(code=finding.code, summary=finding.summary, reason=self.reason(finding, of_conda=of_conda),
                    unreached=unreached, by_auto=self.by_auto(finding), by_install=self.by_install(finding),
                    installer="conda" if of_conda else None,
                    is_refused=key_of(finding) in self._search.refused)

    def reason(self, finding: Finding, *, of_conda: bool) -> str:
        """What was tried, and why it does not do."""
        key, search = key_of(finding), self._search
        tried = (*search.refusals.of(key), *search.tried.get(key, ()))
        said = dict.fromkeys((*tried, *(each.what for each in search.refusals.unreached(key)
                                        if not any(each.what in one for one in tried))))
        if said:
            return "; ".join(said)
        if of_conda:
            return "conda installed it: what conda has is left to conda, with the command that is printed"
        if self._method != "auto":
            return f"--method {self._method} has no means for it"
        return "no means is known that changes the environment alone"

    def by_install(self, finding: Finding) -> tuple[str, ...]:
        """What an installation would be tried of, where the method admits none."""
        if self._method in INSTALLING:
            return ()
        view = self._search.simulation.outcome(Effect()).view
        return tuple(dict.fromkeys(each.project for option in wants(view, finding) for each in option))

    def by_auto(self, finding: Finding) -> tuple[str, ...]:
        """The kinds of actions by which all means would cure it, without an installation; none where they do not."""
        if self._method == "auto":
            return ()
        effect = self._auto.attempt(Effect(), finding, DEPTH)
        if effect is None:              # what cures another one may cure it, too
            self._whole = effect = self._whole or self._auto.run(self._findings)
        return effect.kinds() if self._auto.is_cured(effect, finding) else ()
