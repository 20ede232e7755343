"""The generator of the book of NVIDIA's libraries, over small wheels that gcc and the real pip give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from stackfix.abi.nvidia_book import open_nvidia_book
from stackfix.almanac.extract import extract
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.almanac.nvidia import HEADER, BookDiffers, main
from stackfix.almanac.nvidia_libraries import PACKAGES, family_of, wanted_of
from stackfix.almanac.nvidia_tables import LibraryExports
from stackfix.almanac.records import LibraryTables, ManifestWheel, WantedName, WheelTables
from stackfix.almanac.store import write_kept
from stackfix.almanac.uses import LibraryUses, uses_in
from stackfix.errors import BadInput, Unreachable
from tests.almanac_wheels import needs_gcc, only_from, shared_object, wheel

TAG = "py3-none-manylinux1_x86_64"


class World:
    """A folder that pip reads, and an almanac made of its wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.index, self.abi = folder, folder / "index", folder / "abi"
        (self.abi / "nvidia").mkdir(parents=True)
        self.wheels: list[ManifestWheel] = []
        (self.abi / "nvidia" / "packages.tsv").write_text("nvidia-nccl-cu12\t9.9\tunread\n")
        (self.abi / "uses.tsv").write_text("# head\n")
        (folder / "store").mkdir()

    def provider(self, version: str, names: Sequence[str], *, listed: bool = True) -> None:
        script = "libnvJitLink.so.12 { global: *; };"
        built = shared_object(self.folder / version, "libnvJitLink.so.12", names, script=script)
        self.add(wheel(self.index, "nvidia-nvjitlink-cu12", version, {
            "nvidia/nvjitlink/lib/libnvJitLink.so.12": built, "nvidia/nvjitlink/lib/stubs/libnvJitLink.so": built},
            tags=TAG), listed=listed)

    def consumer(self, version: str, wants: Sequence[str], *, of: str) -> None:
        built = shared_object(self.folder / of, "libcusparse.so.12", [f"cusparse{version[0]}"], wants=wants,
                              needs=["libnvJitLink.so.12"])
        self.add(wheel(self.index, "nvidia-cusparse-cu12", version, {"nvidia/cusparse/lib/libcusparse.so.12": built},
                       tags=TAG), listed=True)

    def add(self, made: ManifestWheel, *, listed: bool) -> None:
        """Into the manifest and, as if it had been read before, into the store; else the index alone has it."""
        if listed:
            self.wheels.append(made)
            write_kept(self.folder / "store", extract(self.index / made.file, made, wanted_of(made.package)))
        (self.abi / "nvidia.toml").write_text(render_manifest(HEADER, self.wheels))

    def call(self, *words: str) -> int:
        return main([*words, "--store", str(self.folder / "store"), "--directory", str(self.abi)])

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.abi.rglob("*")) if path.is_file()}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    only_from(made.index, monkeypatch)
    made.provider("12.0.1", ["link_12_0", "_ZN4link6insideEv"])
    made.provider("12.1.2", ["link_12_0", "link_12_1"])
    made.consumer("1.0", ["link_12_0"], of="12.0.1")
    made.consumer("2.0", ["link_12_0", "link_12_1"], of="12.1.2")
    return made


@needs_gcc
def test_what_is_made_of_wheels_gives_their_floors(world: World) -> None:
    assert world.call("--make") == 0
    book = open_nvidia_book(world.abi)
    assert book.versions("nvidia-nvjitlink-cu12") == ("12.0.1", "12.1.2")
    assert book.unread("nvidia-nccl-cu12") == ("9.9",)
    assert set(book.exported("nvidia-nvjitlink-cu12", "12.0.1", "libnvJitLink.so.12") or ()) == {"link_12_0"}
    floors = [[use.bounds.floor for use in book.uses("nvidia-cusparse-cu12", version)] for version in ("1.0", "2.0")]
    assert floors == [[None], ["12.1.2"]]


@needs_gcc
def test_a_second_run_gives_the_same_bytes_and_check_agrees(world: World) -> None:
    world.call("--make")
    first = world.files()
    (world.abi / "nvidia" / "libgone.so.1.tsv").write_text("of a library that no wheel has\n")
    world.call("--make")
    assert world.files() == first
    assert world.call("--check") == 0


@needs_gcc
def test_check_names_what_differs(world: World) -> None:
    world.call("--make")
    file = world.abi / "nvidia" / "libnvJitLink.so.12.tsv"
    file.write_text(file.read_text() + "link_made_up\n")
    (world.abi / "nvidia" / "libgone.so.1.tsv").write_text("\n")
    with pytest.raises(BookDiffers) as caught:
        world.call("--check")
    assert caught.value.lines == [
        "nvidia/libgone.so.1.tsv", *(f"nvidia/libnvJitLink.so.12.tsv: nvidia-nvjitlink-cu12 {each}"
                                     for each in ("12.0.1", "12.1.2"))]
    assert caught.value.exit_status == 1


