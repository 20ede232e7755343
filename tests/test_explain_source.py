"""Where the text may come from, and what is no text: one clear error, nothing hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.cli.explain_source import MOST_BYTES, MOST_READ, bounded, file_content, text_of
from stackfix.errors import BadInput, Unreachable

LINE = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"


def explain(*words: str, text: bytes | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "stackfix", "explain", "--no-inspect", *words], input=text, cwd=cwd,
                          capture_output=True, check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)})


def test_words_without_quotes_are_one_line() -> None:
    assert text_of(tuple(LINE.split())) == (LINE.encode(), False)


def test_texts_in_quotes_are_a_line_each() -> None:
    assert text_of(("a b", "c d")) == (b"a b\nc d", False)


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "build").write_text(LINE)
    assert text_of((str(tmp_path / "build"),)) == (LINE.encode(), False)


def test_of_a_long_file_both_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first\n" + b"x" * 40 * MOST_BYTES + b"\nlast")
    content, cut = text_of((str(path),))
    assert (content.startswith(b"first\n"), content.endswith(b"\nlast"), cut) == (True, True, True)
    assert len(content) <= MOST_BYTES + 1


@pytest.mark.parametrize(("words", "reason"), [
    (("no/such.log",), "no such file"), (("build.log",), "no such file"),
    (("/nowhere/at/all",), "no such file"), (("~/x.txt",), "no such file"), (("folder",), "folder"), (("",), "empty"),
    (("there.log", "ImportError: x y"), "beside"), (("there.log", "elf"), "beside"),
    (("there.log", "no.log"), "beside"), (("-", "a b"), "beside"),
    (("elf",), "compiled"), (("packed",), "packed"), (("blank",), "empty"),
])
def test_what_is_no_text_is_said(words: tuple[str, ...], reason: str, tmp_path: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, content in (("there.log", LINE.encode()), ("elf", b"\x7fELF\2"), ("packed", b"\x1f\x8b\x08"),
                          ("blank", b" \r\n\n")):
        (tmp_path / name).write_bytes(content)
    done = explain(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert (done.stderr.count(b"error: "), b"Traceback" in done.stderr) == (1, False)
    assert reason.encode() in done.stderr


@pytest.mark.parametrize("word", ["torchvision::nms", "CUDNN_STATUS_NOT_INITIALIZED", "/lib64/libstdc++.so.6:", "K"])
def test_one_word_that_is_no_file_is_a_text(word: str) -> None:
    assert text_of((word,)) == (word.encode(), False)


@pytest.mark.parametrize("text", [b"", b"\n \n", b"\xff\xfe"])
def test_nothing_on_standard_input_is_said(text: bytes) -> None:
    done = explain("-", text=text)
    assert done.returncode == 2
    assert b"standard input: is empty" in done.stderr


def test_a_pipe_is_a_file() -> None:
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m stackfix explain --no-inspect <(echo what is this)"],
                          capture_output=True, check=False, timeout=60)
    assert (done.returncode, b"unknown" in done.stdout) == (1, True)


def test_a_pipe_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="empty"):
        text_of((str(tmp_path / "pipe"),))


def test_a_text_without_end_is_read_up_to_a_bound() -> None:
    class Endless:
        taken = 0

        def read(self, size: int) -> bytes:
            self.taken += size
            return b"y" * size

    endless = Endless()
    content, cut = bounded(endless)      # type: ignore[arg-type]
    assert (cut, len(content)) == (True, MOST_BYTES + 1)
    assert endless.taken <= MOST_READ + (1 << 20) + MOST_BYTES


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="cannot be read"):
        file_content(f"{tmp_path}/{'x' * 300}")
