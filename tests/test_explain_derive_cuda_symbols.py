"""Functions of NVIDIA's libraries: what is told of one is what the almanac's files say, read here by other code."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.callers import callers, pinned
from stackfix.explain.derive.cuda_symbols import cuda_symbol
from stackfix.explain.derive.preloads import preload, torch_lock
from stackfix.explain.rules import read_rules
from stackfix.matrix.toml_files import matrix_directory, parse_toml

FACTS = MatrixFacts(None)
FOLDER = matrix_directory()
DRAWN = 40


def rows(file: str) -> Iterator[list[str]]:
    for line in (FOLDER / "abi" / file).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")


@cache
def carried() -> dict[tuple[str, str], list[str]]:
    """(package, soname) -> versions that carry it, oldest first."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows("nvidia/packages.tsv"):
        if len(row) == 3 and row[2] != "unread":
            for soname in row[2].split():
                found.setdefault((row[0], soname), []).append(row[1])
    return found


@cache
def spans_of(soname: str) -> dict[tuple[str, str], str]:
    """(package, function) -> where it is, as the file writes it; "" for everywhere."""
    found, package = dict[tuple[str, str], str](), ""
    for row in rows(f"nvidia/{soname}.tsv"):
        if row[0].startswith("@ "):
            package = row[0][2:]
        else:
            found[package, row[0]] = row[1] if len(row) > 1 else ""
    return found


def toml(name: str) -> dict[str, Any]:
    return parse_toml(name, (FOLDER / name).read_bytes())


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def drawn(soname: str, package: str, pattern: str) -> list[tuple[str, str]]:
    """(function, span) of some functions with one span, of those that not every version has."""
    every = [(name, span) for (owner, name), span in spans_of(soname).items()
             if owner == package and re.fullmatch(pattern, span)]
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    return random.Random(seed).sample(every, min(DRAWN, len(every)))       # noqa: S311 - no secret


@pytest.mark.parametrize(("soname", "package"), [
    ("libnvJitLink.so.12", "nvidia-nvjitlink-cu12"), ("libcublasLt.so.12", "nvidia-cublas-cu12"),
    ("libcudart.so.12", "nvidia-cuda-runtime-cu12"), ("libcupti.so.12", "nvidia-cuda-cupti-cu12"),
    ("libcusolver.so.11", "nvidia-cusolver-cu12"), ("libcusparse.so.12", "nvidia-cusparse-cu12"),
])
def test_the_release_that_is_named_is_the_first_of_the_almanac(soname: str, package: str) -> None:
    functions = drawn(soname, package, r"[\d.]+-")
    assert functions
    versions = carried()[package, soname]
    for name, span in functions:
        first = span.rstrip("-")
        told = cuda_symbol({"symbol": name, "file": soname}, FACTS)
        if told["package"] != package:      # another CUDA's wheel carries the library, too
            continue
        assert (told["since"], told["lacks"]) == (first, versions[versions.index(first) - 1]), name
        assert f"from {first} on" in told["history"]
        assert "until" not in told


@pytest.mark.parametrize(("soname", "package"), [
    ("libcusolver.so.11", "nvidia-cusolver-cu12"), ("libcublasLt.so.12", "nvidia-cublas-cu12"),
])
def test_a_function_that_was_dropped_is_told_with_its_last_release(soname: str, package: str) -> None:
    functions = drawn(soname, package, r"[\d.]+-[\d.]+")
    assert functions
    versions = carried()[package, soname]
    for name, span in functions:
        first, last = span.split("-")
        told = cuda_symbol({"symbol": name, "file": soname}, FACTS)
        assert told["until"] == last, name
        assert told["gone"] == versions[versions.index(last) + 1]
        assert told.get("since") == (first if first != versions[0] else None)


def test_the_toolkit_is_the_oldest_that_holds_the_release() -> None:
    toolkits = {version: [line.split()[1] for line in lines if line.split()[0] == "nvjitlink"]
                for version, lines in toml("cuda.toml")["toolkit"].items()}
    for name, span in drawn("libnvJitLink.so.12", "nvidia-nvjitlink-cu12", r"[\d.]+-"):
        told = cuda_symbol({"symbol": name, "file": "libnvJitLink.so.12"}, FACTS)
        holding = [toolkit for toolkit, found in toolkits.items() if toolkit.startswith("12.") and found
                   and numbers(found[0]) >= numbers(span)]
        assert told["toolkit"] == ".".join(min(holding, key=numbers).split(".")[:2])