@needs_gcc
@pytest.mark.parametrize(("name", "before", "after", "says"), [
    ("uses.tsv", "link_12_1\t2.0-\n", "link_12_1\n", "uses.tsv: nvidia-cusparse-cu12 1.0"),
    ("nvidia/packages.tsv", "12.0.1\tlibnvJitLink.so.12\n", "12.0.1\tunread\n",
     "nvidia/packages.tsv: nvidia-nvjitlink-cu12 12.0.1 is in it or in the manifests, not in both"),
    ("nvidia/packages.tsv", "\n", "\n# more\n", "nvidia/packages.tsv"),
])
def test_check_finds_what_is_not_so(world: World, name: str, before: str, after: str, says: str) -> None:
    world.call("--make")
    text = (world.abi / name).read_text()
    assert before in text
    (world.abi / name).write_text(text.replace(before, after, 1))
    with pytest.raises(BookDiffers) as caught:
        world.call("--check")
    assert says in caught.value.lines


@needs_gcc
@pytest.mark.parametrize("call", [("--check",), ("--add", "nvidia-nvjitlink-cu12==12.2.0"), ("--published",)])
def test_another_hash_in_the_manifest_is_found_without_a_wheel(world: World, call: tuple[str, ...]) -> None:
    world.call("--make")
    first = world.wheels[0]
    text = (world.abi / "nvidia.toml").read_text()
    (world.abi / "nvidia.toml").write_text(text.replace(first.sha256, "0" * 64))
    before = world.files()
    with pytest.raises(BookDiffers) as caught:
        world.call(*call)
    assert any("nvidia.toml is not the manifest that nvidia/packages.tsv was made of" in line
               for line in caught.value.lines)
    assert world.files() == before


@needs_gcc
def test_check_downloads_nothing_and_says_what_it_did_not_compare(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:
    world.call("--make")
    assert world.call("--check") == 0
    assert capfd.readouterr().err == ""
    kept = sorted((world.folder / "store").iterdir())
    kept[0].unlink()
    monkeypatch.setattr("stackfix.almanac.store.download", None)
    assert world.call("--check") == 0
    assert "with 3 of 4 wheels" in capfd.readouterr().err
    assert sorted((world.folder / "store").iterdir()) == kept[1:]


@needs_gcc
def test_adding_wheels_gives_what_making_all_anew_gives(world: World) -> None:
    world.call("--make")
    world.provider("12.1.10", ["link_12_0", "link_12_1", "link_more"], listed=False)
    world.provider("12.0.9", ["link_12_0"], listed=False)
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in (world.folder / "store").iterdir()}
    assert world.call("--add", "nvidia-nvjitlink-cu12==12.1.10", "nvidia-nvjitlink-cu12==12.0.9") == 0
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in before} == before
    added = world.files()
    assert len(read_manifest(world.abi / "nvidia.toml")) == 6
    assert world.call("--make") == 0
    assert world.files() == added
    assert open_nvidia_book(world.abi).since("libnvJitLink.so.12", "link_more")[0].first == "12.1.10"


@needs_gcc
def test_what_is_published_and_was_not_read_is_listed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.call("--make")
    world.provider("12.1.10", ["link_12_0"], listed=False)
    wheel(world.index, "nvidia-nvjitlink-cu12", "0.0.1.dev5", {"nvidia/x": b""}, tags=TAG)      # a placeholder
    monkeypatch.setattr("stackfix.almanac.nvidia.PACKAGES", ("nvidia-nvjitlink-cu12",))
    before = world.files()
    assert world.call("--published") == 0
    assert open_nvidia_book(world.abi).unread("nvidia-nvjitlink-cu12") == ("12.1.10",)
    assert {name for name, content in world.files().items() if before[name] != content} == {"packages.tsv"}
    assert world.call("--check") == 0
    monkeypatch.setattr("stackfix.almanac.nvidia.PACKAGES", ("nvidia-nccl-cu12",))
    with pytest.raises(Unreachable, match="nvidia-nccl-cu12"):
        world.call("--published")


@needs_gcc
def test_a_wrong_hash_stops_everything(world: World) -> None:
    world.call("--make")
    before = world.files()
    text = (world.abi / "nvidia.toml").read_text()
    sha = world.wheels[-1].sha256
    (world.abi / "nvidia.toml").write_text(text.replace(sha, sha[::-1]))
    with pytest.raises(BadInput, match="sha256"):
        world.call("--make")
    assert {name: content for name, content in world.files().items() if name != "nvidia.toml"} == {
        name: content for name, content in before.items() if name != "nvidia.toml"}


