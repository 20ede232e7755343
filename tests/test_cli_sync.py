"""`stackfix sync` as a command line."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cli_world import Say, World
from tests.judges.command import run

LOCK = "filelock==3.12.0 --hash=sha256:" + "0" * 64 + "\n"


def test_a_dry_run_prints_the_changes_and_asks_nobody(world: World, say: Say) -> None:
    assert run([sys.executable, "-m", "venv", "--without-pip", "env"], cwd=Path.cwd()).status == 0
    Path("requirements.txt").write_text(LOCK)
    said = say("sync", "--prefix", "env", "--dry-run", "--flash-attn-source", "http://127.0.0.1:9")
    assert (said.status, said.out) == (1, "install filelock 3.12.0\n"), said
    document = say("sync", "--prefix", "env", "--dry-run", "--json").json
    assert document["changes"] == [
        {"action": "install", "name": "filelock", "installed": None, "locked": "3.12.0", "build": False,
         "manager": "pip"}]
    assert (document["dry_run"], document["prefix"]) == (True, str(Path("env").absolute()))
    assert world.asked == []


def test_a_dry_run_of_what_is_there_already_is_nothing_to_do(world: World, say: Say) -> None:
    assert run([sys.executable, "-m", "venv", "--without-pip", "env"], cwd=Path.cwd()).status == 0
    [site] = Path("env/lib").glob("python*/site-packages")
    record = site / "filelock-3.12.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: filelock\nVersion: 3.12.0\n")
    Path("requirements.txt").write_text(LOCK)
    said = say("sync", "--prefix", "env", "--dry-run")
    assert (said.status, said.out) == (0, "keep filelock 3.12.0\n"), said
    assert world.asked == []


def test_a_bad_hash_is_named_by_its_own_line(world: World, say: Say) -> None:
    digest = "--hash=sha256:" + "0" * 64
    Path("requirements.txt").write_text(f"# header\nfilelock==3.12.0 \\\n    {digest} \\\n    --hash=sha256:beef\n")
    said = say("sync", "--python", sys.executable)
    assert said.status == 2, said
    assert "requirements.txt line 4: is not `--hash=sha256:`" in said.err
