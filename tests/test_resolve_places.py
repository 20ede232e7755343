"""Builds by place: the CPU on one platform beside CUDA on others, macOS without any, labels, refusals by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stackfix.matrix.records import Matrix
from stackfix.resolve.decide import decide
from stackfix.resolve.places import follows_cuda
from stackfix.resolve.records import Lock, NoConsistentStack, StackRequest, TargetLock
from tests.resolve_world import (
    MATRIX,
    FakeIndex,
    FakeReleases,
    Release,
    asked,
    companion,
    projects,
    told,
    torch_build,
    wheel_tags,
)
from tests.test_resolve_torch_index import FakeTorchIndex

PYTHONS = ("3.10", "3.11")
WINDOWS, MAC, CPU_ON_LINUX = "win-64", "osx-arm64", "linux-64-cpu"
ROWS = tuple(
    torch_build(version, "cpu", None, platform=platform, gpu_archs=(), cxx11_abi=None)
    for version in ("2.4.1", "2.3.1", "2.3.0") for platform in (WINDOWS, MAC)
)
VARIANTS = (
    torch_build("2.3.1", "cpu", None, index="cpu", gpu_archs=()),
    torch_build("2.4.1", "cpu", None, index="cpu", gpu_archs=()),
    torch_build("2.3.1", "12.1", "12.1.1", platform=WINDOWS, index="cu121", requires=()),
    torch_build("2.3.1", "11.8", "11.8.0", platform=WINDOWS, index="cu118", requires=()),
)
PLACES: Matrix = replace(MATRIX, torch=(*MATRIX.torch, *ROWS, *VARIANTS), companions=(
    *MATRIX.companions, companion("torchvision", "0.19.1", "==2.4.1", "12.4")))
NEEDS_LINUX = ('nvidia-cusparse-cu12==12.1.0.106 ; platform_system == "Linux" and platform_machine == "x86_64"',
               "filelock", 'colour ; sys_platform == "win32"', 'numpy<2.1 ; sys_platform == "darwin"', "numpy")
TAGS = {WINDOWS: "win_amd64", MAC: "macosx_11_0_arm64", "linux-64": "manylinux_2_17_x86_64",
        "linux-aarch64": "manylinux_2_17_aarch64"}


def torch(*platforms: str, requires: tuple[str, ...] = NEEDS_LINUX) -> Release:
    return Release(requires=requires, tags=tuple(tag for each in platforms for tag in wheel_tags(PYTHONS, TAGS[each])))


def index() -> FakeIndex:
    found = projects()
    found["torch"].update({version: torch("linux-64", "linux-aarch64", WINDOWS, MAC) for version in ("2.4.1", "2.3.1")})
    found["colour"] = {"0.4": Release()}
    return FakeIndex(found)


def torch_index() -> FakeTorchIndex:
    linux, windows = (torch(each, requires=("filelock",)) for each in ("linux-64", WINDOWS))
    vision = [replace(each, requires=("torch==2.3.1", "numpy")) for each in (linux, windows)]
    return FakeTorchIndex({
        "cpu": {"torch": {"2.4.1+cpu": linux, "2.3.1+cpu": linux}, "torchvision": {"0.18.1+cpu": vision[0]}},
        "cu121": {"torch": {"2.3.1+cu121": windows}, "torchvision": {"0.18.1+cu121": vision[1]}}, "cu118": {"torch": {
            "2.3.1+cu118": Release(requires=("filelock",), tags=(*windows.tags, *linux.tags))}},
    })


def lock(request: StackRequest, where: FakeIndex | None = None, wheels: FakeTorchIndex | None = None) -> Lock:
    return decide(request, PLACES, where or index(), FakeReleases(), command=told, torch_wheels=wheels or torch_index())


def refusal(request: StackRequest) -> NoConsistentStack:
    with pytest.raises(NoConsistentStack) as caught:
        lock(request)
    return caught.value


def by_place(found: Lock) -> dict[str, TargetLock]:
    return {one.target.place: one for one in found.targets}


def torch_of(found: Lock) -> dict[str, tuple[str, str]]:
    """place -> (CUDA of its build, name of torch's file)."""
    files = {place: next(one.files[0] for one in target.packages if one.name == "torch")
             for place, target in by_place(found).items()}
    return {place: (target.build.cuda, files[place].filename) for place, target in by_place(found).items()}


def test_the_mac_has_its_only_build_beside_cuda_and_a_note_says_so() -> None:
    found = lock(asked(torch="==2.3.*", cuda="12.1", platforms=("linux-64", MAC)))
    assert torch_of(found) == {
        "linux-64": ("12.1", "torch-2.3.1-cp310-cp310-manylinux_2_17_x86_64.whl"),
        MAC: ("cpu", "torch-2.3.1-cp310-cp310-macosx_11_0_arm64.whl")}
    assert found.stack.cuda == "12.1"
    assert found.stack.platforms == ("linux-64", MAC)
    assert any("for osx-arm64 is the default index's wheel, without CUDA" in note for note in found.notes)
    assert "nvidia-cusparse-cu12" not in {one.name for one in by_place(found)[MAC].packages}


@pytest.mark.parametrize("places", [("linux-64", CPU_ON_LINUX), (CPU_ON_LINUX, "linux-64")])
def test_the_cpu_on_a_platform_stands_beside_its_cuda(places: tuple[str, ...]) -> None:
    found = lock(asked(torch="==2.3.*", platforms=places))
    assert torch_of(found) == {
        "linux-64": ("12.1", "torch-2.3.1-cp310-cp310-manylinux_2_17_x86_64.whl"),
        CPU_ON_LINUX: ("cpu", "torch-2.3.1+cpu-cp310-cp310-manylinux_2_17_x86_64.whl")}
    assert found.stack.cuda == "12.1"
    assert found.stack.platforms == ("linux-64", CPU_ON_LINUX)


def test_windows_takes_a_variant_of_the_torch_index_and_the_defaults_cpu_build() -> None:
    cuda = lock(asked(torch="==2.3.*", cuda="12.1", platforms=(WINDOWS,)))
    assert torch_of(cuda) == {WINDOWS: ("12.1", "torch-2.3.1+cu121-cp310-cp310-win_amd64.whl")}
    usual = lock(asked(torch="==2.3.*", platforms=(WINDOWS,)))
    assert torch_of(usual) == {WINDOWS: ("cpu", "torch-2.3.1-cp310-cp310-win_amd64.whl")}
    assert any(f"for {WINDOWS} on the default index is a CPU build; with --cuda 12.1" in note for note in usual.notes)
    asked_for = lock(asked(torch="==2.3.*", cuda="cpu", platforms=(WINDOWS,)))
    assert not any("CPU build; with" in note for note in asked_for.notes)


def test_markers_decide_what_each_system_has() -> None:
    found = by_place(lock(asked(torch="==2.3.*", cuda="cpu", platforms=("linux-aarch64", WINDOWS, MAC))))
    names = {place: {one.name: one.version for one in target.packages} for place, target in found.items()}
    assert names[WINDOWS] == {"torch": "2.3.1", "filelock": "3.1", "colour": "0.4", "numpy": "2.1"}
    assert names[MAC] == {"torch": "2.3.1", "filelock": "3.1", "numpy": "2.0"}
    assert names["linux-aarch64"] == {"torch": "2.3.1", "filelock": "3.1", "numpy": "2.1"}


def test_versions_that_differ_are_told_by_target() -> None:
    notes = lock(asked(torch="==2.3.*", cuda="cpu", platforms=("linux-aarch64", WINDOWS, MAC), pythons=PYTHONS)).notes
    assert "of other versions on some targets: numpy 2.0 for osx-arm64, else 2.1" in notes
    same = lock(asked(torch="==2.3.*", cuda="cpu", platforms=("linux-aarch64", WINDOWS))).notes
    assert not any(note.startswith("of other versions") for note in same)


@pytest.mark.parametrize("line", ["torch==2.4.1+cpu", "torch==2.4.1+cpu ; sys_platform == 'linux'"])
def test_a_label_is_met_by_the_plain_version_where_the_only_build_is_the_cpus(line: str) -> None:
    """A wheel with +cpu exists for Linux on x86_64 alone; elsewhere the CPU's build has no label."""
    found = lock(asked(line, platforms=("linux-64", "linux-aarch64", MAC)))
    assert torch_of(found) == {
        "linux-64": ("cpu", "torch-2.4.1+cpu-cp310-cp310-manylinux_2_17_x86_64.whl"),
        "linux-aarch64": ("cpu", "torch-2.4.1-cp310-cp310-manylinux_2_17_aarch64.whl"),
        MAC: ("cpu", "torch-2.4.1-cp310-cp310-macosx_11_0_arm64.whl")}


def test_labels_of_several_places_are_each_followed() -> None:
    found = lock(asked("torch==2.3.1+cu118 ; sys_platform == 'linux'", "torch==2.3.1+cu121 ; sys_platform == 'win32'",
                       platforms=("linux-64", WINDOWS, MAC)))
    assert torch_of(found) == {
        "linux-64": ("11.8", "torch-2.3.1+cu118-cp310-cp310-manylinux_2_17_x86_64.whl"),
        WINDOWS: ("12.1", "torch-2.3.1+cu121-cp310-cp310-win_amd64.whl"),
        MAC: ("cpu", "torch-2.3.1-cp310-cp310-macosx_11_0_arm64.whl")}


def test_a_label_of_cuda_is_met_on_the_mac_only_beside_a_place_that_has_it() -> None:
    beside = lock(asked("torch==2.3.1+cu118", platforms=("linux-64", MAC)))
    assert {place: cuda for place, (cuda, _) in torch_of(beside).items()} == {"linux-64": "11.8", MAC: "cpu"}
    error = refusal(asked("torch==2.3.1+cu118", platforms=(MAC,)))
    assert "torch==2.3.1+cu118" in error.headline


def test_cuda_for_the_mac_alone_is_refused() -> None:
    error = refusal(asked(torch="==2.3.*", cuda="12.1", platforms=(MAC,)))
    assert error.headline == "no stack has --cuda 12.1 together with --platform osx-arm64"
    assert any("only a CPU build for osx-arm64: nothing is built for CUDA there" in one.text for one in error.causes)
    assert "--cuda cpu in place of 12.1" in [offer.change for offer in error.nearest]


def test_cuda_for_a_place_that_is_the_cpus_by_its_name_is_refused() -> None:
    error = refusal(asked(torch="==2.3.*", cuda="12.1", platforms=(CPU_ON_LINUX,)))
    assert error.headline == "no stack has --cuda 12.1 together with --platform linux-64-cpu"
    assert [offer.change for offer in error.nearest] == [
        "--cuda cpu in place of 12.1", "--platform linux-64 in place of linux-64-cpu"]


def test_of_several_targets_the_one_without_a_build_is_named_and_can_be_left_out_or_be_the_cpus() -> None:
    error = refusal(asked(torch="==2.3.*", cuda="11.8", platforms=("linux-64", "linux-aarch64")))
    assert error.headline == "no stack has --cuda 11.8 together with --platform linux-aarch64"
    changes = [offer.change for offer in error.nearest]
    assert "--platform linux-aarch64-cpu in place of linux-aarch64" in changes
    assert "without --platform linux-aarch64" in changes


def test_what_is_cuda_here_and_the_cpu_there_is_never_mixed_in_silence() -> None:
    error = refusal(asked(torch="==2.3.*", platforms=("linux-64", WINDOWS)))
    assert error.headline == "no stack has --platform linux-64 together with --platform win-64"
    assert any("CUDA 12.1 on linux-64 and the CPU on win-64" in one.text for one in error.causes)
    changes = [offer.change for offer in error.nearest]
    assert "--platform win-64-cpu in place of win-64" in changes
    assert any(change.startswith("--cuda 12.1 added") for change in changes)
    explicit = lock(asked(torch="==2.3.*", platforms=("linux-64", f"{WINDOWS}-cpu")))
    assert {place: cuda for place, (cuda, _) in torch_of(explicit).items()} == {
        "linux-64": "12.1", "win-64-cpu": "cpu"}


def test_a_platform_without_a_wheel_of_the_release_is_named() -> None:
    error = refusal(asked(torch="==2.0.*", platforms=("linux-64", MAC)))
    assert "--platform osx-arm64" in error.headline
    assert "without --platform osx-arm64" in [offer.change for offer in error.nearest]


def test_without_the_torch_index_there_is_no_cpu_build_beside_cuda() -> None:
    request = asked(torch="==2.3.*", platforms=("linux-64", CPU_ON_LINUX))
    with pytest.raises(NoConsistentStack) as caught:
        decide(request, PLACES, index(), FakeReleases(), command=told)
    assert "--platform linux-64-cpu" in caught.value.headline


def test_a_flash_attn_that_is_asked_for_is_asked_of_linux_with_cuda() -> None:
    request = asked(torch="==2.3.*", cuda="12.1", platforms=("linux-64", CPU_ON_LINUX, MAC), flash_attn="==2.6.3",
                    no_flash_attn=False)
    found = lock(request)
    have = {place for place, target in by_place(found).items() if "flash-attn" in {p.name for p in target.packages}}
    assert have == {"linux-64"}
    assert any(f"left out for {CPU_ON_LINUX} and {MAC}: it has no CPU build" in note for note in found.notes)
    error = refusal(replace(request, platforms=(MAC,), cuda=None))
    assert "--flash-attn 2.6.3" in error.headline


def test_a_flash_attn_for_windows_is_left_out_with_a_note() -> None:
    found = lock(asked(torch="==2.3.*", cuda="12.1", platforms=("linux-64", WINDOWS), no_flash_attn=False))
    assert {place for place, target in by_place(found).items()
            if "flash-attn" in {p.name for p in target.packages}} == {"linux-64"}
    assert f"flash-attn is left out for {WINDOWS}: upstream has no wheel for Windows" in found.notes


def test_a_wheel_for_other_platforms_alone_is_told_by_them() -> None:
    where = index()
    where.projects["only-linux"] = {"1.0": Release(tags=("cp38-abi3-manylinux_2_17_x86_64", "cp38-abi3-linux_aarch64"))}
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("only-linux", torch="==2.3.1", platforms=(MAC,)), where)
    text = "only-linux 1.0 has no file for Python 3.10 on osx-arm64 (its wheels are for linux-64, linux-aarch64)"
    assert text in [cause.text for cause in caught.value.causes]
    assert caught.value.headline == "no stack has --platform osx-arm64 together with --with only-linux"


