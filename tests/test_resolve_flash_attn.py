"""Which flash-attn goes into a lock: hash from the matrix, the release source or a download, else the second step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stackfix.resolve.flash_assets import cuda_tag_if_fits
from stackfix.resolve.records import LockedPackage, Requirement, StackRequest, WheelHashDisagreement
from tests.resolve_world import (
    DOWNLOAD,
    MATRIX,
    FakeIndex,
    FakeReleases,
    Release,
    asked,
    asset,
    flash_release,
    flash_wheel,
    lock,
    pins,
    projects,
    refusal,
    rule,
    sha,
    torch_build,
)

F27 = "flash_attn-2.7.0+cu12torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
F26 = "flash_attn-2.6.3+cu123torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"


def wanted(**options: Any) -> StackRequest:
    options.setdefault("torch", "==2.3.*")
    return asked(no_flash_attn=False, **options)


def package(request: StackRequest, releases: FakeReleases | None = None) -> LockedPackage:
    found = [p for p in lock(request, releases=releases).targets[0].packages if p.name == "flash-attn"]
    assert len(found) == 1
    return found[0]


def listing(*files: str, digests: bool = True) -> FakeReleases:
    listed: dict[str, tuple[object, ...]] = {}
    for file in files:
        one = asset(file, sha(file) if digests else None)
        listed[one.version] = (*listed.get(one.version, ()), one)
    return FakeReleases(listed)  # type: ignore[arg-type]


def test_unreachable_source_newest_with_a_known_hash_and_a_note_on_the_newer() -> None:
    found = lock(wanted())
    flash = next(p for p in found.targets[0].packages if p.name == "flash-attn")
    assert (flash.version, flash.direct, flash.step) == ("2.6.3", True, 1)
    assert flash.files[0].sha256 == sha(F26)
    assert any("flash-attn 2.7.0 is newer and would fit" in note for note in found.notes)


def test_official_address_with_plus_escaped_and_both_versions() -> None:
    file = package(wanted()).files[0]
    assert file.url == f"{DOWNLOAD}/v2.6.3/{F26.replace('+', '%2B')}"
    assert file.filename == F26
    assert file.version == "2.6.3+cu123torch2.3cxx11abiFALSE"
    assert package(wanted()).version == "2.6.3"


def test_what_it_needs_comes_with_it() -> None:
    found = lock(wanted())
    flash = next(p for p in found.targets[0].packages if p.name == "flash-attn")
    assert flash.requires == ("einops", "torch")
    assert flash.requested_by == ("stackfix",)
    assert next(p for p in found.targets[0].packages if p.name == "einops").requested_by == ("flash-attn",)


def test_reachable_source_tells_the_hash_and_the_address_stays_the_official_one() -> None:
    flash = package(wanted(), listing(F27, F26))
    assert (flash.version, flash.files[0].sha256) == ("2.7.0", sha(F27))
    assert flash.files[0].url.startswith(f"{DOWNLOAD}/v2.7.0/")


def test_reachable_source_decides_what_exists() -> None:
    assert package(wanted(), listing(F26)).version == "2.6.3"
    found = lock(wanted(), releases=FakeReleases({}))
    assert "flash-attn" not in pins(found)


def test_asset_that_the_matrix_never_heard_of() -> None:
    new = "flash_attn-2.7.0+cu12torch2.4cxx11abiTRUE-cp310-cp310-linux_x86_64.whl"
    flash = package(wanted(torch="==2.4.*"), listing(new))
    assert (flash.version, flash.files[0].sha256) == ("2.7.0", sha(new))


def test_fitting_and_newer_releases_are_asked_for_at_once() -> None:
    releases = listing(F27)
    lock(wanted(), releases=releases)
    assert releases.asked == [("2.7.0",)]       # listed by the matrix: an older one would never be taken
    releases = listing("flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl")
    assert package(wanted(), releases).version == "2.5.8"
    assert releases.asked == [("2.7.0",), ("2.6.3", "2.5.8")]


def test_one_download_where_nobody_states_the_hash() -> None:
    releases = listing(F27, digests=False)
    flash = package(wanted(), releases)
    assert flash.files[0].sha256 == sha(f"bytes of {F27}")
    assert releases.downloaded == [F27]


def test_download_that_fails_falls_back_to_a_known_hash() -> None:
    releases = listing(F27, F26, digests=False)
    releases.downloadable = False
    found = lock(wanted(), releases=releases)
    flash = next(p for p in found.targets[0].packages if p.name == "flash-attn")
    assert (flash.version, flash.files[0].sha256) == ("2.6.3", sha(F26))
    assert any("2.7.0 is newer" in note for note in found.notes)


def test_matrix_and_source_that_disagree_are_an_error_about_that_wheel() -> None:
    releases = FakeReleases({"2.6.3": (asset(F26, "0" * 64),)})
    with pytest.raises(WheelHashDisagreement) as caught:
        lock(wanted(), releases=releases)
    assert F26 in caught.value.what()
    assert "0" * 64 in caught.value.what()


def test_second_step_where_no_fitting_wheel_has_a_hash() -> None:
    found = lock(wanted(pythons=("3.11",)))
    by_name = {p.name: p for p in found.targets[0].packages}
    flash = by_name["flash-attn"]
    assert (flash.version, flash.step, flash.direct) == ("2.7.0", 2, False)
    assert flash.files[0].filename == "flash_attn-2.7.0.tar.gz"
    assert flash.files[0].sha256
    assert {"einops", "packaging", "ninja", "setuptools", "wheel"} <= by_name.keys()
    assert all(p.step == 1 for name, p in by_name.items() if name != "flash-attn")
    assert by_name["ninja"].requested_by == ("flash-attn",)
    assert any("second step" in note for note in found.notes)


def test_without_an_sdist_there_is_no_second_step() -> None:
    world = projects()
    world["flash-attn"] = {}
    found = lock(wanted(pythons=("3.11",)), FakeIndex(world))
    assert "flash-attn" not in pins(found)
    world["flash-attn"] = {"2.7.0": Release(tags=(), hashed=False)}
    assert "flash-attn" not in pins(lock(wanted(pythons=("3.11",)), FakeIndex(world)))


def test_left_out_names_the_nearest_stack_that_has_one() -> None:
    found = lock(wanted(torch="==2.4.*"))
    assert "flash-attn" not in pins(found)
    assert found.stack.flash_attn is None
    assert any("nearest stack that has one is torch 2.3.1 with CUDA 12.1" in note for note in found.notes)


@pytest.mark.parametrize("options", [
    {"flash_attn": "==2.5.8"},
    {"requirements": (Requirement(text="flash-attn==2.5.8", origin="--with flash-attn==2.5.8"),)},
])
def test_asked_for_by_option_or_by_requirement(options: dict[str, object]) -> None:
    request = StackRequest(pythons=("3.10",), **options)  # type: ignore[arg-type]
    found = lock(request)
    assert (found.stack.torch, found.stack.flash_attn) == ("2.3.1", "2.5.8")
    origin = "--flash-attn 2.5.8" if "flash_attn" in options else "--with flash-attn==2.5.8"
    assert next(p for p in found.targets[0].packages if p.name == "flash-attn").requested_by == (origin,)


def test_asked_for_chooses_the_python_that_has_it() -> None:
    found = lock(StackRequest(default_python="3.12", flash_attn="==2.5.8"))
    assert found.stack.pythons == ("3.10",)


def test_asked_for_and_none_fits_is_no() -> None:
    assert refusal(StackRequest(pythons=("3.10",), torch="==2.4.*", flash_attn="==2.5.8")).causes
    assert refusal(StackRequest(pythons=("3.10",), torch="==2.3.*", flash_attn="==9.9")).causes


def test_constraint_limits_and_does_not_ask() -> None:
    line = Requirement(text="flash-attn<2.6", origin="--constraint flash-attn<2.6", constraint=True)
    assert package(wanted().with_(requirements=(line,))).version == "2.5.8"
    assert "flash-attn" not in pins(lock(wanted(torch="==2.4.*").with_(requirements=(line,))))


def test_kept_pin_stays() -> None:
    assert package(wanted(kept=(("flash-attn", "2.5.8"),))).version == "2.5.8"
    assert package(wanted(kept=(("flash-attn", "2.5.8"),)), listing(F27)).version == "2.7.0"     # 2.5.8 is gone


def test_abi_python_cuda_major_and_gpu_decide() -> None:
    new_abi = replace(MATRIX, torch=(torch_build("2.3.1", "12.1", "12.1.1", cxx11_abi=True),))
    found = lock(wanted(), matrix=new_abi)
    flash = next(p for p in found.targets[0].packages if p.name == "flash-attn")
    assert "cxx11abiTRUE" in flash.files[0].filename
    unread = replace(MATRIX, torch=(torch_build("2.3.1", "12.1", "12.1.1", cxx11_abi=None),))
    assert "flash-attn" not in pins(lock(wanted(), matrix=unread))
    eleven = replace(MATRIX, torch=(torch_build("2.3.1", "11.8", "11.8.0"),))
    assert "cu118" in next(
        p for p in lock(wanted(), matrix=eleven).targets[0].packages if p.name == "flash-attn"
    ).files[0].filename
    old_gpu = replace(MATRIX, torch=(torch_build("2.3.1", "12.1", "12.1.1", gpu_archs=("sm_75", "sm_80")),))
    assert "flash-attn" not in pins(lock(wanted(gpu_archs=("sm_75",)), matrix=old_gpu))


def test_rule_between_flash_attn_and_another_package() -> None:
    matrix = replace(MATRIX, rules=(rule("transformers", ">=4", "flash-attn>=9"),))
    found = lock(wanted().with_(requirements=(Requirement(text="transformers", origin="--with transformers"),)),
                 matrix=matrix)
    assert "flash-attn" not in pins(found)      # it is only a default: transformers was asked for
    assert pins(found)["transformers"] == "5.0"


def test_one_version_for_all_targets_that_have_one() -> None:
    found = lock(wanted(pythons=("3.10", "3.11")))
    steps = {
        t.target.python: [(p.version, p.step) for p in t.packages if p.name == "flash-attn"] for t in found.targets
    }
    assert steps == {"3.10": [("2.7.0", 2)], "3.11": [("2.7.0", 2)]}
    partly = lock(wanted(pythons=("3.10", "3.12")))
    covered = {t.target.python for t in partly.targets if any(p.name == "flash-attn" for p in t.packages)}
    assert covered == {"3.10"}
    assert any("Python 3.12 on linux-64" in note and "left out" in note for note in partly.notes)


def test_row_of_low_confidence_is_told() -> None:
    low = flash_wheel("2.6.3", "cu123", "2.3", "3.10", confidence="low")
    matrix = replace(MATRIX, flash_attn_wheels=(low,), flash_attn=(flash_release("2.6.3"),))
    assert any("low confidence" in note for note in lock(wanted(), matrix=matrix).notes)


@pytest.mark.parametrize("file", [
    "flash_attn-2.6.3+cu123torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl/../../x",
    "../flash_attn-2.6.3+cu123torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
    "flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
    "flash_attn-2.6.3+cu123torch2.3cxx11abiTRUE-cp310-cp310-linux_x86_64.whl",
    "flash_attn-2.6.3+cu118torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
    "flash_attn-2.5.8+cu123torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
    "flash_attn-2.6.3.tar.gz", "flash_attn-2.6.3+cu123torch2.3cxx11abiFALSE-cp310-cp311-linux_x86_64.whl", "",
])
def test_asset_of_another_torch_or_no_asset_at_all(file: str) -> None:
    assert cuda_tag_if_fits(file, "2.6.3", torch_build("2.3.1", "12.1", "12.1.1")) is None
    assert cuda_tag_if_fits(F26, "2.6.3", torch_build("2.3.1", "12.1", "12.1.1")) == "123"


def test_left_out_for_the_gpu_says_so_and_names_no_stack_with_the_same_defect() -> None:
    matrix = replace(MATRIX, torch=tuple(replace(b, gpu_archs=("sm_75", *b.gpu_archs)) for b in MATRIX.torch))
    note = next(n for n in lock(wanted(torch="==2.3.*", gpu_archs=("sm_75",)), matrix=matrix).notes if "left out" in n)
    assert "its wheels for torch 2.3.1 (CUDA 12.1), Python 3.10 on linux-64 have no code for sm_75" in note
    assert "nearest" not in note
    error = refusal(wanted(torch="==2.3.1", gpu_archs=("sm_75",), flash_attn="==2.5.8"), matrix=matrix)
    assert any("wheels of flash-attn 2.5.8 for torch 2.3" in cause.text and "have no code for sm_75" in cause.text
               for cause in error.causes)
    assert not any("has no prebuilt wheel" in cause.text for cause in error.causes)


def test_another_python_of_the_same_torch_is_nearer_than_another_torch() -> None:
    wheels = (
        *MATRIX.flash_attn_wheels, flash_wheel("2.7.0", "cu12", "2.4", "3.12", abi=True),
        flash_wheel("2.7.0", "cu12", "2.4", "3.11", abi=True),
    )
    found = lock(wanted(torch="==2.4.*"), matrix=replace(MATRIX, flash_attn_wheels=wheels))
    note = next(note for note in found.notes if "left out" in note)
    assert "is torch 2.4.1 with CUDA 12.4, Python 3.11 (flash-attn 2.7.0) or torch 2.3.1 with CUDA 12.1 (" in note


def test_second_step_is_one_short_note_that_names_the_wheel() -> None:
    file = "flash_attn-2.7.4.post1+cu12torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
    row = replace(flash_wheel("2.7.0", "cu12", "2.3", "3.10", hashed=False), file=file, version="2.7.4.post1")
    rows = (row, replace(row, file=file.replace("cp310", "cp311"), python="3.11"))
    matrix = replace(MATRIX, flash_attn_wheels=rows, flash_attn=(flash_release("2.7.4.post1"),))
    world = projects()
    world["flash-attn"]["2.7.4.post1"] = Release(tags=())
    notes = [n for n in lock(wanted(pythons=("3.10", "3.11")), FakeIndex(world), matrix=matrix).notes if "step" in n]
    assert len(notes) == 1
    assert f"no sha256 of {file} (and of 1 more) can be had now: nobody answers" in notes[0]
    assert len(notes[0]) < 200
