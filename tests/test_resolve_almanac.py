"""The lock with the almanac that comes with stackfix: real versions and symbols, on an index in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.requirements import Requirement

from stackfix.abi.books import open_books
from stackfix.cli.matrix import parse_pairs
from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.load import load_matrix
from stackfix.resolve.judged import cannot_load, of_release
from stackfix.resolve.limits import SYMBOLS, limits_of
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.why import why
from stackfix.resolve.why_pairs import NVIDIA, keys_of
from tests.resolve_world import MATRIX, FakeIndex, Release, asked, companion, lock, pins, projects, refusal, wheel_tags
from tests.test_resolve_explain import facts, named

BOOKS = open_books()
REAL = load_matrix()
SILENT = replace(REAL, rules=tuple(rule for rule in REAL.rules if ">=" not in rule.needs))
JITLINK, CUBLAS, CUSOLVER = "nvidia-nvjitlink-cu12", "nvidia-cublas-cu12", "nvidia-cusolver-cu12"


def index_of(torch: str) -> FakeIndex:
    """torch with what its wheel pins, and every read version of NVIDIA's libraries, which name each other bare."""
    build = next(build for build in query.builds(REAL, platform="linux-64", index="default") if build.version == torch)
    world: dict[str, dict[str, Release]] = {}
    for line in build.requires:
        world.setdefault(Requirement(line).name, {"999": Release()})
    for name in (*world, JITLINK, CUBLAS, CUSOLVER):
        read = BOOKS.nvidia.versions(name)
        needs = {"nvidia-cusparse-cu12": (JITLINK,), CUSOLVER: (JITLINK, CUBLAS, "nvidia-cusparse-cu12")}.get(name, ())
        pinned = query.preferred_versions(REAL, build).get(name)
        versions = dict.fromkeys([*read, *([pinned] if pinned else [])])
        if versions:
            world[name] = {version: Release(requires=needs) for version in versions}
    world["torch"] = {torch: Release(requires=build.requires, tags=wheel_tags(("3.10",)))}
    return FakeIndex({**world, "triton": {"2.3.1": Release()}})


def test_torch_231_and_an_nvjitlink_that_its_cusparse_cannot_use() -> None:
    request, index = asked(f"{JITLINK}==12.0.140", torch="==2.3.1"), index_of("2.3.1")
    error = refusal(request, index, matrix=SILENT, books=BOOKS)
    assert named(error) == {f"requirement {JITLINK}==12.0.140"}     # the index has no other torch
    assert f"nvidia-cusparse-cu12 12.1.0.106 needs {JITLINK}>=12.1.55: libcusparse.so.12 uses" in facts(error)
    assert "__nvJitLinkAddData_12_1, absent in 12.0.140" in facts(error)
    assert SYMBOLS in {cause.source for cause in error.causes}
    assert pins(lock(request, index, matrix=SILENT))[JITLINK] == "12.0.140"     # nothing else stands in the way


def test_torch_231_never_gets_it_though_a_lock_had_it() -> None:
    request = asked(torch="==2.3.1", kept=(("torch", "2.3.1"), (JITLINK, "12.0.140")))
    found = lock(request, index_of("2.3.1"), matrix=SILENT, books=BOOKS)
    assert pins(found)[JITLINK] == "12.1.105"
    assert any("was chosen by symbols" in note and "_12_1" in note for note in found.notes)


@pytest.mark.parametrize(("cublas", "fits"), [("12.8.5.5", False), ("12.9.0.13", True), ("12.9.1.4", True)])
def test_cusolver_11_7_5_82_over_a_cublas(cublas: str, fits: bool) -> None:
    index = index_of("2.3.1")
    index.projects["torch"]["2.3.1"] = Release(tags=wheel_tags(("3.10",)))
    request = asked(f"{CUSOLVER}==11.7.5.82", f"{CUBLAS}=={cublas}", torch="==2.3.1")
    if fits:
        assert pins(lock(request, index, matrix=SILENT, books=BOOKS))[CUBLAS] == cublas
        return
    error = refusal(request, index, matrix=SILENT, books=BOOKS)
    assert f"{CUSOLVER} 11.7.5.82 needs {CUBLAS}>=12.9.0.13: libcusolver.so.11 uses cublasSetEnvironmentMode" \
        in facts(error)


@pytest.mark.parametrize("build", [
    build for build in query.builds(REAL, index="default") if build.cuda != query.CPU
], ids=lambda build: f"{build.version}-{build.platform}")
def test_every_stack_of_the_default_index_meets_what_symbols_set(build: object) -> None:
    """What torch pins, or its toolkit release holds: else the wheels themselves would not load."""
    assert isinstance(build, type(REAL.torch[0]))
    versions = {"torch": build.version, **query.preferred_versions(REAL, build)}
    for package, version in versions.items():
        for limit in limits_of(SILENT, BOOKS.nvidia, package, version):
            other = parse_version(versions.get(limit.name, ""))
            assert other is None or limit.admits(other), (package, version, limit.rule.needs, str(other))


