"""The book of torch: made of small releases through the real pip, added to, checked, and killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.almanac.__main__ import main
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.almanac.records import LibraryTables, ManifestWheel, WheelTables
from stackfix.almanac.torch import FilesDisagree, add, check, make
from stackfix.almanac.torch_exports import exports_of, is_wanted
from stackfix.almanac.torch_files import read_table
from stackfix.errors import BadInput, StackfixError
from stackfix.matrix.toml_files import matrix_directory
from tests.almanac_wheels import Releases, needs_gcc, only_from

ROOT = Path(__file__).resolve().parent.parent
ALMANAC = matrix_directory() / "abi"

CHANGED_I, CHANGED_A = "_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEa"
OLD = "_ZN3c105ErrorC1ESs"
NEW = "_ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
KERNEL, MOVED, SHIM = "_ZN2at6native6kernelERKNS_6TensorE", "_ZN2at7Context5movedEv", "aoti_torch_empty"
PATCHED = "_ZN2at7Context7patchedEv"
NOISE = ("_ZN2at6native50_GLOBAL__N__abc_1fEv", "mkl_dgemm", "_ZNSt6vectorIiE4pushEv",
         "_ZN15__nv_hdl_helperI11__nv_dl_tagIPFvRN2at6TensorEEEE")

Libraries = Mapping[str, Sequence[str]]
RELEASES: Mapping[str, Libraries] = {
    "1.13.1": {"libc10.so": (CHANGED_I, OLD), "libtorch_cuda_cu.so": (KERNEL,), "libtorch_cpu.so": (MOVED,)},
    "2.0.0": {"libc10.so": (CHANGED_I, OLD), "libtorch_cuda.so": (KERNEL,), "libtorch_cpu.so": (MOVED, PATCHED)},
    "2.0.1": {"libc10.so": (CHANGED_I, OLD, MOVED), "libtorch_cuda.so": (KERNEL,), "libtorch_cpu.so": (MOVED,)},
    "2.1.0": {"libc10.so": (CHANGED_A, NEW), "libtorch_cuda.so": (KERNEL, *NOISE), "libtorch_cpu.so": (MOVED, SHIM),
              "libtorchbind_test.so": ("_ZN5torch4testEv",)},
}
FILES = {"torch.toml", "core.tsv", "full.tsv.xz", "full.bin", "patches.tsv"}
MADE = {"core.tsv", "full.tsv.xz", "full.bin", "patches.tsv"}


@dataclass(frozen=True, slots=True)
class World:
    """An index of torch releases, their rows, and a folder for what is made of them."""

    folder: Path
    wheels: Mapping[str, ManifestWheel]

    def almanac(self, name: str, *versions: str) -> Path:
        """A folder whose manifest has these releases."""
        place = self.folder / name
        place.mkdir()
        text = render_manifest((), [self.wheels[version] for version in versions])
        (place / "torch.toml").write_text(text)
        return place

    @property
    def store(self) -> Path:
        return self.folder / "store"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Made once: each release takes gcc a moment, and pip a second."""
    folder = tmp_path_factory.mktemp("torch")
    with pytest.MonkeyPatch.context() as patch:
        only_from(folder / "index", patch)
        releases = Releases(folder / "index")
        yield World(folder, {version: releases.torch(version, libraries) for version, libraries in RELEASES.items()})


@pytest.fixture(scope="module")
def whole(index: World) -> Path:
    """The almanac of all releases."""
    place = index.almanac("whole", *RELEASES)
    make(place, index.store)
    return place


def files(folder: Path, among: set[str] = FILES) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found.keys() <= FILES
    return {name: content for name, content in found.items() if name in among}


