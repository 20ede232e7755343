"""Both sides of one target side by side, as the rules of consistency see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stackfix.abi.records import Books
from stackfix.conda.builds import as_torch_build
from stackfix.conda.excluded import why_not
from stackfix.conda.names import Shelf
from stackfix.conda.records import CondaTarget, Departure
from stackfix.conda.sides import Side
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What is compared, and with what knowledge."""

    pip: Side | None                # None: the conda side alone
    conda: Side
    target: CondaTarget
    matrix: Matrix
    books: Books | None
    shelf: Shelf | None
    given_up: Mapping[str, str] = field(default_factory=dict)   # why what was wished of a package could not be

    @property
    def conda_build(self) -> TorchBuild | None:
        """torch of the conda side as a row of the matrix; None where it is a wheel that the matrix has no row for."""
        if self.target.torch is not None:
            return as_torch_build(self.target.torch, self.matrix)
        rows = query.builds(self.matrix, platform=self.target.target.platform, index=query.DEFAULT_INDEX)
        return next((row for row in rows if row.version == self.conda.torch), None)

    def why_not(self, project: str, version: str) -> tuple[str, str]:
        """Why the conda side has not this version of a project: reason and source."""
        record = self.conda.records.get(project)
        if record is None:
            return "pip brings it beside the channels' packages, and took another release there", "the pip entries"
        return why_not(self.target, record.name, version, self.shelf, self.given_up)

    def breaks(self, about: str, pip: str | None, conda: str | None, reason: str, source: str = "") -> Departure:
        """A departure that is against the rule."""
        return Departure(about=about, pip=pip, conda=conda, reason=reason, source=source or self._place, breaks=True)

    def told(self, about: str, pip: str | None, conda: str | None, reason: str, source: str = "") -> Departure:
        """A difference within the rule."""
        return Departure(about=about, pip=pip, conda=conda, reason=reason, source=source or self._place, breaks=False)

    @property
    def _place(self) -> str:
        return f"the conda packages for Python {self.target.target.python} on {self.target.target.platform}"
