"""The rows of the torch index: how they are read, and laws that hold for all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import TorchBuild, TorchIndexWheel
from stackfix.matrix.toml_files import matrix_directory
from stackfix.matrix.torch_index import FOLDER, load_torch_index, torch_releases
from stackfix.platforms import PLATFORMS, platform_of_wheel

PATHS = ("cpu", "cu117", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "root")
MATRIX = load_matrix()
ROWS = {path: load_torch_index(path) for path in PATHS}
WITH_CUSPARSELT = {"2.2", "2.3", "2.4", "2.5"}     # inside the wheel
CARRYING = {("11.7", "2.0"), ("11.8", "2.0"), ("11.8", "2.1"), ("12.1", "2.1")}      # for x86-64
INSIDE = {"2.4", "2.5", "2.6", "2.7", "2.8"}        # CUDA wheels for aarch64 that carry their libraries
WHEEL = re.compile(r"[a-z0-9_]+-[0-9][^-]*(-\d+)?-(cp|py)\d+[a-z0-9.]*-[a-z0-9_]+-[a-z0-9_.]+\.whl")


def torches(path: str, platform: str) -> dict[str, list[TorchIndexWheel]]:
    """Wheels of torch on a path, by public version, with and without a local part."""
    found: dict[str, list[TorchIndexWheel]] = defaultdict(list)
    for row in ROWS.get(path, ()):
        if row.project == "torch" and platform_of_wheel(row.file) == platform:
            found[row.version.partition("+")[0]].append(row)
    return found


def variants() -> list[TorchBuild]:
    """Builds of the matrix that are on the torch index alone."""
    return [build for build in query.builds(MATRIX) if build.index != query.DEFAULT_INDEX]


def test_there_are_thousands_and_they_are_small() -> None:
    files = list((matrix_directory() / FOLDER).glob("*.toml"))
    assert {file.stem for file in files} == set(PATHS)
    assert sum(len(rows) for rows in ROWS.values()) > 3500
    assert sum(file.stat().st_size for file in files) < 1_500_000


def test_names_and_hashes_are_well_formed() -> None:
    for rows in ROWS.values():
        for row in rows:
            assert WHEEL.fullmatch(row.file), row
            assert row.file.split("-")[1] == row.version, row
            assert row.file.split("-")[0].replace("_", "-") == row.project, row
            assert row.confidence in {"high", "medium"}, row


def test_no_hash_is_of_two_names() -> None:
    """The index has at times put a digest of metadata in its place: that is how it would show."""
    names: dict[str, set[str]] = defaultdict(set)
    for rows in ROWS.values():
        for row in rows:
            names[row.sha256].add(row.file)
    assert {sha256: found for sha256, found in names.items() if len(found) > 1} == {}


def test_one_name_has_different_bytes_on_different_paths() -> None:
    hashes: dict[str, dict[str, str]] = defaultdict(dict)
    for path, rows in ROWS.items():
        for row in rows:
            hashes[row.file][path] = row.sha256
    different = {file for file, by in hashes.items() if len(set(by.values())) > 1}
    assert len(different) > 60
    assert "xformers-0.0.29.post3-cp311-cp311-manylinux_2_28_x86_64.whl" in different
    assert "torchvision-0.20.0-cp310-cp310-linux_aarch64.whl" in different       # for the CPU, and for CUDA 12.4


def test_paths_of_other_layouts_are_not_there() -> None:
    """`cu121_full`, `cu121_pypi_cudnn` and `test/cu128` reuse names, or are built in another way."""
    for path in ("cu121_full", "cu121_pypi_cudnn", "test/cu128", "cpu-cxx11-abi", "../abi/torch", ""):
        assert load_torch_index(path) == ()
    assert not any("pypi.cudnn" in row.version or "cxx11.abi" in row.version for rows in ROWS.values() for row in rows)


def test_a_path_has_versions_of_its_own_variant_alone() -> None:
    for path in PATHS:
        locals_ = {row.version.partition("+")[2] for row in ROWS[path]}
        assert locals_ <= {"", path}, path


@pytest.mark.parametrize("path", [path for path in PATHS if path != "root"])
def test_every_torch_of_a_path_is_a_build_of_the_matrix(path: str) -> None:
    for platform in PLATFORMS:
        known = {build.version for build in query.builds(MATRIX, platform=platform)
                 if build.index == path or (build.index == query.DEFAULT_INDEX and path == (
                     "cpu" if build.cuda == "cpu" else f"cu{build.cuda.replace('.', '')}"))}
        assert set(torches(path, platform)) <= known, (path, platform)


def test_what_a_variant_requires_is_known_where_its_files_are() -> None:
    """Without the CUDA libraries' names a lock from the matrix would be of a torch that cannot be imported."""
    for build in variants():
        if build.cuda == "cpu" or build.version not in torches(build.index, build.platform):
            continue
        if build.platform == "win-64":
            assert build.requires == (), build      # all is inside the wheel, and the rest is the default index's
            continue
        if build.platform == "linux-aarch64" and query.minor_of(build.version) in INSIDE:
            assert not any(line.startswith("nvidia") for line in build.requires), build     # inside the wheel
            continue
        inside = (build.cuda, query.minor_of(build.version)) in CARRYING
        named = {re.split(r"[\[=<>]", line)[0] for line in build.requires if line.startswith(("nvidia", "cuda"))}
        assert inside or len(named) > 4, build
        if not inside and build.cuda.startswith("12.") and query.minor_of(build.version) not in WITH_CUSPARSELT:
            assert "nvidia-cusparselt-cu12" in named, build