@needs_gcc
def test_each_name_has_its_minors_and_libraries(whole: Path) -> None:
    book = open_torch_book(whole)
    assert [(each.minor, each.version, each.string_abi, each.patches) for each in book.releases] == [
        ("1.13", "1.13.1", "old", ()), ("2.0", "2.0.1", "old", ("2.0.0",)), ("2.1", "2.1.0", "new", ())]
    assert book.minors(CHANGED_I) == ("1.13", "2.0")
    assert book.minors(CHANGED_A) == ("2.1",)
    assert book.minors(NEW) == book.minors(OLD) == ("1.13", "2.0", "2.1")
    assert book.minors(KERNEL) == ("1.13", "2.0", "2.1")
    assert book.libraries(KERNEL) == ("libtorch_cuda.so", "libtorch_cuda_cu.so")
    assert book.libraries(MOVED) == ("libc10.so", "libtorch_cpu.so")
    for name in (*NOISE, "_ZN5torch4testEv", PATCHED):
        assert book.minors(name) == ()


@needs_gcc
def test_the_readable_part(whole: Path) -> None:
    assert (whole / "core.tsv").read_text().splitlines() == [
        "key\tminors\tlibraries",
        f"{MOVED}\t1.13-\tlibc10.so@2.0 libtorch_cpu.so",
        f"{CHANGED_A}\t2.1-\tlibc10.so",
        f"{CHANGED_I}\t1.13-2.0\tlibc10.so",
        f"{OLD}\t1.13-\tlibc10.so",
        f"{SHIM}\t2.1-\tlibtorch_cpu.so",
    ]
    assert (whole / "patches.tsv").read_text().splitlines() == [
        "version\tchange\tkey\tlibrary",
        f"2.0.0\t+\t{PATCHED}\tlibtorch_cpu.so",
    ]
    kernel = read_table(whole).rows[KERNEL]
    assert kernel == {"libtorch_cuda.so": 0b110, "libtorch_cuda_cu.so": 0b001}


@needs_gcc
def test_a_second_run_gives_the_same_bytes(index: World, whole: Path) -> None:
    again = index.almanac("again", *RELEASES)
    make(again, index.folder / "empty-store")
    assert files(again, MADE) == files(whole, MADE)


@needs_gcc
@pytest.mark.parametrize("new", [["2.1.0"], ["1.13.1"], ["2.0.1"], ["2.0.0"], ["2.0.0", "2.1.0"]])
def test_releases_that_are_added_give_the_bytes_of_a_whole_run(index: World, whole: Path, new: list[str]) -> None:
    """A new minor, one before all others, a newer patch, an older one, two at once."""
    place = index.almanac("-".join(["added", *new]), *(version for version in RELEASES if version not in new))
    make(place, index.store)
    assert files(place, MADE) != files(whole, MADE)
    add(new, place, index.store)
    assert files(place, MADE) == files(whole, MADE)
    assert read_manifest(place / "torch.toml") == read_manifest(whole / "torch.toml")
    check(place)


@needs_gcc
def test_what_must_follow_a_new_release_is_said(index: World, capsys: pytest.CaptureFixture[str]) -> None:
    place = index.almanac("followed", "1.13.1", "2.0.0", "2.0.1")
    make(place, index.store)
    capsys.readouterr()
    assert main(["torch", "--add", "2.1.0", "--directory", str(place), "--store", str(index.store)]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.index("almanac nvidia --make") < last.index("almanac extensions --make")


@needs_gcc
def test_a_new_minor_reads_only_its_own_wheel(index: World, whole: Path) -> None:
    place = index.almanac("only-new", "1.13.1", "2.0.0", "2.0.1")
    make(place, index.store)
    add(["2.1.0"], place, index.folder / "store-of-one")
    assert [path.name for path in (index.folder / "store-of-one").iterdir()] == [
        f"{index.wheels['2.1.0'].sha256}.json.z"]
    assert files(place, MADE) == files(whole, MADE)


@needs_gcc
def test_an_altered_hash_stops_it_and_changes_nothing(index: World, capfd: pytest.CaptureFixture[str]) -> None:
    place = index.almanac("altered", "1.13.1", "2.0.1", "2.1.0")
    make(place, index.store)
    path, wheel = place / "torch.toml", index.wheels["2.0.1"]
    path.write_text(path.read_text().replace(wheel.sha256, "f" * 64))
    before = files(place)
    words = ["torch", "--make", "--store", str(index.store), "--directory", str(place)]
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"{wheel.file}: downloading",
        f"error: {wheel.file}: its sha256 is {wheel.sha256}, not {'f' * 64} as the manifest says",
        "  find out which of the two is right before anything else; nothing was read of the file"]
    assert files(place) == before


