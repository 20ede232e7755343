"""Manifests: read strictly, written in one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.almanac.manifest import parse_manifest, read_manifest, render_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.errors import BadInput


def row(version: str, *, package: str = "torch", build: str = "", digit: str = "a") -> ManifestWheel:
    name = f"{package.replace('-', '_')}-{version}{build}-cp311-cp311-manylinux1_x86_64.whl"
    return ManifestWheel(package=package, version=version, file=name, sha256=digit * 64)


WHEELS = (row("2.9.1"), row("2.10.0", build="-3", digit="b"), row("1.13.1", digit="c"))
TEXT = """# a line
[[wheel]]
package = "torch"
version = "2.3.1"
file = "torch-2.3.1-cp311-cp311-manylinux1_x86_64.whl"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
"""


def test_rows_are_sorted_by_version_and_read_back(tmp_path: Path) -> None:
    text = render_manifest(["# Wheels."], WHEELS)
    (tmp_path / "torch.toml").write_text(text)
    found = read_manifest(tmp_path / "torch.toml")
    assert [each.version for each in found] == ["1.13.1", "2.9.1", "2.10.0"]
    assert set(found) == set(WHEELS)
    assert text.startswith("# Wheels.\n\n[[wheel]]\npackage = ")
    assert render_manifest(["# Wheels."], reversed(found)) == text


def test_a_plain_manifest_has_no_fault() -> None:
    assert parse_manifest("m", TEXT.encode())[0].version == "2.3.1"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('sha256 = "0000', 'sha256 = "X000', "sha256: 'X000"),
        ('version = "2.3.1"', 'version = "2.3.0"', "the file is of version 2.3.1, not 2.3.0"),
        ('version = "2.3.1"', 'version = "two"', "version: 'two' is not a version"),
        ('package = "torch"', 'package = "torchaudio"', "the file is of torch, not of torchaudio"),
        ('package = "torch"', 'package = "Torch"', "package 'Torch' is not written 'torch'"),
        ('file = "torch-2.3.1-cp311-cp311-', 'file = "torch-2.3.1-cp311-', "Invalid wheel filename"),
        ('sha256 = "0', 'size = 3\nsha256 = "0', "unknown key 'size'"),
        ('version = "2.3.1"\n', "", "no version"),
        ("[[wheel]]", "[wheel]", "wheel: not an array of tables"),
        ("[[wheel]]", "[[wheels]]", "no wheel"),
        ("# a line", "x = 1", "unknown key 'x'"),
        ("# a line", "[[", "not TOML"),
    ],
)
def test_each_fault_is_named(old: str, new: str, reason: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(BadInput) as caught:
        parse_manifest("matrix/torch.toml", text.encode())
    assert caught.value.thing == "matrix/torch.toml"
    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason


def test_faults_come_together_with_their_rows() -> None:
    text = TEXT + TEXT.replace("2.3.1", "2.3.0").replace('version = "2.3.0"', 'version = "9"').replace('"0000', '"Z000')
    with pytest.raises(BadInput) as caught:
        parse_manifest("m", text.encode())
    assert caught.value.reason.count("wheel torch-2.3.0-cp311-cp311-manylinux1_x86_64.whl") == 2


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (TEXT, "stands there twice"),
        (TEXT.replace("2.3.1", "2.4.0"), "has the hash of another row"),
        (TEXT.replace("2.3.1", "2.2.0").replace('"0000', '"1000'), "not sorted"),
    ],
)
def test_rows_are_sorted_and_differ(second: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        parse_manifest("m", (TEXT + second.removeprefix("# a line\n")).encode())


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"torch\.toml: cannot be read: No such file"):
        read_manifest(tmp_path / "torch.toml")
