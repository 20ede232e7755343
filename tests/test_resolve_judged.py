"""Wheels that were read and judged: never pinned where their symbols contradict their name or metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.abi.records import Books, JudgedWheel
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.records import Lock
from stackfix.sources.records import ReleaseAsset
from tests.resolve_world import (
    MATRIX,
    FakeIndex,
    FakeReleases,
    Release,
    asked,
    asset,
    companion,
    flash_wheel,
    lock,
    pins,
    projects,
    refusal,
    rule,
    sha,
)
from tests.symbol_books import FakeTorchBook, books, judged_wheel
from tests.test_resolve_explain import facts, named

TAG = "cp310-cp310-manylinux_2_17_x86_64"
AUDIO = f"audio-2.0-{TAG}.whl"


def world() -> FakeIndex:
    """`audio` declares a torch from 2.0 on; the matrix knows it as that."""
    known = projects()
    known["audio"] = {"2.0": Release(requires=("torch>=2.0",), tags=(TAG,)),
                      "1.0": Release(requires=("torch>=2.0",), tags=(TAG,))}
    return FakeIndex(known)


OPEN = replace(MATRIX, companions=(
    *MATRIX.companions, companion("audio", "2.0", ">=2.0", None), companion("audio", "1.0", ">=2.0", None),
))


def read(tmp_path: Path, *wheels: JudgedWheel) -> Books:
    return books(tmp_path, judged=wheels)


def audio(torch: str, file: str = AUDIO, **changes: Any) -> JudgedWheel:
    return judged_wheel(file, changes.pop("sha256", sha(file)), torch, declares=">=2.0", **changes)


def test_what_the_symbols_exclude_is_no_candidate_and_the_reason_is_told(tmp_path: Path) -> None:
    known = read(tmp_path, audio("2.4", disproved=("2.0", "2.1", "2.2", "2.3"), because=("torch_new_name",)))
    found = lock(asked("audio", torch="==2.3.1"), world(), matrix=OPEN, books=known)
    assert pins(found)["audio"] == "1.0"
    [note] = [note for note in found.notes if "audio 1.0 was chosen over 2.0" in note]
    assert "declares torch>=2.0, its symbols can load with torch 2.4 only: torch_new_name" in note
    assert pins(lock(asked("audio", torch="==2.4.1"), world(), matrix=OPEN, books=known))["audio"] == "2.0"


def test_asked_for_exactly_the_answer_is_no(tmp_path: Path) -> None:
    known = read(tmp_path, audio("2.4", because=("torch_new_name",)))
    error = refusal(asked("audio==2.0", torch="==2.3.1"), world(), matrix=OPEN, books=known)
    assert error.exit_status == 1
    assert named(error) == {"torch 2.3.1", "requirement audio==2.0"}
    [cause] = [cause for cause in error.causes if cause.kind == "matrix"]
    assert cause.text == "audio 2.0 declares torch>=2.0, its symbols can load with torch 2.4 only: torch_new_name"
    assert cause.source == SYMBOLS
    assert any(offer.change == "--torch 2.4 in place of 2.3.1" for offer in error.nearest)
    assert any(offer.change.startswith("audio==1.0 in place of") for offer in error.nearest)


def test_symbols_are_told_for_readers_and_the_first_as_the_file_has_it(tmp_path: Path) -> None:
    names = ("_ZN3c104cuda9SetDeviceEi", "_ZNK3c1017SymbolicShapeMeta18init_is_contiguousEv", "torch_new_name")
    known = read(tmp_path, audio("2.4", because=names))
    error = refusal(asked("audio==2.0", torch="==2.3.1"), world(), matrix=OPEN, books=known)
    assert facts(error).endswith(
        "its symbols can load with torch 2.4 only: c10::cuda::SetDevice (_ZN3c104cuda9SetDeviceEi),"
        " c10::SymbolicShapeMeta::init_is_contiguous, torch_new_name")


def test_only_symbols_that_this_torch_lacks_are_told(tmp_path: Path) -> None:
    class Knowing(FakeTorchBook):
        def minors(self, name: str) -> tuple[str, ...]:
            return ("2.2", "2.3", "2.4") if name == "_ZN3c104cuda9SetDeviceEi" else ()

    known = replace(read(tmp_path, audio("2.4", because=("_ZN3c104cuda9SetDeviceEi", "torch_new_name"))),
                    torch=Knowing())
    error = refusal(asked("audio==2.0", torch="==2.3.1"), world(), matrix=OPEN, books=known)
    assert facts(error).endswith("can load with torch 2.4 only: torch_new_name")


def test_a_rule_that_says_the_same_is_told_with_the_symbols(tmp_path: Path) -> None:
    matrix = replace(OPEN, rules=(rule("audio", "==2.0", "torch>=2.4"), *MATRIX.rules))
    error = refusal(asked("audio==2.0", torch="==2.3.1"), world(), matrix=matrix, books=read(tmp_path, audio("2.4")))
    assert "its symbols can load with torch 2.4 only (measured on audio)" in facts(error)


@pytest.mark.parametrize(("changes", "says"), [
    ({"string_abi": "new"}, "is built with the new C++ ABI, torch 2.3.1 for linux-64 with the old one"),
    ({"cuda": (11,)}, "is linked against libraries of CUDA 11, torch 2.3.1 is built for CUDA 12.1"),
    ({"string_abi": "old", "cuda": (12,)}, None),
    ({"string_abi": "both"}, None),
])
def test_the_other_axes(changes: dict[str, Any], says: str | None, tmp_path: Path) -> None:
    known = read(tmp_path, audio("2.3", **changes))
    found = lock(asked("audio", torch="==2.3.1"), world(), matrix=OPEN, books=known)
    assert pins(found)["audio"] == ("2.0" if says is None else "1.0")
    assert says is None or any(says in note for note in found.notes)


def test_no_release_that_is_known(tmp_path: Path) -> None:
    error = refusal(asked("audio==2.0", torch="==2.3.1"), world(), matrix=OPEN, books=read(tmp_path, audio("")))
    assert "its symbols can load with no torch from 2.0 to 2.4" in facts(error)


def test_of_a_torch_that_was_not_read_nothing_is_said(tmp_path: Path) -> None:
    known = replace(read(tmp_path, audio("2.2")), torch=type(books(tmp_path).torch)(("2.1", "2.2")))  # type: ignore[call-arg]
    assert pins(lock(asked("audio", torch="==2.3.1"), world(), matrix=OPEN, books=known))["audio"] == "2.0"


@pytest.mark.parametrize(("torch", "able", "version"), [
    ("2.3.1", "2.3", "2.0"), ("2.3.0", "2.3", "2.0"), ("2.3.0", "2.2 2.4", "1.0"),
    ("2.3.1", "2.3.0 2.4", "1.0"), ("2.3.0", "2.3.0 2.4", "2.0"),      # the newest patch lacks what an older one has
    ("2.3.0", "2.3.1", "1.0"), ("2.3.1", "2.3.1", "2.0"),
])
def test_each_patch_is_judged_by_itself(torch: str, able: str, version: str, tmp_path: Path) -> None:
    known = replace(read(tmp_path, audio(able)), torch=FakeTorchBook(patches=("0",)))
    found = lock(asked("audio", torch=f"=={torch}"), world(), matrix=OPEN, books=known)
    assert pins(found)["audio"] == version
    if torch == "2.3.1" and version == "1.0":
        assert any("its symbols can load with torch 2.4 and 2.3.0 only" in note for note in found.notes)


def test_of_a_patch_that_was_not_read_nothing_is_said(tmp_path: Path) -> None:
    known = read(tmp_path, audio("2.4"))
    assert pins(lock(asked("audio", torch="==2.3.0"), world(), matrix=OPEN, books=known))["audio"] == "2.0"


def others(tmp_path: Path, *verdicts: str, machine: str = "x86_64") -> Lock:
    """Other wheels of the release were read than the one that the target takes."""
    known = read(tmp_path, *(
        audio(torch, f"audio-2.0-{python}-{python}-manylinux_2_17_{machine}.whl")
        for torch, python in zip(verdicts, ("cp311", "cp312"), strict=False)
    ))
    return lock(asked("audio", torch="==2.3.1"), world(), matrix=OPEN, books=known)


def test_the_release_speaks_for_a_wheel_that_was_not_read(tmp_path: Path) -> None:
    found = others(tmp_path, "2.4", "2.2 2.4")
    assert pins(found)["audio"] == "1.0"
    assert any("(read of audio-2.0-cp311-cp311-manylinux_2_17_x86_64.whl)" in note for note in found.notes)
    assert pins(others(tmp_path, "2.3", "2.3 2.4"))["audio"] == "2.0"
    assert pins(others(tmp_path, "2.4", machine="aarch64"))["audio"] == "2.0"


def test_a_release_whose_wheels_differ_is_told(tmp_path: Path) -> None:
    found = others(tmp_path, "2.4", "2.3")
    assert pins(found)["audio"] == "2.0"
    [note] = [note for note in found.notes if "audio" in note]
    assert note.startswith("wheels of audio 2.0 differ in the torch")
    assert AUDIO in note


def test_only_what_nothing_bounds_and_nobody_read_is_told(tmp_path: Path) -> None:
    def notes(known: Books | None, *lines: str) -> str:
        return "\n".join(lock(asked(*lines, torch="==2.3.1"), world(), matrix=OPEN, books=known).notes)

    assert "audio 2.0 holds compiled code" in notes(None, "audio")
    assert "audio 2.0 holds compiled code" in notes(read(tmp_path), "audio")
    assert "compiled code" not in notes(read(tmp_path, audio("2.2 2.3")), "audio")
    assert "compiled code" not in notes(read(tmp_path), "torchvision")


def test_a_wheel_of_ones_own_address_is_judged_too(tmp_path: Path) -> None:
    line = f"audio @ https://wheels.invalid/{AUDIO}#sha256={sha(AUDIO)}"
    assert pins(lock(asked(line, torch="==2.3.1"), world(), matrix=OPEN, books=read(tmp_path, audio("2.3"))))
    error = refusal(asked(line, torch="==2.3.1"), world(), matrix=OPEN, books=read(tmp_path, audio("2.4")))
    assert "its symbols can load with torch 2.4 only" in facts(error)


def test_a_sibling_that_contradicts_is_told(tmp_path: Path) -> None:
    index = world()
    index.projects["audio"]["2.0"] = Release(requires=("torch>=2.0",), tags=(
        TAG, "cp310-cp310-manylinux_2_5_x86_64"))
    sibling = "audio-2.0-cp310-cp310-manylinux_2_5_x86_64.whl"
    known = read(tmp_path, audio("2.3"), audio("2.4", sibling))
    found = lock(asked("audio", torch="==2.3.1"), index, matrix=OPEN, books=known)
    assert any(note.startswith(f"{sibling} is locked beside {AUDIO}, but declares") for note in found.notes)


# -- versions that nobody read ---------------------------------------------------------------------------------------


def series(*versions: str) -> FakeIndex:
    """`audio` in these versions, each of which admits any torch."""
    known = projects()
    known["audio"] = {version: Release(requires=("torch>=2.0",), tags=(TAG,)) for version in versions}
    return FakeIndex(known)


def of(tmp_path: Path, **torch: str) -> Books:
    """Read wheels: `v1_0="2.2 2.3"`."""
    return read(tmp_path, *(
        audio(able, f"audio-{version[1:].replace('_', '.')}-{TAG}.whl") for version, able in
        sorted(torch.items(), reverse=True)))


SERIES = ("1.0", "2.0", "3.0", "4.0")


@pytest.mark.parametrize(("known", "torch", "version"), [
    ({"v2_0": "2.3"}, "2.3", "2.0"),                        # read and fits goes before newer ones that nobody read
    ({"v2_0": "2.2"}, "2.3", "4.0"),                        # what is newer may be for this torch
    ({"v2_0": "2.4"}, "2.3", "1.0"),                        # what is newer is for a later torch, too
    ({"v3_0": "2.4", "v1_0": "2.2"}, "2.3", "2.0"),         # what lies between may be the one
    ({"v4_0": "", "v3_0": "2.4", "v1_0": "2.2"}, "2.3", "2.0"),     # one that loads nowhere tells nothing
    ({"v4_0": "2.2", "v3_0": "2.2"}, "2.0", "2.0"),
])
def test_read_ones_first_and_what_their_neighbours_exclude_is_excluded(
    known: dict[str, str], torch: str, version: str, tmp_path: Path,
) -> None:
    found = lock(asked("audio", torch=f"=={torch}.1"), series(*SERIES), books=of(tmp_path, **known))
    assert pins(found)["audio"] == version


def test_a_preference_for_what_was_read_is_told(tmp_path: Path) -> None:
    known = of(tmp_path, v2_0="2.3")
    found = lock(asked("audio", torch="==2.3.1"), series(*SERIES), books=known)
    [note] = [note for note in found.notes if "audio" in note]
    assert note == ("audio 2.0 was chosen over 4.0: nobody read a wheel of 4.0, and its metadata does not say"
                    " which torch it was built for")
    found = lock(asked("audio>=3", torch="==2.3.1"), series(*SERIES), books=known)
    assert pins(found)["audio"] == "4.0"
    assert any(note.startswith("audio 4.0 holds compiled code") for note in found.notes)


def test_the_neighbours_are_the_reason(tmp_path: Path) -> None:
    known = of(tmp_path, v3_0="2.2", v1_0="2.1")
    error = refusal(asked("audio==2.0", torch="==2.3.1"), series(*SERIES), books=known)
    assert facts(error).endswith(
        "audio 2.0 was not read, and its read neighbours 3.0 and 1.0 cannot load with torch 2.3.1 (by symbols 3.0 with"
        " torch 2.2 only; 1.0 with torch 2.1 only)")
    [offer] = [offer for offer in error.nearest if offer.change.startswith("audio==")]
    assert offer.change == "audio==4.0 in place of --with audio==2.0 (not read: audio 4.0)"


@pytest.mark.parametrize("requires", ["torch==2.3.1", "torch>=2.3,<2.4"])
def test_what_its_makers_say_of_torch_is_no_guess(requires: str, tmp_path: Path) -> None:
    index = series(*SERIES)
    index.projects["audio"]["4.0"] = Release(requires=(requires,), tags=(TAG,))
    found = lock(asked("audio", torch="==2.3.1"), index, books=of(tmp_path, v2_0="2.3"))
    assert pins(found)["audio"] == "4.0"


def test_neither_another_machine_nor_pure_python_nor_an_unread_torch_is_judged_by_neighbours(tmp_path: Path) -> None:
    wheels = (audio("2.2", f"audio-{version}-cp310-cp310-manylinux_2_17_aarch64.whl") for version in ("3.0", "1.0"))
    found = lock(asked("audio==2.0", torch="==2.3.1"), series(*SERIES), books=read(tmp_path, *wheels))
    assert pins(found)["audio"] == "2.0"
    index = series(*SERIES)
    index.projects["audio"]["2.0"] = Release(requires=("torch>=2.0",))
    known = of(tmp_path, v3_0="2.2", v1_0="2.1")
    assert pins(lock(asked("audio==2.0", torch="==2.3.1"), index, books=known))["audio"] == "2.0"
    unread = replace(known, torch=FakeTorchBook(("2.1", "2.2")))
    assert pins(lock(asked("audio==2.0", torch="==2.3.1"), series(*SERIES), books=unread))["audio"] == "2.0"


# -- flash-attn ------------------------------------------------------------------------------------------------------

FLASH = "flash_attn-{version}+{tag}torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"


def flash(version: str, tag: str, torch: str, sha256: str | None = None, **changes: Any) -> JudgedWheel:
    file = FLASH.format(version=version, tag=tag)
    return judged_wheel(file, sha(file) if sha256 is None else sha256, torch, declares="*", **changes)


def flash_locked(known: Books, releases: FakeReleases | None = None, **options: Any) -> Lock:
    return lock(asked(torch="==2.3.1", no_flash_attn=False, **options), releases=releases, books=known)


def test_a_release_asset_that_belies_its_name_is_refused_with_both_statements(tmp_path: Path) -> None:
    found = flash_locked(read(tmp_path, flash("2.6.3", "cu123", "2.4")))
    assert pins(found)["flash-attn"] == "2.5.8"
    [note] = [note for note in found.notes if "is named for" in note]
    assert f"{FLASH.format(version='2.6.3', tag='cu123')} is named for torch 2.3 and the old C++ ABI, but" in note
    assert "its symbols can load with torch 2.4 only" in note


def test_another_asset_of_the_same_release_is_taken(tmp_path: Path) -> None:
    second = flash_wheel("2.6.3", "cu122", "2.3", "3.10")
    matrix = replace(MATRIX, flash_attn_wheels=(*MATRIX.flash_attn_wheels, second))
    request = asked(torch="==2.3.1", flash_attn="==2.6.3")
    for judged, tag in (((), "cu123"), ((flash("2.6.3", "cu123", "2.3", string_abi="new"),), "cu122")):
        found = lock(request, matrix=matrix, books=read(tmp_path, *judged))
        [package] = [package for package in found.targets[0].packages if package.name == "flash-attn"]
        assert package.files[0].sha256 == sha(FLASH.format(version="2.6.3", tag=tag))


def test_asked_for_and_belied_the_answer_is_no(tmp_path: Path) -> None:
    known = read(tmp_path, flash("2.6.3", "cu123", "2.3", string_abi="new"))
    error = refusal(asked(torch="==2.3.1", flash_attn="==2.6.3"), books=known)
    assert "is named for torch 2.3 and the old C++ ABI, but is built with the new C++ ABI" in facts(error)
    assert SYMBOLS in {cause.source for cause in error.causes}


def test_what_only_its_hash_shows_is_refused_once_it_is_known(tmp_path: Path) -> None:
    file = FLASH.format(version="2.7.0", tag="cu12")
    listed: dict[str, tuple[ReleaseAsset, ...]] = {
        "2.7.0": (asset(file),), "2.6.3": (asset(FLASH.format(version="2.6.3", tag="cu123")),)}
    known = read(tmp_path, flash("2.7.0", "cu12", "2.4", sha256=sha(f"bytes of {file}")))
    assert pins(flash_locked(read(tmp_path), FakeReleases(listed)))["flash-attn"] == "2.7.0"
    found = flash_locked(known, FakeReleases(listed))
    assert pins(found)["flash-attn"] == "2.6.3"
    assert any(f"{file} is named for torch 2.3" in note for note in found.notes)


def test_left_out_the_nearest_stack_is_another(tmp_path: Path) -> None:
    files = [wheel.file for wheel in MATRIX.flash_attn_wheels if not wheel.cxx11_abi and wheel.python == "3.10"]
    known = read(tmp_path, *(judged_wheel(file, sha(file), "2.4") for file in files))
    listed: dict[str, tuple[ReleaseAsset, ...]] = {
        file.split("-")[1].partition("+")[0]: (asset(file, sha(file)),) for file in files}
    found = flash_locked(known, FakeReleases(listed))
    assert "flash-attn" not in pins(found)
    [note] = [note for note in found.notes if "flash-attn is left out" in note]
    assert note.endswith("the nearest stack that has one is torch 2.3.1 with CUDA 12.1, Python 3.11 (flash-attn 2.7.0)")
    assert sum("is named for torch 2.3" in note for note in found.notes) == 2