@needs_gcc
def test_a_killed_run_goes_on_where_it_was(index: World, whole: Path) -> None:
    place, store = index.almanac("killed", *RELEASES), index.folder / "killed-store"
    words = [sys.executable, "-m", "stackfix.almanac", "torch", "--make", "--store", str(store), "--directory",
             str(place)]
    running = subprocess.Popen(words, cwd=ROOT, env=dict(os.environ))
    kept = set[Path]()
    while not kept and running.poll() is None:
        time.sleep(0.01)
        kept = set(store.glob("*.json.z"))
    running.send_signal(signal.SIGKILL)
    assert running.wait(60) == -signal.SIGKILL
    assert files(place).keys() == {"torch.toml"}
    times = {path: path.stat().st_mtime_ns for path in kept}
    assert 0 < len(times) < len(RELEASES)
    make(place, store)
    assert {path: path.stat().st_mtime_ns for path in kept} == times
    assert files(place, MADE) == files(whole, MADE)
    assert {path.suffix for path in store.iterdir()} == {".z"}


@needs_gcc
@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("torch.toml", b'version = "2.0.0"', None, "full.tsv.xz: the column of 2.0 is of other wheels"),
        ("core.tsv", b"\t2.1-\t", b"\t2.0-\t", "core.tsv: is not that part of full.tsv.xz"),
        ("core.tsv", SHIM.encode(), b"aoti_torch_other", "core.tsv: is not that part of full.tsv.xz"),
        ("full.bin", b'"old"', b'"new"', "full.bin: is not what full.tsv.xz gives"),
        ("patches.tsv", b"\t+\t", b"\t-\t", "its newest patch has it the same way"),
        ("patches.tsv", b"2.0.0\t", b"2.0.9\t", "2.0.9 is no patch of a minor"),
        ("patches.tsv", PATCHED.encode(), OLD.encode(), "its newest patch has it the same way"),
    ],
)
def test_files_that_disagree_are_named(whole: Path, tmp_path: Path, name: str, old: bytes, new: bytes | None,
                                       reason: str) -> None:
    for each, content in files(whole).items():
        (tmp_path / each).write_bytes(content)
    check(tmp_path)
    content = (tmp_path / name).read_bytes()
    assert old in content
    if new is None:     # a whole row of the manifest
        parts = content.split(b"\n\n")
        content = b"\n\n".join(part for part in parts if old not in part)
    (tmp_path / name).write_bytes(content.replace(old, new) if new is not None else content)
    with pytest.raises(FilesDisagree, match=reason.replace(".", r"\.").replace("+", r"\+")):
        check(tmp_path)


