"""Loading what is known of libraries and imports: every fault at once and with its place, and quickly."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from stackfix.diagnose.releases import admits
from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.libraries import FILES, load_libraries
from stackfix.matrix.library_records import ImportLoads, Libraries, LibraryFamily, OpenedByName
from stackfix.matrix.load import load_matrix
from stackfix.matrix.toml_files import MAX_BYTES, matrix_directory

Replace = tuple[str, str]

FAULTS: dict[str, tuple[str, Replace, tuple[str, ...]]] = {
    "unknown key in a family": (
        "libraries.toml", ('name = "nvJitLink"', 'name = "nvJitLink"\ncolour = "red"'),
        ("family nvJitLink", "unknown key 'colour'"),
    ),
    "unknown level": (
        "libraries.toml", ('level = "cudnn"', 'level = "gpu"'), ("family cuDNN, level", "'gpu' is none of"),
    ),
    "no stems": ("libraries.toml", ('stems = "libnvJitLink"\n', ""), ("family nvJitLink", "no stems")),
    "a stem of two families": (
        "libraries.toml", ('stems = "libnvJitLink"', 'stems = "libcudart"'),
        ("family nvJitLink", "libcudart belongs to another family too"),
    ),
    "no flag": (
        "libraries.toml", ("one_per_process = true", 'one_per_process = "yes"'), ("'yes' is neither true nor false",),
    ),
    "unknown source": ("libraries.toml", ('source = "gnu"', 'source = "rumour"'), ("'rumour' is not in [sources]",)),
    "bad range": (
        "libraries.toml", ('versions = ">=9.22"', 'versions = "9.22"'),
        ("opened libcudnn.so.9, rows", "'9.22' is not a version specifier"),
    ),
    "unknown time": (
        "libraries.toml", ('library = "libcufile.so.0"\nsource = "strings"\nrows = [\n    { names',
                           'library = "libcufile.so.0"\nsource = "strings"\nrows = [\n    { when = "soon", names'),
        ("opened libcufile.so.0", "'soon' is none of load, first use"),
    ),
    "no reason": ("libraries.toml", ('why = "linear algebra"', 'way = "x"'), ("no why", "unknown key 'way'")),
    "unknown time of a step": (
        "imports.toml", ('when = "failed"', 'when = "never"'), ("import torch", "'never' is none of always, failed"),
    ),
    "unknown preload": (
        "imports.toml", ('{ preload = "torch 2.5.1"', '{ preload = "torch 9"'),
        ("import torch", "no [[preload]] is called 'torch 9'"),
    ),
    "a preload twice": (
        "imports.toml", ('name = "torch 2.5.1"', 'name = "torch 2.5.0"'), ("preload torch 2.5.0", "given twice"),
    ),
    "given where it has no meaning": (
        "imports.toml", ('when = "failed" },', 'when = "failed", given = "*" },'), ("given", "loaded"),
    ),
    "no file": ("imports.toml", ('{ file = "ctranslate2/_ext.*.so"', '{ fil = "x"'), ("no file", "unknown key 'fil'")),
    "no TOML": ("imports.toml", ("[sources]", "[sources"), ("not TOML",)),
    "a project name that is none": (
        "imports.toml", ('project = "numpy"', 'project = "num py"'), ("'num py' is not a project name",),
    ),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the matrix that may be spoilt."""
    return Path(shutil.copytree(matrix_directory(), tmp_path / "matrices"))


