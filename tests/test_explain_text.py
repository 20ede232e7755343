"""A text of any origin becomes lines that say what the program said: whole, clean, without what was put before them."""

from __future__ import annotations

import random
import secrets

import pytest

from stackfix.explain.text import MOST_BYTES, MOST_LINE, read_text

ERROR = ("ImportError: /home/someone/miniconda3/envs/vllm/lib/python3.10/site-packages/nvidia/cusparse/lib/"
         "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12")


def texts(content: str | bytes) -> list[str]:
    return [line.text for line in read_text(content if isinstance(content, bytes) else content.encode()).lines]


@pytest.mark.parametrize("prefix", [
    "[rank0]: ", "[rank 3]: ", "[rank0]:[E501 12:00:00.123 ProcessGroupNCCL.cpp:12] ", "[1]:", "[default0]:",
    "[0]<stderr>: ", "(EngineCore pid=1234) ", "(EngineCore_DP0 pid=1234) ERROR 05-01 12:00:00 [core.py:718] ",
    "ERROR 05-01 12:00:00 [core.py:718] ",
    "(VllmWorker rank=1 pid=77) ", "(pid=77) ", "(RayTrainWorker pid=77, ip=10.0.0.3) ", "web-1  | ", "trainer_1 | ",
    "app  | ", "#12 34.56 ", "2024-05-01T12:00:00.1234567Z ", "2024-05-01 12:00:00,123 - ERROR - ",
    "2024-05-01 12:00:00 ERROR    ", "[2024-05-01 12:00:00,123] ",
    "2024-05-01 12:00:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:522] ",
    "E0000 00:00:1712345678.123456   12345 cuda_dnn.cc:522] ", "E1130 06:24:36.123456 12345 worker.cc:12] ",
    "May  1 12:00:00 host python[12]: ", "ERROR:root:", "ERROR - ", "E       ", "> ", "  | ", "  │ ", "  ╰─▶ ",
    "    \x1b[31m", "2024-05-01T12:00:00.123456789Z stderr F ",
    "trainer-1  | 2024-05-01 12:00:00,123 - INFO - [rank1]: ",
])
def test_what_is_put_before_a_line_is_taken_off(prefix: str) -> None:
    assert texts(f"{prefix}{ERROR}\n") == [ERROR]


@pytest.mark.parametrize("line", [
    ERROR, "ERROR: pip's dependency resolver does not currently take into account all the packages",
    "error: Distribution `torch==2.4.1+cpu @ registry` can't be installed", "E: Unable to locate package cuda-12-1",
    "Error 804: forward compatibility was attempted on non supported HW", "----------",
    "WARNING[XFORMERS]: cannot load",
    "/lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by x.so)", "12.4.127", "|", "> ",
    "[ONNXRuntimeError] : 1 : FAIL : Failed to load library", "(then JAX silently falls back to CPU)",
])
def test_what_belongs_to_a_message_stays(line: str) -> None:
    assert texts(line) == [line.strip()]


@pytest.mark.parametrize("width", range(62, 150, 2))
def test_lines_that_a_terminal_broke_are_whole_again(width: int) -> None:
    """Two long lines, as a traceback has them, at any width."""
    frame = ('  File "/home/someone/miniconda3/envs/vllm/lib/python3.10/site-packages/torch/lib/../_load_global_deps/'
             'and_more/of_it/__init__.py", line 367, in <module>')
    shown = "\n".join(line[start:start + width] for line in ("Traceback (most recent call last):", frame, ERROR)
                      for start in range(0, len(line), width))
    assert texts(f"{shown}\n(base) someone@host:~$ ") == [
        "Traceback (most recent call last):", frame.strip(), ERROR, "(base) someone@host:~$"]


@pytest.mark.parametrize("place", range(60, len(ERROR) - 4))
def test_one_broken_line_never_becomes_another_message(place: int) -> None:
    """Of one line alone the width is not known: it is joined where a word shows that it was torn, else left alone."""
    found = texts(f"{ERROR[:place]}\n{ERROR[place:]}")
    assert found in ([ERROR], [ERROR[:place].strip(), ERROR[place:].strip()])
    if ERROR.index("__nvJit") < place < ERROR.index(", version"):
        assert found == [ERROR]


def test_a_torn_mangled_name_is_whole_again() -> None:
    line = "ImportError: /somewhere/flash_attn_2_cuda.cpython-310.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
    for place in range(line.index("_ZN") + 4, len(line)):
        assert texts(f"{line[:place]}\n{line[place:]}") == [line]


@pytest.mark.parametrize("following", [
    "make: *** [all] Error 1", "During handling of the above exception, another exception occurred:", "(base) a@b:~$",
    "Traceback (most recent call last):", "ninja: build stopped", "subprocess.CalledProcessError: x", "$ ", "done",
])
def test_a_line_takes_nothing_of_the_next_one(following: str) -> None:
    line = "ImportError: /opt/some/where/libtorch_cuda.so: undefined symbol: ncclCommRegister"
    assert texts(f"{line}\n{following}") == [line, following.strip()]


def test_colours_controls_and_bars_are_gone() -> None:
    shown = "\x1b[1;31mImportError\x1b[0m: lib\u200bcudart\x07.so.12\x1b]8;;x\x07: cannot open"
    assert texts(f"10%\r50%\r{shown}\r\n") == ["10%", "50%", "ImportError: libcudart.so.12: cannot open"]
    assert [line.number for line in read_text(b"10%\r50%\na\r\n\nb").lines] == [1, 1, 2, 4]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding: str) -> None:
    assert texts(f"ImportError: „{ERROR}“".encode(encoding)) == [f"ImportError: „{ERROR}“"]


def test_a_box_is_no_part_of_its_text() -> None:
    inside = [ERROR[start:start + 76] for start in range(0, len(ERROR), 76)]
    box = "\n".join(["╭" + "─" * 78 + "╮", *(f"│ {piece:<76} │" for piece in inside), "╰" + "─" * 78 + "╯"])
    assert ERROR in texts(box)


def test_what_is_read_is_bounded() -> None:
    assert [len(line) for line in texts("x" * 3 * MOST_LINE)] == [MOST_LINE]
    assert read_text(b"a\n" * 5, cut=True).cut
    assert len(texts("a\nb\n" * (MOST_BYTES // 4))) <= 100_000


def test_anything_is_read() -> None:
    """Bytes of chance, and pieces of what texts are made of in any order: lines, all of them safe to show."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    chance = random.Random(seed)        # noqa: S311 - no secret
    pieces = [b"\x1b[", b"\x1b]", b"\r", b"\n", b"\xff\xfe", b"\0", b"_ZN3c10", b"[rank0]: ", b"(((((", "│".encode(),
              b" " * 70, b"/site-packages/", b"E0000 ", b"2024-05-01 ", b"a" * 200,
              b"undefined symbol: ", "\u202e".encode()]
    for _ in range(300):
        content = b"".join(chance.choice(pieces) if chance.random() < 0.8 else chance.randbytes(8) for _ in range(60))
        for line in texts(content):
            assert line == line.strip() != ""
            assert not any(ord(each) < 32 or 0x7f <= ord(each) < 0xa0 for each in line)