def test_the_driver_on_windows_is_told_beside_linux_alone() -> None:
    families = tuple(replace(family, windows="527.41") for family in PLACES.driver_families)
    known = replace(PLACES, driver_families=families)
    for matrix, word in ((PLACES, "which driver CUDA 12.1 needs on Windows is unknown"),
                         (known, "on Windows CUDA 12.1 needs driver 527.41 or newer")):
        request = asked(torch="==2.3.1", cuda="12.1", platforms=("linux-64", WINDOWS))
        found = decide(request, matrix, index(), FakeReleases(), command=told, torch_wheels=torch_index())
        assert any(note.startswith(word) for note in found.notes), found.notes
        assert found.stack.driver_min == "525.60.13"
        alone = decide(replace(request, platforms=(WINDOWS,)), matrix, index(), FakeReleases(), command=told,
                       torch_wheels=torch_index())
        assert not any("on Windows" in note for note in alone.notes)
        assert alone.stack.driver_min == ("527.41" if matrix is not PLACES else None)


@pytest.mark.parametrize(("place", "tag", "python", "words"), [
    ("linux-64", "cp38-abi3-manylinux_2_31_x86_64", "3.10", "its wheels need glibc 2.31 or newer: --glibc 2.31"),
    (MAC, "cp38-abi3-macosx_15_0_arm64", "3.10", "its wheels need macOS 15.0 or newer: --macos 15.0"),
    ("linux-64", "cp311-abi3-manylinux_2_31_x86_64", "3.10", "its wheels are for 3.11 and newer"),
    ("linux-64", "cp39-cp39-manylinux_2_17_x86_64", "3.10", "its wheels are for 3.9"),
    ("linux-64", "cp310-cp310-musllinux_1_2_x86_64", "3.10", "its wheels are for musllinux_1_2_x86_64"),
    ("linux-64", "cp310-cp310-win32", "3.10", "its wheels are for win32"),
    ("linux-64", "cp310-cp310t-manylinux_2_31_x86_64", "3.10", "its wheels are for 3.10 free-threaded"),
    ("linux-64", "cp310-cp310-manylinux_2_35_x86_64.manylinux_2_31_x86_64.manylinux_2_17_s390x", "3.10",
     "its wheels need glibc 2.31 or newer: --glibc 2.31"),
    ("linux-64", "cp310-cp310-manylinux_3_1_x86_64", "3.10", "its wheels are for 3.10"),
])
def test_a_wheel_is_refused_for_what_it_really_needs(place: str, tag: str, python: str, words: str) -> None:
    where = index()
    where.projects["picky"] = {"1.0": Release(tags=(tag,))}
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("picky", torch="==2.3.1", platforms=(place,), pythons=(python,)), where)
    text = f"picky 1.0 has no file for Python {python} on {place} ({words})"
    assert text in [cause.text for cause in caught.value.causes], caught.value.causes