@pytest.fixture(scope="module")
def libraries() -> Libraries:
    return load_libraries()


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text("utf-8")
    after = change(before)
    assert after != before, f"nothing to change in {path.name}"
    path.write_text(after, "utf-8")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_place(name: str, copy: Path) -> None:
    file, (old, new), expected = FAULTS[name]
    edit(copy / file, lambda text: text.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        load_libraries(copy)
    assert caught.value.thing == str(copy / file)
    for part in expected:
        assert part in caught.value.reason


def test_all_faults_of_a_file_are_told_together(copy: Path) -> None:
    def spoil(text: str) -> str:
        return text.replace('level = "cudnn"', 'level = "gpu"').replace('stems = "libnvJitLink"\n', "")

    edit(copy / "libraries.toml", spoil)
    with pytest.raises(BadInput) as caught:
        load_libraries(copy)
    assert "family nvJitLink" in caught.value.reason
    assert "family cuDNN" in caught.value.reason


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_absent_or_too_large_is_refused(file: str, copy: Path) -> None:
    (copy / file).write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(BadInput, match="larger than"):
        load_libraries(copy)
    (copy / file).unlink()
    with pytest.raises(BadInput, match="cannot be read") as caught:
        load_libraries(copy)
    assert all(name in (caught.value.hint or "") for name in FILES)


def test_a_changed_row_changes_the_answer(copy: Path) -> None:
    edit(copy / "libraries.toml", lambda text: text.replace("libnvrtc-builtins.so.12.1", "libnvrtc-builtins.so.12.x"))
    names = {name for row in load_libraries(copy).opened for name in row.names}
    assert "libnvrtc-builtins.so.12.x" in names
    assert "libnvrtc-builtins.so.12.1" not in names


def test_loading_imports_neither_packaging_nor_the_rest_of_the_matrix() -> None:
    code = ("import sys; from stackfix.matrix.libraries import load_libraries; load_libraries(); "
            "print([each for each in sys.modules if each == 'packaging' or each.startswith('stackfix.matrix.')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "packaging" not in done.stdout
    assert "parse_" not in done.stdout
    assert "stackfix.matrix.libraries" in done.stdout


def test_every_row_has_a_source_and_a_confidence(libraries: Libraries) -> None:
    rows: tuple[LibraryFamily | OpenedByName | ImportLoads, ...] = (
        *libraries.families, *libraries.opened, *libraries.imports)
    assert len(rows) > 90
    for row in rows:
        assert row.source.strip()
        assert row.confidence in {"certain", "high", "medium", "low"}


def test_libraries_that_are_opened_belong_to_a_family(libraries: Libraries) -> None:
    """A finding about them names the wheel to install, and its level."""
    stems = {stem for family in libraries.families for stem in family.stems}
    opened = {name.partition(".so")[0] for row in libraries.opened for name in row.names}
    assert opened - stems == {"libibverbs"}


def import_of(libraries: Libraries, project: str, version: str) -> ImportLoads:
    """The row for a release, as the simulation takes it."""
    return next(row for row in libraries.imports
                if row.project == project and (row.versions is None or admits(row.versions, version)))


def test_every_torch_of_the_matrix_has_exactly_one_row(libraries: Libraries) -> None:
    for version in query.torch_releases(load_matrix()):
        rows = [row for row in libraries.imports if row.project == "torch" and row.versions
                and admits(row.versions, version)]
        assert len(rows) == 1, version


# What torch/__init__.py of the release does before it imports torch._C: (when, library) in order
ORDER = {
    "1.13.0": [],
    "1.13.1": ["failed cublas", "failed cudnn"],
    "2.3.1": [f"failed {each}" for each in ("cublas", "cudnn", "nvrtc", "cudart", "cupti", "cufft", "curand",
                                            "cusolver", "cusparse", "nccl", "nvToolsExt")],
    "2.5.1": [f"failed {each}" for each in ("cublas", "cudnn", "nvrtc", "cudart", "cupti", "cufft", "curand",
                                            "nvJitLink", "cusparse", "cusolver", "nccl", "nvToolsExt")],
    "2.6.0": ["loaded nvrtc", "loaded nvJitLink",
              *(f"failed {each}" for each in ("cublas", "cudnn", "nvrtc", "cudart", "cupti", "cufft", "curand",
                                              "nvJitLink", "cusparse", "cusparseLt", "cusolver", "nccl",
                                              "nvToolsExt"))],
    "2.9.1": ["loaded nvrtc", "loaded nvrtc-builtins", "loaded nvJitLink",
              *(f"failed {each}" for each in ("cublas", "cudnn", "nvrtc", "cudart", "cupti", "cufft", "curand",
                                              "nvJitLink", "cusparse", "cusparseLt", "cusolver", "nccl",
                                              "nvshmem_host", "cufile", "nvToolsExt"))],
    "2.11.0": [f"{when} {each}" for when in ("loaded", "failed")
               for each in ("cublasLt", "cublas", "cudnn", "nvrtc", "nvrtc-builtins", "cudart", "cupti", "cufft",
                            "curand", "nvJitLink", "cusparse", "cusparseLt", "cusolver", "nccl", "nvshmem_host",
                            "cufile", "nvToolsExt")],
}


@pytest.mark.parametrize("version", ORDER)
def test_torch_preloads_in_the_order_of_its_release(version: str, libraries: Libraries) -> None:
    steps = import_of(libraries, "torch", version).steps
    assert (steps[0].file, steps[0].to_global) == ("torch/lib/libtorch_global_deps.so", True)
    assert (steps[-1].file, steps[-1].to_global) == ("torch/_C.*.so", False)
    preloads = [f"{each.when} {each.file.rpartition('/')[2].partition('.so')[0].removeprefix('lib')}"
                for each in steps[1:-1]]
    if ORDER[version]:
        assert preloads.pop() == "failed torch_global_deps"
    assert preloads == ORDER[version]


def test_from_torch_2_14_a_wheel_that_is_absent_does_not_end_the_preloads(libraries: Libraries) -> None:
    def skips(version: str) -> set[bool]:
        return {each.skip for each in import_of(libraries, "torch", version).steps
                if each.when == "loaded" and "nvtx" not in each.file}

    assert (skips("2.13.0"), skips("2.14.1")) == ({False}, {True})


def test_a_preload_is_looked_for_in_the_layouts_of_both_cuda_majors(libraries: Libraries) -> None:
    step = next(each for each in import_of(libraries, "torch", "2.11.0").steps if "libcublasLt" in each.file)
    assert (step.file, *step.also) == (
        "nvidia/cublas/lib/libcublasLt.so.*[0-9]", "nvidia/cu{cuda}/lib/libcublasLt.so.*[0-9]",
        "cublas/lib/libcublasLt.so.*[0-9]")


@pytest.mark.parametrize(("version", "sublibraries"), [
    ("8.9.2.26", 6), ("9.1.0.70", 7), ("9.20.0.48", 8), ("9.28.0.42", 9)])
def test_cudnn_opens_the_sublibraries_of_its_version(version: str, sublibraries: int, libraries: Libraries) -> None:
    major = version.partition(".")[0]
    names = list(itertools.chain.from_iterable(
        row.names for row in libraries.opened
        if any(fnmatchcase(f"{caller}.so.{major}", row.library) for caller in ("libcudnn", "libcudnn_graph"))
        and (row.versions is None or admits(row.versions, version))))
    assert len({name for name in names if name.startswith("libcudnn_")}) == sublibraries
