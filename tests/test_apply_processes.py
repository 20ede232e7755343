"""Processes that have files mapped which will change are told."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

from stackfix.apply.processes import processes_with
from stackfix.apply.transaction import apply_plan
from stackfix.plan.records import SetAside
from tests.apply_faults.world import fake_installer, make_world, plan_of

MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as stream:
    kept = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
print("mapped", flush=True)
sys.stdin.read()
"""


def test_a_process_with_a_mapped_library_is_told_with_its_files(tmp_path: Path) -> None:
    world = make_world(tmp_path / "a b")
    library = world.write("lib/a b/lib\nx.so", "ELF " * 2000)
    other = world.write("lib/a b.so", "ELF " * 2000)
    with subprocess.Popen([sys.executable, "-c", MAPS, str(library)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"mapped\n"
        prefix = os.path.realpath(world.prefix)
        found = processes_with(prefix, ["lib/a b"])
        assert [each.pid for each in found] == [child.pid]
        assert found[0].files == (f"{prefix}/lib/a b/lib\nx.so",)
        assert "mmap" in found[0].command
        assert processes_with(prefix, ["lib/a b.so", "lib/a"]) == ()
        done = apply_plan(plan_of(world, SetAside(path="lib/a b")), world.prefix, installer=fake_installer(world))
        assert [each.pid for each in done.processes] == [child.pid]
        child.communicate()
    assert other.exists()


def test_our_own_process_is_none_of_them(tmp_path: Path) -> None:
    place = tmp_path / "lib.so"
    place.write_bytes(b"x" * 5000)
    with place.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ):
        assert processes_with(str(tmp_path), ["lib.so"]) == ()