@pytest.mark.parametrize(("tags", "words"), [
    (("cp38-abi3-manylinux_2_17_x86_64",), "it requires Python >=3.10.4"),      # which is not the first 3.10
    (("cp38-abi3-manylinux_2_31_x86_64",), "it requires Python >=3.10.4"),      # and a newer glibc, which is not all
    (("py3-none-any", "cp39-cp39-manylinux_2_17_x86_64"), "it requires Python >=3.10.4"),
])
def test_a_wheel_that_its_stated_python_leaves_out_is_not_told_by_the_system(tags: tuple[str, ...], words: str) -> None:
    where = index()
    where.projects["picky"] = {"1.0": Release(tags=tags, requires_python=">=3.10.4")}
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("picky", torch="==2.3.1"), where)
    text = f"picky 1.0 has no file for Python 3.10 on linux-64 ({words})"
    assert text in [cause.text for cause in caught.value.causes], caught.value.causes


def test_an_older_name_of_a_glibc_is_told_by_its_number() -> None:
    where = index()
    where.projects["torch"]["2.3.1"] = Release(tags=wheel_tags(("3.10",), "manylinux_2_5_x86_64"))
    where.projects["picky"] = {"1.0": Release(tags=("py3-none-manylinux2014_x86_64", "py3-none-win_amd64"))}
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("picky", torch="==2.3.1", glibc="2.12"), where)
    text = "picky 1.0 has no file for Python 3.10 on linux-64 (its wheels need glibc 2.17 or newer: --glibc 2.17)"
    assert text in [cause.text for cause in caught.value.causes], caught.value.causes