@pytest.mark.parametrize("package", BOOKS.judged.packages)
def test_why_tells_what_symbols_say_of_every_extension_that_was_read(package: str) -> None:
    wheel = BOOKS.judged.of(package)[0]
    for torch in ("2.3.1", "2.14.0"):
        verdict = why(REAL, {"torch": torch, package: wheel.version}, BOOKS)
        [told] = [point for point in verdict.points if point.about == package and point.source == SYMBOLS]
        if verdict.build is not None and verdict.build.cuda != "cpu":
            assert told.holds is (wheel.loads(torch) and "is linked against" not in told.text
                                  and "C++ ABI" not in told.text)
        assert wheel.file in told.text or told.holds is None


def test_why_names_the_symbols_that_disprove_a_declaration() -> None:
    verdict = why(REAL, {"torch": "2.11", "torchaudio": "2.11.1"}, BOOKS)
    assert verdict.fits is False
    assert verdict.build is not None
    assert verdict.build.index == "default"
    reasons = [point.text for point in verdict.points if point.holds is False]
    [reason] = reasons      # of CUDA it compares the majors alone
    assert "torch_new_stable_ivalue" in reason


def test_an_unknown_key_is_answered_with_all_that_there_are() -> None:
    with pytest.raises(BadInput, match="unknown key 'colour'") as caught:
        parse_pairs(("colour=red",), keys_of(BOOKS), NVIDIA)
    hint = caught.value.next_step() or ""
    assert hint.startswith("keys: torch, cuda, ")
    assert "vllm-flash-attn" in hint
    assert hint.endswith(", and names that begin with nvidia-")


@pytest.mark.parametrize(("package", "version", "torch", "fits"), [
    ("torchaudio", "2.11.1", "2.13.0", True), ("torchaudio", "2.11.1", "2.14.1", True),
    ("torchaudio", "2.11.0", "2.15.0", False),
    ("torchvision", "0.29.2", "2.14.1", True), ("torchvision", "0.29.1", "2.15.0", True),
])
def test_their_own_check_of_cuda_decides(package: str, version: str, torch: str, fits: bool) -> None:
    row = query.companion(REAL, package, version)
    [build] = [each for each in query.builds(REAL, index=query.DEFAULT_INDEX)
               if each.version == torch and each.platform == "linux-64" and each.cuda != query.CPU]
    assert row is not None
    assert (query.companion_fits(row, build) is None) is fits


@pytest.mark.parametrize(("asked_for", "version"), [("audio", "1.0"), ("audio>=2", "2.0")])
def test_the_same_minor_of_cuda_goes_before_another_one(asked_for: str, version: str) -> None:
    index = FakeIndex({**projects(), "audio": {each: Release(requires=("torch>=2.0",)) for each in ("1.0", "2.0")}})
    matrix = replace(MATRIX, companions=(*MATRIX.companions, *(
        companion("audio", each, ">=2.0", cuda, "major") for each, cuda in (("2.0", "12.4"), ("1.0", "12.1")))))
    assert pins(lock(asked(asked_for, torch="==2.3.1"), index, matrix=matrix))["audio"] == version


def test_each_companion_that_was_read_has_a_torch_of_the_default_index_that_symbols_and_matrix_accept() -> None:
    builds = [each for each in query.builds(REAL, index=query.DEFAULT_INDEX)
              if each.platform == "linux-64" and each.cuda != query.CPU]
    without = [
        f"{wheel.package} {wheel.version}" for package in BOOKS.judged.packages for wheel in BOOKS.judged.of(package)
        if (row := query.companion(REAL, wheel.package, wheel.version)) is not None and not any(
            query.companion_fits(row, build) is None and not cannot_load(
                of_release(BOOKS, wheel.package, wheel.version, "x86_64", build)) for build in builds)
    ]
    assert without == ["xformers 0.0.33"]       # for CUDA 13.0: torch 2.9.0 has it on an index of its own alone


def test_vllm_022_which_nobody_read_is_no_candidate_for_torch_24() -> None:
    """Its metadata takes any torch from 2.1.1 on; its read neighbours are for 2.1 and older. A lock once had it."""
    index = index_of("2.4.1")
    index.projects["triton"] = {"3.0.0": Release()}
    index.projects["vllm"] = {"0.2.2": Release(requires=("torch>=2.1.1",), tags=wheel_tags(("3.10",)))}
    error = refusal(asked("vllm", torch="==2.4.1"), index, matrix=REAL, books=BOOKS)
    assert "vllm 0.2.2 was not read, and its read neighbours" in facts(error)
    assert pins(lock(asked("vllm", torch="==2.4.1"), index, matrix=REAL))["vllm"] == "0.2.2"     # by metadata alone
