"""The proof beside a lock: its file, whether it is of the lock that is there, and what becomes of one that is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stackfix.cli.lock_proof import proof_name
from stackfix.errors import BadInput
from stackfix.prove.proof_records import Proof, ProvenTarget
from stackfix.prove.proof_text import parse_proof, proof_text
from stackfix.resolve.records import Lock, TargetLock
from stackfix.write.read import read_text
from stackfix.write.records import Difference, PlannedFile


def proof_file(proof: Proof, name: str | None) -> PlannedFile:
    """The file of a proof."""
    return PlannedFile(path=proof_name(name), text=proof_text(proof))


def read_proof(path: Path) -> Proof:
    """The proof in a file. Raises BadInput for what is none, or cannot be read."""
    return parse_proof(read_text(path), str(path))


def differences_of_proof(path: Path, lock: Lock) -> tuple[Difference, ...]:
    """Where a proof is not of this lock."""
    text = read_text(path)
    try:
        proof = parse_proof(text, str(path))
    except BadInput as error:
        return (Difference(path=path.name, line=1, found=error.reason, expected="the proof of this lock"),)
    return tuple(compare_wheels(path.name, text, proof, lock))


def is_of_another(path: Path, lock: Lock) -> bool:
    """Whether it is a proof of ours, and of another lock."""
    try:
        return any(compare_wheels(path.name, "", read_proof(path), lock))
    except BadInput:
        return False            # not ours to remove


def compare_wheels(name: str, text: str, proof: Proof, lock: Lock) -> Iterator[Difference]:
    """Each wheel that only one of both has."""
    from stackfix.cli.lock_prove_stack import is_simulated

    lines = text.splitlines()
    stated = {(each.python, each.platform): each for each in proof.targets}
    for locked in lock.targets:
        if not is_simulated(locked.target):
            continue
        target = stated.pop((locked.target.python, locked.target.place), None)
        found, expected = wheels_in(target), wheels_of(locked)
        for sha256 in sorted(found.keys() - expected.keys(), key=found.__getitem__):
            yield Difference(path=name, line=line_of(lines, sha256), found=found[sha256], expected=None)
        for sha256 in sorted(expected.keys() - found.keys(), key=expected.__getitem__):
            yield Difference(path=name, line=1, found=None, expected=expected[sha256])
    for python, platform in sorted(stated):
        yield Difference(path=name, line=1, found=f"Python {python} on {platform}", expected=None)


def wheels_in(target: ProvenTarget | None) -> dict[str, str]:
    """What a proof is about, by hash."""
    return {} if target is None else {
        each.sha256: f"{each.name} {each.version} sha256:{each.sha256}" for each in target.wheels}


def wheels_of(locked: TargetLock) -> dict[str, str]:
    """What it ought to be about."""
    from stackfix.cli.lock_prove_stack import planned_of

    return {each.sha256: f"{each.name} {each.version} sha256:{each.sha256}" for each in planned_of(locked)[0]}


def line_of(lines: list[str], text: str) -> int:
    """The first line with a text, from 1."""
    return next((number for number, line in enumerate(lines, 1) if text in line), 1)
