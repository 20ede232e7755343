"""The bundled book of NVIDIA's libraries: whole, read in part where it says so, and with the floors that are known."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stackfix.abi.nvidia_book import AlmanacOfNvidia, open_nvidia_book
from stackfix.abi.records import Bounds
from stackfix.almanac.manifest import read_manifest
from stackfix.almanac.nvidia_files import differing, digest_of, read_exports, read_unread, read_uses
from stackfix.almanac.nvidia_libraries import PACKAGES
from stackfix.matrix.toml_files import matrix_directory

ABI = matrix_directory() / "abi"
MOST_BYTES = 900_000        # in the wheel the almanac shares 3 MB, which deflate brings to a third


@cache
def bundled() -> AlmanacOfNvidia:
    return open_nvidia_book()


def bounds(consumer: str, version: str, soname: str, package: str) -> Bounds:
    """Over all libraries of the consumer together."""
    names = {name for _, wanted, names in bundled().wants(consumer, version) if wanted == soname for name in names}
    found, = (each for each in bundled().bounds(soname, names) if each.package == package)
    return found


def test_every_file_can_be_read_and_is_written_as_the_generator_writes_it() -> None:
    exports = read_exports(ABI)
    digest = digest_of(read_manifest(ABI / "nvidia.toml"))
    assert differing(ABI, exports, read_uses(ABI, exports), read_unread(ABI), digest) == ()


def test_what_was_read_is_what_the_manifest_lists() -> None:
    read = {(package, version) for package in PACKAGES for version in bundled().versions(package)}
    assert {(each.package, each.version) for each in read_manifest(ABI / "nvidia.toml")} == read
    assert len(read) > 390


def test_the_files_are_small() -> None:
    sizes = [path.stat().st_size for path in [*Path(ABI / "nvidia").glob("*.tsv"), ABI / "uses.tsv"]]
    assert sum(sizes) < MOST_BYTES


def test_no_name_is_internal_or_of_the_linker() -> None:
    book = bundled()
    names = {name for package in PACKAGES for version in book.versions(package) for soname in book.sonames
             for name in book.exported(package, version, soname) or ()}
    assert len(names) > 3000
    assert [name for name in names if name.startswith(("_Z", "sm")) or name == "_end"] == []


@pytest.mark.parametrize(("consumer", "version", "soname", "package", "floor", "not_enough", "why"), [
    # cuSPARSE carries the number of its nvJitLink in the names that it calls
    ("nvidia-cusparse-cu12", "12.0.0.76", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12", None, None, None),
    ("nvidia-cusparse-cu12", "12.1.0.106", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12", "12.1.55", "12.0.140",
     "__nvJitLinkAddData_12_1"),
    ("nvidia-cusparse-cu12", "12.1.3.153", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12", "12.3.52", "12.2.140",
     "__nvJitLinkAddData_12_3"),
    ("nvidia-cusparse-cu12", "12.5.8.93", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12", "12.8.61", "12.6.85",
     "__nvJitLinkAddData_12_8"),
    ("nvidia-cusparse-cu12", "12.5.10.65", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12", "12.9.41", "12.8.93",
     "__nvJitLinkAddData_12_9"),
    ("nvidia-cusolver-cu12", "11.7.3.90", "libcublas.so.12", "nvidia-cublas-cu12", None, None, None),
    ("nvidia-cusolver-cu12", "11.7.4.40", "libcublas.so.12", "nvidia-cublas-cu12", "12.9.0.13", "12.8.5.5",
     "cublasSetEnvironmentMode"),
    ("nvidia-cusolver-cu12", "11.7.5.82", "libcublas.so.12", "nvidia-cublas-cu12", "12.9.0.13", "12.8.5.5",
     "cublasSetEnvironmentMode"),
    ("torch", "2.1.2", "libnccl.so.2", "nvidia-nccl-cu12", None, None, None),
    ("torch", "2.3.1", "libnccl.so.2", "nvidia-nccl-cu12", "2.19.3", "2.18.3", "ncclCommRegister"),
    ("torch", "2.7.1", "libnccl.so.2", "nvidia-nccl-cu12", "2.23.4", "2.22.3", "ncclCommInitRankScalable"),
    ("torch", "2.8.0", "libnccl.so.2", "nvidia-nccl-cu12", "2.27.3", "2.26.5", "ncclCommWindowRegister"),
    ("torch", "2.11.0", "libnccl.so.2", "nvidia-nccl-cu12", "2.28.3", "2.27.7", "ncclAlltoAll"),
    ("torch", "2.12.1", "libnccl.so.2", "nvidia-nccl-cu13", "2.29.7", "2.29.3", "ncclCommMemStats"),
    ("torch", "2.8.0", "libcusolver.so.11", "nvidia-cusolver-cu12", "11.7.1.2", "11.6.4.69", "cusolverDnXsyevBatched"),
    ("torch", "2.8.0", "libcudart.so.12", "nvidia-cuda-runtime-cu12", "12.5.39", "12.4.127",
     "cudaGetDriverEntryPointByVersion"),
    ("torch", "2.7.1", "libcupti.so.12", "nvidia-cuda-cupti-cu12", "12.5.39", "12.4.127",
     "cuptiActivityEnableDriverApi"),
])
def test_floors_that_are_known(consumer: str, version: str, soname: str, package: str, floor: str | None,
                               not_enough: str | None, why: str | None) -> None:
    found = bounds(consumer, version, soname, package)
    assert (found.floor, found.not_enough, found.unknown) == (floor, not_enough, ())
    assert why is None or why in found.low


@pytest.mark.parametrize(("soname", "package", "name", "last", "gone"), [
    ("libcublasLt.so.12", "nvidia-cublas-cu12", "cublasLtE4m3E4m3Fp32Bf16Bf16Matmul", "12.6.0.22", "12.6.1.4"),
    ("libcusolver.so.11", "nvidia-cusolver-cu12", "cusolverDnSorgqrHost", "11.4.5.107", "11.5.0.53"),
    ("libcusolver.so.11", "nvidia-cusolver-cu12", "cusolverDnSgehd2", "11.5.4.101", "11.6.0.99"),
])
def test_a_newer_version_may_have_dropped_a_function(soname: str, package: str, name: str, last: str,
                                                     gone: str) -> None:
    found, = (each for each in bundled().since(soname, name) if each.package == package)
    assert (found.last, found.absent_after) == (last, gone)


def test_another_soname_ends_what_a_package_can_give() -> None:
    """torch 2.0 is linked against libcupti.so.11.7, which the next release of that package calls libcupti.so.11.8."""
    found = bounds("torch", "2.0.1", "libcupti.so.11.7", "nvidia-cuda-cupti-cu11")
    assert (found.versions, found.ceiling, found.gone_in) == (("11.7.101",), "11.7.101", "11.8.87")


@pytest.mark.parametrize(("soname", "name", "consumer", "file", "first", "last"), [
    ("libnvJitLink.so.12", "__nvJitLinkComplete_12_4", "nvidia-cusparse-cu12", "libcusparse.so.12", "12.3.0.142",
     "12.3.1.170"),
    ("libnccl.so.2", "ncclCommRegister", "torch", "libtorch_cuda.so", "2.2.0", None),
    ("libcublas.so.12", "cublasSetEnvironmentMode", "nvidia-cusolver-cu12", "libcusolver.so.11", "11.7.4.40", None),
])
def test_who_asks_for_a_function(soname: str, name: str, consumer: str, file: str, first: str,
                                 last: str | None) -> None:
    found, = (each for each in bundled().asking(soname, name) if (each.consumer, each.file) == (consumer, file))
    assert found.versions[0] == first
    assert last is None or found.versions[-1] == last
    for version in bundled().consumer_versions(consumer):
        assert (version in found.versions) == any(
            name in names for asker, wanted, names in bundled().wants(consumer, version)
            if (asker, wanted) == (file, soname))
    assert bundled().asking(soname, "noSuchFunction") == ()
    assert soname in bundled().sonames
