"""`stackfix lock`: decide the stack, then write its lockfiles or compare them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.errors import InStack
from stackfix.cli.options import LockOptions, lock_options
from stackfix.errors import StackfixError
from stackfix.quick import dataclass

if TYPE_CHECKING:
    from stackfix.prove.proof_records import Proof
    from stackfix.resolve.records import Lock
    from stackfix.write.records import Difference, PlannedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One stack decided. `differences` is None unless --check was given."""

    name: str | None
    lock: Lock
    directory: Path
    files: tuple[PlannedFile, ...]
    differences: tuple[Difference, ...] | None
    proof: Proof | None = None      # with --prove


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One text that is shown. `file`: it is the path of the file of that name in the output folder."""

    text: str
    err: bool = False
    file: str | None = None


@click.command("lock")
@lock_options
@common_options
def command(**values: Any) -> int:
    """Choose a consistent stack from the matrix and write fully hashed lockfiles.

    Without options it reads [tool.stackfix] of pyproject.toml, or stackfix.toml.
    """
    from stackfix.cli.lock_answer import Keeping
    from stackfix.cli.terminal import colour_wanted

    common = take_common(values)
    asked = LockOptions(**values)
    stacks = stacks_to_lock(asked, Path(), common)
    keeping = Keeping(click.get_current_context().obj, [options.directory or "." for options in stacks])
    outcomes = [lock_stack(options, common, asked=asked) for options in stacks]
    shown = tuple(shown_lines(outcomes, common))
    for line in shown:
        click.echo(line.text, err=line.err, color=colour_wanted(sys.stderr if line.err else sys.stdout))
    status = 1 if any(outcome.differences for outcome in outcomes) else 0
    keeping.keep(stacks, outcomes, shown, common, status=status)
    return status


def stacks_to_lock(asked: LockOptions, folder: Path, common: CommonOptions) -> list[LockOptions]:
    """What to lock: the options alone where they ask for a stack, else each stack of the project file."""
    if asked.asks_for_a_stack():
        return [asked]
    from stackfix.cli.project import project_options

    for name in ("pyproject.toml", "stackfix.toml"):
        common.seen.text(folder / name)
    return [asked.over(options) for options in project_options(folder, asked.name)]


def lock_stack(options: LockOptions, common: CommonOptions, *, asked: LockOptions) -> Outcome:
    """As lock_one. Raises InStack where the stack comes from a project file, which may hold several."""
    try:
        return lock_one(options, common, asked=asked)
    except StackfixError as fault:
        if options.project_file is None:
            raise
        raise InStack(stack=options.name, file=options.project_file, fault=fault) from fault


def lock_one(options: LockOptions, common: CommonOptions, *, asked: LockOptions) -> Outcome:
    """Decide one stack; write its files, or compare them with --check. Raises what no stack, index or disk allow.

    `asked` is the command line, without what a project file adds to it.
    """
    from stackfix.cli.lock_check import check_lock
    from stackfix.cli.lock_decide import Deciding
    from stackfix.cli.lock_files_told import expected_names, tell_stale
    from stackfix.cli.lock_kept import kept_pins
    from stackfix.cli.lock_proof import present_proof, proof_name, stale_proofs
    from stackfix.cli.request import read_request
    from stackfix.write.files import check_formats, refuse_places, write_files

    formats = check_formats(options.formats)
    directory = Path("." if options.directory is None else options.directory)
    kept = kept_pins(options, directory, common)
    request = read_request(options, kept=kept.pip)
    proof = proof_name(options.name)
    for path in request.inputs:
        common.seen.text(path)
    if not options.check:
        names = (*expected_names(formats, options.name, request.stack), *([proof] if options.prove else []))
        # before the index is asked
        refuse_places(directory, names, inputs=request.inputs, overwrite=options.overwrite)
    deciding = Deciding(request, options, common, asked=asked, formats=formats)
    differences = None
    if options.check:
        (lock, files), differences = check_lock(directory, deciding.decide, kept, request.inputs)
        differences += present_proof(directory, options, lock) if not options.prove else ()
    else:
        lock, files = deciding.decide(kept)
        stale = stale_proofs(directory, options, lock, common) if not options.prove else ()
        tell_stale(directory, files, request.inputs, common)
        write_files(directory, files, inputs=request.inputs, overwrite=options.overwrite, stale=stale)
    common.seen.text(directory / proof)
    return Outcome(name=options.name, lock=lock, directory=directory, files=files, differences=differences,
                   proof=deciding.proof_of(lock))


def shown_lines(outcomes: list[Outcome], common: CommonOptions) -> Iterator[Shown]:
    """The decisions: one JSON document, or the stack on stderr and the files on stdout."""
    if common.as_json:
        from stackfix.report.json import lock_document, render_json

        documents = [
            {**lock_document(outcome.lock, written_paths(outcome), difference_documents(outcome)),
             **proof_documents(outcome)} for outcome in outcomes
        ]
        named = zip(outcomes, documents, strict=True)
        document = documents[0] if len(outcomes) == 1 else {
            "stacks": [{"name": outcome.name, **document} for outcome, document in named]}
        yield Shown(text=render_json(document))
        return
    for outcome in outcomes:
        for line in outcome_lines(outcome, common):
            yield Shown(text=line, err=True)
        for file in outcome.files if outcome.differences is None else ():
            yield Shown(text=str(outcome.directory / file.path), file=file.path)
        for difference in outcome.differences or ():
            yield Shown(text=difference.describe())


def outcome_lines(outcome: Outcome, common: CommonOptions) -> Iterator[str]:
    """What is said on stderr of one outcome."""
    if common.quiet:
        return
    from stackfix.cli.terminal import stderr_style
    from stackfix.report.console import lock_lines

    yield from lock_lines(outcome.lock, stderr_style())
    if outcome.proof is not None:
        from stackfix.report.proof import proof_lines

        yield from proof_lines(outcome.proof, stderr_style())
    if outcome.differences is not None:
        count = len(outcome.differences)
        lines = "1 line of the lockfiles does" if count == 1 else f"{count} lines of the lockfiles do"
        yield f"{lines} not hold" if count else "the lockfiles hold"


def proof_documents(outcome: Outcome) -> dict[str, Any]:
    """What the proof says, for JSON; nothing without --prove."""
    if outcome.proof is None:
        return {}
    from stackfix.cli.lock_proof import proof_name
    from stackfix.report.proof import proof_document

    return {"proof": proof_document(outcome.proof, str(outcome.directory / proof_name(outcome.name)))}


def written_paths(outcome: Outcome) -> list[str]:
    """Paths of the planned files, relative as the output folder was given."""
    return [str(outcome.directory / file.path) for file in outcome.files]


def difference_documents(outcome: Outcome) -> list[dict[str, Any]] | None:
    """The differences of --check for JSON, or None without --check."""
    if outcome.differences is None:
        return None
    return [
        {"path": d.path, "line": d.line, "found": d.found, "expected": d.expected, "about": d.about}
        for d in outcome.differences
    ]
