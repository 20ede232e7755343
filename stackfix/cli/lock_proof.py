"""What `stackfix lock` has to do with proofs, as far as most locks need it: little is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import BadInput
from stackfix.platforms import LINUX, split_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackfix.cli.common import CommonOptions
    from stackfix.cli.lock_prove import Proving
    from stackfix.cli.options import LockOptions
    from stackfix.cli.request import ReadRequest
    from stackfix.resolve.records import Lock
    from stackfix.write.records import Difference

BASE = "stack-proof.json"


def proof_name(name: str | None) -> str:
    """`stack-proof.json`; `train.stack-proof.json`: one file holds all targets."""
    return BASE if name is None else f"{name}.{BASE}"


def open_proving(
    request: ReadRequest, options: LockOptions, common: CommonOptions, formats: Sequence[str],
) -> Proving | None:
    """What proves each lock; None without --prove. Raises BadInput where no lock of pip is asked for."""
    if not options.prove:
        return None
    from stackfix.write.files import PIP_FORMATS

    if not set(formats) & set(PIP_FORMATS):
        raise BadInput("--prove", "proves what pip installs, and only conda lockfiles are asked for",
                       f"ask for one of pip's too: --format {PIP_FORMATS[0]}")
    places = request.stack.platforms
    if not any(split_place(place)[0] in LINUX for place in places):
        raise BadInput("--prove", f"simulates Linux's loader, and the lock is for {' and '.join(places)}",
                       "leave it out, or lock for Linux too: --platform linux-64")
    from stackfix.cli.lock_prove import Proving

    return Proving(request, options, common)


def present_proof(directory: Path, options: LockOptions, lock: Lock) -> tuple[Difference, ...]:
    """Where a proof that is there is not of this lock; none where there is no proof."""
    if not (directory / proof_name(options.name)).is_file():
        return ()
    from stackfix.cli.lock_proof_file import differences_of_proof

    return differences_of_proof(directory / proof_name(options.name), lock)


def stale_proofs(directory: Path, options: LockOptions, lock: Lock, common: CommonOptions) -> tuple[str, ...]:
    """The name of a proof of ours that is there and is of another lock: it is removed with that lock."""
    path = directory / proof_name(options.name)
    if not path.is_file():
        return ()
    from stackfix.cli.lock_proof_file import is_of_another

    if not is_of_another(path, lock):
        return ()
    common.seen.cannot_be_kept("a proof that goes is told")
    if not common.quiet:
        import click

        click.echo(f"note: {path.name} proves another lock and is removed; --prove makes a new one", err=True)
    return (path.name,)
