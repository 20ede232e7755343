"""The files written anew hold what the index says and what was kept by hand, and load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.load import load_matrix, matrix_directory
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.matrix.regenerate import regenerate, write_matrix
from tests.matrix_fakes import FakeIndex, agreeing_index

MATRIX = load_matrix()
NEW_TORCH = {
    "linux-64": "torch-2.16.0-{tag}-{tag}-manylinux_2_28_x86_64.whl",
    "linux-aarch64": "torch-2.16.0-{tag}-{tag}-manylinux_2_28_aarch64.whl",
    "win-64": "torch-2.16.0-{tag}-{tag}-win_amd64.whl",
    "osx-arm64": "torch-2.16.0-{tag}-none-macosx_15_0_arm64.whl",
}
NEW_REQUIRES = (
    "filelock",
    'cuda-toolkit[cublas,nvjitlink]==13.5.0 ; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.30.0.1 ; platform_system == "Linux"',
    'opt-einsum>=3.3 ; extra == "opt-einsum"',
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    directory = tmp_path / "matrix"
    shutil.copytree(matrix_directory(), directory)
    return directory


@pytest.fixture
def index() -> FakeIndex:
    return agreeing_index(MATRIX)


def renewed(directory: Path, index: FakeIndex) -> Matrix:
    write_matrix(directory, regenerate(directory, index).texts)
    return load_matrix(directory)


def only(matrix: Matrix, version: str, platform: str = "linux-64") -> TorchBuild:
    rows = query.builds(matrix, platform=platform, index="default")
    return next(row for row in rows if row.version == version)


def test_agreement_changes_no_byte(copy: Path, index: FakeIndex) -> None:
    assert regenerate(copy, index).texts == {}


def test_a_new_torch_has_what_the_index_says_and_low_confidence(copy: Path, index: FakeIndex) -> None:
    for name in NEW_TORCH.values():
        for tag in ("cp312", "cp313"):
            index.add("torch", "2.16.0", name.format(tag=tag), *NEW_REQUIRES)
    matrix = renewed(copy, index)
    build = only(matrix, "2.16.0")
    assert query.torch_releases(matrix)[0] == "2.16.0"
    assert build.pythons == ("3.12", "3.13")
    assert (build.cuda, build.toolkit, build.cudnn, build.glibc) == ("13.5", "13.5.0", "9.30.0.1", "2.28")
    assert (build.cxx11_abi, build.gpu_archs, build.confidence) == (None, (), "low")
    assert not any("opt-einsum" in line for line in build.requires)
    assert only(matrix, "2.16.0", "linux-aarch64").pythons == ("3.12", "3.13")
    for platform, macos in (("win-64", None), ("osx-arm64", "15.0")):
        elsewhere = only(matrix, "2.16.0", platform)
        assert (elsewhere.cuda, elsewhere.glibc, elsewhere.macos) == ("cpu", None, macos)
        assert (elsewhere.toolkit, elsewhere.cudnn, elsewhere.pythons) == (None, None, ("3.12", "3.13"))
        assert elsewhere.requires == build.requires        # its markers keep the libraries to Linux
    assert only(matrix, "2.15.0") == only(MATRIX, "2.15.0")


def test_a_second_run_changes_nothing(copy: Path, index: FakeIndex) -> None:
    for name in NEW_TORCH.values():
        index.add("torch", "2.16.0", name.format(tag="cp312"), *NEW_REQUIRES)
    index.add("flash-attn", "2.9.0", "flash_attn-2.9.0.tar.gz")
    index.add("torchvision", "0.30.0", "torchvision-0.30.0-cp312-cp312-manylinux_2_28_x86_64.whl", "torch==2.16.0")
    index.add("cuda-toolkit", "13.6.0", "cuda_toolkit-13.6.0-py3-none-any.whl", "nvidia-cublas==13.9.*")
    first = regenerate(copy, index)
    assert first.texts.keys() == {"torch.toml", "cuda.toml", "companions.toml", "flash_attn.toml"}
    assert regenerate(copy, index) == first
    write_matrix(copy, first.texts)
    again = regenerate(copy, index)
    assert again.texts == {}
    assert again.drift == ()


def test_a_torch_on_a_toolkit_that_is_as_new(copy: Path, index: FakeIndex) -> None:
    index.add("cuda-toolkit", "13.6.0", "cuda_toolkit-13.6.0-py3-none-any.whl", "nvidia-cublas==13.9.*")
    name = NEW_TORCH["linux-64"].format(tag="cp312")
    index.add("torch", "2.16.0", name, *(line.replace("13.5.0", "13.6.0") for line in NEW_REQUIRES))
    matrix = renewed(copy, index)
    assert (only(matrix, "2.16.0").cuda, only(matrix, "2.16.0").toolkit) == ("13.6", "13.6.0")
    assert query.component_version(matrix, "13.6.0", "nvidia-cublas") == "13.9"


def test_a_python_added_keeps_all_else(copy: Path, index: FakeIndex) -> None:
    name = "torch-2.3.1-cp313-cp313-manylinux1_x86_64.whl"
    index.add("torch", "2.3.1", name, *index.requires[name.replace("cp313", "cp312")])
    before, after = only(MATRIX, "2.3.1"), only(renewed(copy, index), "2.3.1")
    assert after.pythons == (*before.pythons, "3.13")
    for name in ("cuda", "cxx11_abi", "gpu_archs", "requires", "toolkit", "cudnn", "nccl", "source", "confidence"):
        assert getattr(after, name) == getattr(before, name)


def test_changed_requirements_are_taken_over_and_the_read_facts_stay(copy: Path, index: FakeIndex) -> None:
    wheel = "torch-2.3.1-cp310-cp310-manylinux1_x86_64.whl"
    index.requires[wheel] = tuple(
        line.replace("nvidia-cudnn-cu12==8.9.2.26", "nvidia-cudnn-cu12==8.9.7.29") for line in index.requires[wheel]
    )
    matrix = renewed(copy, index)
    assert only(matrix, "2.3.1").cudnn == "8.9.7.29"
    assert only(matrix, "2.3.1").gpu_archs == only(MATRIX, "2.3.1").gpu_archs
    assert only(matrix, "2.3.0") == only(MATRIX, "2.3.0")
    assert only(matrix, "2.3.1", "linux-aarch64") == only(MATRIX, "2.3.1", "linux-aarch64")
    assert regenerate(copy, index).texts == {}


def test_companions(copy: Path, index: FakeIndex) -> None:
    index.add("torchvision", "0.30.0", "torchvision-0.30.0-cp312-cp312-manylinux_2_28_x86_64.whl", "torch==2.16.0")
    index.requires["torchvision-0.18.1-py3-none-manylinux_2_28_x86_64.whl"] = ("torch>=2.3.1",)
    matrix = renewed(copy, index)
    new, changed = (query.companion(matrix, "torchvision", version) for version in ("0.30.0", "0.18.1"))
    assert new is not None
    assert changed is not None
    assert (new.torch, new.cuda, new.confidence) == ("==2.16.0", None, "low")
    assert (changed.torch, changed.cuda, changed.confidence) == (">=2.3.1", "12.1", "certain")


def test_a_new_flash_attn_has_no_wheels_until_somebody_lists_them(copy: Path, index: FakeIndex) -> None:
    index.add("flash-attn", "2.9.0", "flash_attn-2.9.0.tar.gz")
    matrix = renewed(copy, index)
    row = query.flash_attn_release(matrix, "2.9.0")
    assert row is not None
    assert (row.sdist, row.confidence) == (True, "low")
    assert not [wheel for wheel in matrix.flash_attn_wheels if wheel.version == "2.9.0"]


def test_what_is_gone_is_told_and_kept(copy: Path, index: FakeIndex) -> None:
    index.drop("torch", "2.3.1")
    result = regenerate(copy, index)
    assert [found.kind for found in result.drift] == ["gone"]
    assert result.texts == {}


def test_a_platform_that_is_gone_is_told_and_kept(copy: Path, index: FakeIndex) -> None:
    index.drop("torch", "2.3.1", "aarch64")
    result = regenerate(copy, index)
    assert [found.kind for found in result.drift] == ["platform"]
    assert result.texts == {}


def test_a_yanked_companion_says_so_in_its_source(copy: Path, index: FakeIndex) -> None:
    index.yank("torchaudio", "2.3.1")
    row = query.companion(renewed(copy, index), "torchaudio", "2.3.1")
    assert row is not None
    assert "yanked" in row.source
    assert regenerate(copy, index).drift == ()


def test_a_text_that_would_not_load_replaces_nothing(copy: Path) -> None:
    before = {path.name: path.read_bytes() for path in copy.glob("*.toml")}
    with pytest.raises(BadInput):
        write_matrix(copy, {"companions.toml": "[sources]\n", "torch.toml": "x = 1\n"})
    assert {path.name: path.read_bytes() for path in copy.glob("*.toml")} == before
