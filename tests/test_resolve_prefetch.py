"""What is asked before it is needed, and that nothing needless is."""

from __future__ import annotations

from stackfix.resolve.prefetch import Prefetch
from stackfix.resolve.question import parse_request
from stackfix.resolve.records import StackRequest
from tests.resolve_world import FakeIndex, Release, asked, evidence, lock, pins, projects


class SilentIndex(FakeIndex):
    """Tells nothing of what arrives."""

    def watch(self, **_: object) -> None: ...


def prefetched(request: StackRequest, world: dict[str, dict[str, Release]] | None = None) -> FakeIndex:
    index = FakeIndex(world or projects())
    Prefetch(evidence(index), parse_request(request)).start()
    return index


def wheels(index: FakeIndex) -> set[str]:
    return {"-".join(name.split("-")[:2]) for name in index.prefetched if name.endswith(".whl")}


def test_pages_of_the_whole_expected_closure_in_the_first_breath() -> None:
    index = SilentIndex(projects())
    Prefetch(evidence(index), parse_request(asked("torchvision", torch="==2.3.*"))).start()
    assert index.prefetched == ["torch", "torchvision", "filelock", "nvidia-cusparse-cu12", "nvidia-nvjitlink-cu12"]


def test_metadata_of_what_will_be_picked_as_pages_arrive() -> None:
    index = prefetched(asked("torchvision", "transformers", torch="==2.3.*"))
    assert wheels(index) == {
        "torch-2.3.1", "torchvision-0.18.1", "transformers-4.40", "numpy-1.26", "tokenizers-0.19", "filelock-3.1",
        "nvidia_cusparse_cu12-12.1.0.106", "nvidia_nvjitlink_cu12-12.1.105",
    } | ({"numpy-2.1"} & wheels(index))         # asked for before transformers limited it, depending on the order


def test_solver_only_confirms() -> None:
    index = FakeIndex(projects())
    found = lock(asked("torchvision", "transformers", torch="==2.3.*"), index)
    assert set(index.metadata_asked) <= set(index.prefetched)
    assert set(pins(found)) <= {name for name in index.prefetched if not name.endswith(".whl")}


def test_extra_that_comes_late_is_followed() -> None:
    world = projects()
    world["tool"] = {"1.0": Release(requires=('einops ; extra == "big"',), extras=("big",))}
    world["user"] = {"1.0": Release(requires=("tool[big]",))}
    index = prefetched(asked("tool", "user", torch="==2.3.*"), world)
    assert "einops-0.8" in wheels(index)


def test_each_target_has_its_own_expectation() -> None:
    index = prefetched(asked(torch="==2.3.*", pythons=("3.10", "3.11")))
    torch = {name.split("-")[2] for name in index.prefetched if name.startswith("torch-2.3.1-")}
    assert torch == {"cp310", "cp311"}


def test_kept_pins_are_what_is_expected() -> None:
    index = prefetched(asked(kept=(("torch", "2.3.0"), ("filelock", "3.0"))))
    assert {"torch-2.3.0", "filelock-3.0"} <= wheels(index)
    assert "filelock-3.1" not in wheels(index)


def test_wrong_guess_costs_no_answer() -> None:
    world = projects()
    del world["nvidia-nvjitlink-cu12"]
    world["nvidia-cusparse-cu12"]["12.1.0.106"] = Release()
    assert "filelock" in pins(lock(asked(torch="==2.3.*"), FakeIndex(world)))


def test_nothing_is_expected_of_a_request_that_no_row_meets() -> None:
    index = prefetched(asked(torch="==9.9"))
    assert not wheels(index)