@pytest.mark.parametrize(("symbol", "function"), [
    ("_nvJitLinkGetErrorLogSize_12_9", "__nvJitLinkGetErrorLogSize_12_9"),
    ("nvJitLinkComplete_12_4", "__nvJitLinkComplete_12_4"), ("__nvJitLinkComplete_12_4", "__nvJitLinkComplete_12_4"),
    ("__ncclCommRegister", "ncclCommRegister"),
])
def test_underscores_that_a_report_loses_or_adds_do_not_matter(symbol: str, function: str) -> None:
    assert cuda_symbol({"symbol": symbol}, FACTS)["function"] == function


@pytest.mark.parametrize("symbol", [
    "PyUnicode_New", "sqlite3_open", "_ZN6google8protobuf7MessageC2Ev", "fftw_plan_dft_1d", "cudf_read_csv", "",
    "omp_get", "cuInit", "EVP_md5",
])
def test_functions_of_others_are_not_ours(symbol: str) -> None:
    assert "function" not in cuda_symbol({"symbol": symbol}, FACTS)


def test_a_function_that_nobody_has_read_is_told_by_its_name_alone() -> None:
    told = cuda_symbol({"symbol": "__nvJitLinkNothing_15_3"}, FACTS)
    assert (told["library"], told["symbol_cuda"]) == ("nvJitLink", "15.3")
    assert not {"function", "since", "package", "toolkit"} & told.keys()
    told = cuda_symbol({"symbol": "cufftNothing"}, FACTS)
    assert told["library"] == "cuFFT"
    assert "nvidia-cufft-cu12" in told["projects"]


@pytest.mark.parametrize(("torch", "cuda", "package"), [
    ("2.2.1", "12.1", "nvidia-nccl-cu12"), ("2.15.0", "13.2", "nvidia-nccl-cu13"),
])
def test_the_package_is_that_of_the_torch_which_is_named(torch: str, cuda: str, package: str) -> None:
    named = {"requester": "libtorch_cuda.so", "torch": torch, "cuda": cuda}
    told = cuda_symbol({"symbol": "ncclCommRegister", **named}, FACTS)
    release = next(each for each in toml("torch.toml")["release"] if each["version"] == torch)
    group = next(build["pins"] for build in release["builds"]
                 if build["cuda"] == cuda and build["platform"] == "linux-64" and "index" not in build)
    pin = next(line for line in toml("torch.toml")["pins"][group]["lines"] if line.startswith(f"{package}=="))
    assert (told["package"], told["pinned_by"]) == (package, f"torch {torch}")
    assert pin.split(";")[0].strip() == f"{package}=={told['pin']}"


def test_who_calls_is_what_the_almanac_saw() -> None:
    told = callers({"requester": "/x/nvidia/cusparse/lib/libcusparse.so.12"}, "libnvJitLink.so.12",
                   "__nvJitLinkComplete_12_4", FACTS)
    assert told["consumer"] == "nvidia-cusparse-cu12"
    assert told["consumer_versions"] == "12.3.0.142 and 12.3.1.170"
    needs = {rule["versions"]: rule["needs"] for group in toml("rules.toml")["group"]
             if group["package"] == "nvidia-cusparse-cu12" for rule in group["rules"]}
    assert needs["==12.3.0.142"] == needs["==12.3.1.170"] == "nvidia-nvjitlink-cu12>=12.4.99"
    assert callers({"requester": "libelse.so"}, "libnvJitLink.so.12", "__nvJitLinkComplete_12_4", FACTS) == {}
    assert callers({}, "libnccl.so.2", "ncclCommRegister", FACTS) == {}


def test_pins_are_those_of_torch_minor_by_minor() -> None:
    told = pinned(("nvidia-nccl-cu12",), ("2.2", "2.3"), FACTS)
    releases = [each for each in toml("torch.toml")["release"] if each["version"].startswith(("2.2.", "2.3."))]
    lines = {build["pins"] for release in releases for build in release["builds"]
             if build["platform"] == "linux-64" and "index" not in build}
    wanted = {line.split("==")[1].split()[0] for group in lines for line in toml("torch.toml")["pins"][group]["lines"]
              if line.startswith("nvidia-nccl-cu12==")}
    assert wanted
    assert set(re.findall(r"([\d.]+) \(torch", told)) == wanted


