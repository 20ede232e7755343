"""`stackfix lock` of CUDA variants that the default index has not, whole: from the torch index, and without it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judges import torch_index
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.replay.releases import ReleaseServer
from tests.replay.store import Store
from tests.replay.torch_index import Row, TorchReplica, rows, with_hash
from tests.variant_locks import NOBODY, Locker

pytestmark = pytest.mark.recorded

PY311 = ("--python", "3.11", "--no-flash-attn")
SHOWN = {       # what it must show: (options, files of the torch index)
    "2.3 for CUDA 11.8": (
        ("--torch", "2.3", "--cuda", "11.8", *PY311, "--with", "torchvision"),
        ("cu118/torch-2.3.1%2Bcu118-cp311-cp311-linux_x86_64.whl",
         "cu118/torchvision-0.18.1%2Bcu118-cp311-cp311-linux_x86_64.whl")),
    "2.6 for CUDA 12.6": (
        ("--torch", "2.6", "--cuda", "12.6", *PY311),
        ("cu126/torch-2.6.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl",)),
    "2.8 for CUDA 12.9": (
        ("--torch", "2.8", "--cuda", "12.9", *PY311),
        ("cu129/torch-2.8.0%2Bcu129-cp311-cp311-manylinux_2_28_x86_64.whl",)),
    "aarch64 with CUDA 12.8": (
        ("--torch", "2.7", "--cuda", "12.8", *PY311, "--platform", "linux-aarch64", "--with", "torchvision"),
        ("cu128/torch-2.7.1%2Bcu128-cp311-cp311-manylinux_2_28_aarch64.whl",
         "cu128/torchvision-0.22.1-cp311-cp311-manylinux_2_28_aarch64.whl",
         "triton-3.3.1-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl")),
    "the CPU on linux-64": (
        ("--torch", "2.6", "--cuda", "cpu", *PY311, "--with", "torchvision"),
        ("cpu/torch-2.6.0%2Bcpu-cp311-cp311-linux_x86_64.whl",
         "cpu/torchvision-0.21.0%2Bcpu-cp311-cp311-linux_x86_64.whl")),
    "CUDA 12.8 on win-64": (
        ("--torch", "2.7", "--cuda", "12.8", *PY311, "--platform", "win-64", "--with", "torchvision"),
        ("cu128/torch-2.7.1%2Bcu128-cp311-cp311-win_amd64.whl",
         "cu128/torchvision-0.22.1%2Bcu128-cp311-cp311-win_amd64.whl")),
    "the CPU on linux-64 beside CUDA on win-64": (
        ("--torch", "2.7", "--cuda", "12.8", *PY311, "--platform", "linux-64-cpu", "--platform", "win-64"),
        ("cpu/torch-2.7.1%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl",
         "cu128/torch-2.7.1%2Bcu128-cp311-cp311-win_amd64.whl")),
}
ON_DEFAULT = {      # builds for the CPU that the default index has, and its files of torch and torchvision
    "osx-arm64": ("torch-2.8.0-cp311-none-macosx_11_0_arm64.whl",
                  "torchvision-0.23.0-cp311-cp311-macosx_11_0_arm64.whl"),
    "win-64": ("torch-2.8.0-cp311-cp311-win_amd64.whl", "torchvision-0.23.0-cp311-cp311-win_amd64.whl"),
    "linux-aarch64": ("torch-2.8.0-cp311-cp311-manylinux_2_28_aarch64.whl",
                      "torchvision-0.23.0-cp311-cp311-manylinux_2_28_aarch64.whl"),
}
WINDOWS = "torch-2.7.1+cu128-cp311-cp311-win_amd64.whl"
TORCH_CU118 = "torch-2.3.1+cu118-cp311-cp311-linux_x86_64.whl"


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[TorchReplica]:
    with TorchReplica(store) as served:
        yield served


def entries(folder: Path) -> dict[str, Entry]:
    return {entry.name: entry for entry in read_entries(folder / "requirements.txt")}


def row(path: str, file: str) -> Row:
    return next(each for each in rows(path) if each.file == file)


@pytest.mark.parametrize("name", SHOWN)
def test_the_same_bytes_with_the_torch_index_and_without(
    name: str, lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    words, files = SHOWN[name]
    found = lock(words, tmp_path / "index", replica.url)
    alone = lock(words, tmp_path / "alone", NOBODY)
    assert (found.status, alone.status) == (0, 0), found.said + alone.said
    assert found.files == alone.files
    written = [str(entry.url) for file in sorted(found.folder.glob("requirements*.txt"))
               for entry in torch_index.torch_entries(file)]
    assert written == [f"{torch_index.BASE}/{file}" for file in files]
    assert "could not be reached" not in found.said
    assert re.search(r"the torch index could not be reached .*: torch .* locked from what the matrix knows", alone.said)
    assert "confidence)" in alone.said                      # of its hashes, and of its requirements
    assert "was not read of its wheel" in alone.said
    assert "127.0.0.1:9" not in b"".join(alone.files.values()).decode()


@pytest.mark.parametrize("platform", ON_DEFAULT)
def test_a_build_for_the_cpu_that_the_default_index_has_is_taken_from_there(
    platform: str, lock: Locker, store: Store, pages: Pages, tmp_path: Path
) -> None:
    words = ("--torch", "2.8", "--cuda", "cpu", *PY311, "--platform", platform, "--with", "torchvision")
    with TorchReplica(store) as served:
        found = lock(words, tmp_path / "index", served.url)
        assert served.requests == []
    alone = lock(words, tmp_path / "alone", NOBODY)
    assert (found.status, alone.status) == (0, 0), found.said + alone.said
    assert found.files == alone.files
    assert "the torch index could not be reached" not in alone.said
    locked = entries(tmp_path / "index")
    assert [pages.stated(name)[locked[name].hashes[0]][0] for name in ("torch", "torchvision")] == list(
        ON_DEFAULT[platform])
    assert not [name for name in locked if name.startswith(("nvidia-", "triton"))]


def test_a_row_for_windows_that_is_altered_changes_the_lock(lock: Locker, store: Store, tmp_path: Path) -> None:
    words = ("--torch", "2.7", "--cuda", "12.8", *PY311, "--platform", "win-64")
    with TorchReplica(store, alter=lambda each: None if each.file == WINDOWS else each) as without:
        gone = lock(words, tmp_path / "gone", without.url)
    assert gone.status == 0, gone.said
    assert "torch-2.7.0%2Bcu128-cp311-cp311-win_amd64.whl" in str(entries(tmp_path / "gone")["torch"].url)
    with TorchReplica(store, alter=with_hash(WINDOWS, "0" * 64)) as lying:
        found = lock(words, tmp_path / "lying", lying.url)
    assert found.status == 3, found.said
    assert "0" * 64 in found.said


def test_nothing_is_built_for_cuda_on_macos(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    words = ("--torch", "2.8", "--cuda", "12.8", *PY311, "--platform", "osx-arm64")
    alone = lock(words, tmp_path / "alone", replica.url)
    assert alone.status == 1, alone.said
    assert "--cuda cpu in place of 12.8" in alone.said
    beside = lock((*words, "--platform", "linux-64"), tmp_path / "beside", replica.url)
    assert beside.status == 0, beside.said
    assert "for osx-arm64 is the default index's wheel, without CUDA" in beside.said


def test_an_xformers_for_windows_is_taken_with_a_torch_for_cuda_alone(
    lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    """Its Windows wheel on the default index is built for CUDA, torch's there is not; no metadata say so."""
    words = ("--torch", "2.8", *PY311, "--platform", "win-64", "--with", "xformers")
    found = lock(words, tmp_path / "cpu", replica.url)
    assert found.status == 1, found.said
    assert "on Windows too" in found.said
    assert "--cuda 12.8 added" in found.said
    with_cuda = lock((*words, "--cuda", "12.8"), tmp_path / "cuda", replica.url)
    assert with_cuda.status == 0, with_cuda.said
    assert f"{torch_index.BASE}/cu128/xformers-0.0.32" in str(entries(tmp_path / "cuda")["xformers"].url)


