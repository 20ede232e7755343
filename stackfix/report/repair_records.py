"""How a repair ended, as the report is told it."""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.diagnose.finding_records import Finding
from stackfix.verify.records import Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an environment may not be changed at all, whatever the plan."""

    code: str                       # of the error
    message: str
    hint: str | None
    command: str | None = None      # makes a preload folder outside of the environment that does what its hook would


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was seen after a repair: the simulation made anew, a real load, real kernels."""

    findings: tuple[Finding, ...]   # above a note, that are there now, in an activated shell where the plan needs one
    surprises: tuple[Finding, ...]  # those of them, and in other shells, that the plan had not foretold
    load: Probe | None              # None: nothing was to be loaded, or nothing could be
    kernel: Probe | None            # None: no GPU
    reason: str                     # why something was not done or does not work; "" where all was done and works
    libraries: tuple[str, ...] = ()     # files that the load has mapped, of libraries that the repair was about

    @property
    def is_as_promised(self) -> bool:
        return not self.surprises

    @property
    def works(self) -> bool:
        """Whether nothing that was tried has failed."""
        return self.is_as_promised and not any(
            each is not None and each.verdict == "fails" for each in (self.load, self.kernel))