def test_the_torch_that_preloads_is_the_first_whose_row_does() -> None:
    told = preload({"stem": "libnvJitLink", "symbol_cuda": "12.4"}, FACTS)
    assert told["preloads"] == "2.6"
    row = next(row for group in toml("imports.toml")["import"] if group["project"] == "torch"
               for row in group["rows"] if row["versions"].startswith(">=2.6"))
    assert any(step.get("when") == "loaded" and "nvJitLink" in step["preload"] for step in row["steps"])
    assert told["preloading"] == "stackfix lock --torch 2.6.0 --cuda 12.4"
    later = preload({"stem": "libnvJitLink", "symbol_cuda": "13.1"}, FACTS)
    assert " --cuda 13." in later["preloading"], "a torch for the CUDA major of the symbol"
    assert later["wheel_path"].endswith("/nvidia/cu13/lib")
    of_file = preload({"stem": "libnvJitLink", "file": "libnvJitLink.so.13", "site": "/env/site-packages"}, FACTS)
    assert of_file["wheel_path"] == "/env/site-packages/nvidia/cu13/lib"
    assert preload({"stem": "libtorch"}, FACTS) == {}
    assert preload({}, FACTS) == {}


@pytest.mark.parametrize(("fields", "lock"), [
    ({"torch": "2.3.1", "cuda": "12.1", "python": "3.11"}, "stackfix lock --torch 2.3.1 --cuda 12.1 --python 3.11"),
    ({"torch": "2.3.1", "python": "2.7"}, "stackfix lock --torch 2.3.1 --cuda 12.1"),
    ({"torch": "2.3"}, "stackfix lock --torch 2.3.1 --cuda 12.1"),
    ({"torch": "99.0"}, "stackfix lock"),
    ({"torch": "2.3.1", "cuda": "10.2"}, "stackfix lock"),
    ({}, "stackfix lock"),
    ({"caller_lock": "stackfix lock --torch 2.8.0 --cuda 12.8"}, "stackfix lock --torch 2.8.0 --cuda 12.8"),
])
def test_the_lock_is_of_the_torch_that_is_named(fields: dict[str, str], lock: str) -> None:
    assert torch_lock(fields, FACTS) == {"lock": lock}


@pytest.mark.parametrize(("symbol", "file", "unread"), [
    ("nvrtcGetNVVM", "libnvrtc.so.12", True), ("cufftXtExecDescriptorC2C", None, True),
    ("free_gemm_select", "libcublasLt.so.11", False), ("free_gemm_select", "libcublasLt.so.10", True),
    ("cusparseNotThere", None, False),
])
def test_a_library_that_the_almanac_does_not_have_is_told(symbol: str, file: str | None, unread: bool) -> None:
    found = cuda_symbol({"symbol": symbol, **({"file": file} if file else {})}, FACTS)
    stem = (file or {"f": "libcufft", "s": "libcusparse"}[symbol[2]]).partition(".so")[0]
    read = {soname for _, soname in carried()}
    assert unread is not (file in read if file else any(each.startswith(f"{stem}.so") for each in read))
    assert ("unread" in found, "function" in found) == (unread, False)


@cache
def patterns() -> tuple[str, ...]:
    return next(each for each in read_rules() if each.name == "cuda-runtime-symbol").patterns


def claimed(symbol: str) -> bool:
    """Whether the rule for the runtime's functions looks at a name without a version."""
    return any(re.search(pattern, f"libx.so: undefined symbol: {symbol}") for pattern in patterns())


@pytest.mark.parametrize("library", ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13", "libnccl.so.2"])
def test_each_function_of_the_runtime_is_claimed_by_its_name(library: str) -> None:
    lines = (FOLDER / "abi" / "nvidia" / f"{library}.tsv").read_text(encoding="utf-8").splitlines()
    names = {line.split("\t")[0] for line in lines if line.startswith(("cuda", "__cuda", "nccl", "pnccl"))}
    assert names
    assert sorted(each for each in names if not claimed(each)) == []


@pytest.mark.parametrize("symbol", ["cudaFoo_myproject_thing", "cudaBlurV2_impl", "ncclShim_init_v2_x"])
def test_a_name_that_nvidia_would_not_give_is_not_claimed(symbol: str) -> None:
    assert not claimed(symbol)