@pytest.mark.parametrize(("driver", "status"), [("526.98", 1), ("528.33", 0)])
def test_windows_has_drivers_of_its_own(
    driver: str, status: int, lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    words = ("--torch", "2.8", "--cuda", "12.8", *PY311, "--platform", "win-64", "--driver", driver)
    found = lock(words, tmp_path, replica.url)
    assert found.status == status, found.said
    assert ("--driver 527.41 in place of 526.98" if status else "driver >= 527.41") in found.said
    assert "cuda-compat" not in found.said


def test_an_address_is_an_archive_without_a_version_and_needs_no_index(
    lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    found = lock(SHOWN["2.3 for CUDA 11.8"][0], tmp_path, replica.url)
    torch = entries(tmp_path)["torch"]
    assert torch.version is None
    assert torch.hashes == (row("cu118", TORCH_CU118).sha256,)
    text = (tmp_path / "pylock.toml").read_text()
    table = text.partition('name = "torch"\n')[2].partition("[[packages]]")[0]
    assert "version" not in table.partition("requires-python")[0]
    assert f'url = "{torch.url}"' in table
    assert "[packages.archive" in table
    assert "index" not in re.sub(r'url = ".*"', "", text)
    assert "--torch-index" not in found.requirements.read_text()
    assert "nvidia-cublas-cu11" in entries(tmp_path)
    assert "nvidia-cublas-cu12" not in entries(tmp_path)


def test_a_row_of_the_index_that_is_altered_changes_the_lock(lock: Locker, store: Store, tmp_path: Path) -> None:
    words = SHOWN["2.3 for CUDA 11.8"][0]
    with TorchReplica(store, alter=lambda each: None if each.file == TORCH_CU118 else each) as without:
        gone = lock(words, tmp_path / "gone", without.url)
    assert gone.status == 0, gone.said
    assert "torch-2.3.0%2Bcu118" in str(entries(tmp_path / "gone")["torch"].url)
    assert "torchvision-0.18.0%2Bcu118" in str(entries(tmp_path / "gone")["torchvision"].url)


def test_a_hash_of_the_index_is_what_is_locked_where_the_matrix_knows_none(
    lock: Locker, store: Store, tmp_path: Path
) -> None:
    """torchaudio 2.3.1 for CUDA 11.8 is none of the matrix's rows: served here in the place of another file."""
    other, file = "torchaudio-2.2.0+cu118-cp311-cp311-linux_x86_64.whl", TORCH_CU118.replace("torch-", "torchaudio-")

    def served(each: Row) -> Row:
        return replace(each, file=file, version="2.3.1+cu118", sha256="5" * 64, requires=("torch==2.3.1",)) \
            if each.file == other else each

    said = "Metadata-Version: 2.1\nName: torchaudio\nVersion: 2.3.1+cu118\nRequires-Dist: torch==2.3.1\n"
    words = ("--torch", "2.3", "--cuda", "11.8", *PY311, "--with", "torchaudio")
    with TorchReplica(store, alter=served, metadata={file: said}) as replica:
        found = lock(words, tmp_path, replica.url)
    assert found.status == 0, found.said
    assert entries(tmp_path)["torchaudio"].hashes == ("5" * 64,)
    alone = lock(words, tmp_path / "alone", NOBODY)
    assert alone.status == 1, alone.said
    assert "what the matrix knows of its files stands in" in alone.said


def test_two_hashes_of_a_file_are_an_error_that_names_both(lock: Locker, store: Store, tmp_path: Path) -> None:
    with TorchReplica(store, alter=with_hash(TORCH_CU118, "0" * 64)) as lying:
        found = lock(SHOWN["2.3 for CUDA 11.8"][0], tmp_path, lying.url)
    assert found.status == 3, found.said
    assert "0" * 64 in found.said
    assert str(row("cu118", TORCH_CU118).sha256) in found.said
    assert list(tmp_path.iterdir()) == []


def test_a_hash_that_the_page_lacks_is_the_matrixs_with_a_note(lock: Locker, store: Store, tmp_path: Path) -> None:
    with TorchReplica(store, hashless=lambda each: each.file == TORCH_CU118) as silent:
        found = lock(SHOWN["2.3 for CUDA 11.8"][0], tmp_path, silent.url)
    assert found.status == 0, found.said
    assert entries(tmp_path)["torch"].hashes == (row("cu118", TORCH_CU118).sha256,)
    assert "the sha256 of torch 2.3.1+cu118 is the matrix's (its page states none" in found.said


def test_metadata_about_another_project_are_refused(lock: Locker, store: Store, tmp_path: Path) -> None:
    other = {TORCH_CU118: "Metadata-Version: 2.1\nName: torchvision\nVersion: 2.3.1+cu118\n"}
    with TorchReplica(store, metadata=other) as served:
        found = lock(SHOWN["2.3 for CUDA 11.8"][0], tmp_path / "lock", served.url)
    assert found.status == 3, found.said
    assert "is about 'torchvision'" in found.said


def test_a_mirror_under_another_name_is_read_and_not_written(lock: Locker, store: Store, tmp_path: Path) -> None:
    words = SHOWN["2.6 for CUDA 12.6"][0]
    with TorchReplica(store, digests=True) as plain:
        first = lock(words, tmp_path / "first", plain.url)
        with TorchReplica(store, links=plain.url) as second_host:
            second = lock(words, tmp_path / "second", second_host.url)
    assert (first.status, second.status) == (0, 0), first.said + second.said
    assert first.files == second.files


def test_an_index_that_has_not_got_the_variant_is_believed(lock: Locker, store: Store, tmp_path: Path) -> None:
    with TorchReplica(store, alter=lambda _: None) as empty:
        found = lock(SHOWN["2.6 for CUDA 12.6"][0], tmp_path, empty.url)
    assert found.status == 1, found.said
    assert "torch index (cu126)" in found.said
    assert "--cuda 12.4" in found.said                      # what is there: the default index's own


@pytest.mark.parametrize("status", [503, 403])
def test_a_server_that_turns_everybody_away_is_no_index(
    status: int, lock: Locker, store: Store, replica: TorchReplica, tmp_path: Path
) -> None:
    words = SHOWN["2.8 for CUDA 12.9"][0]
    with TorchReplica(store, status=status) as closed:
        found = lock(words, tmp_path / "closed", closed.url)
    assert found.status == 0, found.said
    assert "the torch index could not be reached" in found.said
    assert found.files == lock(words, tmp_path / "open", replica.url).files


def test_a_login_page_in_its_place_is_an_error(lock: Locker, tmp_path: Path) -> None:
    with ReleaseServer({}, status=200) as portal:
        found = lock(SHOWN["2.8 for CUDA 12.9"][0], tmp_path, portal.url)
    assert found.status == 3, found.said
    assert "page of torch" in found.said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("cuda", "abi"), [("12.6", "TRUE"), ("12.4", "FALSE"), ("11.8", "FALSE")])
def test_flash_attn_follows_the_abi_of_the_variant(
    cuda: str, abi: str, lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    found = lock(("--torch", "2.6", "--cuda", cuda, "--python", "3.11"), tmp_path, replica.url)
    assert found.status == 0, found.said
    flash_attn = entries(tmp_path).get("flash-attn")
    if cuda == "11.8":                                      # of which wheels end with 2.7.3
        assert flash_attn is not None
        assert "cu11torch2.6" in str(flash_attn.url)
    assert flash_attn is not None
    assert f"torch2.6cxx11abi{abi}" in str(flash_attn.url)


def test_a_lock_holds_what_it_locked(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    words = SHOWN["2.3 for CUDA 11.8"][0]
    assert lock(words, tmp_path, replica.url).status == 0
    held = lock((*words, "--check"), tmp_path, replica.url)
    assert held.status == 0, held.said
    text = (tmp_path / "requirements.txt").read_text()
    sha256 = str(row("cu118", TORCH_CU118).sha256)
    (tmp_path / "requirements.txt").write_text(text.replace(sha256, "1" * 64))
    changed = lock((*words, "--check"), tmp_path, NOBODY)
    assert changed.status == 1, changed.said
    assert sha256 in changed.said


def test_the_kept_release_stays(lock: Locker, store: Store, replica: TorchReplica, tmp_path: Path) -> None:
    words = ("--torch", ">=2.3,<2.5", "--cuda", "11.8", *PY311)
    older = lock(("--torch", "2.3", "--cuda", "11.8", *PY311), tmp_path, replica.url)
    again = lock(words, tmp_path, replica.url)
    assert (older.status, again.status) == (0, 0), again.said
    assert "torch-2.3.1%2Bcu118" in str(entries(tmp_path)["torch"].url)
    renewed = lock((*words, "--upgrade"), tmp_path, replica.url)
    assert renewed.status == 0
    assert "torch-2.4.1%2Bcu118" in str(entries(tmp_path)["torch"].url)


def test_json_names_the_address_and_the_version_of_the_wheel(
    lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    found = lock((*SHOWN["2.3 for CUDA 11.8"][0], "--json"), tmp_path, replica.url)
    document = json.loads(found.said)
    torch = next(one for one in document["targets"][0]["packages"] if one["name"] == "torch")
    assert torch["version"] == "2.3.1+cu118"
    assert torch["url"].startswith(f"{torch_index.BASE}/cu118/")
    assert document["stack"]["torch"] == "2.3.1"
    assert document["stack"]["cuda"] == "11.8"


def test_an_upload_date_that_the_index_does_not_state_lets_nothing_in(
    lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    words = (*SHOWN["2.6 for CUDA 12.6"][0], "--exclude-newer", "2026-01-01")
    found = lock(words, tmp_path, replica.url)
    assert found.status == 1, found.said
    assert "known to be uploaded before the --exclude-newer date" in found.said


def test_the_default_index_is_asked_nothing_more_where_it_has_the_variant(
    lock: Locker, store: Store, tmp_path: Path
) -> None:
    with TorchReplica(store) as served:
        found = lock(("--torch", "2.3", "--cuda", "12.1", *PY311), tmp_path, served.url)
        assert found.status == 0, found.said
        assert served.requests == []
    assert entries(tmp_path)["torch"].version == "2.3.1"


def test_companions_come_from_where_torch_comes_from_or_not_at_all(
    lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    found = lock(("--torch", "2.6", "--cuda", "cpu", *PY311, "--with", "xformers"), tmp_path, replica.url)
    assert found.status == 1, found.said
    assert "there is no xformers on the torch index (cpu)" in found.said
    assert "--cuda 12.6 in place of cpu" in found.said


def test_wheels_that_carry_their_cuda_bring_no_libraries(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    found = lock(("--torch", "2.1", "--cuda", "11.8", *PY311), tmp_path, replica.url)
    assert found.status == 0, found.said
    assert not [name for name in entries(tmp_path) if name.startswith("nvidia-")]
    assert "cuDNN" not in found.said.partition("\n")[0]


@pytest.mark.parametrize(("asked", "offered"), [
    (("--torch", "2.6", "--driver", "470.57.02"), "--cuda 11.8 added"),
    (("--torch", "2.8", "--gpu-arch", "sm_61"), "--cuda 12.6 added"),
])
def test_an_old_driver_or_gpu_is_offered_the_variant_that_takes_it(
    asked: tuple[str, ...], offered: str, lock: Locker, tmp_path: Path
) -> None:
    found = lock((*asked, *PY311), tmp_path, NOBODY)
    assert found.status == 1, found.said
    assert offered in found.said


def test_a_requirement_may_name_the_variant(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    words = ("--cuda", "11.8", *PY311, "--with", "torch==2.3.1+cu118", "--with", "torchvision==0.18.1+cu118")
    found = lock(words, tmp_path / "same", replica.url)
    assert found.status == 0, found.said
    other = lock(("--cuda", "11.8", *PY311, "--with", "torch==2.3.1+cu121"), tmp_path / "other", replica.url)
    assert other.status == 1, other.said


@pytest.mark.parametrize(("named", "said"), [
    ("torch==2.3.1+cu121", "torch-2.3.1%2Bcu121-cp311"), ("torch==2.1.2+cu121", "torch-2.1.2%2Bcu121-cp311"),
    ("torch==2.8.0+cpu", "torch-2.8.0%2Bcpu-cp311"),
])
def test_a_requirement_may_name_the_variant_that_the_default_index_has(
    named: str, said: str, lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    """As the start page of torch has it: of 2.3.1 the default index's wheel is for CUDA 12.1, and is no 2.3.1+cu121."""
    found = lock((*PY311, "--with", named), tmp_path / "index", replica.url)
    alone = lock((*PY311, "--with", named), tmp_path / "alone", NOBODY)
    assert (found.status, alone.status) == (0, 0), found.said + alone.said
    assert found.files == alone.files
    assert said in str(entries(tmp_path / "index")["torch"].url)
    libraries = [name for name in entries(tmp_path / "index") if name.startswith("nvidia-")]
    assert bool(libraries) == ("2.3.1" in named)            # 2.1's wheels of the torch index carry them
    assert ("low confidence" in alone.said) == ("2.1.2" in named)


def test_the_conda_side_holds_the_variant_too(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    formats = ("--format", "requirements", "--format", "conda-lock")
    found = lock(SHOWN["2.3 for CUDA 11.8"][0], tmp_path, replica.url, formats=formats)
    assert found.status == 0, found.said
    assert "layout: native" in (tmp_path / "conda-lock.yml").read_text()
    assert re.search(r"pytorch-2\.3\.1-.*cuda11\.?8", (tmp_path / "conda-lock.yml").read_text())


def test_in_the_layout_wheels_the_address_is_the_torch_indexs(
    lock: Locker, replica: TorchReplica, tmp_path: Path
) -> None:
    formats = ("--format", "requirements", "--format", "conda-lock")
    found = lock((*SHOWN["2.6 for CUDA 12.6"][0], "--layout", "wheels"), tmp_path, replica.url, formats=formats)
    assert found.status == 0, found.said
    assert str(entries(tmp_path)["torch"].url) in (tmp_path / "conda-lock.yml").read_text()


def test_both_platforms_share_a_variant(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    words = ("--torch", "2.7", "--cuda", "12.8", *PY311, "--platform", "linux-64", "--platform", "linux-aarch64")
    found = lock(words, tmp_path, replica.url)
    assert found.status == 0, found.said
    for platform, machine in (("linux-64", "x86_64"), ("linux-aarch64", "aarch64")):
        text = (tmp_path / f"requirements-cp311-{platform}.txt").read_text()
        assert f"/cu128/torch-2.7.1%2Bcu128-cp311-cp311-manylinux_2_28_{machine}.whl" in text


def test_a_path_in_place_of_the_base_is_refused(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    found = lock(SHOWN["2.6 for CUDA 12.6"][0], tmp_path, f"{replica.url}/cu126")
    assert found.status == 2, found.said
    assert "is the path cu126 of a torch index, not its base" in found.said


def test_nothing_listens_where_nobody_should() -> None:
    """What these tests rest on: the discard port is closed here."""
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", 9)) != 0
