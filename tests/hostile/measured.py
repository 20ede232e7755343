"""Commands run in forks of a warm process, with their memory and their end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING

from tests.judges.command import clean_environment

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).resolve().parents[2]
NO_LIMITS: Mapping[str, int] = MappingProxyType({})
PATIENCE = 60.0             # seconds after which a command hangs: what ends at all ends in a tenth of that


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What came of one command."""

    status: int
    out: str
    err: str
    peak: int                       # bytes
    killed: bool                    # it did not end by itself


class Warm:
    """The warm process while the block runs."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.warm"], cwd=ROOT, env=clean_environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, words: Sequence[str], *, cwd: Path, environ: Mapping[str, str], notes: Path,
            hurry: float = 1, limits: Mapping[str, int] = NO_LIMITS) -> Ended:
        """One command line of stackfix. What it says is kept in the folder `notes`."""
        out, err = notes / "stdout", notes / "stderr"
        asked = {"words": list(words), "cwd": str(cwd), "out": str(out), "err": str(err), "hurry": hurry,
                 "environ": {**clean_environment(), **environ}, "patience": PATIENCE,
                 "limits": dict(limits)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        return Ended(status=said["status"], out=read(out), err=read(err), peak=said["peak"], killed=said["killed"])


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")
