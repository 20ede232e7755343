from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from stackfix.abi.judged import COLUMNS, ReadWheels, open_judged_wheels, parse_judged_wheels, render_judged_wheels
from stackfix.abi.records import JudgedWheel, JudgedWheels
from stackfix.errors import BadInput

HEAD = "\t".join(COLUMNS) + "\n"
ROW = {
    "package": "torchaudio", "version": "2.11.1", "file": "torchaudio-2.11.1-cp311-cp311-manylinux_2_28_x86_64.whl",
    "sha256": "a" * 64, "torch": "2.13 2.14 2.15", "string_abi": "-", "cuda": "13", "declares": ">=2.11",
    "disproved": "2.11 2.12", "because": "torch_new_stable_ivalue",
}
OLDER = {**ROW, "version": "2.3.1+cu121", "file": "torchaudio-2.3.1+cu121-cp311-cp311-linux_x86_64.whl",
         "sha256": "b" * 64, "torch": "2.3", "string_abi": "old", "cuda": "11 12", "declares": "==2.3.1",
         "disproved": "-", "because": "-"}
OTHER = {**ROW, "package": "xformers", "version": "0.0.27",
         "file": "xformers-0.0.27-cp39-abi3-manylinux2014_x86_64.whl",
         "sha256": "c" * 64, "torch": "-", "cuda": "-", "declares": "*", "disproved": "-"}


def text(*rows: dict[str, str]) -> str:
    return HEAD + "".join("\t".join(row.values()) + "\n" for row in rows)


def fault(content: str | bytes, folder: Path) -> str:
    (folder / "extensions.tsv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput) as caught:
        open_judged_wheels(folder)
    assert caught.value.thing.startswith(str(folder))
    assert "Install stackfix again" in (caught.value.next_step() or "")
    return f"{caught.value.thing.removeprefix(str(folder) + '/')}: {caught.value.reason}"


def test_a_row_is_a_wheel() -> None:
    first, second, third = parse_judged_wheels(text(ROW, OLDER, OTHER), "x.tsv")
    assert first == JudgedWheel(
        package="torchaudio", version="2.11.1", file="torchaudio-2.11.1-cp311-cp311-manylinux_2_28_x86_64.whl",
        sha256="a" * 64, torch=("2.13", "2.14", "2.15"), string_abi=None, cuda=(13,), declares=">=2.11",
        disproved=("2.11", "2.12"), because=("torch_new_stable_ivalue",))
    assert (second.string_abi, second.cuda, second.disproved) == ("old", (11, 12), ())
    assert (third.torch, third.cuda, third.declares) == ((), (), "*")


def test_a_single_release_stands_for_itself_and_a_minor_for_each_patch() -> None:
    found, = parse_judged_wheels(text({**ROW, "torch": "2.9.1 2.10 2.13", "disproved": "2.9"}), "x.tsv")
    assert [found.loads(each) for each in ("2.9.0", "2.9.1", "2.10.0", "2.10.7", "2.1.0", "2.13.0")] == [
        False, True, True, True, False, True]


def test_what_is_written_is_what_is_read() -> None:
    whole = text(ROW, OLDER, OTHER)
    assert render_judged_wheels(parse_judged_wheels(whole, "x.tsv")) == whole


def test_wheels_are_found_by_hash_by_release_and_by_package() -> None:
    book: JudgedWheels = ReadWheels(parse_judged_wheels(text(ROW, OLDER, OTHER), "x.tsv"))
    assert [each.version for each in book.of("torchaudio")] == ["2.11.1", "2.3.1+cu121"]
    assert [each.sha256 for each in book.releases("torchaudio", "2.3.1+cu121")] == ["b" * 64]
    assert book.releases("torchaudio", "2.3.1") == ()
    found = book.wheel("c" * 64)
    assert found is not None
    assert found.package == "xformers"
    assert book.wheel("d" * 64) is None
    assert book.of("torch") == ()


def test_the_bundled_file_is_in_its_order() -> None:
    book = open_judged_wheels()
    order = [each.package for each in book.wheels]
    assert order == sorted(order)
    for package in set(order):
        versions = [Version(each.version) for each in book.of(package)]
        assert versions == sorted(versions, reverse=True)


@pytest.mark.parametrize(("column", "value"), [
    ("package", "Torch_Audio"), ("package", ""), ("version", "two"), ("file", "torchaudio.whl"),
    ("file", "../torchaudio-2.11.1-cp311-cp311-linux_x86_64.whl"), ("sha256", "A" * 64), ("sha256", "a" * 63),
    ("torch", ""), ("torch", "2.13,2.14"), ("torch", "2.13  2.14"), ("torch", "2"), ("string_abi", "cxx11"),
    ("cuda", "cu12"),
    ("declares", ""), ("declares", "torch>=2"), ("disproved", "2.11 "), ("disproved", "2.11\r"), ("torch", "2.13 ٣.1"),
])
def test_a_wrong_value_is_told_with_its_line(column: str, value: str, tmp_path: Path) -> None:
    told = fault(text(OLDER, {**OTHER, column: value}), tmp_path)
    assert told.startswith("extensions.tsv:3: ")
    assert told.endswith(f"is no {column}")


@pytest.mark.parametrize(("content", "told"), [
    ("", "extensions.tsv:1: the columns are not package version"),
    (text(ROW).replace("cuda", "cudnn"), "extensions.tsv:1: the columns are not package version"),
    (HEAD.rstrip("\n"), "extensions.tsv:1: the last line does not end"),
    (text(ROW).rstrip("\n"), "extensions.tsv:2: the last line does not end"),
    (text(ROW) + "\n" + text(OLDER), "extensions.tsv:3: 1 columns instead of 10"),
    (text(ROW, {**OLDER, "sha256": "a" * 64}), f"extensions.tsv:3: the wheel {'a' * 64} stands here twice"),
    (text(OTHER, ROW), "extensions.tsv:3: torchaudio stands behind xformers"),
    (text(ROW, OTHER, OLDER), "extensions.tsv:4: torchaudio stands behind xformers"),
    (text({**ROW, "torch": "2.9 2.10", "disproved": "-"}, {**OTHER, "torch": "2.10 2.9"}),
     "extensions.tsv:3: torch is not in order: '2.10 2.9'"),
    (text({**ROW, "cuda": "12 12"}), "extensions.tsv:2: cuda is not in order: '12 12'"),
    (text({**ROW, "disproved": "2.12 2.13"}), "extensions.tsv:2: torch 2.13 is both possible and disproved"),
    (text(ROW).encode() + b"\xff\n", "extensions.tsv:3: not UTF-8 (byte "),
])
def test_a_damaged_file_is_told_with_its_line(content: str | bytes, told: str, tmp_path: Path) -> None:
    assert fault(content, tmp_path).startswith(told)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        open_judged_wheels(tmp_path)