@needs_gcc
@pytest.mark.parametrize("name", sorted(FILES))
def test_a_damaged_file_is_one_clear_error(whole: Path, tmp_path: Path, name: str) -> None:
    for each, content in files(whole).items():
        (tmp_path / each).write_bytes(content)
    content = (tmp_path / name).read_bytes()
    for damaged in (None, b"", content[:-7], content[: len(content) // 2], b"\xff" * 40, content.replace(b"\t", b" ")):
        if damaged is None:
            (tmp_path / name).unlink()
        elif damaged == content:
            continue
        else:
            (tmp_path / name).write_bytes(damaged)
        with pytest.raises(StackfixError) as caught:
            check(tmp_path)
        assert name in caught.value.what()
        assert "\n" not in caught.value.what()


@needs_gcc
@pytest.mark.parametrize(
    ("version", "reason"),
    [("2.1.0", "is in torch.toml already"), ("2.2", "no stable release"), ("2.2.0rc1", "no stable release"),
     ("2.2.0+cpu", "no stable release"), ("latest", "no stable release"), ("7.0.0", "pip does not get it")],
)
def test_what_cannot_be_added(index: World, whole: Path, version: str, reason: str) -> None:
    before = files(whole)
    with pytest.raises(StackfixError, match=reason.replace(".", r"\.")):
        add([version], whole, index.store)
    assert files(whole) == before


@needs_gcc
def test_nothing_is_added_to_files_of_other_wheels(index: World, whole: Path, tmp_path: Path) -> None:
    for each, content in files(whole).items():
        (tmp_path / each).write_bytes(content)
    text = render_manifest((), [index.wheels["1.13.1"], index.wheels["2.0.1"]])
    (tmp_path / "torch.toml").write_text(text)
    with pytest.raises(FilesDisagree, match=r"the column of 2\.0 is of other wheels"):
        add(["2.1.0"], tmp_path, index.store)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"package": "torchaudio", "file": "torchaudio-2.3.1-cp311-cp311-any.whl"}, "no stable torch"),
     ({"version": "2.3.1rc1", "file": "torch-2.3.1rc1-cp311-cp311-any.whl"}, "no stable torch"),
     ({"file": "torch-2.3.1-1-cp311-cp311-any.whl", "sha256": "b" * 64}, "a release twice")],
)
def test_a_manifest_of_anything_else_is_refused(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    one = ManifestWheel(package="torch", version="2.3.1", file="torch-2.3.1-cp311-cp311-any.whl", sha256="a" * 64)
    rows = [replace(one, **change), *([one] if "twice" in reason else [])]
    (tmp_path / "torch.toml").write_text(render_manifest((), rows))
    with pytest.raises(BadInput, match=reason):
        make(tmp_path, tmp_path)


def tables(*names: str, path: str = "torch/lib/libc10.so") -> WheelTables:
    row = ManifestWheel(package="torch", version="2.3.1", file="torch-2.3.1-cp311-cp311-any.whl", sha256="a" * 64)
    library = LibraryTables(path=path, soname=None, needed=(), exports=names, wanted=())
    return WheelTables(wheel=row, requires=(), libraries=(library,))


@pytest.mark.parametrize(
    ("names", "reason"),
    [((OLD, NEW), "both kinds of std::string"), ((CHANGED_I,), "no std::string"), ((), "no std::string"),
     ((OLD, "torch_a\tb"), "which no compiler has made"), ((OLD, "torch_\udcff"), "which no compiler has made")],
)
def test_a_wheel_that_gives_no_column(names: tuple[str, ...], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        exports_of(tables(*names))


def test_which_files_of_a_wheel_are_torchs_own() -> None:
    inside = "torch/lib/"
    assert all(is_wanted(inside + name) for name in (
        "libc10.so", "libtorch_cuda_cpp.so", "libshm.so", "libcaffe2_nvrtc.so", "libtorch_nvshmem.so"))
    assert not any(is_wanted(name) for name in (
        f"{inside}libgomp-a34b3233.so.1", f"{inside}libcudart.so.12", "torch/_C.cpython-311-x86_64-linux-gnu.so",
        "nvidia/lib/libtorch.so", f"{inside}libtorch_cpu.txt"))


def test_the_files_of_this_project_agree() -> None:
    check(ALMANAC)


@pytest.mark.real
def test_three_real_releases(tmp_path: Path) -> None:
    """1.6 GB: twice the same bytes, and the very columns that the project has."""
    chosen = [each for each in read_manifest(ALMANAC / "torch.toml") if each.version in {"2.11.0", "2.12.0", "2.12.1"}]
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
        (place / "torch.toml").write_text(render_manifest((), chosen))
        make(place, tmp_path / f"store-of-{place.name}")
    assert files(first) == files(second)
    check(first)
    ours, small = read_table(ALMANAC), read_table(first)
    at = [each.minor for each in ours.releases].index("2.11")
    assert small.releases == ours.releases[at:at + 2]
    cut = {key: {library: mask >> at & 0b11 for library, mask in row.items() if mask >> at & 0b11}
           for key, row in ours.rows.items()}
    assert small.rows == {key: row for key, row in cut.items() if row}
    theirs = [line for line in (ALMANAC / "patches.tsv").read_text().splitlines() if line.startswith("2.12.0\t")]
    assert (first / "patches.tsv").read_text().splitlines()[1:] == theirs