@pytest.mark.parametrize("pythons", [(), ("3.10",)])
def test_a_torch_for_a_newer_macos_alone_says_so(pythons: tuple[str, ...]) -> None:
    where = index()
    where.projects["torch"]["2.4.1"] = Release(
        requires=NEEDS_LINUX,
        tags=tuple(tag for each in ("macosx_14_0_arm64", TAGS["linux-64"]) for tag in wheel_tags(PYTHONS, each)))
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked(torch="==2.4.1", platforms=(MAC,), pythons=pythons, macos="13.0"), where)
    assert any("its wheels need macOS 14.0 or newer: --macos 14.0" in cause.text for cause in caught.value.causes), (
        caught.value.causes)


FLOORS = tuple(replace(each, windows={12: "527.41", 11: "452.39"}.get(each.cuda_major))
               for each in PLACES.driver_families)


def refused(request: StackRequest, matrix: Matrix) -> NoConsistentStack:
    with pytest.raises(NoConsistentStack) as caught:
        decide(request, matrix, index(), FakeReleases(), command=told, torch_wheels=torch_index())
    return caught.value


@pytest.mark.parametrize("places", [(WINDOWS,), ("linux-64", WINDOWS)])
def test_a_driver_that_is_too_old_for_a_cuda_on_windows_is_told_by_its_floor_there(places: tuple[str, ...]) -> None:
    request = asked(torch="==2.3.1", cuda="12.1", platforms=places, driver="525.60.13")
    error = refused(request, replace(PLACES, driver_families=FLOORS))
    assert error.headline == "no stack has --cuda 12.1, --platform win-64 together with --driver 525.60.13"
    assert any("needs driver 527.41 or newer on Windows" in cause.text for cause in error.causes)
    assert "--driver 527.41 in place of 525.60.13" in [offer.change for offer in error.nearest]


