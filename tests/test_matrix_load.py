"""Loading names every fault of a file at once, with its place, and a changed row changes the answer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.load import FILES, MAX_BYTES, load_closures, load_matrix, matrix_directory
from stackfix.matrix.parse_flash_attn import MOST_WHEELS

Replace = tuple[str, str]

# File, text of it and what to put there, then what the message must say: the row and the reason.
FAULTS: dict[str, tuple[str, Replace, tuple[str, ...]]] = {
    "unknown key in a build": (
        "torch.toml", ('glibc = "2.5" }', 'glibc = "2.5", gpu = "yes" }'), ("builds 1", "unknown key 'gpu'"),
    ),
    "unknown key in a release": (
        "torch.toml", ('version = "2.3.1"', 'version = "2.3.1"\nnote = "x"'), ("release 2.3.1", "unknown key 'note'"),
    ),
    "unknown table": ("torch.toml", ("[markers]", "[extra]\n[markers]"), ("unknown key 'extra'",)),
    "wrong type": (
        "torch.toml", ('pythons = ["3.8", "3.9", "3.10", "3.11", "3.12"]', "pythons = 3"), ("pythons", "not an array"),
    ),
    "a number where words are wanted": (
        "torch.toml", ('archs = "75 80 86 90 100 120"', "archs = 75"), ("builds 1, archs", "75 is not text with words"),
    ),
    "bad version": (
        "torch.toml", ('version = "2.3.1"', 'version = "2.3.x"'),
        ("release 2.3.x, version", "'2.3.x' is not a version"),
    ),
    "no version": ("torch.toml", ('version = "2.3.1"\n', ""), ("no version",)),
    "bad requirement": (
        "torch.toml", ('"nvidia-cudnn-cu12==8.9.2.26"', '"nvidia-cudnn-cu12=8.9"'),
        ("pins", "'nvidia-cudnn-cu12=8.9' is not a requirement"),
    ),
    "unknown group of pins": (
        "torch.toml", ('pins = "CUDA 12.1.1, cuDNN 8.9.2.26, NCCL 2.20.5"', 'pins = "CUDA 99"'),
        ("builds 1", "pins 'CUDA 99' is not in [pins]"),
    ),
    "unknown marker": ("torch.toml", ("; @x86 and", "; @arm and"), ("marker 'arm' is not in [markers]",)),
    "unknown platform": (
        "torch.toml", ('platform = "linux-64"', 'platform = "linux-65"'), ("platform", "'linux-65' is none of"),
    ),
    "bad Python": ("torch.toml", ('pythons = ["3.8"', 'pythons = ["cp38"'), ("'cp38' is not a Python minor",)),
    "a Python twice": ("torch.toml", ('pythons = ["3.8"', 'pythons = ["3.9"'), ("names one thing twice",)),
    "bad architecture": ("torch.toml", ('archs = "50 ', 'archs = "sm_50 '), ("'sm_50' is not a GPU architecture",)),
    "unknown source": (
        "torch.toml", ('source = "torch-index"', 'source = "rumour"'), ("'rumour' is not in [sources]",),
    ),
    "unknown confidence": (
        "torch.toml", ('confidence = "medium"', 'confidence = "sure"'), ("confidence", "'sure' is none of certain"),
    ),
    "a release twice": (
        "torch.toml", ('version = "2.3.1"', 'version = "2.3.0"'), ("release 2.3.0", "two builds for linux-64"),
    ),
    "a key twice": ("cuda.toml", ('"13.4.3" = [', '"13.5.0" = ['), ("not TOML",)),
    "a component twice": (
        "cuda.toml", ("cufile 1.20.0.107", "cufft 1.20.0.107"), ("toolkit 13.5.0", "cufft given twice"),
    ),
    "a component without a version": (
        "cuda.toml", ('"cufile 1.20.0.107"', '"cufile"'), ("toolkit 13.5.0", "'' is not a version"),
    ),
    "a family twice": ("cuda.toml", ("major = 12", "major = 13"), ("CUDA 13", "given twice")),
    "a driver that is none": (
        "cuda.toml", ('driver = "530.30.02"', 'driver = "r530"'), ("toolkits", "'r530' is not digits and dots"),
    ),
    "a number that is none": ("cuda.toml", ("major = 12", 'major = "12"'), ("'12' is not a whole number",)),
    "bad specifier": (
        "companions.toml", ('version = "0.18.1", torch = "==2.3.1"', 'version = "0.18.1", torch = "2.3.1"'),
        ("torchvision, releases 0.18.1, torch", "'2.3.1' is not a version specifier"),
    ),
    "a companion twice": (
        "companions.toml", ('version = "0.18.1"', 'version = "0.18.0"'),
        ("torchvision, releases 0.18.0", "given twice"),
    ),
    "unknown same_cuda": (
        "companions.toml", ('same_cuda = "major"', 'same_cuda = "exact"'), ("torchvision, same_cuda", "'exact'"),
    ),
    "a rule's bad specifier": (
        "rules.toml", ('versions = "==12.1.0.106"', 'versions = "12.1"'), ("rules 12.1", "not a version specifier"),
    ),
    "a rule twice": (
        "rules.toml",
        ('versions = "==11.7.4.40"', 'versions = "==11.7.5.82"'),
        ("group nvidia-cusolver-cu12, rules ==11.7.5.82", "given twice"),
    ),
    "a rule without a reason": ("rules.toml", (', why = "libcusolver', ', wy = "libcusolver'), ("no why", "'wy'")),
    "a bad hash": (
        "flash_attn.toml",
        ('cp310-linux_x86_64.whl" = "13454dd3', 'cp310-linux_x86_64.whl" = "13454DD3'),
        ("cu122torch2.3cxx11abiFALSE-cp310-cp310", "not 64 hexadecimal digits"),
    ),
    "a hash of no wheel": (
        "flash_attn.toml",
        ('"flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux', '"flash_attn-2.5.8+cu999-cp310-linux'),
        ("sha256 flash_attn-2.5.8+cu999-cp310-linux_x86_64.whl", "no release names this file"),
    ),
    "a hashed wheel without a hash": (
        "flash_attn.toml",
        ('basis = "hashed", cuda = "12", torch = "2.9 2.10"', 'basis = "hashed", cuda = "12", torch = "2.9 2.11"'),
        ("no sha256 for flash_attn-2.8.1+cu12torch2.11cxx11abiTRUE", "no release names this file"),
    ),
    "a C++ ABI that is none": (
        "flash_attn.toml", ('abi = "FALSE TRUE"', 'abi = "MAYBE"'), ("abi", "'MAYBE' is not \"TRUE\" or \"FALSE\""),
    ),
    "a wheel twice": (
        "flash_attn.toml", ('version = "2.6.2"', 'version = "2.6.3"'), ("release 2.6.3", "given twice"),
    ),
    "no flag": ("flash_attn.toml", ("sdist = true", 'sdist = "yes"'), ("'yes' is neither true nor false",)),
    "a project name that is none": ("closures.toml", ('"filelock"', '"file lock"'), ("'file lock' is not a project",)),
    "an address with credentials": (
        "sources.toml", ("https://api.", "https://me:secret@api."), ("flash-attn, api", "without credentials"),
    ),
    "an address that is none": ("sources.toml", ('index = "https://', 'index = "ht tps://'), ("torch, index",)),
}


class Sourced(Protocol):
    """What all rows have."""

    @property
    def source(self) -> str: ...
    @property
    def confidence(self) -> str: ...


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A matrix of one's own."""
    directory = tmp_path / "matrix"
    shutil.copytree(matrix_directory(), directory)
    return directory


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Change a file; a change that changes nothing is a broken test."""
    old = path.read_text(encoding="utf-8")
    new = change(old)
    assert new != old
    path.write_text(new, encoding="utf-8")


def refusal(directory: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load_matrix(directory)
    return caught.value


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(copy: Path, name: str) -> None:
    file, (old, new), said = FAULTS[name]
    edit(copy / file, lambda text: text.replace(old, new, 1))
    error = refusal(copy)
    assert error.exit_status == 2
    assert error.thing == str(copy / file)
    for words in said:
        assert words in error.what()
    assert "\n" not in error.what()


def test_credentials_in_an_address_are_not_accepted_in_silence(copy: Path) -> None:
    edit(copy / "sources.toml", lambda text: text.replace("https://conda.", "https://user:pass@conda.", 1))
    assert "conda" in refusal(copy).what()


def test_all_faults_of_a_file_are_told_together(copy: Path) -> None:
    edit(copy / "rules.toml", lambda text: text.replace("==12.1.0.106", "==a").replace("==11.7.4.40", "==b"))
    said = refusal(copy).what()
    assert "'==a'" in said
    assert "'==b'" in said


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x = " + b"[" * 20_000, b"x = 1\ny", b"a = 1\na = 2", b"\0"])
def test_what_is_no_toml_is_refused(copy: Path, content: bytes) -> None:
    (copy / "rules.toml").write_bytes(content)
    error = refusal(copy)
    assert error.thing == str(copy / "rules.toml")
    assert "\n" not in error.what()


def test_a_file_that_is_too_large_is_refused(copy: Path) -> None:
    (copy / "rules.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    assert "larger than" in refusal(copy).what()


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named(copy: Path, file: str) -> None:
    (copy / file).unlink()
    error = refusal(copy)
    assert error.thing == str(copy / file)
    assert "cannot be read" in error.what()


def test_a_row_that_stands_for_millions_of_wheels_is_refused(copy: Path) -> None:
    minors = " ".join(f"3.{minor}" for minor in range(8, 200))
    torches = " ".join(f"2.{minor}" for minor in range(300))
    edit(
        copy / "flash_attn.toml",
        lambda text: re.sub(r'torch = "[^"]*", abi = "FALSE TRUE", pythons = "[^"]*"',
                            f'torch = "{torches}", abi = "FALSE TRUE", pythons = "{minors}"', text, count=1),
    )
    assert f"more than {MOST_WHEELS} wheels" in refusal(copy).what()


def test_rows_taken_out_are_gone(copy: Path) -> None:
    edit(
        copy / "torch.toml",
        lambda text: re.sub(r'\[\[release\]\]\nversion = "2\.3\.\d".*?\n\n', "", text, flags=re.DOTALL),
    )
    versions = query.torch_releases(load_matrix(copy))
    assert not [version for version in versions if version.startswith("2.3")]
    assert "2.4.0" in versions
    assert "2.2.2" in versions


def test_a_row_altered_changes_the_answer(copy: Path) -> None:
    edit(
        copy / "torch.toml",
        lambda text: text.replace("nvidia-cuda-nvrtc-cu12==12.1.105", "nvidia-cuda-nvrtc-cu12==12.1.106")
        .replace("nvidia-cudnn-cu12==8.9.2.26", "nvidia-cudnn-cu12==8.9.7.29"),
    )
    build = next(row for row in query.builds(load_matrix(copy), platform="linux-64") if row.version == "2.3.1")
    assert build.cudnn == "8.9.7.29"
    assert any(line.startswith("nvidia-cuda-nvrtc-cu12==12.1.106 ;") for line in build.requires)


def test_the_digest_is_of_the_bytes(copy: Path) -> None:
    before = load_matrix(copy).digest
    assert load_matrix().digest == before
    edit(copy / "torch.toml", lambda text: text + "# seen\n")
    assert load_matrix(copy).digest != before


def test_rows_keep_their_source_and_confidence() -> None:
    matrix = load_matrix()
    rows: tuple[Sourced, ...] = (
        *matrix.torch, *matrix.components, *matrix.companions, *matrix.rules, *matrix.flash_attn,
        *matrix.flash_attn_wheels, *matrix.driver_families, *matrix.toolkit_drivers,
    )
    assert len(rows) > 4000
    for row in rows:
        assert row.source.strip()
        assert row.confidence in {"certain", "high", "medium", "low"}


def test_loading_imports_no_packaging() -> None:
    code = "import sys; from stackfix.matrix.load import load_matrix; load_matrix(); print('packaging' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


def test_closures_alone_are_those_of_the_matrix() -> None:
    assert load_closures() == load_matrix().closures
