"""Each way in which index and matrix can disagree is one drift, and agreement is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stackfix.errors import BadInput, Unreachable
from stackfix.matrix.drift import find_drift
from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import Drift
from stackfix.sources.errors import BadMetadata
from tests.matrix_fakes import FakeIndex, agreeing_index, as_index, index_file

MATRIX = load_matrix()
TORCH = "torch-2.3.1-cp310-cp310-manylinux1_x86_64.whl"
WINDOWS = "torch-2.3.1-cp310-cp310-win_amd64.whl"
NEW = "torch-2.16.0-cp312-cp312-manylinux_2_28_x86_64.whl"


@pytest.fixture
def index() -> FakeIndex:
    return agreeing_index(MATRIX)


def drift(index: FakeIndex, newest: int | None = None) -> list[tuple[str, str, str]]:
    return [(found.project, found.version, found.kind) for found in find_drift(MATRIX, index, newest=newest)]


def test_agreement_is_no_drift(index: FakeIndex) -> None:
    assert find_drift(MATRIX, as_index(index), newest=None) == ()


CHANGES: dict[str, tuple[Callable[[FakeIndex], None], tuple[str, str, str]]] = {
    "a new torch": (lambda index: index.add("torch", "2.16.0", NEW), ("torch", "2.16.0", "new-release")),
    "torch gone": (lambda index: index.drop("torch", "2.3.1"), ("torch", "2.3.1", "gone")),
    "torch yanked": (lambda index: index.yank("torch", "2.3.1"), ("torch", "2.3.1", "yanked")),
    "a companion yanked": (lambda index: index.yank("torchaudio", "2.3.1"), ("torchaudio", "2.3.1", "yanked")),
    "bad metadata": (
        lambda index: index.broken.update({TORCH: BadMetadata(TORCH, "https://index.invalid/x", "damaged")}),
        ("torch", "2.3.1", "unreadable"),
    ),
    "a Python added": (
        lambda index: index.add("torch", "2.3.1", TORCH.replace("cp310", "cp313"), *index.requires[TORCH]),
        ("torch", "2.3.1", "pythons"),
    ),
    "a Python gone": (lambda index: index.drop("torch", "2.3.1", "cp311-manylinux1"), ("torch", "2.3.1", "pythons")),
    "a Python added for Windows": (
        lambda index: index.add("torch", "2.3.1", WINDOWS.replace("cp310", "cp313"), *index.requires[WINDOWS]),
        ("torch", "2.3.1", "pythons"),
    ),
    "a Python gone for macOS": (
        lambda index: index.drop("torch", "2.3.1", "cp311-none-macosx"), ("torch", "2.3.1", "pythons"),
    ),
    "an older macOS": (
        lambda index: index.add("torch", "2.15.0", "torch-2.15.0-1-cp311-cp311-macosx_13_0_arm64.whl",
                                *index.requires["torch-2.15.0-cp311-none-macosx_14_0_arm64.whl"]),
        ("torch", "2.15.0", "macos"),
    ),
    "Windows gone": (lambda index: index.drop("torch", "2.3.1", "win_amd64"), ("torch", "2.3.1", "platform")),
    "another requirement on Windows": (
        lambda index: index.requires.update({WINDOWS: (*index.requires[WINDOWS], "tbb")}),
        ("torch", "2.3.1", "requires"),
    ),
    "a platform gone": (lambda index: index.drop("torch", "2.3.1", "aarch64"), ("torch", "2.3.1", "platform")),
    "another torch pin": (
        lambda index: index.requires.update({TORCH: ("filelock",)}), ("torch", "2.3.1", "requires"),
    ),
    "a new companion": (
        lambda index: index.add("torchvision", "0.30.0", "torchvision-0.30.0-cp312-cp312-manylinux_2_28_x86_64.whl"),
        ("torchvision", "0.30.0", "new-release"),
    ),
    "another torch of a companion": (
        lambda index: index.requires.update({"torchvision-0.18.1-py3-none-manylinux_2_28_x86_64.whl": ("torch>=2",)}),
        ("torchvision", "0.18.1", "torch"),
    ),
    "another pin of vllm": (
        lambda index: index.requires.update({"vllm-0.5.0-py3-none-manylinux_2_28_x86_64.whl": ("torch==2.3.0",)}),
        ("vllm", "0.5.0", "requires"),
    ),
    "a new toolkit": (
        lambda index: index.add("cuda-toolkit", "13.6.0", "cuda_toolkit-13.6.0-py3-none-any.whl"),
        ("cuda-toolkit", "13.6.0", "new-release"),
    ),
    "another component": (
        lambda index: index.requires.update({"cuda_toolkit-13.5.0-py2.py3-none-any.whl": ("nvidia-cublas==1",)}),
        ("cuda-toolkit", "13.5.0", "components"),
    ),
    "a new flash-attn": (
        lambda index: index.add("flash-attn", "2.9.0", "flash_attn-2.9.0.tar.gz"),
        ("flash-attn", "2.9.0", "new-release"),
    ),
    "an sdist gone": (lambda index: index.drop("flash-attn", "2.5.8"), ("flash-attn", "2.5.8", "sdist")),
    "an sdist yanked": (lambda index: index.yank("flash-attn", "2.5.8"), ("flash-attn", "2.5.8", "sdist")),
    "metadata that cannot be read": (
        lambda index: index.broken.update({TORCH: BadInput(TORCH, "no METADATA")}), ("torch", "2.3.1", "unreadable"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_change_is_one_drift(index: FakeIndex, name: str) -> None:
    change, expected = CHANGES[name]
    change(index)
    assert drift(index) == [expected]


def test_both_sides_of_a_drift_are_told(index: FakeIndex) -> None:
    index.add("torch", "2.3.1", TORCH.replace("cp310", "cp313"))
    assert find_drift(MATRIX, index) == (
        Drift(
            project="torch", version="2.3.1", kind="pythons", known="linux-64: 3.8 3.9 3.10 3.11 3.12",
            found="linux-64: 3.8 3.9 3.10 3.11 3.12 3.13", file=TORCH,
        ),
    )


def test_only_what_differs_of_the_requirements_is_told(index: FakeIndex) -> None:
    lines = index.requires[TORCH]
    index.requires[TORCH] = (*(line for line in lines if not line.startswith("sympy")), "sympy<2")
    found = find_drift(MATRIX, index, newest=None)
    assert [(one.known, one.found) for one in found] == [("sympy", "sympy<2")]


def test_a_requirement_of_one_python_is_a_marker_in_the_row(index: FakeIndex) -> None:
    for tag in ("cp38", "cp39", "cp310", "cp311"):
        name = f"torch-2.4.1-{tag}-{tag}-manylinux1_x86_64.whl"
        index.requires[name] = tuple(line for line in index.requires[name] if not line.startswith("setuptools"))
    name = "torch-2.4.1-cp312-cp312-manylinux1_x86_64.whl"
    index.requires[name] = (
        *(line for line in index.requires[name] if not line.startswith("setuptools")), "setuptools",
    )
    assert drift(index) == []
    index.requires[name] = index.requires[name][:-1]
    assert [(one.known, one.file) for one in find_drift(MATRIX, index, newest=None)] == [("setuptools", name)]


def test_spelling_and_extras_are_no_drift(index: FakeIndex) -> None:
    other = "Typing_Extensions (>=4.8.0)"
    index.requires[TORCH] = tuple(line.replace("typing-extensions>=4.8.0", other) for line in index.requires[TORCH])
    assert other in index.requires[TORCH]
    assert drift(index) == []


def test_a_library_that_a_marker_keeps_to_linux_is_no_requirement_on_windows(index: FakeIndex) -> None:
    lines = index.requires[WINDOWS]
    index.requires[WINDOWS] = tuple(line.replace("Linux", "Windows") for line in lines)
    found = find_drift(MATRIX, index, newest=None)
    assert [(one.kind, one.file) for one in found] == [("requires", WINDOWS)]
    assert found[0].found is not None
    assert "nvidia-cublas-cu12==12.1.3.1" in found[0].found


def test_pre_releases_free_threaded_builds_and_other_machines_are_no_drift(index: FakeIndex) -> None:
    index.add("torch", "2.16.0rc1", NEW.replace("2.16.0", "2.16.0rc1"))
    index.add("torch", "2.3.1", TORCH.replace("cp310-cp310", "cp313-cp313t"))
    index.add("torch", "2.3.1", "torch-2.3.1-cp313-cp313-win_arm64.whl")
    index.add("torch", "2.3.1", "torch-2.3.1-cp313-none-macosx_11_0_x86_64.whl")
    index.add("torch", "2.3.1", "torch-2.3.1-cp313-cp313t-macosx_11_0_arm64.whl")
    index.add("torch", "1.0.0", "torch-1.0.0-cp37-cp37m-manylinux1_x86_64.whl")
    assert drift(index) == []


def test_hostile_names_are_no_crash(index: FakeIndex) -> None:
    index.pages["torch"].by_version["not a version"] = [index_file("torch", "x.whl", "not a version")]
    index.add("torch", "2.3.1", "torch-2.3.1-../../etc/passwd.whl")
    index.add("torch", "2.3.1", "nonsense.whl")
    index.requires[TORCH] = (*index.requires[TORCH], "!!! no requirement")
    assert drift(index) == []


def test_metadata_is_read_of_the_newest_only(index: FakeIndex) -> None:
    index.requires[TORCH] = ("filelock",)
    assert drift(index, newest=2) == []
    torches = {name.split("-")[1] for name in index.read if name.startswith("torch-")}
    assert torches == {"2.15.0", "2.14.1"}


def test_an_unreachable_index_is_no_drift(index: FakeIndex) -> None:
    index.broken[TORCH] = Unreachable("index.invalid", "timed out")
    with pytest.raises(Unreachable):
        drift(index)


def test_an_index_without_a_project_has_all_of_it_gone(index: FakeIndex) -> None:
    del index.pages["xformers"]
    found = drift(index)
    rows = [row for row in MATRIX.companions if row.package == "xformers"]
    assert {(project, kind) for project, _, kind in found} == {("xformers", "gone")}
    assert len(found) == len(rows)


def test_a_platform_that_the_matrix_lacks(index: FakeIndex) -> None:
    rows = tuple(row for row in MATRIX.torch if (row.version, row.platform) != ("2.3.1", "linux-aarch64"))
    found = find_drift(replace(MATRIX, torch=rows), index)
    assert [(one.kind, one.known, one.found) for one in found] == [("platform", None, "linux-aarch64")]
