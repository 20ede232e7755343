"""What pip brings beside packages of channels: nothing twice, and what they have is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.conda.builds import as_torch_build, torch_builds
from stackfix.conda.flash import flash_plan
from stackfix.conda.names import NameBook, Provided
from stackfix.conda.pip_part import bounds_of, pip_packages, pip_part
from stackfix.conda.records import CondaRecord
from stackfix.matrix.conda_names import load_conda_names
from stackfix.matrix.records import TorchBuild
from stackfix.resolve import closure
from stackfix.resolve.clash import Clash
from stackfix.resolve.clash_links import clash_causes
from stackfix.resolve.closure import Closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.question import parse_request
from stackfix.resolve.records import LockedPackage, StackRequest, Target
from tests.conda_shelf import record
from tests.resolve_world import MATRIX, FakeIndex, FakeReleases, Release, asked, evidence, projects, wheel_tags
from tests.symbol_books import books, judged_wheel

PYTHON = ("python >=3.10,<3.11.0a0",)
TARGET = Target(python="3.10", platform="linux-64", glibc="2.28")
BOOK = NameBook(load_conda_names())


def python_record(name: str, version: str) -> CondaRecord:
    return record(name, version, depends=PYTHON)


TORCH = record("pytorch", "2.3.1", "cuda120_py310hf6aebf0_300",
               depends=("cuda-version >=12.0,<13", "cudnn >=8.9.7.29,<9.0a0", *PYTHON))
OLD_TORCH = record("pytorch", "2.3.1", "py3.10_cuda12.1_cudnn8.9.2_0", depends=("pytorch-cuda >=12.1,<12.2", *PYTHON))
BESIDE = (TORCH, python_record("numpy", "1.26"), python_record("filelock", "3.0"), record("libnvjitlink", "12.4.127"),
          record("libcusparse", "12.3.1.170"))


def build_of(torch: CondaRecord) -> TorchBuild:
    (found,) = torch_builds([torch])
    return as_torch_build(found, MATRIX)


class Part:
    """The pip part of one request beside these records."""

    def __init__(
        self, request: StackRequest, *records: CondaRecord, index: FakeIndex | None = None, flash: str | None = None,
        sources: Evidence | None = None,
    ) -> None:
        self.evidence = sources or evidence(index)
        self.question = parse_request(request)
        self.build = build_of(next(one for one in records if one.name == "pytorch"))
        self.provided: tuple[Provided, ...] = BOOK.provided(records, self.build.cuda)
        source = FlashAttn(self.evidence)
        self.plan: FlashPlan | None = flash_plan(source, self.build, TARGET, flash) if flash else None
        self.found = pip_part(
            self.evidence, self.question, self.build, TARGET, provided=self.provided, plan=self.plan, flash=source,
            preferred=None,
        )

    @property
    def closure(self) -> Closure:
        assert isinstance(self.found, Closure), list(clash_causes(self.found))
        return self.found

    @property
    def clash(self) -> Clash:
        assert isinstance(self.found, Clash)
        return self.found

    @property
    def packages(self) -> dict[str, LockedPackage]:
        found = pip_packages(
            self.evidence, self.question, TARGET, self.closure, provided=self.provided, plan=self.plan)
        return {package.name: package for package in found}


def test_what_the_channels_have_is_not_brought_again() -> None:
    part = Part(asked("transformers==4.40"), *BESIDE)
    assert {name: one.version for name, one in part.packages.items()} == {"transformers": "4.40", "tokenizers": "0.19"}
    assert part.closure.chosen["numpy"].version.public == "1.26"
    assert part.packages["transformers"].requested_by == ("--with transformers==4.40",)


def test_with_nothing_beside_torch_the_rest_is_pips() -> None:
    assert set(Part(asked("transformers==4.40"), TORCH).packages) == {"transformers", "tokenizers", "numpy"}


def test_torch_of_the_channel_needs_nothing_of_pip() -> None:
    assert Part(asked(), TORCH).packages == {}


def beside(plain: Part, before: Part) -> Closure | Clash:
    """The pip part of one request with the closure of another as the pip lock."""
    return pip_part(
        plain.evidence, plain.question, plain.build, TARGET, provided=plain.provided, plan=plain.plan,
        flash=FlashAttn(plain.evidence), preferred=before.closure,
    )


def test_what_was_asked_for_has_the_release_of_the_pip_lock() -> None:
    plain = Part(asked("numpy"), TORCH)
    assert plain.packages["numpy"].version == "2.1"
    found = beside(plain, Part(asked("numpy<2.1"), TORCH))
    assert isinstance(found, Closure)
    assert str(found.chosen["numpy"].version) == "2.0"
    clash = beside(Part(asked("numpy", constraints=("numpy>2",)), TORCH), Part(asked("numpy<2"), TORCH))
    assert isinstance(clash, Clash)
    assert any("numpy 1.26 is the release of the pip lock" in cause.text for cause in clash_causes(clash))


def test_other_pins_of_the_pip_lock_are_preferred_while_they_fit() -> None:
    index = FakeIndex({**projects(), "needy": {"1.0": Release(requires=("numpy",))}})
    before = Part(asked("needy", constraints=("numpy<2.1",)), TORCH, index=index)
    found = beside(Part(asked("needy"), TORCH, index=index), before)
    assert isinstance(found, Closure)
    assert str(found.chosen["numpy"].version) == "2.0"
    limited = beside(Part(asked("needy", constraints=("numpy>2",)), TORCH, index=index), before)
    assert isinstance(limited, Closure)
    assert str(limited.chosen["numpy"].version) == "2.1"


def test_a_clash_with_what_the_channels_have_becomes_a_bound_on_them() -> None:
    part = Part(asked("transformers==4.40"), TORCH, python_record("numpy", "2.1"))
    (bound,) = bounds_of(part.clash)
    assert (bound.text, bound.origin) == ("numpy <2a0", "transformers 4.40, which pip brings")
    told = [cause.text for cause in clash_causes(part.clash)]
    assert "transformers 4.40 requires numpy<2" in told
    assert any("numpy 2.1 is what numpy of the channels brings" in text for text in told)


def test_the_first_way_out_that_channels_can_go_is_taken() -> None:
    """The newest tool wants a numpy that no channel has, the one before it wants one that they have."""
    index = FakeIndex({**projects(), "needy": {"1.0": Release(requires=("tool",))}, "tool": {
        "2.0": Release(requires=("numpy>=2.1",)), "1.0": Release(requires=("numpy<2",))}})
    clash = Part(asked("needy"), TORCH, python_record("numpy", "2.0"), index=index).clash
    assert [bound.text for bound in bounds_of(clash)] == ["numpy >=2.1"]
    there = (python_record("numpy", "2.0"), python_record("numpy", "1.26"))
    assert [bound.text for bound in bounds_of(clash, lambda _: there)] == ["numpy <2a0"]
    assert bounds_of(clash, lambda _: there[:1]) == ()


def test_a_bound_that_holds_resolves_the_clash() -> None:
    assert "transformers" in Part(asked("transformers==4.40"), TORCH, python_record("numpy", "1.26")).packages


def test_a_bound_is_on_the_package_and_in_its_own_versions() -> None:
    index = FakeIndex({**projects(), "needy": {"1.0": Release(requires=("nvidia-nccl-cu12==2.20.5",))}})
    part = Part(asked("needy"), TORCH, record("nccl", "2.21.5.1"), index=index)
    assert [bound.text for bound in bounds_of(part.clash)] == ["nccl 2.20.5.*"]
    fitting = Part(asked("needy"), TORCH, record("nccl", "2.20.5.1"), index=index)
    assert set(fitting.packages) == {"needy"}


def test_another_torch_is_no_bound_but_a_reason() -> None:
    index = FakeIndex({**projects(), "needy": {"1.0": Release(requires=("torch==2.4.1",))}})
    part = Part(asked("needy"), TORCH, index=index)
    assert bounds_of(part.clash) == ()
    assert any("needy 1.0 requires torch==2.4.1" in cause.text for cause in clash_causes(part.clash))


def test_what_the_user_asks_of_what_channels_have_is_no_bound_of_pips() -> None:
    part = Part(asked("numpy<2"), TORCH, python_record("numpy", "2.1"))
    assert bounds_of(part.clash) == ()


@pytest.mark.parametrize(("torch", "flag"), [(TORCH, "TRUE"), (OLD_TORCH, "FALSE")])
def test_flash_attn_is_the_wheel_for_the_abi_of_the_channels_torch(torch: CondaRecord, flag: str) -> None:
    part = Part(asked(flash_attn="==2.5.8"), torch, flash="2.5.8")
    wheel = part.packages["flash-attn"]
    assert f"torch2.3cxx11abi{flag}-cp310" in wheel.files[0].filename
    assert (wheel.direct, wheel.files[0].sha256 is not None) == (True, True)
    assert set(part.packages) == {"flash-attn", "einops"}


def test_no_flash_attn_at_a_release_without_a_wheel_for_the_build() -> None:
    found = evidence()
    assert flash_plan(FlashAttn(found), build_of(TORCH), TARGET, "2.6.3") is None
    assert flash_plan(FlashAttn(found), build_of(OLD_TORCH), TARGET, "2.6.3") is not None
    assert flash_plan(FlashAttn(found), build_of(TORCH), TARGET, "no version") is None


def test_what_an_extra_adds_to_what_channels_have_is_pips() -> None:
    index = FakeIndex({**projects(), "tool": {"1.0": Release(
        requires=("numpy", 'tokenizers==0.19 ; extra == "fast"'), extras=("fast",))}})
    part = Part(asked("tool[fast]"), TORCH, python_record("tool", "1.0"), index=index)
    assert set(part.packages) == {"tokenizers"}     # numpy is the affair of the channel's own package
    absent = Part(asked("tool[fast]"), TORCH, python_record("tool", "2.0"), index=index)
    assert any("the index does not tell what its extra needs" in cause.text for cause in clash_causes(absent.clash))


def test_a_version_that_pip_cannot_compare_satisfies_only_what_asks_for_any() -> None:
    odd = python_record("numpy", "1.0_x")
    assert Part(asked("numpy"), TORCH, odd).packages == {}
    assert isinstance(Part(asked("numpy>=1"), TORCH, odd).found, Clash)
    assert Part(asked("transformers"), TORCH, python_record("transformers", "4.40_x")).packages == {}


def test_the_nvjitlink_floor_holds_for_libraries_of_channels() -> None:
    low = record("libnvjitlink", "12.0.140"), record("libcusparse", "12.1.0.106")
    index = FakeIndex({**projects(), "needy": {"1.0": Release(requires=("nvidia-cusparse-cu12",))}})
    part = Part(asked("needy"), TORCH, *low, index=index)
    assert any("nvidia-nvjitlink-cu12>=12.1.55" in cause.text for cause in clash_causes(part.clash))


def test_an_extension_for_the_other_abi_that_nobody_read_is_not_taken(tmp_path: Path) -> None:
    """torchvision 0.18.1 of the index is for torch 2.3.1 of the index, whose C++ ABI is the old one."""
    other = judged_wheel("torchvision-0.19.1-cp310-cp310-manylinux_2_17_x86_64.whl", "0" * 64, "2.3 2.4")
    tags = wheel_tags(("3.10",))
    index = {**projects(), "torchvision": {"0.18.1": Release(requires=("torch==2.3.1", "numpy"), tags=tags)}}
    sources = Evidence(MATRIX, FakeIndex(index), FakeReleases(), None, books(tmp_path, judged=(other,)))
    new = record("pytorch", "2.3.1", "cuda121_py310hf6aebf0_300", depends=PYTHON)
    clash = Part(asked("torchvision"), new, sources=sources).clash
    assert any("with the old C++ ABI, and the channel's has the new one" in cause.text for cause in clash_causes(clash))
    assert "torchvision" in Part(asked("torchvision"), OLD_TORCH, sources=sources).packages


def test_a_search_without_an_end_is_a_clash_that_nobody_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure, "FIRST_ROUNDS", -1000)     # each project that is needed adds a round
    monkeypatch.setattr(closure, "MAX_ROUNDS", 1)
    clash = Part(asked("transformers==4.40"), TORCH).clash
    assert not clash.proved
    assert bounds_of(clash) == ()
    (told,) = clash_causes(clash)
    assert told.text.startswith("the last clash of the search was on what pip brings")
