"""`stackfix lock` of nightlies, whole, from a loopback replica of the torch index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.judges import torch_index
from tests.judges.lockfile import Entry, read_entries
from tests.replay.releases import ReleaseServer
from tests.replay.store import Store
from tests.replay.torch_index import Row
from tests.replay.torch_nightly import CU128, NIGHTS, Night, NightlyReplica
from tests.variant_locks import NOBODY, Locked, Locker

pytestmark = pytest.mark.recorded

PY311 = ("--python", "3.11", "--no-flash-attn")
OF_SEPTEMBER_2 = ("--torch", "2.9.0.dev20250902", "--cuda", "12.8", *PY311)
BASE = f"{torch_index.BASE}/nightly"
ON_LINUX = '; platform_system == "Linux"'
CU130 = tuple(f"{line}{ON_LINUX}" for line in (     # as torch 2.11.0 requires them
    "cuda-toolkit[cublas,cudart,cufft,cufile,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc,nvtx]==13.0.2",
    "cuda-bindings<14,>=13.0.3", "nvidia-cudnn-cu13==9.19.0.56", "nvidia-cusparselt-cu13==0.8.0",
    "nvidia-nccl-cu13==2.28.9", "nvidia-nvshmem-cu13==3.4.5"))
LINUX = "cp311-cp311-manylinux_2_28_x86_64.whl"


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[NightlyReplica]:
    with NightlyReplica(store) as served:
        yield served


def entries(folder: Path) -> dict[str, Entry]:
    return {entry.name: entry for entry in read_entries(folder / "requirements.txt")}


def notes(found: Locked) -> str:
    return "\n".join(line for line in found.said.splitlines() if line.startswith("note:"))


def offers(found: Locked) -> list[str]:
    """The changes that were offered, as `--torch X in place of Y`."""
    return [line.partition(":")[0].strip() for line in found.said.partition("nearest that work")[2].splitlines()
            if line.startswith("  ") and not line.startswith("    ")]


def test_a_nightly_comes_from_its_path_and_its_libraries_from_the_default_index(
    lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    found = lock((*OF_SEPTEMBER_2, "--with", "torchvision", "--with", "torchaudio"), tmp_path, replica.url)
    assert found.status == 0, found.said
    locked = entries(tmp_path)
    assert str(locked["torch"].url) == f"{BASE}/cu128/torch-2.9.0.dev20250902%2Bcu128-{LINUX}"
    assert str(locked["torchvision"].url) == f"{BASE}/cu128/torchvision-0.24.0.dev20250902%2Bcu128-{LINUX}"
    assert str(locked["torchaudio"].url) == f"{BASE}/cu128/torchaudio-2.8.0.dev20250902%2Bcu128-{LINUX}"
    assert str(locked["pytorch-triton"].url).startswith(f"{BASE}/pytorch_triton-3.4.0%2Bgitf7888497-cp311-cp311-")
    for name, version in CU128.items():
        assert (locked[name].version, locked[name].url) == (version, None)
    assert found.said.splitlines()[2].startswith("torch 2.9.0.dev20250902 (nightly of 2025-09-02) · CUDA 12.8 · cuDNN")
    assert replica.url not in b"".join(found.files.values()).decode()


@pytest.mark.parametrize("words", [
    ("--torch", "==2.9.0.dev20250902", "--cuda", "12.8"),
    ("--torch", "2.9.0.dev20250902+cu128"),
    ("--torch", "nightly-2025-09-02", "--cuda", "12.8"),
    ("--torch", "nightly-20250902", "--cuda", "12"),
    ("--torch", "2.9.0.dev20250902"),                       # CUDA 12.8 is that of the release before
    ("--with", "torch==2.9.0.dev20250902", "--cuda", "12.8"),
    ("--with", "torch==2.9.0.dev20250902+cu128"),
    ("--torch", "nightly-2025-09-02", "--with", "torch>=2.8", "--cuda", "12.8"),
])
def test_an_exact_day_is_asked_for_in_many_ways(
    words: tuple[str, ...], lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    found = lock((*words, *PY311), tmp_path, replica.url)
    assert found.status == 0, found.said
    assert str(entries(tmp_path)["torch"].url) == f"{BASE}/cu128/torch-2.9.0.dev20250902%2Bcu128-{LINUX}"


def test_files_of_the_user_ask_for_one_too(
    lock: Locker, replica: NightlyReplica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements.in").write_text("torch==2.9.0.dev20250902\ntorchvision\n")
    found = lock(("-r", str(tmp_path / "requirements.in"), "--cuda", "12.8", *PY311), tmp_path / "in", replica.url)
    assert found.status == 0, found.said
    assert "torchvision" in entries(tmp_path / "in")
    (tmp_path / "stackfix.toml").write_text(
        '[stacks.train]\ntorch = "nightly-2025-09-02"\ncuda = "12.8"\npython = ["3.11"]\nno-flash-attn = true\n')
    monkeypatch.chdir(tmp_path)
    named = lock((), tmp_path / "keys", replica.url)
    assert named.status == 0, named.said
    assert "torch-2.9.0.dev20250902" in (tmp_path / "keys" / "requirements-train.txt").read_text()


@pytest.mark.parametrize(("asked", "reason"), [
    (("--torch", "nightly"), "--torch nightly: nightlies are locked by their exact date"),
    (("--torch", ">=2.9.0.dev0"), "is a range over nightlies, and only one of an exact date is locked"),
    (("--torch", "~=2.9.0.dev20250902"), "is a range over nightlies"),
    (("--torch", ">=2.9.0.dev20250901,<2.10"), "is a range over nightlies"),
    (("--torch", "2.9.0.dev0"), "2.9.0.dev0 names no day"),
    (("--torch", "2.9.0.dev20250931"), "2.9.0.dev20250931 names no day"),
    (("--torch", "nightly-2025-02-29"), "names no day"),
    (("--torch", "2.9.0.dev20250902+rocm6.4"), "+rocm6.4 is neither a CUDA build nor the CPU's"),
    (("--with", "torch>2.9.0.dev20250901"), "is a range over nightlies"),
    (("--constraint", "torch>=2.9.dev1"), "is a range over nightlies"),
])
def test_what_is_no_exact_day_is_refused_with_how_to_ask(
    asked: tuple[str, str], reason: str, lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    found = lock((*asked, "--cuda", "12.8", *PY311), tmp_path / "lock", replica.url)
    assert found.status == 2, found.said
    assert reason in found.said
    if "rocm" not in reason:
        assert "name its day: --torch nightly-2025-10-15, or the version, such as 2.10.0.dev20251015" in found.said
        assert "the newest for Python 3.11 on linux-64 are 2.9.0.dev20250905, 2.9.0.dev20250904" in found.said
    alone = lock((*asked, "--cuda", "12.8", *PY311), tmp_path / "lock", NOBODY)
    assert alone.status == 2, alone.said
    assert not list((tmp_path / "lock").iterdir())


@pytest.mark.parametrize("torch", [">=2.8,<2.10", "<2.9.0.dev20250902", "2.8", ">=2.8,!=2.9.0.dev20250902"])
def test_nothing_else_ever_chooses_one(torch: str, lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    before = len(replica.requests)
    found = lock(("--torch", torch, *PY311), tmp_path, replica.url)
    assert found.status == 0, found.said
    assert str(entries(tmp_path)["torch"].version).startswith("2.")
    assert replica.requests[before:] == []


@pytest.mark.parametrize("offline", [(), ("--offline",)])
def test_without_the_index_there_are_none(offline: tuple[str, ...], lock: Locker, tmp_path: Path) -> None:
    found = lock((*OF_SEPTEMBER_2, *offline), tmp_path, NOBODY)
    assert found.status == 3, found.said
    assert "of a nightly nothing is known but what the torch index says" in found.said
    assert not list(tmp_path.iterdir())


def test_a_day_that_is_gone_is_refused_with_what_is_left(
    lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    found = lock(("--torch", "2.9.0.dev20250701", "--cuda", "12.8", *PY311), tmp_path, replica.url)
    assert found.status == 1, found.said
    assert "torch 2.9.0.dev20250701 is not on the torch index" in found.said
    assert "left of 2.9.0 for Python 3.11 on linux-64 (cu128) are 8, from 2025-08-29 to 2025-09-05" in found.said
    assert offers(found) == [f"--torch 2.9.0.dev202508{day} in place of 2.9.0.dev20250701" for day in (29, 30, 31)]


def test_of_a_requirement_another_day_is_offered_as_one(
    lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    found = lock(("--with", "torch==2.9.0.dev20250910+cu128", *PY311), tmp_path, replica.url)
    assert found.status == 1, found.said
    assert offers(found)[0] == "torch==2.9.0.dev20250905 in place of --with torch==2.9.0.dev20250910+cu128"


def test_of_another_release_line_what_is_left_is_told(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    found = lock(("--torch", "2.8.0.dev20250615", "--cuda", "12.8", *PY311), tmp_path, replica.url)
    assert found.status == 1, found.said
    assert "left of 2.9.0 for Python 3.11 on linux-64 (cu128) are 8" in found.said
    undated = lock(("--torch", "nightly-2025-06-15", "--cuda", "12.8", *PY311), tmp_path, replica.url)
    assert "no nightly of 2025-06-15 is on the torch index" in undated.said
    assert offers(undated)[0] == "--torch 2.9.0.dev20250829 in place of nightly-2025-06-15"


def test_a_pin_that_nobody_has_is_refused_and_the_days_that_hold_are_offered(
    lock: Locker, store: Store, tmp_path: Path
) -> None:
    lost = {"nvidia-cudnn-cu12": "9.11.9.99"}
    nights = [replace(night, pins=lost) if night.date in {"20250902", "20250903"} else night for night in NIGHTS]
    with NightlyReplica(store, nights=nights) as served:
        found = lock(OF_SEPTEMBER_2, tmp_path, served.url)
    assert found.status == 1, found.said
    assert "torch 2.9.0.dev20250902 requires nvidia-cudnn-cu12==9.11.9.99, which the index has not" in found.said
    assert re.search(r"nearest it has 9\.11\.\S+, 9\.11\.\S+, 9\.12\.\S+, 9\.13", found.said)
    assert "left of 2.9.0 for Python 3.11 on linux-64 (cu128) are 8" in found.said
    # the next day lacks the same, and is passed over
    assert offers(found) == [f"--torch 2.9.0.dev{date} in place of 2.9.0.dev20250902"
                             for date in ("20250901", "20250904", "20250831")]


def test_another_cuda_of_the_same_day_is_offered_where_its_pins_hold(
    lock: Locker, store: Store, tmp_path: Path
) -> None:
    gone = NIGHTS[4]

    def without(row: Row) -> Row | None:
        return None if row.path == "nightly/cu128" and gone.date in row.file else row

    with NightlyReplica(store, alter=without) as served:
        found = lock(OF_SEPTEMBER_2, tmp_path / "asked", served.url)
        assert found.status == 1, found.said
        assert "--cuda 12.6 in place of 12.8" in offers(found)
        free = lock(("--torch", f"2.9.0.dev{gone.date}", *PY311), tmp_path / "free", served.url)
    assert free.status == 0, free.said
    assert "nightly/cu126/torch-2.9.0.dev20250902%2Bcu126" in str(entries(tmp_path / "free")["torch"].url)


def test_a_companion_of_the_night_after_is_taken_where_it_was_built_for_this_torch(
    lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    words = ("--torch", "2.9.0.dev20250904", "--cuda", "12.8", *PY311, "--with", "torchvision")
    found = lock(words, tmp_path, replica.url)
    assert found.status == 0, found.said
    assert "torchvision-0.24.0.dev20250905%2Bcu128" in str(entries(tmp_path)["torchvision"].url)


def test_a_night_without_companion_has_none(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    words = ("--torch", "2.9.0.dev20250831", "--cuda", "12.8", *PY311, "--with", "torchvision")
    before = len(replica.requests)
    found = lock(words, tmp_path, replica.url)
    assert found.status == 1, found.said
    assert "torchvision 0.24.0.dev20250901+cu128 requires torch==2.9.0.dev20250901" in found.said
    assert offers(found)[0] == "--torch 2.9.0.dev20250901 in place of 2.9.0.dev20250831"
    read = {path for path in replica.requests[before:] if "torchvision-" in path and "20250905" in path}
    assert read == set()                                    # no night is read beyond the one that is for a later torch


@pytest.mark.parametrize("requirement", ["torchvision==0.24.0", "xformers"])
def test_what_is_built_for_a_release_is_refused_beside_a_nightly(
    requirement: str, lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    found = lock((*OF_SEPTEMBER_2, "--with", requirement), tmp_path, replica.url)
    assert found.status == 1, found.said
    assert f"--torch 2.9.0.dev20250902 together with --with {requirement}" in found.said
    assert "--torch 2.9 in place of 2.9.0.dev20250902" in offers(found)


def test_xformers_is_taken_where_its_metadata_let_it(lock: Locker, store: Store, tmp_path: Path) -> None:
    nights = [Night(date="20251115", release="2.11.0")]
    with NightlyReplica(store, nights=nights) as served:
        words = ("--torch", "2.11.0.dev20251115", "--cuda", "12.8", *PY311, "--with", "xformers")
        found = lock(words, tmp_path, served.url)
    assert found.status == 0, found.said
    assert entries(tmp_path)["xformers"].version == "0.0.35"
    assert re.search(r"xformers 0\.0\.35 was compiled against some release of torch: whether it loads .* nobody has"
                     r" checked", notes(found))


def test_how_the_libraries_drift_is_told(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    said = notes(lock(OF_SEPTEMBER_2, tmp_path, replica.url))
    assert re.search(r"libraries of torch 2\.9\.0\.dev20250902 against torch [\d.]+, the newest release for CUDA 12\.8"
                     r" in the matrix: cuDNN 9\.10\.2\.21 (in place of [\d.]+|\(the same\)), NCCL 2\.27\.5", said)
    assert ("nightlies around torch 2.9.0.dev20250902: 2025-09-01 has the same libraries; 2025-09-03 has NCCL 2.27.7"
            in said)
    assert "its C++ ABI, the GPUs that it has code for and the release of its CUDA toolkit are not known" in said


def test_flash_attn_is_left_out_and_refused_where_asked(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    words = ("--torch", "2.9.0.dev20250902", "--cuda", "12.8", "--python", "3.12")
    found = lock(words, tmp_path / "free", replica.url)
    assert found.status == 0, found.said
    assert "flash-attn" not in entries(tmp_path / "free")
    assert "flash-attn is left out: its prebuilt wheels are for releases of torch" in notes(found)
    nearest = re.findall(r"the nearest stack that has one is (.+)", notes(found))[0].split(" or ")
    assert len(nearest) == len(set(nearest)) > 0
    asked = lock((*words, "--flash-attn", "2.8.3"), tmp_path / "asked", replica.url)
    assert asked.status == 1, asked.said
    assert "--no-flash-attn in place of --flash-attn" in offers(asked)


def test_json_says_which_night(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    document = json.loads(lock((*OF_SEPTEMBER_2, "--json"), tmp_path, replica.url).said)
    stack = document["stack"]
    assert (stack["torch"], stack["nightly"], stack["cxx11_abi"]) == ("2.9.0.dev20250902", "2025-09-02", None)
    torch = next(one for one in document["targets"][0]["packages"] if one["name"] == "torch")
    assert torch["version"] == "2.9.0.dev20250902+cu128"
    plain = json.loads(lock(("--torch", "2.8", *PY311, "--json"), tmp_path / "plain", replica.url).said)
    assert plain["stack"]["nightly"] is None


def test_the_pins_of_a_release_do_not_steer_a_nightly_nor_the_reverse(
    lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    stable = ("--torch", "2.8", "--cuda", "12.8", *PY311, "--with", "torchvision")
    nightly = (*OF_SEPTEMBER_2, "--with", "torchvision")
    fresh = {"stable": lock(stable, tmp_path / "s", replica.url).files, "nightly": lock(
        nightly, tmp_path / "n", replica.url).files}
    both = tmp_path / "both"
    for words, kind in ((stable, "stable"), (nightly, "nightly"), (stable, "stable")):
        found = lock(words, both, replica.url)
        assert found.status == 0, found.said
        assert found.files == fresh[kind]
    again = lock(("--torch", ">=2.8", *PY311), tmp_path / "n", replica.url)      # a nightly's lock lies there
    assert again.status == 0, again.said
    assert "dev2025" not in str(entries(tmp_path / "n")["torch"].url)


def test_a_lock_holds_until_the_index_changes(lock: Locker, store: Store, tmp_path: Path) -> None:
    with NightlyReplica(store) as served:
        assert lock(OF_SEPTEMBER_2, tmp_path, served.url).status == 0
        held = lock((*OF_SEPTEMBER_2, "--check"), tmp_path, served.url)
        assert held.status == 0, held.said
        text = (tmp_path / "requirements.txt").read_text()
        (tmp_path / "requirements.txt").write_text(text.replace("nvidia-nccl-cu12==2.27.5", "nvidia-nccl-cu12==2.27.7"))
        changed = lock((*OF_SEPTEMBER_2, "--check"), tmp_path, served.url)
    assert changed.status == 1, changed.said
    assert "nvidia-nccl-cu12" in changed.said
    with NightlyReplica(store, nights=NIGHTS[-3:]) as later:
        gone = lock((*OF_SEPTEMBER_2, "--check"), tmp_path, later.url)
    assert gone.status == 1, gone.said
    assert "torch 2.9.0.dev20250902 is not on the torch index" in gone.said


def test_no_file_without_a_hash_and_none_of_another_path(lock: Locker, store: Store, tmp_path: Path) -> None:
    with NightlyReplica(store, hashless=lambda row: row.project == "torch") as served:
        silent = lock(OF_SEPTEMBER_2, tmp_path / "a", served.url)
    assert silent.status == 1, silent.said
    assert "has no wheel for linux-64 with a sha256 on the torch index" in silent.said
    with NightlyReplica(store, alter=lambda row: row if "torch-" not in row.file else replace(
            row, file=row.file.replace("+cu128", "+cu126"))) as mixed:
        other = lock(OF_SEPTEMBER_2, tmp_path / "b", mixed.url)
    assert other.status == 1, other.said


def test_the_base_of_an_index_is_not_its_nightly_path(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    found = lock(OF_SEPTEMBER_2, tmp_path, f"{replica.url}/nightly")
    assert found.status == 2, found.said
    assert "is the path nightly of a torch index, not its base" in found.said


def test_every_platform_takes_the_build_of_its_path(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    places = ("linux-64", "win-64", "osx-arm64", "linux-64-cpu")
    words = (*OF_SEPTEMBER_2, "--with", "torchvision", *(word for place in places for word in ("--platform", place)))
    found = lock(words, tmp_path, replica.url)
    assert found.status == 0, found.said
    torch = {place: str(next(entry.url for entry in read_entries(tmp_path / f"requirements-cp311-{place}.txt")
                             if entry.name == "torch")).removeprefix(f"{BASE}/") for place in places}
    version = "torch-2.9.0.dev20250902"
    assert torch == {
        "linux-64": f"cu128/{version}%2Bcu128-{LINUX}", "win-64": f"cu128/{version}%2Bcu128-cp311-cp311-win_amd64.whl",
        "osx-arm64": f"cpu/{version}-cp311-none-macosx_11_0_arm64.whl", "linux-64-cpu": f"cpu/{version}%2Bcpu-{LINUX}",
    }
    assert "for osx-arm64 is the CPU build, without CUDA" in notes(found)
    alone = lock((*OF_SEPTEMBER_2, "--platform", "osx-arm64"), tmp_path / "mac", replica.url)
    assert alone.status == 1, alone.said
    assert "nothing is built for CUDA there" in alone.said


def test_where_there_are_cpu_builds_alone_they_are_taken_with_a_note(
    lock: Locker, store: Store, tmp_path: Path
) -> None:
    words = ("--torch", "2.9.0.dev20250902", *PY311, "--platform", "linux-aarch64")
    with NightlyReplica(store, hashless=lambda _: False) as served:
        found = lock(words, tmp_path, served.url)
    assert found.status == 0, found.said
    assert "torch 2.9.0.dev20250902 for linux-aarch64 is the CPU build: no other of that day is listed" in notes(found)


def test_the_conda_side_takes_the_wheels(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> None:
    formats = ("--format", "requirements", "--format", "conda-lock")
    found = lock(OF_SEPTEMBER_2, tmp_path, replica.url, formats=formats)
    assert found.status == 0, found.said
    text = (tmp_path / "conda-lock.yml").read_text()
    assert "layout: wheels" in text
    for name in ("torch", "pytorch-triton"):
        assert str(entries(tmp_path)[name].url) in text
    native = lock((*OF_SEPTEMBER_2, "--layout", "native"), tmp_path / "native", replica.url, formats=formats)
    assert native.status == 1, native.said
    assert "torch 2.9.0.dev20250902 has no build for Python 3.11 on linux-64" in native.said


def test_the_nightly_path_among_the_indexes_is_the_torch_index(
    lock: Locker, replica: NightlyReplica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{replica.url}/nightly/cu128"
    beside = lock((*OF_SEPTEMBER_2, "--extra-index-url", path), tmp_path / "extra", replica.url)
    assert beside.status == 0, beside.said
    assert f"{path} (--extra-index-url) is the torch index" in notes(beside)
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.uv.sources]\ntorch = {{ index = "night" }}\n[[tool.uv.index]]\nname = "night"\nurl = "{path}"\n'
        "explicit = true\n")
    pinned = lock(("--torch", "2.9.0.dev20250902", *PY311), tmp_path / "pinned", None)
    assert pinned.status == 0, pinned.said
    assert entries(tmp_path / "pinned")["torch"].url == entries(tmp_path / "extra")["torch"].url
    release = lock(("--torch", "2.8", *PY311), tmp_path / "release", None)
    assert release.status == 0, release.said
    assert entries(tmp_path / "release")["torch"].version == "2.8.0"       # a pin to the path asks for none


def test_a_nightly_of_cuda_13_pins_a_toolkit_and_its_own_triton(lock: Locker, store: Store, tmp_path: Path) -> None:
    nights = [Night(date=date, release="2.12.0", paths=("cu130",), lines=CU130, triton="3.7.0+git9c288bc5",
                    triton_name="triton", pythons=("311",)) for date in ("20260407", "20260408")]
    with NightlyReplica(store, nights=nights) as served:
        found = lock(("--torch", "nightly-2026-04-07", "--cuda", "13.0", *PY311), tmp_path, served.url)
    assert found.status == 0, found.said
    assert "triton-3.7.0%2Bgit9c288bc5-cp311" in str(entries(tmp_path)["triton"].url)
    assert "cuda-toolkit" in entries(tmp_path)
    assert re.search(r"the newest release for CUDA 13\.0 in the matrix: cuDNN .*nvJitLink", notes(found))
    assert "2026-04-08 has the same libraries" in notes(found)


TORCH = f"torch-2.9.0.dev20250902+cu128-{LINUX}"


@pytest.mark.parametrize(("how", "status", "said"), [
    ({"status": 503}, 3, "of a nightly nothing is known but what the torch index says"),
    ({"status": 403}, 3, "of a nightly nothing is known but what the torch index says"),
    ({"metadata": {TORCH: "Metadata-Version: 2.1\nName: torchvision\nVersion: 2.9.0.dev20250902+cu128\n"}}, 3,
     "is about 'torchvision'"),
    ({"metadata": {TORCH: "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0.dev20250903+cu128\n"}}, 3, TORCH),
    ({"links": "http://127.0.0.1:9/copy"}, 3, "of a nightly nothing is known but what the torch index says"),
])
def test_an_index_that_cannot_be_trusted_is_one_error(
    how: dict[str, Any], status: int, said: str, lock: Locker, store: Store, tmp_path: Path
) -> None:
    with NightlyReplica(store, **how) as served:
        found = lock(OF_SEPTEMBER_2, tmp_path, served.url)
    assert found.status == status, found.said
    assert said in found.said
    assert "Traceback" not in found.said
    assert not list(tmp_path.iterdir())


def test_a_login_page_in_its_place_is_an_error(lock: Locker, tmp_path: Path) -> None:
    with ReleaseServer({}, status=200) as portal:
        found = lock(OF_SEPTEMBER_2, tmp_path, portal.url)
    assert found.status == 3, found.said
    assert "page of torch" in found.said


def test_a_night_beside_it_that_cannot_be_read_is_not_told_of(lock: Locker, store: Store, tmp_path: Path) -> None:
    broken = {TORCH.replace("20250902", "20250903"): "Name: torchvision\nVersion: 1\n"}
    with NightlyReplica(store, metadata=broken) as served:
        found = lock(OF_SEPTEMBER_2, tmp_path, served.url)
    assert found.status == 0, found.said
    assert "nightlies around torch 2.9.0.dev20250902: 2025-09-01 has the same libraries\n" in f"{notes(found)}\n"
