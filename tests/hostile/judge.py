"""Plays one scenario and judges what came of it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.hostile.measured import Ended, Warm
from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.stage import Stage

LONGEST = 8_000             # letters of all that is told: a server's words are no reason to fill a screen
PATIENT = {"PIP_DEFAULT_TIMEOUT": "30", "PIP_RETRIES": "0"}


def play(scenario: Scenario, folder: Path, warm: Warm) -> None:
    """The scenario, from an empty cache. Fails where something else comes out than what must."""
    out, home, notes = (folder / name for name in ("out", "home", "notes"))
    for made in (out, home, notes):
        made.mkdir()
    before = set(folder.iterdir())
    with Stage(folder) as stage:
        scenario.does(stage)
        words = ["lock", *stage.asked, "--index-url", stage.index_url, "--cache-dir", str(folder / "cache"),
                 *(word for form in ("requirements", "pylock") for word in ("--format", form)), "-o", str(out),
                 *stage.words]
        patient = PATIENT if scenario.hurry == 1 else {**PATIENT, "PIP_DEFAULT_TIMEOUT": "3000"}
        environ = {**patient, "HOME": str(home), **stage.environ}
        for number in range(scenario.runs):
            ended = warm.run(words, cwd=home, environ=environ, notes=notes, hurry=scenario.hurry,
                             limits=scenario.limits)
            if number < scenario.runs - 1:
                assert not ended.killed
                for path in out.iterdir():
                    path.unlink()
        judge(scenario, stage, ended, out)
        if scenario.also is not None:
            scenario.also(stage, ended)
        assert set(folder.iterdir()) <= {*before, folder / "cache"}, "something was written elsewhere"
        assert not list(home.iterdir())
        leaks = sorted({str(path.relative_to(folder)) for secret in stage.secrets
                        for path, text in texts(folder) if path.parent != notes or path.name.startswith("std")
                        if secret.encode() in text})
        assert not leaks, f"a credential is in {leaks}"


def judge(scenario: Scenario, stage: Stage, ended: Ended, out: Path) -> None:
    """The exit status, the words, the files, the memory."""
    told = f"exit {ended.status}\n{ended.out[-3000:]}\n{ended.err[-3000:]}"
    assert not ended.killed, f"hung: {told}"
    assert "Traceback" not in ended.err, told
    assert len(ended.err) < LONGEST, told
    assert all(line.isprintable() for line in ended.err.splitlines()), repr(ended.err)
    errors = [line for line in ended.err.splitlines() if line.startswith("error")]
    comes, files = scenario.comes, {path.name: path.read_text() for path in out.iterdir()}
    if isinstance(comes, Refused):
        assert (ended.status, len(errors), files) == (comes.status, 1, {}), told
    else:
        assert (ended.status, errors, sorted(files)) == (0, [], ["pylock.toml", "requirements.txt"]), told
        judge_files(scenario, comes, files)
    assert not [words for words in comes.says if words not in ended.err], told
    assert ended.peak <= scenario.peak, f"{ended.peak >> 20} MB\n{told}"


def judge_files(scenario: Scenario, comes: Locked, files: dict[str, str]) -> None:
    """What is locked, and that nothing of the attack is."""
    lines = re.findall(r"^(\S+)", files["requirements.txt"], re.MULTILINE)
    assert not [pin for pin in comes.pins if pin not in lines], files["requirements.txt"]
    assert not [(name, text) for name, content in files.items() for text in scenario.absent if text in content]


def texts(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the folder, and its content; what is packed in it, unpacked as well."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield path, content
            start = content.find(b"\x1f\x8b\x08")
            if start >= 0:
                yield path, zlib.decompressobj(31).decompress(content[start:], 1 << 26)


__all__ = ["Refused", "play"]
