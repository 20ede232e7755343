"""The nearest release of an extension for a torch, and of torch for an extension."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stackfix.abi.nearest import TorchThere, nearest_extension, nearest_torch
from stackfix.abi.records import JudgedWheel, Nearest, PatchException, TorchRange
from stackfix.diagnose.releases import admits
from stackfix.matrix.records import Companion, FlashAttnWheel, TorchBuild


def judged(version: str, *torch: str, string: str | None = None, cuda: tuple[int, ...] = (12,),
           python: str = "cp311-cp311") -> JudgedWheel:
    return JudgedWheel(package="xformers", version=version, sha256="0" * 64, torch=torch, string_abi=string, cuda=cuda,
                       file=f"xformers-{version}-{python}-manylinux_2_28_x86_64.whl", declares=None, disproved=())


def companion(version: str, torch: str | None, *, cuda: str | None = None, same: str = "minor") -> Companion:
    return Companion(package="xformers", version=version, torch=torch, cuda=cuda, same_cuda=same, requires=(),
                     source="test", confidence="certain")


def flash(version: str, torch: str, *, new: bool, cuda: str = "cu122", python: str = "3.11") -> FlashAttnWheel:
    digits = "cp" + python.replace(".", "")
    return FlashAttnWheel(
        file=f"flash_attn-{version}+{cuda}torch{torch}cxx11abi{str(new).upper()}-{digits}-{digits}-linux_x86_64.whl",
        version=version, cuda_tag=cuda, torch_minor=torch, cxx11_abi=new, python=python, platform="linux-64",
        sha256=None, basis="listed", source="test", confidence="high")


def build(version: str, *, cuda: str = "12.1", index: str = "default", new: bool | None = None,
          pythons: tuple[str, ...] = ("3.10", "3.11"), platform: str = "linux-64") -> TorchBuild:
    return TorchBuild(version=version, platform=platform, cuda=cuda, index=index, pythons=pythons, cxx11_abi=new,
                      gpu_archs=(), requires=(), toolkit=None, cudnn=None, nccl=None, glibc="2.17", source="test",
                      confidence="certain")


def span(*minors: str, string: str | None = None, index: tuple[str, ...] | None = None, patches: tuple[str, ...] = (),
         lacking: tuple[str, ...] = (), cuda: bool = True) -> TorchRange:
    return TorchRange(
        asked=9, minors=minors, known=minors, string_abi=string, floor=(), ceiling=(),
        index_minors=minors if index is None else index, unknown=(), cuda_torch=cuda, patches=patches,
        exceptions=tuple(PatchException(version=each, key="_ZN2at1fEv", exported=False) for each in lacking))


def extension(torch: TorchThere, now: str, *rows: JudgedWheel | Companion | FlashAttnWheel,
              package: str = "xformers") -> str | None:
    found = nearest_extension(
        package, now, torch, judged=[each for each in rows if isinstance(each, JudgedWheel)],
        companions=[each for each in rows if isinstance(each, Companion)],
        flash=[each for each in rows if isinstance(each, FlashAttnWheel)])
    return found.version if found else None


HERE = TorchThere(release="2.3.1", string_abi="old", cuda=12, python="3.11")


@pytest.mark.parametrize(("now", "rows", "nearest"), [
    ("0.0.30", (judged("0.0.25", "2.2"), judged("0.0.26", "2.3"), judged("0.0.27", "2.3", "2.4"),
                judged("0.0.30", "2.6")), "0.0.27"),
    ("0.0.24", (judged("0.0.24", "2.2"), judged("0.0.26", "2.3"), judged("0.0.27", "2.3")), "0.0.26"),
    ("0.0.26", (judged("0.0.25", "2.3"), judged("0.0.26", "2.2"), judged("0.0.27", "2.3")), "0.0.27"),     # the newer
    ("0.0.26", (judged("0.0.25", "2.2"), judged("0.0.26", "2.6")), None),
    ("0.0.26", (judged("0.0.27", "2.3", string="new"), judged("0.0.28", "2.3", string="old")), "0.0.28"),
    ("0.0.26", (judged("0.0.27", "2.3", cuda=(11,)), judged("0.0.28", "2.3", cuda=())), "0.0.28"),
    # symbols that were read go before what is declared
    ("0.0.28", (companion("0.0.26", "==2.3.1"), companion("0.0.27", "==2.3.1"), judged("0.0.27", "2.4")), "0.0.26"),
    ("0.0.28", (companion("0.0.26.post1", ">=2.3,<2.4"), companion("0.0.9", "==2.3.1")), "0.0.26.post1"),
    ("0.0.28", (companion("0.0.27", "==2.3.0"), companion("0.0.26", None), companion("0.0.25", "no specifier")), None),
    ("0.0.28", (companion("0.0.27", "==2.3.1", cuda="11.8"), companion("0.0.26", "==2.3.1", cuda="12.1")), "0.0.26"),
    ("0.0.28", (companion("0.0.27", "==2.3.1", cuda="11.8", same="any"),), "0.0.27"),
    ("0.0.28", (), None),
    ("not a version", (judged("0.0.27", "2.3"),), None),
])
def test_of_an_extension(now: str, rows: tuple[JudgedWheel | Companion, ...], nearest: str | None) -> None:
    assert extension(HERE, now, *rows) == nearest


def test_what_is_not_known_of_torch_leaves_nothing_out() -> None:
    torch = TorchThere(release="2.3.1")
    assert extension(torch, "0.0.26", judged("0.0.27", "2.3", string="new", cuda=(11,))) == "0.0.27"


def test_other_packages_rows_do_not_count() -> None:
    assert extension(HERE, "0.0.26", judged("0.0.27", "2.3"), package="torchvision") is None


def test_a_wheel_is_named_only_for_its_python() -> None:
    rows = [judged("0.0.27", "2.3", python="cp310-cp310")]
    assert nearest_extension("xformers", "0.0.26", HERE, judged=rows) == Nearest(
        package="xformers", version="0.0.27", build=None, basis="symbols")
    for python in ("cp311-cp311", "cp39-abi3", "py3-none"):
        found = nearest_extension("xformers", "0.0.26", HERE, judged=[judged("0.0.27", "2.3", python=python)])
        assert found is not None
        assert found.build == f"xformers-0.0.27-{python}-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(("torch", "file"), [
    (HERE, "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    (TorchThere(release="2.3.1", string_abi="new", cuda=12, python="3.11"),
     "flash_attn-2.5.8+cu122torch2.3cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"),
    (TorchThere(release="2.3.0", string_abi="old", cuda=11, python="3.11"),
     "flash_attn-2.5.8+cu118torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    (TorchThere(release="2.4.0", string_abi="old", cuda=12, python="3.11"),
     "flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    (TorchThere(release="2.4.0", string_abi="old", cuda=12, python="3.12"), None),
])
def test_of_flash_attn(torch: TorchThere, file: str | None) -> None:
    """The same release first: only its wheel was the wrong one."""
    rows = (flash("2.5.8", "2.3", new=False), flash("2.5.8", "2.3", new=True),
            flash("2.5.8", "2.3", new=False, cuda="cu118"), flash("2.5.9", "2.3", new=False),
            flash("2.6.3", "2.4", new=False, cuda="cu123"))
    found = nearest_extension("flash-attn", "2.5.8+cu122torch2.2cxx11abifalse", torch, flash=rows)
    assert (found.build if found else None) == file


@pytest.mark.parametrize(("range_", "now", "nearest"), [
    (span("2.3", "2.4"), "2.6.0", "2.4.1"),                 # the newest patch of the nearest minor
    (span("2.3"), "2.1.2", "2.3.1"),
    (span("2.3", lacking=("2.3.1",)), "2.6.0", "2.3.0"),    # that lacks a name
    (span(patches=("2.4.0",)), "2.4.1", "2.4.0"),           # the newest lacks a name
    (span("2.9"), "2.6.0", None),
    (span(), "2.6.0", None),
    (span("2.3", "2.6", string="new", index=()), "2.4.1", "2.6.0"),     # of the other index
])
def test_of_torch(range_: TorchRange, now: str, nearest: str | None) -> None:
    builds = [build("2.3.0"), build("2.3.1"), build("2.4.0"), build("2.4.1"), build("2.6.0", cuda="12.4", new=False),
              build("2.6.0", cuda="12.6", index="cu126", new=True), build("2.9.0", platform="linux-aarch64")]
    found = nearest_torch(range_, now, builds)
    assert (found.version if found else None) == nearest
    assert found is None or found.build == ("cu126" if range_.string_abi == "new" else None)


@pytest.mark.parametrize(("required", "now", "nearest"), [
    ("==2.4.0", "2.3.1", "2.4.0"), ("==2.3.0", "2.4.1", "2.3.0"), (">=2.3", "2.6.0", "2.4.1"),
    ("<2.4", "2.6.0", "2.3.1"),         # the nearer one would be refused
    ("==2.9.0", "2.6.0", "2.4.1"),      # all are refused: what the symbols say
])
def test_a_release_that_its_metadata_admit_goes_first(required: str, now: str, nearest: str) -> None:
    builds = [build(each) for each in ("2.3.0", "2.3.1", "2.4.0", "2.4.1", "2.6.0")]
    found = nearest_torch(span("2.3", "2.4"), now, builds, declared=lambda version: admits(required, version))
    assert found is not None
    assert found.version == nearest


def test_a_build_of_the_default_index_goes_before_a_nearer_one() -> None:
    """No other index is locked."""
    builds = [build("2.6.0", cuda="12.4", new=False), build("2.6.0", cuda="12.6", index="cu126", new=True),
              build("2.7.1", new=True)]
    found = nearest_torch(span("2.6", "2.7", string="new"), "2.6.0", builds)
    assert found == Nearest(package="torch", version="2.7.1", build=None, basis="symbols")


def test_a_patch_that_alone_fits_has_the_string_of_its_wheel() -> None:
    builds = [build("2.4.0"), build("2.4.1")]
    assert nearest_torch(span(patches=("2.4.0",), string="old", index=()), "2.3.1", builds) is None
    own = replace(span(patches=("2.4.0",), string="old", index=()), index_patches=("2.4.0",))
    found = nearest_torch(own, "2.3.1", builds)
    assert found is not None
    assert found.version == "2.4.0"


def test_wheels_of_another_processor_do_not_count() -> None:
    rows = [judged("0.0.27", "2.3"),
            replace(judged("0.0.28", "2.3"), file="xformers-0.0.28-cp311-cp311-linux_aarch64.whl"),
            replace(judged("0.0.29", "2.3"), file="xformers-0.0.29-py3-none-any.whl")]
    assert extension(replace(HERE, platform="linux-aarch64"), "0.0.26", *rows) == "0.0.28"
    assert extension(HERE, "0.0.29", *rows[:2]) == "0.0.27"
    assert extension(HERE, "0.0.30", *rows) == "0.0.29"


def test_a_wheel_that_excludes_the_torch_is_not_named() -> None:
    """Its symbols would do; installers and locks go by its metadata."""
    rows = [replace(judged(version, "2.3"), declares=declares)
            for version, declares in (("0.0.27", "==2.3.0"), ("0.0.28", "==2.3.1+x"), ("0.0.26", "nonsense"))]
    assert extension(HERE, "0.0.26", *rows) == "0.0.28"


@pytest.mark.parametrize(("cuda", "python", "nearest"), [
    ((), None, ("2.4.1", None)),
    ((11,), None, ("2.4.1", "cu118")),
    ((12,), "3.12", ("2.3.1", None)),
    ((13,), None, None),
    ((11, 12), "3.11", ("2.4.1", None)), ((11,), "3.12", None),
])
def test_cuda_and_python_of_torch(cuda: tuple[int, ...], python: str | None,
                                  nearest: tuple[str, str | None] | None) -> None:
    builds = [build("2.3.1", pythons=("3.12",)), build("2.4.1"), build("2.4.1", cuda="11.8", index="cu118"),
              build("2.4.1", cuda="cpu", index="cpu")]
    found = nearest_torch(span("2.3", "2.4"), "2.6.0", builds, cuda=cuda, python=python)
    assert ((found.version, found.build) if found else None) == nearest


def test_a_cpu_torch_is_for_those_that_ask_nothing_of_cuda() -> None:
    builds = [build("2.4.1", cuda="cpu", index="cpu")]
    assert nearest_torch(span("2.4"), "2.6.0", builds) is None
    found = nearest_torch(span("2.4", cuda=False), "2.6.0", builds)
    assert found is not None
    assert found.build == "cpu"