def test_a_cuda_that_the_driver_is_known_to_run_is_offered_before_one_of_which_nobody_knows() -> None:
    unknown = replace(PLACES, driver_families=tuple(replace(each, windows=None) if each.cuda_major == 12 else each
                                                    for each in FLOORS))
    offers = [offer.change for offer in refused(asked(driver="525.60.13", platforms=(WINDOWS,)), unknown).nearest]
    assert offers[0].startswith("--cuda 11.8 added")
    assert any(offer.startswith("--cuda 12.1 added") for offer in offers)
    none = refused(asked(driver="525.60.13", platforms=(WINDOWS,)), replace(PLACES, driver_families=FLOORS)).nearest
    assert not any("12.1" in offer.change for offer in none)


def test_another_machines_lock_is_no_offer_for_the_only_place() -> None:
    where = index()
    where.projects["only-linux"] = {"1.0": Release(tags=("cp38-abi3-manylinux_2_17_x86_64",))}
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("only-linux", torch="==2.3.1", platforms=(MAC,)), where)
    assert [offer.change for offer in caught.value.nearest] == ["without --with only-linux"]


def test_a_place_without_a_wheel_of_any_python_is_named_alone() -> None:
    where = index()
    where.projects["torch"]["2.3.1"] = torch("linux-64", "linux-aarch64")
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked(torch="==2.3.1", platforms=("linux-64", MAC), pythons=()), where)
    assert any(cause.text == "torch 2.3.1 has no wheel on the index for osx-arm64" for cause in caught.value.causes)
    assert caught.value.headline == "no stack has --torch 2.3.1 together with --platform osx-arm64"
    where.projects["torch"]["2.3.1"] = Release(requires=NEEDS_LINUX, tags=(
        *wheel_tags(("3.10",), TAGS["linux-64"]), *wheel_tags(("3.11",), TAGS[MAC])))
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked(torch="==2.3.1", platforms=("linux-64", MAC), pythons=()), where)
    assert any(cause.text == "torch 2.3.1 has no wheel of one Python on the index for linux-64, osx-arm64"
               for cause in caught.value.causes)


