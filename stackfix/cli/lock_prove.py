"""`stackfix lock --prove`: the decided stack is tried on its planned tree before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from stackfix.cli.common import CommonOptions
from stackfix.cli.lock_proof_file import proof_file
from stackfix.cli.lock_prove_stack import Prepared, is_simulated, planned_of, prepare
from stackfix.cli.lock_prove_told import channels_text, elsewhere_text, noted
from stackfix.cli.options import LockOptions
from stackfix.cli.progress import Bars
from stackfix.errors import Unreachable
from stackfix.prove.proof_records import FAILS, Proof
from stackfix.prove.refusal import bounds_of, refusal
from stackfix.quick import replace
from stackfix.resolve.records import Lock, NoConsistentStack, Requirement, StackRequest

if TYPE_CHECKING:
    from stackfix.cli.request import ReadRequest
    from stackfix.prove.proof_records import ProvenTarget
    from stackfix.prove.records import NotFetched, PlannedWheel, TableSource
    from stackfix.sources.transport import Transport
    from stackfix.write.records import PlannedFile

MOST_ROUNDS = 4         # candidates that are passed over before the answer is no
MEGABYTE = 1_000_000
Decide = Callable[[StackRequest], Lock]
MISMATCH = "hash-mismatch"


class AnotherFile(Unreachable):
    """The index has other bytes than those that the lock would promise: no installer would take them."""

    reference = MISMATCH


class Proving:
    """Proves the locks of one stack."""

    def __init__(self, request: ReadRequest, options: LockOptions, common: CommonOptions) -> None:
        self.request, self.options, self.common = request, options, common
        common.seen.cannot_be_kept("the proof: what is known of wheels changes without a sign")
        self._prepared: Prepared | None = None
        self._proven: list[tuple[Lock, Proof]] = []
        self._failed: tuple[NotFetched, ...] = ()       # of the last lock

    def decide(self, asked: StackRequest, decide: Decide) -> Lock:
        """The first candidate that loads; its proof is kept. Raises StackDoesNotLoad where none does."""
        bounds: tuple[Requirement, ...] = ()
        failed: ProvenTarget | None = None
        for _ in range(MOST_ROUNDS):
            try:
                lock = decide(asked.with_(requirements=(*asked.requirements, *bounds)))
            except NoConsistentStack as error:
                if failed is None:
                    raise
                nearest = tuple(replace(each, command=f"{each.command} --prove") for each in error.nearest
                                if not any(one.text in each.change for one in bounds))
                raise refusal(failed, nearest) from None
            proof = self.prove(lock)
            failed = next((each for each in proof.targets if each.verdict == FAILS), None)
            if failed is None:
                self._proven.append((noted(lock, proof, bounds, self._failed), proof))
                return self._proven[-1][0]
            known = {each.text for each in bounds}
            more = tuple(each for each in bounds_of(failed) if each.text not in known)
            if not more:
                break
            bounds = (*bounds, *more)
        assert failed is not None       # noqa: S101 - a round was done
        raise refusal(failed)

    def proof_of(self, lock: Lock) -> Proof:
        """The proof of a lock that was decided here."""
        return next(proof for known, proof in self._proven if known is lock)

    def files(self, lock: Lock) -> tuple[PlannedFile, ...]:
        """The file of its proof."""
        return (proof_file(self.proof_of(lock), self.options.name),)

    def prove(self, lock: Lock) -> Proof:
        """The proof of all targets of a lock. What is not known of their wheels is downloaded once, and announced.

        Raises AnotherFile.
        """
        from stackfix.tables.source import open_tables

        if self._prepared is None:
            self._prepared = prepare(self.options.matrix_directory)
        source = open_tables(self.common.cache_dir, self.open_transport, offline=self.common.offline)
        targets = tuple(each for each in lock.targets if is_simulated(each.target))
        planned = tuple(wheel for each in targets for wheel in planned_of(each)[0])
        self.announce(source, planned)
        with Bars(shown=not (self.common.quiet or self.common.as_json)) as bars:
            fetched = source.fetch(planned, bars.download)
        self._failed = fetched.failed
        for each in fetched.failed:
            if each.code == MISMATCH:
                raise AnotherFile(each.wheel.file, each.reason, each.next_step)
        elsewhere = tuple(elsewhere_text(each.target) for each in lock.targets if each not in targets)
        return Proof(targets=tuple(self._prepared.proven(each, fetched, source) for each in targets),
                     outside=(*elsewhere, *(channels_text(each) for each in lock.conda)))

    def announce(self, source: TableSource, planned: tuple[PlannedWheel, ...]) -> None:
        """Say on stderr what would be downloaded, before it is."""
        ahead = source.announce(planned)
        if not ahead.wheels or self.common.offline or self.common.quiet:
            return
        what = "1 wheel" if len(ahead.wheels) == 1 else f"{len(ahead.wheels)} wheels"
        unsized = f", and {len(ahead.unsized)} of unknown size" if ahead.unsized else ""
        size = f"{ahead.size / MEGABYTE:,.1f} MB{unsized}"
        click.echo(f"{what} that nothing is known of yet: {size} are downloaded once, reduced to tables, and not kept",
                   err=True)

    def open_transport(self) -> Transport:
        """Connections to the index, with its logins."""
        from stackfix.cli.wiring import index_settings
        from stackfix.sources.transport import Transport

        index = self.request.index
        settings = index_settings(
            index_url=index.index_url if self.options.index_url is None else self.options.index_url,
            extra_index_urls=self.options.extra_index_urls or index.extra_index_urls)
        return Transport(settings)