def test_the_platform_tag_splits_in_2_6() -> None:
    tags = {path: {row.file.rpartition("-")[2] for row in torches(path, "linux-64")["2.6.0"]}
            for path in ("cu118", "cu124", "cu126", "cpu")}
    assert tags == {"cu118": {"linux_x86_64.whl"}, "cu124": {"linux_x86_64.whl"},
                    "cu126": {"manylinux_2_28_x86_64.whl"}, "cpu": {"linux_x86_64.whl"}}


def test_the_cxx11_abi_follows_that_split() -> None:
    abi = {build.cuda: build.cxx11_abi for build in query.builds(MATRIX, platform="linux-64")
           if build.version == "2.6.0"}
    assert abi == {"11.8": False, "12.4": False, "12.6": True, "cpu": False}


def test_cuda_wheels_for_aarch64_have_no_local_version_before_2_6() -> None:
    assert {row.version for row in torches("cu124", "linux-aarch64")["2.5.1"]} == {"2.5.1"}
    assert {row.version for row in torches("cu126", "linux-aarch64")["2.6.0"]} == {"2.6.0+cu126"}


def test_torch_2_5_for_cuda_12_1_does_not_pin_nvjitlink() -> None:
    build = next(one for one in variants() if (one.version, one.index) == ("2.5.1", "cu121"))
    assert not any("nvjitlink" in line for line in build.requires)


def copy_with(folder: Path, text: str) -> Path:
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "cu118.toml").write_text(text)
    return folder


HEAD = '[sources]\nlocks = "x"\n\n[[release]]\nproject = "torch"\nversion = "2.3.1+cu118"\n'


def test_a_copy_of_the_matrix_without_rows_knows_none(tmp_path: Path) -> None:
    assert load_torch_index("cu118", tmp_path) == ()


@pytest.mark.parametrize(("lines", "said"), [
    (f"cp311-cp311-linux_x86_64 {'g' * 64} 1", "no line of tags"),
    (f"cp311-cp311-../../x {'0' * 64} 1", "no line of tags"),
    (f"cp311-cp311-linux_x86_64 {'0' * 64}", "no line of tags"),
    (f"cp311-cp311-linux_x86_64 {'0' * 64} 1\ncp311-cp311-linux_x86_64 {'1' * 64} 1", "given twice"),
])
def test_faults_of_rows_are_told(tmp_path: Path, lines: str, said: str) -> None:
    copy_with(tmp_path, f'{HEAD}wheels = """\n{lines}\n"""\n')
    with pytest.raises(BadInput, match=said):
        load_torch_index("cu118", tmp_path)




@pytest.mark.parametrize("path", sorted(each.stem for each in (matrix_directory() / "torch_index").glob("c*.toml")))
def test_releases_are_those_of_the_rows(path: str) -> None:
    rows = [row for row in load_torch_index(path) if row.project == "torch"]
    for platform in PLATFORMS:
        wanted = {row.version.partition("+")[0] for row in rows if platform_of_wheel(row.file) == platform}
        assert torch_releases(path, platform) == wanted


def test_a_path_without_a_file_has_no_releases() -> None:
    assert torch_releases("cu999", "linux-64") == torch_releases("../torch", "linux-64") == frozenset()