EVERY = ("linux-64", CPU_ON_LINUX, "linux-aarch64-cpu", WINDOWS, f"{WINDOWS}-cpu", MAC)
LINES = ("transformers", "torchvision", "numpy<2 ; sys_platform == 'win32'",
         "filelock<3.1 ; platform_machine == 'arm64'", "tokenizers==0.19 ; python_version < '3.11'")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(EVERY), min_size=1, max_size=5, unique=True), st.sampled_from(("12.1", "cpu")),
       st.lists(st.sampled_from(PYTHONS), min_size=1, unique=True), st.lists(st.sampled_from(LINES), unique=True))
def test_each_target_is_locked_as_it_would_be_alone(
    places: list[str], cuda: str, pythons: list[str], lines: list[str]
) -> None:
    assume(cuda == "cpu" or any(map(follows_cuda, places)))     # else nothing is for that CUDA
    together = lock(asked(*lines, torch="==2.3.1", cuda=cuda, platforms=tuple(places), pythons=tuple(pythons)))
    assert len(together.targets) == len(places) * len(pythons)
    for target in together.targets:
        place = target.target.place
        alone = lock(asked(*lines, torch="==2.3.1", cuda=cuda if follows_cuda(place) else None, platforms=(place,),
                           pythons=(target.target.python,)))
        assert alone.targets == (target,)


def test_targets_share_what_is_read() -> None:
    """Each page is asked for once, and each file's metadata once, however many targets there are."""
    where = index()
    lock(asked("transformers", torch="==2.3.*", cuda="cpu", pythons=PYTHONS,
               platforms=("linux-64", "linux-aarch64", WINDOWS, MAC)), where)
    assert len(where.pages_asked) == len(set(where.pages_asked))
    assert len(where.metadata_asked) == len(set(where.metadata_asked))
    assert {name for name in where.prefetched if name.startswith("torch-2.3.1-cp31")} >= {
        "torch-2.3.1-cp310-cp310-win_amd64.whl", "torch-2.3.1-cp311-cp311-macosx_11_0_arm64.whl"}
