"""What a name and metadata say of a package, against what its symbols say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stackfix.abi.fit_claims import claims
from stackfix.abi.host import Claim
from stackfix.abi.records import (
    AbiFacts,
    BookRelease,
    Compiled,
    PatchException,
    TorchRange,
)
from stackfix.abi.torch_required import torch_required
from stackfix.diagnose.releases import admits

MINORS = ("2.2", "2.3", "2.4", "2.5")
NAME = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


class Minors:
    """A book of which only the releases are asked."""

    releases = tuple(BookRelease(minor=each, version=f"{each}.1", file="f", sha256="0" * 64, string_abi="old",
                                 patches=(f"{each}.0",)) for each in MINORS)

    def minors(self, name: str) -> tuple[str, ...]:
        raise AssertionError(name)

    def libraries(self, name: str) -> tuple[str, ...]:
        raise AssertionError(name)

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        return ()


def facts(minors: Sequence[str] = ("2.3", "2.4"), string_abi: str | None = "old", *, file_name: str | None = None,
          version: str = "1.0", requires: tuple[str, ...] = (), cuda: tuple[int, ...] = (), tags: tuple[str, ...] = (),
          glibc: str | None = None, machine: tuple[str, ...] = ("x86_64",), python: tuple[str, ...] = (),
          floor: str | None = None) -> AbiFacts:
    torch = TorchRange(asked=5, minors=tuple(minors), string_abi=string_abi, index_minors=(), floor=(), ceiling=(),
                       unknown=(), exceptions=(), cuda_torch=False)
    subject = Compiled(name="ext", version=version, origin="wheel", source="x", tags=tags, requires=requires,
                       file_name=file_name, files=(), unreadable=())
    return AbiFacts(subject=subject, torch=torch, cuda=cuda, cudnn=(), python=python, python_floor=floor,
                    machine=machine, glibc=glibc, libstdcxx=(), gpu=None, calls=(), library_bounds=(), standard=())


def judged(found: AbiFacts) -> tuple[Claim, ...]:
    return claims(found, Minors(), admits)


def test_a_name_that_holds_is_said_to_hold() -> None:
    found = judged(facts(file_name=NAME, cuda=(12,)))
    assert {(each.text, each.holds) for each in found} == {("torch2.3", True), ("cxx11abiFALSE", True), ("cu122", True)}


def test_a_name_that_lies_is_told_first() -> None:
    found = judged(facts(("2.4",), "new", file_name=NAME, cuda=(11,)))
    assert [(each.source, each.text, each.says, each.found) for each in found if not each.holds] == [
        ("file name", "torch2.3", "torch 2.3", "torch 2.4"),
        ("file name", "cxx11abiFALSE", "the old std::string", "the new std::string"),
        ("file name", "cu122", "CUDA 12", "CUDA 11")]
    assert [each.holds for each in judged(facts(("2.4",), "old", file_name=NAME))] == [False, True]


@pytest.mark.parametrize(("version", "texts"), [
    ("2.1.2+pt23cu121", {"pt23", "cu121"}), ("0.0.27+cu118", {"cu118"}), ("2.8.3+cu12torch2.4cxx11abiTRUE",
                                                                         {"torch2.4", "cxx11abiTRUE", "cu12"}),
    ("1.0+gcu12", set()), ("1.0", set()), ("1.0+cpu", set()),
])
def test_local_versions_are_understood(version: str, texts: set[str]) -> None:
    assert {each.text for each in judged(facts(version=version, cuda=(12,)))} == texts


def test_what_the_version_says_is_not_repeated_for_the_file() -> None:
    found = judged(facts(version="2.5.8+cu122torch2.3cxx11abiFALSE", file_name=NAME, cuda=(12,)))
    assert {each.source for each in found} == {"version"}
    other = judged(facts(version="2.5.8+cu118torch2.3cxx11abiFALSE", file_name=NAME, cuda=(12,)))
    assert {(each.source, each.text, each.holds) for each in other} >= {("version", "cu118", False),
                                                                     ("file name", "cu122", True)}


@pytest.mark.parametrize(("line", "lost"), [
    ("torch>=2.3,<2.5", ()), ("torch >= 2.2", ("2.2", "2.5")), ("torch (==2.3.0)", ()), ("torch==2.5.1", ("2.5",)),
    ("Torch~=2.3 ; python_version > '3.8'", ("2.5",)), ("torch!=2.2.*,!=2.5.*", ()), ("torch==2.4.*", ()),
    ("torch[opt-einsum]>=2.3", ("2.5",)), ("torch[] >= 2.3 ; extra != 'x'", ("2.5",)),
])
def test_each_minor_that_the_metadata_admit_should_load(line: str, lost: tuple[str, ...]) -> None:
    [claim] = judged(facts(requires=("numpy", line), python=("cp311",)))
    assert (claim.source, claim.minors, claim.holds) == ("metadata", lost, not lost)


@pytest.mark.parametrize("line", ["torch", "torchvision==9", "torch>=9 ; extra == 'all'", "torch==9.9", "torch @ file:///x",
                                  "pytorch>=9", "torch>=x.y", "torch===nonsense", "",
                                  "torch>=2.2" + " " * 100_000 + "x",
                                  "torch>=2.2 ; extra == 'all' and python_version > '3'",
                                  "torch>=2.2 ; " + "(" * 10_000])
def test_what_says_nothing_of_a_release_that_was_read_is_no_claim(line: str) -> None:
    assert judged(facts(requires=(line,))) == ()


@pytest.mark.parametrize(("lines", "text", "lost"), [
    (("torch==2.2.1 ; python_version < '3.8'", "torch==2.3.1 ; python_version >= '3.8'"), "torch==2.3.1", ()),
    (("torch==2.2.1 ; sys_platform == 'darwin'", "torch<2.4"), "torch<2.4", ("2.2",)),
    (("torch==2.2.1 ; platform_machine == 'aarch64'", "torch==2.3.1 ; platform_machine == 'x86_64'"),
     "torch==2.3.1", ()),
    (("torch>=2.3", "numpy", "torch<2.5"), "torch>=2.3,<2.5", ()),       # each alone admits what cannot load it
    (("torch>=2.3", "torch>=2.5 ; extra == 'new'"), "torch>=2.3", ("2.5",)),
])
def test_lines_are_judged_together_as_far_as_they_apply(lines: tuple[str, ...], text: str,
                                                        lost: tuple[str, ...]) -> None:
    [claim] = judged(facts(requires=lines, python=("cp311",)))
    assert (claim.text, claim.minors) == (text, lost)


@pytest.mark.parametrize(("marker", "python"), [
    ("platform_release >= '5'", ("cp311",)), ("python_version >= '3.10'", ()), ("python_version >= '3.10'", ("abi3",)),
    ("python_full_version >= '3.11.4'", ("cp311",)), ("nonsense == '1'", ("cp311",)), ("=", ("cp311",)),
])
def test_a_marker_that_nobody_can_tell_leaves_no_claim(marker: str, python: tuple[str, ...]) -> None:
    assert judged(facts(requires=("torch==2.2.1", f"torch>=2.3 ; {marker}"), python=python)) == ()


def test_markers_of_abi3_are_judged_from_its_oldest_python_on() -> None:
    [claim] = judged(facts(requires=("torch>=2.3 ; python_version >= '3.10'",), python=("abi3",), floor="3.10"))
    assert claim.minors == ("2.5",)


def test_a_python_that_is_known_decides_for_one_that_is_for_many() -> None:
    lines = ("torch==2.2.1 ; python_version < '3.10'", "torch==2.3.1 ; python_version >= '3.10'")
    assert torch_required(lines, (), None, ("x86_64",)) is None
    assert torch_required(lines, (), None, ("x86_64",), "3.11") == "==2.3.1"
    assert torch_required(("torch", "numpy>=2"), (), None, ("x86_64",)) == ""


@pytest.mark.parametrize(("line", "minors", "lost"), [
    ("torch==2.4.0", (), ""), ("torch==2.4.1", ("2.4",), "2.4"), ("torch~=2.4.0", (), ""),
    ("torch==2.3.0", ("2.3",), "2.3.0"), ("torch==2.3.1", (), ""), ("torch==2.3.*", (), ""),
    ("torch>=2.3,!=2.4.1", ("2.5",), "2.5"), ("torch<2.3.1", ("2.2", "2.3"), "2.2, 2.3.0"),
])
def test_claims_are_judged_patch_by_patch(line: str, minors: tuple[str, ...], lost: str) -> None:
    """It can load with all of 2.3 but 2.3.0, and of 2.4 with 2.4.0 alone."""
    found = facts(("2.3",), requires=(line,))
    assert found.torch is not None
    torch = replace(found.torch, patches=("2.4.0",),
                    exceptions=(PatchException(version="2.3.0", key="_ZN2at1fEv", exported=False),))
    [claim] = judged(replace(found, torch=torch))
    assert (claim.minors, claim.lost, claim.holds) == (minors, lost, not minors)
    assert claim.found == "torch 2.3, 2.4.0 but not 2.3.0"


def test_a_name_may_mean_the_one_patch_that_loads_it() -> None:
    found = facts((), version="1.0+pt24cu121")
    assert found.torch is not None
    [claim] = judged(replace(found, torch=replace(found.torch, patches=("2.4.0",))))
    assert (claim.says, claim.found, claim.holds) == ("torch 2.4", "torch 2.4.0 alone", True)


def test_symbols_that_no_release_has_disprove_every_claim_of_torch() -> None:
    found = facts((), file_name=NAME, requires=("torch>=2.3",))
    assert [(each.text, each.holds) for each in judged(found)][:2] == [("torch2.3", False), ("torch>=2.3", False)]
    assert {each.found for each in judged(found)[:2]} == {"no release of torch that is known"}


@pytest.mark.parametrize(("platform", "glibc", "holds"), [
    ("manylinux_2_28_x86_64", "2.28", True), ("manylinux_2_17_x86_64", "2.28", False),
    ("manylinux2014_x86_64", "2.17", True), ("manylinux2014_x86_64", "2.18", False),
    ("manylinux1_x86_64", "2.14", False), ("manylinux_2_28_x86_64.manylinux_2_17_x86_64", "2.28", False),
    ("manylinux_2_17_x86_64.manylinux2014_x86_64", "2.9", True),
])
def test_the_glibc_of_a_tag_is_held_against_that_of_the_symbols(platform: str, glibc: str, *, holds: bool) -> None:
    found = judged(facts(tags=(f"cp311-cp311-{platform}",), glibc=glibc))
    assert [each.holds for each in found if each.says.startswith("glibc")] == [holds]


@pytest.mark.parametrize(("tag", "machine", "holds"), [
    ("linux_aarch64", "x86_64", [False]), ("linux_x86_64", "x86_64", [True]), ("manylinux2014_i686", "i386", [True]),
    ("any", "x86_64", []), ("linux_x86_64", "EM_999", []),
])
def test_the_processor_of_a_tag(tag: str, machine: str, holds: list[bool]) -> None:
    found = judged(facts(tags=(f"py3-none-{tag}",), machine=(machine,)))
    assert [each.holds for each in found] == holds


def test_a_package_that_asks_nothing_of_torch_disproves_nothing() -> None:
    found = replace(facts(file_name=NAME, requires=("torch>=2.2",)), torch=None)
    assert judged(found) == ()
