"""Which package of a channel is which project of the index, and what is only a guess."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stackfix.conda.names import GUESS, NameBook, is_python, project_version
from stackfix.conda.records import CondaRecord
from stackfix.errors import BadInput
from stackfix.matrix.conda_names import load_conda_names
from stackfix.matrix.toml_files import matrix_directory
from tests.conda_shelf import record

PYTHON = ("python >=3.11,<3.12.0a0",)


@pytest.fixture(scope="module")
def book() -> NameBook:
    return NameBook(load_conda_names())


def brought(book: NameBook, *records: CondaRecord, cuda: str = "12.1") -> dict[str, tuple[str | None, bool]]:
    return {one.project: (one.version, one.sure) for one in book.provided(records, cuda)}


def test_what_records_bring(book: NameBook) -> None:
    records = (
        record("pytorch", "2.3.1", depends=PYTHON), record("matplotlib-base", "3.9.0", depends=PYTHON),
        record("new_tool", "0.24.0", depends=("python >=3.8",)),
        record("huggingface_hub", "0.24.0", depends=("python >=3.8",)), record("libnvjitlink", "12.1.105"),
        record("nccl", "2.20.5.1"), record("torchtriton", "2.3.1", depends=PYTHON), record("openssl", "3.3.1"),
    )
    assert brought(book, *records) == {
        "huggingface-hub": ("0.24.0", True), "matplotlib": ("3.9.0", True), "new-tool": ("0.24.0", False),
        "nvidia-nccl-cu12": ("2.20.5", True), "nvidia-nvjitlink-cu12": ("12.1.105", True), "torch": ("2.3.1", True),
        "triton": ("2.3.1", True),
    }


def test_a_program_or_library_of_a_projects_name_is_not_that_project(book: NameBook) -> None:
    records = [record(name, depends=("libgcc >=13",)) for name in ("ninja", "graphviz", "xxhash", "brotli", "some")]
    assert brought(book, *records) == {}
    assert brought(book, record("cmake", depends=PYTHON)) == {}     # none of its metadata, whatever it depends on


@pytest.mark.parametrize(("cuda", "project"), [
    ("11.8", "nvidia-cublas-cu11"), ("12.4", "nvidia-cublas-cu12"), ("13.0", "nvidia-cublas"), ("cpu", None),
])
def test_cuda_libraries_are_the_projects_of_their_major(book: NameBook, cuda: str, project: str | None) -> None:
    assert list(brought(book, record("libcublas", "12.1.0.26"), cuda=cuda)) == ([project] if project else [])


def test_cudnn_keeps_its_suffix_in_cuda_13(book: NameBook) -> None:
    assert list(brought(book, record("libcudnn", "9.18.0.77"), cuda="13.0")) == ["nvidia-cudnn-cu13"]


def test_a_project_is_brought_once_and_by_the_package_that_is_known(book: NameBook) -> None:
    records = (record("fresh", "3.9.0", depends=PYTHON), record("python-fresh", "3.9.0", depends=PYTHON))
    assert brought(book, *records) == {"fresh": ("3.9.0", False), "python-fresh": ("3.9.0", False)}
    both = (record("tzdata", "2024.1", depends=PYTHON), record("python-tzdata", "2024.1", depends=PYTHON))
    (one,) = book.provided(both, "cpu")
    assert (one.record.name, one.sure) == ("python-tzdata", True)


def test_a_version_that_pip_cannot_compare_is_none(book: NameBook) -> None:
    assert brought(book, record("odd", "1.0_x", depends=PYTHON)) == {"odd": (None, False)}
    assert project_version("0.6.3.2", longer=True) == "0.6.3"
    assert project_version("1.2.0alpha1") == "1.2.0a1"


CHANNEL = {
    "pytorch": (record("pytorch", "2.3.1", depends=PYTHON),),
    "build": (record("build", "0.7.0", depends=PYTHON),),
    "python-build": (record("python-build", "1.2.1", depends=PYTHON),),
    "ruamel.yaml": (record("ruamel.yaml", "0.18", depends=PYTHON),),
    "new_tool": (record("new_tool", "1.0", depends=PYTHON),),
    "xxhash": (record("xxhash", "0.8.2"),),
    "ninja": (record("ninja", "1.12"),),
    "matplotlib": (record("matplotlib", "3.9.0", depends=PYTHON),),
    "matplotlib-base": (record("matplotlib-base", "3.9.0", depends=PYTHON),),
    "dask": (record("dask", "2024.8", depends=PYTHON),),
    "dask-core": (record("dask-core", "2024.8", depends=PYTHON),),
    "libnvjitlink": (record("libnvjitlink", "12.1.105"),),
    "unrelated": (record("unrelated", "1.0"),),
}


@pytest.mark.parametrize(("project", "package", "sure"), [
    ("torch", "pytorch", True), ("build", "python-build", True), ("ruamel-yaml", "ruamel.yaml", True),
    ("matplotlib", "matplotlib-base", True), ("dask", "dask", True), ("nvidia-nvjitlink-cu12", "libnvjitlink", True),
    ("New_Tool", "new_tool", False),
])
def test_the_package_of_a_project(book: NameBook, project: str, package: str, *, sure: bool) -> None:
    found = book.choose(project, lambda name: CHANNEL.get(name, ()), "12.1")
    assert found is not None
    assert (found.name, found.sure) == (package, sure)
    assert (found.source == GUESS) is not sure


@pytest.mark.parametrize("project", ["xxhash", "ninja", "unrelated", "absent", "nvidia-nvjitlink"])
def test_no_package_where_no_record_bears_it_out(book: NameBook, project: str) -> None:
    assert book.choose(project, lambda name: CHANNEL.get(name, ()), "12.1") is None


def test_a_noarch_package_is_python() -> None:
    from dataclasses import replace

    assert is_python(replace(record("some"), noarch="python"))
    assert not is_python(replace(record("some"), noarch="generic"))


@pytest.mark.parametrize(("old", "new", "fault"), [
    ('conda = "libcublas"', 'conda = "libcufft"', "libcufft: given twice"),
    ('pip = "nvidia-cublas-cu11', 'pip = "-x nvidia-cublas-cu11', "'-x' is not a project name"),
    ('versions = "longer"', 'versions = "shorter"', "'shorter' is none of same, longer"),
    ('"matplotlib-base matplotlib"', '"matplotlib-base"', "'matplotlib-base' names no project"),
    ('"accelerate",', '"accelerate", "ninja",', "ninja: given twice"),
])
def test_faults_of_the_file_are_named(tmp_path: Path, old: str, new: str, fault: str) -> None:
    folder = Path(shutil.copytree(matrix_directory(), tmp_path / "matrices"))
    file = folder / "conda_names.toml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        load_conda_names(folder)
    assert fault in str(caught.value)