def test_a_package_that_is_not_read_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.abi / "nvidia.toml").write_text(render_manifest(HEADER, ()))
    with pytest.raises(BadInput, match="is no package that the almanac of NVIDIA's libraries reads"):
        world.call("--add", "numpy==2.0")


@pytest.mark.parametrize(("package", "path", "read"), [
    ("nvidia-cublas-cu12", "nvidia/cublas/lib/libcublasLt.so.12", True),
    ("nvidia-cublas", "nvidia/cu13/lib/libcublas.so.13", True),
    ("nvidia-cudnn-cu12", "nvidia/cudnn/lib/libcudnn_graph.so.9", True),
    ("nvidia-cudnn-cu12", "nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9", False),
    ("nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime/lib/libcudart.so.12", True),
    ("nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime/lib/stubs/libcudart.so.12", False),
    ("nvidia-cuda-cupti-cu12", "nvidia/cuda_cupti/lib/libnvperf_host.so", False),
])
def test_the_libraries_that_others_are_linked_against_are_read(package: str, path: str, *, read: bool) -> None:
    assert wanted_of(package)(path) is read


def test_every_package_has_a_family() -> None:
    assert {family_of(package) for package in PACKAGES} >= {"cublas", "cudnn", "nccl", "cuda-runtime"}


def tables(package: str, version: str, *libraries: LibraryTables) -> WheelTables:
    row = ManifestWheel(package=package, version=version, file=f"{package}-{version}.whl", sha256="0" * 64)
    return WheelTables(wheel=row, requires=(), libraries=libraries)


def library(soname: str, exports: str = "", *, wants: Sequence[WantedName] = (), needs: str = "") -> LibraryTables:
    return LibraryTables(path=f"lib/{soname}", soname=soname, needed=tuple(needs.split()),
                         exports=tuple(sorted(exports.split())), wanted=tuple(wants))


def wants(name: str, file: str | None = None, *, weak: bool = False) -> WantedName:
    return WantedName(name=name, version=file, file=file, weak=weak)


EXPORTS: Mapping[str, frozenset[str]] = {
    "libcublas.so.12": frozenset({"cublasCreate"}), "libnccl.so.2": frozenset({"ncclSend", "pncclSend"}),
    "libcusparseLt.so.0": frozenset({"cusparseLtInit"}),
}


def test_a_symbol_is_whose_its_version_names_or_whose_exports_have_it() -> None:
    torch = library("libtorch_cuda.so", "own", needs="libcublas.so.12 libnccl.so.2", wants=[
        wants("cublasCreate", "libcublas.so.12"), wants("cublasNewer", "libcublas.so.12"),
        wants("cublasWeak", "libcublas.so.12", weak=True), wants("memcpy", "libc.so.6"),
        wants("ncclSend"), wants("ncclFuture"), wants("ncclfoo"), wants("own"), wants("_ZN1x1yEv"),
        wants("cusparseLtInit"),        # of a library that it does not need: somebody else's
    ])
    assert set(uses_in(tables("torch", "2.9", torch), EXPORTS)) == {
        ("libtorch_cuda.so", "libcublas.so.12", "cublasCreate"),
        ("libtorch_cuda.so", "libcublas.so.12", "cublasNewer"),
        ("libtorch_cuda.so", "libnccl.so.2", "ncclSend"),
        ("libtorch_cuda.so", "libnccl.so.2", "ncclFuture"),
    }


def test_what_a_library_of_the_same_wheel_gives_is_no_use_of_another_wheel() -> None:
    inside = library("libnccl.so.2", "ncclSend")
    torch = library("libtorch_cuda.so", needs="libnccl.so.2", wants=[wants("ncclSend"), wants("x", "libnccl.so.2")])
    assert list(uses_in(tables("torch", "1.13", inside, torch), EXPORTS)) == []


def test_a_consumer_that_wants_nothing_is_listed_with_its_versions() -> None:
    uses = LibraryUses(EXPORTS)
    uses.add(tables("nvidia-cudnn-cu12", "9.1", library("libcudnn.so.9", "cudnnCreate")))
    assert uses.text().decode().endswith("= nvidia-cudnn-cu12\t9.1\n")


def test_a_wheel_without_a_library_and_a_second_one_of_a_version_are_refused() -> None:
    exports = LibraryExports()
    exports.add(tables("nvidia-nccl-cu12", "2.1", library("libnccl.so.2", "ncclSend")))
    with pytest.raises(BadInput, match=r"a second wheel of nvidia-nccl-cu12 2\.1"):
        exports.add(tables("nvidia-nccl-cu12", "2.1", library("libnccl.so.2", "ncclSend")))
    with pytest.raises(BadInput, match="has none of the libraries"):
        exports.add(tables("nvidia-nccl-cu12", "2.2"))
