"""Refusals: minimal causes with their sources, and offers that were solved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import DriverFamily, Matrix, Rule, TorchBuild
from stackfix.resolve.question import without
from stackfix.resolve.records import Cause, NoConsistentStack, Releases, StackRequest
from stackfix.resolve.spans import versions_text
from tests.resolve_world import (
    MATRIX,
    FakeIndex,
    FakeReleases,
    Release,
    asked,
    companion,
    lock,
    pins,
    projects,
    refusal,
    rule,
    wheel_tags,
)

REAL = load_matrix()


def facts(error: NoConsistentStack) -> str:
    return "\n".join(cause.text for cause in error.causes if cause.kind != "asked")


def named(error: NoConsistentStack) -> set[str]:
    return {f"{cause.asked.kind} {cause.asked.value}" for cause in error.causes if cause.asked is not None}


def check(
    request: StackRequest, error: NoConsistentStack, index: FakeIndex, *, matrix: Matrix = MATRIX,
    releases: Releases | None = None,
) -> None:
    """Without any one of the asks it works, without any one rule or floor of the matrix too, and so does each offer."""
    for cause in error.causes:
        assert cause.source
        if cause.asked is not None:
            lock(without(request, cause.asked), index, matrix=matrix, releases=releases)
        elif any(isinstance(row, Rule | DriverFamily) for row in cause.rows):
            lock(request, index, matrix=without_rows(matrix, cause), releases=releases)
    assert 1 <= len(error.nearest) <= 3
    for offer in error.nearest:
        again = lock(offered(offer.command), index, matrix=matrix, releases=releases)
        assert f"torch {again.stack.torch}" in offer.gives
        assert offer.change
    assert len({offer.command for offer in error.nearest}) == len(error.nearest)


def without_rows(matrix: Matrix, cause: Cause) -> Matrix:
    return replace(
        matrix, rules=tuple(row for row in matrix.rules if row not in cause.rows),
        driver_families=tuple(row for row in matrix.driver_families if row not in cause.rows),
    )


def offered(command: str) -> StackRequest:
    """`told` spells a request as Python."""
    from stackfix.resolve import records

    request = eval(command, {name: getattr(records, name) for name in records.__dict__})  # noqa: S307 - our own repr
    assert isinstance(request, StackRequest)
    return request


# -- the small world -------------------------------------------------------------------------------------------------

def test_floor_that_no_metadata_states() -> None:
    request, index = asked("nvidia-nvjitlink-cu12<12.1", torch="==2.3.1"), FakeIndex(projects())
    error = refusal(request, index)
    assert named(error) == {"torch 2.3.1", "requirement nvidia-nvjitlink-cu12<12.1"}
    assert [cause.kind for cause in error.causes] == ["asked", "index", "matrix", "asked"]
    assert "torch 2.3.1 requires nvidia-cusparse-cu12==12.1.0.106" in facts(error)
    assert "nvidia-cusparse-cu12 12.1.0.106 needs nvidia-nvjitlink-cu12>=12.1.55" in facts(error)
    assert error.causes[1].source == "metadata of torch-2.3.1-cp310-cp310-manylinux_2_17_x86_64.whl"
    assert error.causes[2].source == "symbols"
    check(request, error, index)


def test_rules_that_stand_in_for_one_another_are_one_cause() -> None:
    world = projects()
    world["torch"]["2.3.1"] = Release(
        requires=("nvidia-cusparse-cu12==12.1.0.106", "nvidia-cusolver-cu12==11.4.5.107"), tags=wheel_tags(("3.10",)),
    )
    request, index = asked("nvidia-nvjitlink-cu12<12.1", torch="==2.3.1"), FakeIndex(world)
    error = refusal(request, index)
    rules = [cause for cause in error.causes if any(isinstance(row, Rule) for row in cause.rows)]
    assert len(rules) == 1
    assert len(rules[0].rows) == 2
    assert "likewise nvidia-cusolver-cu12" in rules[0].text
    check(request, error, index)


def test_clash_on_torch_itself_prunes_without_solving_each() -> None:
    world = projects()
    world["app"] = {"1.0": Release(requires=("torch==2.0.1",))}
    index = FakeIndex(world)
    assert lock(asked("app", pythons=("3.10",)), index).stack.torch == "2.0.1"
    read = [name for name in index.metadata_asked if name.startswith("torch-")]
    assert "torch-2.3.0-cp310-cp310-manylinux_2_17_x86_64.whl" not in read
    request = asked("app", torch="==2.3.*")
    error = refusal(request, index)
    assert named(error) == {"torch 2.3", "requirement app"}
    assert "app 1.0 requires torch==2.0.1" in facts(error)
    check(request, error, index)


def test_search_conflict_is_proved_one_step_further() -> None:
    world = projects()
    world["a"] = {"2.0": Release(requires=("numpy>=2",)), "1.0": Release(requires=("numpy>=2.0",))}
    request, index = asked("a", "numpy<2", "tokenizers"), FakeIndex(world)
    error = refusal(request, index)
    assert named(error) == {"requirement a", "requirement numpy<2"}
    assert "a 2.0 requires numpy>=2" in facts(error)
    check(request, error, index)


def test_what_has_no_part_in_it_is_not_named() -> None:
    request = asked("torchvision", "transformers", "filelock", "numpy<0.1", torch="==2.3.*", driver="535.54.03")
    error = refusal(request)
    assert named(error) == {"requirement numpy<0.1"}
    assert "no version of numpy on the index" in facts(error)
    check(request, error, FakeIndex(projects()))


def test_constraint_is_named_as_one() -> None:
    request = asked("torchvision", constraints=("numpy<0.1",))
    error = refusal(request)
    assert named(error) == {"requirement torchvision", "requirement numpy<0.1"}
    check(request, error, FakeIndex(projects()))


def test_companion_of_another_torch() -> None:
    request = asked("torchvision==0.18.0", torch="==2.3.1")
    error = refusal(request)
    assert named(error) == {"torch 2.3.1", "requirement torchvision==0.18.0"}
    assert "torchvision 0.18.0 requires torch==2.3.0" in facts(error)
    check(request, error, FakeIndex(projects()))


def test_companion_of_another_cuda() -> None:
    error = refusal(asked("vision-any==2.0", torch="==2.3.1"))
    assert "vision-any 2.0 is built for CUDA 12.4" in facts(error)


def test_mixed_platforms_have_no_common_cuda() -> None:
    request = asked(torch="==2.3.1", platforms=("linux-64", "linux-aarch64"))
    error = refusal(request)
    assert "CUDA 12.1 on linux-64 and the CPU on linux-aarch64" in facts(error)
    assert {"platform linux-64", "platform linux-aarch64"} & named(error)


def test_cpu_build_is_no_answer_where_a_gpu_is_named() -> None:
    error = refusal(asked(platforms=("linux-aarch64",), gpu_archs=("sm_90",)))
    assert "only a CPU build for linux-aarch64" in facts(error)
    assert lock(asked(platforms=("linux-aarch64",), gpu_archs=("sm_90",), cuda="cpu")).stack.cuda == "cpu"


def test_variant_on_the_torch_index_alone_is_told() -> None:
    error = refusal(asked(torch="==2.3.1", cuda="11.8"))
    assert "CUDA 11.8 is only on the torch index, which was not looked at" in facts(error)


def test_torch_that_only_the_index_knows() -> None:
    world = projects()
    world["torch"]["2.9.0"] = Release(tags=wheel_tags(("3.10",)))
    error = refusal(asked(torch="==2.9.*"), FakeIndex(world))
    assert "torch 2.9.0 is on the index, but the matrix has no row for it" in facts(error)


def test_torch_that_nobody_knows() -> None:
    request = asked(torch="==9.9.*")
    error = refusal(request)
    assert named(error) == {"torch 9.9"}
    assert facts(error)
    check(request, error, FakeIndex(projects()))


def test_glibc_and_upload_date_are_named() -> None:
    assert "glibc 2.5" in named(refusal(asked(glibc="2.5")))
    assert "exclude-newer 2020-01-01" in named(refusal(asked(exclude_newer="2020-01-01")))


def test_ptx_needs_the_drivers_own_toolkit() -> None:
    torch = tuple(
        replace(build, gpu_archs=("sm_80", "compute_80")) if build.version == "2.4.1" else build
        for build in MATRIX.torch
    )
    matrix = replace(MATRIX, torch=torch)
    old = asked(torch="==2.4.1", gpu_archs=("sm_90",), driver="535.54.03")
    assert "only PTX of CUDA 12.4 for sm_90" in facts(refusal(old, matrix=matrix))
    assert lock(old.with_(driver="550.54.14"), matrix=matrix).stack.torch == "2.4.1"


def test_two_reasons_at_once_give_one_minimal_chain() -> None:
    error = refusal(asked("numpy<0.1", "tokenizers>9"))
    assert len(named(error)) == 1


def test_package_that_needs_what_was_left_out() -> None:
    world = projects()
    world["app"] = {"1.0": Release(requires=("flash-attn",))}
    error = refusal(asked("app", torch="==2.3.1"), FakeIndex(world))
    assert {"no-flash-attn ", "requirement app"} <= named(error)
    assert pins(lock(asked("app", torch="==2.3.1", no_flash_attn=False), FakeIndex(world)))["flash-attn"] == "2.6.3"


def test_same_refusal_twice() -> None:
    request = asked("nvidia-nvjitlink-cu12<12.1", torch="==2.3.1")
    first, second = refusal(request), refusal(request)
    assert (first.headline, first.causes, first.nearest) == (second.headline, second.causes, second.nearest)


# -- the real matrix, on an index that says what it says --------------------------------------------------------------

NEEDS = {
    "nvidia-cusparse-cu12": ("nvidia-nvjitlink-cu12",),
    "nvidia-cusolver-cu12": ("nvidia-nvjitlink-cu12", "nvidia-cublas-cu12", "nvidia-cusparse-cu12"),
    "nvidia-cudnn-cu12": ("nvidia-cublas-cu12",),
}


def real_projects() -> dict[str, dict[str, Release]]:
    """torch as the matrix has it, each CUDA component of the matrix, and what else torch requires."""
    found: dict[str, dict[str, Release]] = {"jax": {
        "0.4.33": Release(requires=('jax-cuda12-plugin[with-cuda]==0.4.33 ; extra == "cuda12"',), extras=("cuda12",)),
        "0.4.20": Release(extras=("cuda12",)),
    }, "jax-cuda12-plugin": {
        "0.4.33": Release(requires=('nvidia-cudnn-cu12<10.0,>=9.1 ; extra == "with-cuda"',), extras=("with-cuda",)),
    }}
    for row in REAL.torch:
        if row.index == "default":
            machine = "x86_64" if row.platform == "linux-64" else "aarch64"
            tags = wheel_tags(row.pythons, f"manylinux_2_17_{machine}")
            before = found.setdefault("torch", {}).get(row.version, Release(tags=()))
            found["torch"][row.version] = Release(requires=row.requires, tags=before.tags + tags)
            for line in row.requires:
                _add(found, line)
    for component in REAL.components:
        needs = NEEDS.get(component.package, ())
        found.setdefault(component.package, {})[component.version] = Release(requires=needs)
    for name in ("einops", "packaging", "psutil", "ninja", "setuptools", "wheel"):
        found.setdefault(name, {})["1.0"] = Release()
    for release in REAL.flash_attn:
        found.setdefault("flash-attn", {})[release.version] = Release(tags=(), static=False)
    return found


def _add(found: dict[str, dict[str, Release]], line: str) -> None:
    """What a requirement line asks for: its pinned version, or some version far up."""
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    pinned = [part.version for part in requirement.specifier if part.operator == "=="]
    extras = tuple(requirement.extras)
    versions = pinned or ["99"]
    releases = found.setdefault(requirement.name, {})
    for version in versions:
        releases.setdefault(version, Release(requires=NEEDS.get(requirement.name, ()), extras=extras))
    for part in requirement.specifier:
        if part.operator in {"~=", ">=", "<", "<="}:
            releases.setdefault(part.version, Release())


WORLD = real_projects()

REFUSALS = {
    "torch 2.3 with CUDA 13.0": (
        asked(torch="==2.3.*", cuda="13.0"), {"torch 2.3", "cuda 13.0"},
        "torch 2.3.0 and 2.3.1 are built for CUDA 12.1",
    ),
    "flash-attn 2.6.3 with torch 2.9": (
        asked(torch="==2.9.*", flash_attn="==2.6.3"), {"torch 2.9", "flash-attn 2.6.3"},
        "flash-attn 2.6.3 has no prebuilt wheel for torch 2.9.0 and 2.9.1",
    ),
    "torch 2.3 on Python 3.13": (
        asked(torch="==2.3.*", pythons=("3.13",)), {"torch 2.3", "python 3.13"}, "3.12",
    ),
    "driver 470 with CUDA 12": (
        asked(driver="470.82.01", cuda="12"), {"driver 470.82.01", "cuda 12"}, "needs driver 525.60.13 or newer",
    ),
    "sm_120 with torch 2.5": (
        asked(torch="==2.5.*", gpu_archs=("sm_120",)), {"torch 2.5", "gpu-arch sm_120"}, "have no code for sm_120",
    ),
    "nvJitLink below the floor of cuSPARSE": (
        asked("nvidia-nvjitlink-cu12<12.1", torch="==2.3.1"),
        {"torch 2.3.1", "requirement nvidia-nvjitlink-cu12<12.1"}, "needs nvidia-nvjitlink-cu12>=12.1.55",
    ),
    "torch 2.1.1 with jax[cuda12] 0.4.33": (
        asked("jax[cuda12]==0.4.33", torch="==2.1.1"), {"torch 2.1.1", "requirement jax[cuda12]==0.4.33"},
        "jax-cuda12-plugin 0.4.33 requires nvidia-cudnn-cu12<10.0,>=9.1",
    ),
    "torch 2.8 with cuBLAS of CUDA 12.1": (
        asked("nvidia-cublas-cu12==12.1.3.1", torch="==2.8.*"),
        {"torch 2.8", "requirement nvidia-cublas-cu12==12.1.3.1"}, "torch 2.8.0 requires nvidia-cublas-cu12==12.8.4.1",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_with_the_right_reason(name: str) -> None:
    request, asks, fact = REFUSALS[name]
    index, releases = FakeIndex(WORLD), FakeReleases()
    error = refusal(request, index, matrix=REAL, releases=releases)
    assert named(error) == asks
    assert fact in facts(error)
    check(request, error, index, matrix=REAL, releases=releases)


def test_cuda_compat_is_offered_and_taken_with_what_is_unknown() -> None:
    request = REFUSALS["driver 470 with CUDA 12"][0]
    index = FakeIndex(WORLD)
    error = refusal(request, index, matrix=REAL)
    assert any("--cuda-compat" in offer.change for offer in error.nearest)
    taken = lock(request.with_(cuda_compat=True), index, matrix=REAL)
    assert any("forward-compatibility" in note and "unknown" in note for note in taken.notes)


def test_answer_comes_from_the_matrix_and_the_index() -> None:
    request = asked(torch="==2.3.*")
    index = FakeIndex(WORLD)
    assert lock(request, index, matrix=REAL).stack.torch == "2.3.1"
    no_rows = replace(REAL, torch=tuple(row for row in REAL.torch if not row.version.startswith("2.3.")))
    assert "the matrix has no row" in facts(refusal(request, index, matrix=no_rows))
    other_cuda = replace(REAL, torch=tuple(altered(row) for row in REAL.torch))
    assert lock(request, index, matrix=other_cuda).stack.cuda == "11.9"
    pages = WORLD | {"torch": {version: r for version, r in WORLD["torch"].items() if version != "2.3.1"}}
    assert lock(request, FakeIndex(pages), matrix=REAL).stack.torch == "2.3.0"


def altered(row: TorchBuild) -> TorchBuild:
    return replace(row, cuda="11.9") if row.version.startswith("2.3.") else row


def test_offers_are_solved_with_the_same_sources() -> None:
    request = asked(torch="==2.3.*", cuda="13.0")
    pages = WORLD | {"torch": {version: r for version, r in WORLD["torch"].items() if not version.startswith("2.11")}}
    error = refusal(request, FakeIndex(pages), matrix=REAL)
    assert error.nearest
    assert not any("2.11" in offer.change for offer in error.nearest)


def test_two_conflicts_at_once_are_offered_two_changes() -> None:
    request = asked("numpy<0.1", "tokenizers>9", torch="==2.3.*")
    error = refusal(request)
    assert error.nearest
    assert all(", and " in offer.change for offer in error.nearest)
    for offer in error.nearest:
        assert lock(offered(offer.command)).stack.torch


def two_cuda_majors() -> tuple[dict[str, dict[str, Release]], Matrix]:
    """torch 2.4 brings cuDNN of CUDA 13, torch 2.3 of CUDA 12; both install the same files."""
    world = projects()
    world["torch"]["2.4.1"] = replace(world["torch"]["2.4.1"], requires=("nvidia-cudnn-cu13==9.2",))
    world["torch"]["2.3.1"] = replace(world["torch"]["2.3.1"], requires=("nvidia-cudnn-cu12==9.1",))
    world["nvidia-cudnn-cu12"] = {f"9.{minor}": Release() for minor in range(4)}
    world["nvidia-cudnn-cu13"] = {f"9.{minor}": Release() for minor in range(4)}
    world["jax"] = {
        f"0.{minor}": Release(requires=(f'plugin[cuda]==0.{minor} ; extra == "cuda"',), extras=("cuda",))
        for minor in range(5, 9)
    }
    world["jax"]["0.4"] = Release()
    world["plugin"] = {
        f"0.{minor}": Release(requires=('nvidia-cudnn-cu12>9 ; extra == "cuda"',), extras=("cuda",))
        for minor in range(5, 9)
    }
    return world, replace(MATRIX, rules=(rule("nvidia-cudnn-cu13", ">=0", "nvidia-cudnn-cu12<0"),))


def test_libraries_of_another_cuda_major_choose_another_torch() -> None:
    world, matrix = two_cuda_majors()
    assert lock(asked("nvidia-cudnn-cu12"), FakeIndex(world), matrix=matrix).stack.torch == "2.3.1"
    found = lock(asked("jax[cuda]"), FakeIndex(world), matrix=matrix)
    assert (found.stack.torch, pins(found)["jax"]) == ("2.3.1", "0.8")


def test_libraries_of_another_cuda_major_are_refused_with_both_ways() -> None:
    world, matrix = two_cuda_majors()
    error = refusal(asked("jax[cuda]", torch="==2.4.*"), FakeIndex(world), matrix=matrix)
    told = facts(error)
    assert named(error) == {"torch 2.4", "requirement jax[cuda]"}
    assert "jax 0.8 requires plugin[cuda]==0.8" in told
    assert "torch 2.4.1 requires nvidia-cudnn-cu13==9.2" in told
    assert "nvidia-cudnn-cu12 9.3 cannot stand beside nvidia-cudnn-cu13" in told
    assert "not proved" not in told


def test_an_older_release_without_the_extra_that_is_asked_for_is_no_way_out() -> None:
    world, matrix = two_cuda_majors()
    constrained = asked("jax[cuda]", constraints=("jax<0.5",), torch="==2.3.*")
    assert "jax 0.4 has no extra 'cuda'" in facts(refusal(constrained, FakeIndex(world), matrix=matrix))


@pytest.mark.parametrize(("torch", "text"), [
    (">=2.4,<2.0", "no version at all is <2.0,>=2.4"),
    (">=2.3,!=2.3.*,<2.4", "no version at all is !=2.3.*,<2.4,>=2.3"),
    (">2.3.1,<2.4", "the torch releases of the matrix for these platforms are 2.0.1 to 2.4.1"),
])
def test_torch_that_admits_nothing_is_told_as_that(torch: str, text: str) -> None:
    world = projects()
    world["torch"]["1.0"] = Release(tags=wheel_tags(("3.10",)))
    assert facts(refusal(asked(torch=torch), FakeIndex(world))) == text


def test_the_torch_that_is_asked_for_has_its_own_reason_and_is_in_no_span_of_others() -> None:
    rows = (companion("vision", "1.0", "==2.3.1", "11.8"),)
    world = projects()
    world["vision"] = {"1.0": Release(requires=("torch==2.3.1",))}
    error = refusal(asked("vision", torch="==2.3.1"), FakeIndex(world), matrix=replace(MATRIX, companions=rows))
    told = [cause.text for cause in error.causes if cause.kind != "asked"]
    assert told[0] == "vision 1.0 is built for CUDA 11.8, torch 2.3.1 for CUDA 12.1"
    assert told[1] == "vision 1.0 requires torch==2.3.1, not 2.4.1 (torch 2.0.1 and 2.3.0 likewise)"


@pytest.mark.parametrize(("versions", "text"), [
    (["4"], "4"), (["4", "3"], "3 and 4"), (["4", "3", "2"], "2 to 4"), (["4", "2"], "2 and 4"),
    (["5", "4", "3", "1"], "1 and 3 to 5"), (["5", "4", "2", "1"], "1, 2, 4 and 5"), ([], ""),
])
def test_versions_are_told_in_spans_without_gaps(versions: list[str], text: str) -> None:
    assert versions_text(versions, ["5", "4", "3", "2", "1"]) == text


def test_libraries_of_two_cuda_majors_asked_for_together() -> None:
    world, matrix = two_cuda_majors()
    for name in ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"):
        world[name]["9.0.dev1"] = Release(tags=(), static=False)    # placeholders, which are not the reason
    request = asked("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    error = refusal(request, FakeIndex(world), matrix=matrix)
    assert named(error) == {"requirement nvidia-cudnn-cu12", "requirement nvidia-cudnn-cu13"}
    assert "cannot stand beside" in facts(error)
    check(request, error, FakeIndex(world), matrix=matrix)
