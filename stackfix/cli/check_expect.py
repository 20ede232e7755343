"""`stackfix check --expect LOCK`: an installed environment beside a lockfile and its proof."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.diff_read import Side, read_side
from stackfix.cli.lock_proof import BASE
from stackfix.cli.lock_proof_file import read_proof
from stackfix.diagnose.situation import View
from stackfix.errors import BadInput
from stackfix.platforms import split_place
from stackfix.prove.alone import with_libraries
from stackfix.prove.compare import deviations
from stackfix.prove.compare_records import Deviation, Expected
from stackfix.prove.proof_records import Proof, ProvenTarget

if TYPE_CHECKING:
    from stackfix.write.records import HeldTarget

KINDS = ("requirements", "pylock", "constraints")
LOCK_NAME = re.compile(r"(?:requirements(?:-(?P<requirements>.+))?\.txt|pylock(?:\.(?P<pylock>[^.]+))?\.toml)")
TARGET = re.compile(r"-?(?:cp3\d+-[a-z]+-[a-z0-9]+(?:-cpu)?|cpu)$")
HASH = "sha256:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a comparison gave."""

    lock: str
    proof: str | None               # the file; None: there is none
    deviations: tuple[Deviation, ...]


def compare_with(view: View, lock: str, proof: str | None) -> Compared:
    """The environment beside a lock. Raises BadInput for what is no lock of pip, or no proof."""
    side = read_side(lock)
    if side.kind not in KINDS:
        raise BadInput(f"--expect {lock}", f"is no lockfile of pip but: {side.kind}",
                       "name requirements.txt or pylock.toml; `stackfix diff` compares the others")
    target = target_for(view, side, lock)
    if not target.packages:
        raise BadInput(f"--expect {lock}", "pins no package, so that nothing can be compared",
                       "name the lockfile, or make it again: stackfix lock")
    expected = tuple(Expected(name=each.name, version=each.version, sha256=tuple(
        digest.removeprefix(HASH) for digest in each.hashes if digest.startswith(HASH))) for each in target.packages)
    path = Path(proof) if proof is not None else beside(Path(lock))
    found = None if path is None else proven_target(view, read_proof(must_exist(path)), str(path), expected)
    whole = view if found is None else with_libraries(view)
    return Compared(lock=lock, proof=None if path is None else str(path),
                    deviations=tuple(deviations(whole, expected, found)))


def target_for(view: View, side: Side, lock: str) -> HeldTarget:
    """The target of the lock that the environment is. Raises BadInput where the lock is for others."""
    python = view.environment.python
    minor, platform = (python.minor, python.platform) if python else (None, None)
    found = [each for each in side.targets if each.python in {None, minor} and (
        platform is None or each.platform in {None, platform})]
    if not found:
        for left in side.left_out:
            if left.python == minor and platform in {None, left.platform}:
                raise BadInput(f"--expect {lock}", f"{left.project} has no file for CPython {minor} on {left.platform}",
                               "lock for it, with --python and --platform")
        has = f"Python {python.minor} on {python.platform}" if python else "no Python"
        are = "; ".join(each.label for each in side.targets)
        raise BadInput(f"--expect {lock}", f"is for {are}, and the environment has {has}",
                       "name the lockfile of this target")
    return found[0]


def proven_target(view: View, proof: Proof, path: str, expected: tuple[Expected, ...]) -> ProvenTarget:
    """The target of a proof that the environment is. Raises BadInput where it is of others.

    Of two for one platform, as with the CPU's build beside another, the one that is about the lock's wheels.
    """
    python, locked = view.environment.python, {digest for each in expected for digest in each.sha256}
    fitting = [each for each in proof.targets if python is not None and each.python == python.minor
               and python.platform in {None, split_place(each.platform)[0]}]
    found = max(fitting, key=lambda each: sum(wheel.sha256 in locked for wheel in each.wheels), default=None)
    if found is None:
        of = "; ".join(f"Python {each.python} on {each.platform}" for each in proof.targets)
        raise BadInput(path, f"proves {of or 'nothing'}, and not what the environment has",
                       "name the proof of this target with --proof")
    return found


def beside(lock: Path) -> Path | None:
    """The proof that lies beside a lock: of its name, else the plain one; None where there is none."""
    match = LOCK_NAME.fullmatch(lock.name)
    whole = (match["requirements"] or match["pylock"] or "") if match else ""
    names = [name for name in dict.fromkeys((whole, TARGET.sub("", whole))) if name]
    return next((path for each in [*(f"{name}.{BASE}" for name in names), BASE]
                 if (path := lock.with_name(each)).is_file()), None)


def must_exist(path: Path) -> Path:
    """The path of a proof. Raises BadInput where there is none."""
    if not path.is_file():
        raise BadInput(f"--proof {path}", "no such file" if not path.exists() else "is no file",
                       "make one with: stackfix lock --prove")
    return path
