"""Nightlies in the solver: which night, which CUDA, which companions, and what their pins run into."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stackfix.errors import BadInput, Unreachable
from stackfix.matrix.records import Matrix
from stackfix.resolve.decide import decide
from stackfix.resolve.nightly_family import days_apart
from stackfix.resolve.records import Lock, NoConsistentStack, ProjectPage, StackRequest
from stackfix.sources.records import CoreMetadata, IndexFile
from tests.resolve_world import MATRIX, FakeIndex, FakeReleases, Release, asked, projects, told, wheel_tags
from tests.test_resolve_torch_index import FakeTorchIndex, packages

TAGS = wheel_tags(("3.10", "3.11"), "manylinux_2_28_x86_64")
CUSPARSE = "nvidia-cusparse-cu12==12.1.0.106"
Pages = dict[str, dict[str, Release]]


def night(date: str, *requires: str, release: str = "2.4.0", local: str = "+cu124") -> dict[str, Release]:
    return {f"{release}.dev{date}{local}": Release(requires=requires or (CUSPARSE, "filelock"), tags=TAGS)}


def nights(**paths: Pages) -> FakeTorchIndex:
    return FakeTorchIndex({f"nightly/{path}": pages for path, pages in paths.items()})


def usual() -> Pages:
    """Four nights; torchvision of the second was built against the first, torchaudio does not say for which."""
    vision = {"0.19.0.dev20240502+cu124": "2.4.0.dev20240501", "0.19.0.dev20240503+cu124": "2.4.0.dev20240503",
              "0.19.0.dev20240504+cu124": "2.4.0.dev20240504"}
    audio = [f"2.2.0.dev202405{day}+cu124" for day in ("01", "02", "04")]
    return {
        "torch": {version: release for date in ("01", "02", "03", "04") for version, release in night(
            f"202405{date}").items()},
        "torchvision": {version: Release(requires=(f"torch=={torch}", "numpy"), tags=TAGS)
                        for version, torch in vision.items()},
        "torchaudio": {version: Release(tags=TAGS) for version in audio},
    }


def lock(request: StackRequest, wheels: FakeTorchIndex, index: Pages | None = None, matrix: Matrix = MATRIX) -> Lock:
    return decide(request, matrix, FakeIndex(index if index is not None else projects()), FakeReleases(), command=told,
                  torch_wheels=wheels)


def refused(request: StackRequest, wheels: FakeTorchIndex, index: Pages | None = None) -> NoConsistentStack:
    with pytest.raises(NoConsistentStack) as caught:
        lock(request, wheels, index)
    return caught.value


def causes(error: NoConsistentStack) -> str:
    return "\n".join(cause.text for cause in error.causes)


def test_the_night_of_the_day_before_has_the_companion_of_the_day_after() -> None:
    found = packages(lock(asked("torchvision", torch="==2.4.0.dev20240501", cuda="12.4"), nights(cu124=usual())))
    assert found["torch"][0] == "2.4.0.dev20240501+cu124"
    assert found["torchvision"][0] == "0.19.0.dev20240502+cu124"
    assert found["torch"][2]
    assert not found["nvidia-cusparse-cu12"][2]


def test_a_night_without_its_companion_is_refused() -> None:
    error = refused(asked("torchvision", torch="==2.4.0.dev20240502", cuda="12.4"), nights(cu124=usual()))
    assert "torchvision 0.19.0.dev20240503+cu124 requires torch==2.4.0.dev20240503" in causes(error)


def test_a_companion_that_names_no_torch_is_of_the_same_day_or_none() -> None:
    wheels = nights(cu124=usual())
    found = lock(asked("torchaudio", torch="==2.4.0.dev20240502", cuda="12.4"), wheels)
    assert packages(found)["torchaudio"][0] == "2.2.0.dev20240502+cu124"
    assert any("torchaudio 2.2.0.dev20240502+cu124 does not say which torch" in note for note in found.notes)
    error = refused(asked("torchaudio", torch="==2.4.0.dev20240503", cuda="12.4"), wheels)
    assert "is not of the day of torch 2.4.0.dev20240503" in causes(error)


def test_two_releases_of_one_day_are_told_apart_and_the_newer_is_meant_by_the_day() -> None:
    pages = {"torch": {**night("20240505"), **night("20240505", release="2.5.0")}}
    by_day = lock(asked(torch="nightly-2024-05-05", cuda="12.4"), nights(cu124=pages))
    assert (by_day.stack.torch, by_day.stack.nightly) == ("2.5.0.dev20240505", "2024-05-05")
    exact = lock(asked(torch="==2.4.0.dev20240505", cuda="12.4"), nights(cu124=pages))
    assert exact.stack.torch == "2.4.0.dev20240505"


def test_without_a_cuda_the_next_is_tried_where_the_pins_of_the_first_are_gone() -> None:
    first = {"torch": night("20240501", "nvidia-cusparse-cu12==12.0.0.1", local="+cu121")}
    wheels = nights(cu121=first, cu124={"torch": night("20240501")})
    assert lock(asked(torch="==2.4.0.dev20240501"), wheels).stack.cuda == "12.4"
    kept = lock(asked(torch="==2.4.0.dev20240501"), nights(cu121={"torch": night("20240501", local="+cu121")},
                                                           cu124={"torch": night("20240501")}))
    assert kept.stack.cuda == "12.1"                    # of 2.3.1, the release before


def test_a_pin_that_was_yanked_is_taken_where_the_user_asks_for_it() -> None:
    index = projects()
    index["nvidia-cusparse-cu12"]["12.1.0.106"] = Release(requires=("nvidia-nvjitlink-cu12",), yanked="broken")
    wheels = nights(cu124={"torch": {**night("20240501"), **night("20240502", "filelock")}})
    error = refused(asked(torch="==2.4.0.dev20240501", cuda="12.4"), wheels, index)
    assert "requires nvidia-cusparse-cu12==12.1.0.106, which was yanked (broken)" in causes(error)
    assert next(offer.change for offer in error.nearest) == (
        "--torch 2.4.0.dev20240502 in place of 2.4.0.dev20240501")
    found = lock(asked(CUSPARSE, torch="==2.4.0.dev20240501", cuda="12.4"), wheels, index)
    assert any("nvidia-cusparse-cu12 12.1.0.106 was yanked: broken" in note for note in found.notes)


@pytest.mark.parametrize(("requires", "said"), [
    (("nvidia-cusparse-cu12==12.2.0.1",), "which the index has not: nearest it has 12.1.0.106, 12.3.1.170"),
    (("nvidia-gone-cu12==1.0",), "and there is no nvidia-gone-cu12 on the index"),
    (("pytorch-triton==3.0.0+abc123",), "and there is no pytorch-triton on the torch index (nightly/cu124)"),
])
def test_what_a_night_pins_and_nobody_has_is_named(requires: tuple[str, ...], said: str) -> None:
    index = projects()
    index["pytorch-triton"] = {"0.0.1": Release(), "3.0.0": Release()}      # the placeholder of the default index
    error = refused(asked(torch="==2.4.0.dev20240501", cuda="12.4"),
                    nights(cu124={"torch": night("20240501", *requires)}), index)
    assert f"torch 2.4.0.dev20240501 requires {requires[0]}, {said}" in causes(error)


def test_rules_hold_for_a_night_as_for_a_release() -> None:
    wheels = nights(cu124={"torch": night("20240501", CUSPARSE, "nvidia-nvjitlink-cu12==12.0.140")})
    error = refused(asked(torch="==2.4.0.dev20240501", cuda="12.4"), wheels)
    assert "nvidia-cusparse-cu12 12.1.0.106 needs nvidia-nvjitlink-cu12>=12.1.55" in causes(error)


def test_triton_of_a_release_is_taken_where_the_night_asks_for_one() -> None:
    index = {**projects(), "triton": {"3.0.0": Release()}}
    plain = lock(asked(torch="==2.4.0.dev20240501", cuda="12.4"),
                 nights(cu124={"torch": night("20240501", "triton==3.0.0")}), index)
    assert not packages(plain)["triton"][2]
    own: Pages = {"torch": night("20240501", "triton==3.0.0+gitabc"), "triton": {"3.0.0+gitabc": Release(tags=TAGS)}}
    found = packages(lock(asked("triton", torch="==2.4.0.dev20240501", cuda="12.4"), nights(cu124=own), index))
    assert found["triton"][0] == "3.0.0+gitabc"


def test_a_marker_that_holds_nowhere_asks_for_nothing() -> None:
    found = lock(asked('torch==2.4.0.dev20240501 ; sys_platform == "win32"', torch="==2.3.*"), nights(cu124=usual()))
    assert (found.stack.torch, found.stack.nightly) == ("2.3.1", None)


def test_metadata_that_cannot_be_read_line_by_line_are_no_traceback() -> None:
    pages = {"torch": night("20240501", "filelock", "no requirement at all !!", 'optree ; extra == "optree"')}
    error = refused(asked(torch="==2.4.0.dev20240501", cuda="12.4"), nights(cu124=pages))
    assert "states a requirement that cannot be followed: no requirement at all !!" in causes(error)


@pytest.mark.parametrize("torch", ["nightly", ">=2.4.0.dev0"])
def test_the_newest_days_are_named_where_the_index_answers(torch: str) -> None:
    with pytest.raises(BadInput) as caught:
        lock(asked(torch=torch, cuda="12.4"), nights(cu124=usual()))
    assert "are 2.4.0.dev20240504, 2.4.0.dev20240503, 2.4.0.dev20240502" in str(caught.value.next_step())


class Away(FakeTorchIndex):
    """Nobody answers."""

    def page(self, path: str, name: str) -> ProjectPage:
        raise Unreachable(f"page of {name} on {path}", "nobody answers")

    def metadata(self, file: IndexFile) -> CoreMetadata | None:
        raise Unreachable(file.filename, "nobody answers")


def test_without_the_index_how_to_ask_is_said_all_the_same() -> None:
    nobody: Mapping[str, Pages] = {}
    with pytest.raises(BadInput, match="locked by their exact date"):
        lock(asked(torch="nightly"), Away(dict(nobody)))
    with pytest.raises(Unreachable):
        lock(asked(torch="nightly-2024-05-01"), Away(dict(nobody)))


def test_days_are_counted_over_the_end_of_a_month() -> None:
    near = sorted(("2.8.0.dev20250228", "2.8.0.dev20250303", "2.8.0.dev20250225"),
                  key=lambda each: days_apart(each, "2.8.0.dev20250301"))
    assert near == ["2.8.0.dev20250228", "2.8.0.dev20250303", "2.8.0.dev20250225"]
    assert days_apart("2.8.0.dev20241231", "2.8.0.dev20250101") == (1, True)
