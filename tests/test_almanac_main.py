"""The command line of the generator: one clear error, exit status, and no file touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.almanac.__main__ import PARTS, main
from stackfix.matrix.toml_files import matrix_directory

ROOT = Path(__file__).resolve().parent.parent


def test_each_part_tells_what_it_does(capfd: pytest.CaptureFixture[str]) -> None:
    for part in PARTS:
        with pytest.raises(SystemExit) as caught:
            main([part, "--help"])
        assert caught.value.code == 0
        assert f"python -m stackfix.almanac {part} --make" in capfd.readouterr().out


@pytest.mark.parametrize("words", [[], ["other"], ["torch"], ["torch", "--make", "--check"], ["torch", "--add"],
                                   ["torch", "--make", "--size", "3"]])
def test_what_is_no_call_is_refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: " in capfd.readouterr().err


def test_a_folder_without_an_almanac(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for action in ("--make", "--check"):
        assert main(["torch", action, "--directory", str(tmp_path), "--store", str(tmp_path / "store")]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith(f"error: {tmp_path}")
        assert "cannot be read: " in err
    assert list(tmp_path.iterdir()) == []


def test_the_module_is_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "stackfix.almanac", "torch", "--check"], cwd=ROOT, check=False,
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_disagreement_is_status_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("torch.toml", "core.tsv", "full.tsv.xz", "full.bin", "patches.tsv"):
        (tmp_path / name).write_bytes((matrix_directory() / "abi" / name).read_bytes())
    (tmp_path / "core.tsv").write_bytes(b"key\tminors\tlibraries\n")
    assert main(["torch", "--check", "--directory", str(tmp_path)]) == 1
    assert capfd.readouterr().err.splitlines() == [
        f"error: {tmp_path}: core.tsv: is not that part of full.tsv.xz",
        "  `python -m stackfix.almanac torch --make` writes them anew."]
