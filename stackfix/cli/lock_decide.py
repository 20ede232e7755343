"""One stack decided with its files: by the matrix and the sources alone, or with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackfix.cli.lock_files_told import with_pylock_note
from stackfix.cli.lock_proof import open_proving
from stackfix.quick import replace

if TYPE_CHECKING:
    from stackfix.cli.common import CommonOptions
    from stackfix.cli.lock_kept import Kept
    from stackfix.cli.options import LockOptions
    from stackfix.cli.request import ReadRequest
    from stackfix.prove.proof_records import Proof
    from stackfix.resolve.records import Lock, StackRequest
    from stackfix.write.records import PlannedFile


class Deciding:
    """Decides one request, as often as it is asked with other pins that are kept."""

    def __init__(self, request: ReadRequest, options: LockOptions, common: CommonOptions, *, asked: LockOptions,
                 formats: tuple[str, ...]) -> None:
        """`asked` is the command line, without what a project file adds to it."""
        self.request, self.options, self.common = request, options, common
        self.asked, self.formats = asked, formats
        self.proving = open_proving(request, options, common, formats)

    def decide(self, kept: Kept) -> tuple[Lock, tuple[PlannedFile, ...]]:
        """The lock and its files, the proof among them. Raises what no stack or index allows, and StackDoesNotLoad."""
        from stackfix.cli.command_line import header_arguments, join_command
        from stackfix.write.files import plan_files

        stack, proving = self.request.stack, self.proving
        asking = stack.with_(kept=kept.pip, kept_of_targets=kept.of_targets)
        lock = self._once(asking, kept) if proving is None else proving.decide(
            asking, lambda bounded: self._once(bounded, kept))
        decided = stack.with_(pythons=lock.stack.pythons, platforms=lock.stack.platforms)
        command = join_command(header_arguments(self.asked, decided, self.options.name))
        files = plan_files(lock, formats=self.formats_of(lock), name=self.options.name, command=command)
        return lock, (*files, *(proving.files(lock) if proving is not None else ()))

    def formats_of(self, lock: Lock) -> tuple[str, ...]:
        """The formats to write: without those of conda where no target has channels, as a note of the lock says."""
        from stackfix.write.files import PIP_FORMATS

        held = tuple(kind for kind in self.formats if lock.conda or kind in PIP_FORMATS)
        return held or self.formats

    def proof_of(self, lock: Lock) -> Proof | None:
        """The proof of a lock that was decided here; None without --prove."""
        return None if self.proving is None else self.proving.proof_of(lock)

    def _once(self, stack: StackRequest, kept: Kept) -> Lock:
        from stackfix.cli.wiring import decide_lock

        lock = decide_lock(replace(self.request, stack=stack), self.options, self.common, formats=self.formats,
                           kept_conda=kept.conda)
        return with_pylock_note(lock, self.formats, self.options.name)
