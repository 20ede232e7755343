"""Several `stackfix repair` of one environment at once: one repairs it, and all know in the end that it is repaired."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stackfix.apply.errors import Busy
from stackfix.apply.lock import locked
from stackfix.apply.lock_owner import this_process
from stackfix.apply.tree import Tree
from stackfix.apply.undo import transactions
from stackfix.cli.common import CommonOptions
from stackfix.cli.repair_meanwhile import LookAgain, Meanwhile, quiet_prefix, runs_here, stamp_of, wait_for_others
from tests.repair_world import Bench

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
COMMON = CommonOptions(as_json=False, quiet=False, verbose=0, offline=True, cache_dir=Path())
HOLDS = ("import sys; from stackfix.apply.lock import locked; from stackfix.apply.tree import Tree\n"
         "with Tree(sys.argv[1]) as tree, locked(tree):\n    print('there', flush=True); sys.stdin.read()")


def started(bench: Bench, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "stackfix", "repair", "--prefix", str(bench.prefix), *words], env=bench.environ(),
        cwd=bench.workshop.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(("count", "words"), [(3, ()), (8, ()), (3, ("--json",))], ids=str)
def test_one_repairs_and_all_see_it_repaired(count: int, words: tuple[str, ...], bench: Bench) -> None:
    before = bench.tree()
    children = [started(bench, "--yes", *words) for _ in range(count)]
    said = [(child, *child.communicate(timeout=300)) for child in children]
    assert [child.returncode for child, _, _ in said] == [0] * count, said
    assert len(transactions(bench.prefix)) == 1
    changed = '"repair": 1' if words else "\nchanged: "
    assert sum(changed in out for _, out, _ in said) == 1, said
    for _, out, err in said:
        assert "for you, or whoever administers" not in out
        assert "nothing of it can be written" not in out
        assert not [line for line in err.splitlines() if not line.startswith("stackfix: ")], err
    assert bench.say("undo", "--all").status == 0
    assert bench.tree() == before


def test_a_repair_waits_for_one_that_is_at_work(bench: Bench) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(bench.prefix)], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "there\n"
        waiting = started(bench, "--dry-run")
        assert waiting.stderr is not None
        told = waiting.stderr.readline()
        other.communicate()
    out, rest = waiting.communicate(timeout=60)
    who = f"process {other.pid} on {this_process().host}"
    assert told == f"stackfix: waiting for {who}, which is changing {bench.prefix}\n"
    assert (waiting.returncode, rest) == (1, "")
    assert out.startswith("1 action for ")


# --- the parts ---


def repaired_by_another(prefix: Path) -> None:
    folder = prefix / ".stackfix" / "0001"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "journal").write_text("")


def test_what_another_did_is_seen(tmp_path: Path) -> None:
    meanwhile = Meanwhile(str(tmp_path))
    meanwhile.check()
    repaired_by_another(tmp_path)
    with pytest.raises(LookAgain):
        meanwhile.check()
    meanwhile.begin()
    assert not meanwhile.is_changed()
    first = stamp_of(str(tmp_path))
    (tmp_path / ".stackfix" / "0001" / "journal").write_text("x")
    assert stamp_of(str(tmp_path)) != first


def test_an_error_because_somebody_came_between_is_none(tmp_path: Path) -> None:
    def busy(*, changed: bool) -> None:
        with quiet_prefix(str(tmp_path), COMMON):
            if changed:
                repaired_by_another(tmp_path)
            raise Busy(str(tmp_path), "somebody is at work there")

    with pytest.raises(LookAgain):
        busy(changed=True)
    with pytest.raises(Busy):
        busy(changed=False)


def test_nobody_waits_for_a_process_whose_end_cannot_be_seen(tmp_path: Path) -> None:
    """A lock of another host may be of a process that is long dead."""
    with Tree(tmp_path) as tree, locked(tree):
        lock = tmp_path / ".stackfix" / "lock"
        ours = lock.read_text()
        assert runs_here(this_process())
        lock.unlink()
        lock.write_text(ours.replace(this_process().host, "elsewhere").replace(
            f'"machine": "{this_process().machine}"', '"machine": "other"'))
        begin = time.monotonic()
        with pytest.raises(Busy, match=rf"process {os.getpid()} on elsewhere is changing it right now"):
            wait_for_others(str(tmp_path), COMMON)
        assert time.monotonic() - begin < 60
        lock.unlink()
        lock.write_text(ours)
