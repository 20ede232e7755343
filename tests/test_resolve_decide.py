"""The decision: preference order, kept pins, joint targets, notes, and the same bytes twice."""

from __future__ import annotations

import cProfile
from dataclasses import replace

import pytest

from stackfix.errors import BadInput
from stackfix.resolve.records import Requirement
from stackfix.sources.errors import NoSuchProject, SdistNeedsBuild
from tests.resolve_world import (
    MATRIX,
    FakeIndex,
    Release,
    asked,
    companion,
    lock,
    pins,
    projects,
    refusal,
    rule,
    torch_build,
    wheel_tags,
)


def test_without_options_the_newest_torch_with_its_own_cuda() -> None:
    found = lock(asked())
    assert (found.stack.torch, found.stack.cuda, found.stack.driver_min) == ("2.4.1", "12.4", "525.60.13")


def test_cuda_stands_above_the_order_of_versions() -> None:
    assert lock(asked(cuda="12.1")).stack.torch == "2.3.1"
    assert lock(asked(cuda="11")).stack.torch == "2.0.1"


def test_component_of_the_same_toolkit_release_before_the_newest() -> None:
    found = pins(lock(asked(torch="==2.3.*")))
    assert found["nvidia-nvjitlink-cu12"] == "12.1.105"
    assert found["filelock"] == "3.1"


def test_toolkit_component_gives_way_to_a_requirement() -> None:
    assert pins(lock(asked("nvidia-nvjitlink-cu12>12.2", torch="==2.3.*")))["nvidia-nvjitlink-cu12"] == "12.9.86"


def test_kept_pins_stay_while_they_fit() -> None:
    kept = (("torch", "2.3.0"), ("filelock", "3.0"), ("nvidia-nvjitlink-cu12", "12.1.55"), ("gone", "1"))
    found = pins(lock(asked(kept=kept)))
    assert found == {
        "torch": "2.3.0", "filelock": "3.0", "nvidia-nvjitlink-cu12": "12.1.55", "nvidia-cusparse-cu12": "12.1.0.106",
    }


def test_kept_pin_that_does_not_fit_is_renewed() -> None:
    found = pins(lock(asked("filelock>3.0", torch="==2.3.1", kept=(("torch", "2.3.0"), ("filelock", "3.0")))))
    assert (found["torch"], found["filelock"]) == ("2.3.1", "3.1")


def test_kept_pin_of_a_floor_that_is_broken_is_renewed() -> None:
    found = pins(lock(asked(torch="==2.3.*", kept=(("nvidia-nvjitlink-cu12", "12.0.140"),))))
    assert found["nvidia-nvjitlink-cu12"] == "12.1.105"


def test_companion_of_this_torch_without_reading_the_others() -> None:
    index = FakeIndex(projects())
    assert pins(lock(asked("torchvision", torch="==2.3.*"), index))["torchvision"] == "0.18.1"
    read = {name for name in index.metadata_asked + index.prefetched if name.startswith("torchvision-")}
    assert read == {"torchvision-0.18.1-py3-none-any.whl"}


def test_companion_of_the_same_cuda_where_metadata_admits_any_torch() -> None:
    assert pins(lock(asked("vision-any", torch="==2.3.*")))["vision-any"] == "1.0"
    assert pins(lock(asked("vision-any", torch="==2.4.*")))["vision-any"] == "2.0"


def test_unknown_companion_only_where_it_names_this_torch_exactly() -> None:
    world = projects()
    world["torchvision"] = {
        "0.99": Release(requires=("torch>=2.0",)), "0.98": Release(requires=("torch==2.3.1",)),
    }
    found = lock(asked("torchvision", torch="==2.3.1"), FakeIndex(world))
    assert pins(found)["torchvision"] == "0.98"
    assert any("torchvision 0.98 has no row in the matrix" in note for note in found.notes)


def test_rule_about_torch_passes_candidates_over_unread() -> None:
    index = FakeIndex(projects())
    assert pins(lock(asked("transformers", torch="==2.3.*"), index))["transformers"] == "4.40"
    assert "transformers-5.0-py3-none-any.whl" not in index.metadata_asked + index.prefetched
    assert pins(lock(asked("transformers", torch="==2.4.*")))["transformers"] == "5.0"


def test_rule_limits_and_adds_nothing() -> None:
    matrix = replace(MATRIX, rules=(rule("filelock", ">=3", "einops>=0.8"),))
    assert "einops" not in pins(lock(asked(torch="==2.3.*"), matrix=matrix))


def test_rule_holds_for_what_comes_in_by_another_way() -> None:
    world = projects()
    world["numpy"]["2.1"] = Release(requires=("tokenizers",))
    matrix = replace(MATRIX, rules=(rule("filelock", ">=3", "tokenizers<0.20"),))
    found = pins(lock(asked("numpy", torch="==2.3.*"), FakeIndex(world), matrix=matrix))
    assert found["tokenizers"] == "0.19"


def test_rule_of_low_confidence_that_decides_is_told() -> None:
    world = projects()
    world["filelock"]["3.1"] = Release(requires=("tokenizers",))
    low = replace(MATRIX, rules=(rule("filelock", ">=3", "tokenizers<0.20", confidence="low"),))
    decided = lock(asked(torch="==2.3.*"), FakeIndex(world), matrix=low)
    assert any("low confidence" in note and "tokenizers 0.19" in note for note in decided.notes)
    world["tokenizers"] = {"0.19": Release()}
    idle = lock(asked(torch="==2.3.*"), FakeIndex(world), matrix=low)
    assert not any("low confidence" in note for note in idle.notes)


def test_low_row_of_torch_is_told() -> None:
    matrix = replace(MATRIX, torch=(torch_build("2.3.1", "12.1", "12.1.1", confidence="low"),))
    assert any("low confidence" in note for note in lock(asked(), matrix=matrix).notes)


def test_torch_that_the_matrix_does_not_know_is_named_and_not_chosen() -> None:
    world = projects()
    world["torch"]["2.9.0"] = Release(tags=wheel_tags(("3.10",)))
    found = lock(asked(), FakeIndex(world))
    assert found.stack.torch == "2.4.1"
    assert any("torch 2.9.0 is on the index" in note for note in found.notes)
    assert not any("2.9.0" in note for note in lock(asked(torch="==2.3.*"), FakeIndex(world)).notes)


def test_index_beats_the_matrix_on_pythons() -> None:
    world = projects()
    world["torch"]["2.4.1"] = Release(tags=wheel_tags(("3.13",)))
    assert lock(asked(pythons=("3.13",)), FakeIndex(world)).stack.torch == "2.4.1"
    assert lock(asked(pythons=("3.10",)), FakeIndex(world)).stack.torch == "2.3.1"


def test_default_python_where_the_stack_has_it_else_the_newest() -> None:
    assert lock(asked(pythons=(), default_python="3.10")).stack.pythons == ("3.10",)
    other = lock(asked(pythons=(), default_python="3.13"))
    assert other.stack.pythons == ("3.12",)
    assert any("Python 3.12 was chosen" in note for note in other.notes)


def test_python_that_a_requirement_can_do_with() -> None:
    world = projects()
    world["old"] = {"1.0": Release(tags=wheel_tags(("3.10",)))}
    assert lock(asked("old", pythons=(), default_python="3.12"), FakeIndex(world)).stack.pythons == ("3.10",)


def test_one_torch_for_all_targets() -> None:
    found = lock(asked(pythons=("3.10", "3.12"), cuda="11"), FakeIndex(projects() | {
        "torch": projects()["torch"] | {"2.0.1": Release(tags=wheel_tags(("3.10", "3.12")))},
    }))
    assert [target.target.python for target in found.targets] == ["3.10", "3.12"]
    with pytest.raises(AssertionError):
        refusal(asked(pythons=("3.10", "3.12")))        # sanity: without the limit both have 2.4.1
    assert lock(asked(pythons=("3.10", "3.12"), torch="==2.3.*")).stack.torch == "2.3.1"


def test_cpu_build_where_the_platform_has_no_other() -> None:
    found = lock(asked(platforms=("linux-aarch64",)))
    assert (found.stack.cuda, found.stack.driver_min, found.stack.flash_attn) == ("cpu", None, None)
    assert any("CPU build" in note for note in found.notes)


def test_yanked_only_for_an_exact_pin() -> None:
    world = projects()
    world["filelock"] = {"3.1": Release(yanked="broken"), "3.0": Release()}
    assert pins(lock(asked(torch="==2.3.*"), FakeIndex(world)))["filelock"] == "3.0"
    exact = lock(asked("filelock==3.1", torch="==2.3.*"), FakeIndex(world))
    assert pins(exact)["filelock"] == "3.1"
    assert any("was yanked: broken" in note for note in exact.notes)


def test_prerelease_only_where_asked_for() -> None:
    assert pins(lock(asked("numpy")))["numpy"] == "2.1"
    assert pins(lock(asked("numpy>=2.2rc1")))["numpy"] == "2.2rc1"
    assert pins(lock(asked("numpy>2.1")))["numpy"] == "2.2rc1"      # nothing else fits: as pip does


def test_constraint_limits_and_adds_nothing() -> None:
    found = pins(lock(asked(constraints=("filelock<3.1", "numpy<2"), torch="==2.3.*")))
    assert found["filelock"] == "3.0"
    assert "numpy" not in found


def test_extras_and_markers() -> None:
    world = projects()
    world["tool"] = {"1.0": Release(
        requires=('einops ; extra == "big"', 'ninja ; python_version < "3.11"', 'wheel ; sys_platform == "win32"'),
        extras=("big",),
    )}
    found = pins(lock(asked("tool[big]"), FakeIndex(world)))
    assert {"tool", "einops", "ninja"} <= found.keys()
    assert "wheel" not in found
    assert "ninja" not in pins(lock(asked("tool[big]", pythons=("3.11",)), FakeIndex(world)))
    assert "einops" not in pins(lock(asked("tool"), FakeIndex(world)))


def test_extra_shares_the_version_of_its_project() -> None:
    world = projects()
    world["tool"] = {
        "2.0": Release(requires=('einops>=9 ; extra == "big"',), extras=("big",)),
        "1.0": Release(requires=('einops ; extra == "big"',), extras=("big",)),
    }
    found = lock(asked("tool[big]"), FakeIndex(world))
    assert pins(found)["tool"] == "1.0"
    tool = next(package for package in found.targets[0].packages if package.name == "tool")
    assert tool.extras == ("big",)


def test_extra_that_does_not_exist_is_told() -> None:
    found = lock(asked("numpy[nothing]"))
    assert any("numpy 2.1 has no extra 'nothing'" in note for note in found.notes)


def test_who_asked_and_what_it_pulls_in() -> None:
    found = {p.name: p for p in lock(asked("torchvision", torch="==2.3.*")).targets[0].packages}
    assert found["torch"].requested_by == ("--torch 2.3", "torchvision")
    assert found["numpy"].requested_by == ("torchvision",)
    assert found["torchvision"].requested_by == ("--with torchvision",)
    assert found["torchvision"].requires == ("numpy", "torch")
    assert found["nvidia-nvjitlink-cu12"].requested_by == ("nvidia-cusparse-cu12",)


def test_files_are_those_of_the_target_best_first() -> None:
    world = projects()
    world["filelock"]["3.1"] = Release(tags=(
        "py3-none-any", "cp310-cp310-manylinux_2_17_x86_64", "cp310-cp310-manylinux_2_28_x86_64",
        "cp311-cp311-manylinux_2_17_x86_64", "cp310-cp310-manylinux_2_39_x86_64", "cp310-cp310-win_amd64",
    ))
    package = next(p for p in lock(asked(), FakeIndex(world)).targets[0].packages if p.name == "filelock")
    assert [file.filename.split("-", 2)[2] for file in package.files] == [
        "cp310-cp310-manylinux_2_28_x86_64.whl", "cp310-cp310-manylinux_2_17_x86_64.whl", "py3-none-any.whl",
    ]


def test_only_files_with_the_hash_that_the_request_allows() -> None:
    world = projects()
    world["numpy"]["2.1"] = Release(tags=("py3-none-any", "cp310-cp310-manylinux_2_17_x86_64"))
    allowed = next(f.sha256 for f in FakeIndex(world).page("numpy").files("2.1") if "none-any" in f.filename)
    line = Requirement(text="numpy==2.1", origin="r.in line 1", hashes=(allowed or "",))
    package = next(
        p for p in lock(asked().with_(requirements=(line,)), FakeIndex(world)).targets[0].packages if p.name == "numpy"
    )
    assert [file.filename for file in package.files] == ["numpy-2.1-py3-none-any.whl"]
    other = Requirement(text="numpy==2.1", origin="r.in line 1", hashes=("0" * 64,))
    causes = refusal(asked().with_(requirements=(other,)), FakeIndex(world)).causes
    assert any("sha256 that the request allows" in cause.text for cause in causes)


def test_file_without_a_hash_is_never_pinned() -> None:
    world = projects()
    world["numpy"]["2.1"] = Release(hashed=False)
    assert pins(lock(asked("numpy"), FakeIndex(world)))["numpy"] == "2.0"


def test_exclude_newer_fails_closed() -> None:
    world = projects()
    world["numpy"] = {
        "2.1": Release(upload_time=None), "2.0": Release(upload_time="2024-06-01T12:00:00Z"),
        "1.26": Release(upload_time="2024-01-31T23:59:59.123456Z"),
    }
    found = lock(asked("numpy", exclude_newer="2024-01-31"), FakeIndex(world))
    assert pins(found)["numpy"] == "1.26"
    later = lock(asked("numpy", exclude_newer="2024-06-01T12:00:01+00:00"), FakeIndex(world))
    assert pins(later)["numpy"] == "2.0"
    with pytest.raises(BadInput, match="no ISO 8601"):
        lock(asked("numpy", exclude_newer="soon"))


def test_version_with_a_wheel_before_a_newer_sdist() -> None:
    world = projects()
    world["numpy"]["3.0"] = Release(tags=())
    assert pins(lock(asked("numpy"), FakeIndex(world)))["numpy"] == "2.1"
    assert pins(lock(asked("numpy>=3"), FakeIndex(world)))["numpy"] == "3.0"


def test_sdist_that_needs_a_build_names_the_project_and_who_asked() -> None:
    world = projects()
    world["numpy"] = {"3.0": Release(tags=(), static=False)}
    with pytest.raises(SdistNeedsBuild) as caught:
        lock(asked("numpy"), FakeIndex(world))
    assert (caught.value.project, caught.value.requested_by) == ("numpy", "--with numpy")
    world["filelock"] = {"4.0": Release(tags=(), static=False)}
    with pytest.raises(SdistNeedsBuild) as caught:
        lock(asked(torch="==2.3.*"), FakeIndex(world))
    assert (caught.value.project, caught.value.requested_by) == ("filelock", "torch")


def test_sdist_that_needs_a_build_is_passed_over_for_an_older_wheel() -> None:
    world = projects()
    world["a"] = {"2.0": Release(requires=("b",)), "1.0": Release()}
    world["b"] = {"1.0": Release(tags=(), static=False)}
    assert pins(lock(asked("a"), FakeIndex(world)))["a"] == "1.0"


def test_project_that_no_index_has_names_who_asked() -> None:
    with pytest.raises(NoSuchProject) as caught:
        lock(asked("no-such-thing"))
    assert (caught.value.project, caught.value.asked_by) == ("no-such-thing", "--with no-such-thing")
    world = projects()
    world["filelock"]["3.1"] = Release(requires=("gone",))
    assert pins(lock(asked(), FakeIndex(world)))["filelock"] == "3.0"
    world["filelock"] = {"3.1": Release(requires=("gone",))}
    with pytest.raises(NoSuchProject) as caught:
        lock(asked(torch="==2.3.*"), FakeIndex(world))
    assert caught.value.project == "gone"


def test_unreadable_requirement_of_an_old_version_is_passed_over() -> None:
    world = projects()
    world["numpy"]["2.1"] = Release(requires=("click (>=7.*)",))
    world["numpy"]["2.0"] = Release(requires=("x @ https://x.invalid/x-1-py3-none-any.whl",))
    assert pins(lock(asked("numpy"), FakeIndex(world)))["numpy"] == "1.26"


def test_direct_address_with_its_hash() -> None:
    world = projects()
    world["own"] = {"1.0": Release(requires=("filelock<3.1",))}
    url = "https://files.invalid/own-1.0-py3-none-any.whl"
    found = lock(asked(f"own @ {url}#sha256={'a' * 64}"), FakeIndex(world))
    package = next(package for package in found.targets[0].packages if package.name == "own")
    assert package.direct
    assert (package.files[0].url, package.files[0].sha256) == (url, "a" * 64)
    assert pins(found)["filelock"] == "3.0"


@pytest.mark.parametrize(("line", "says"), [
    ("own @ https://files.invalid/own-1.0-py3-none-any.whl", "only locked with its hash"),
    (f"own @ https://files.invalid/own-1.0.tar.gz#sha256={'a' * 64}", "no wheel's file name"),
    (f"own @ https://files.invalid/other-1.0-py3-none-any.whl#sha256={'a' * 64}", "not a wheel of own"),
    (f"own @ https://files.invalid/own-1.0-cp39-cp39-win32.whl#sha256={'a' * 64}", "does not fit"),
    (f"own @ https://files.invalid/..%2F..%2Fown-1.0-py3-none-any.whl#sha256={'a' * 64}", "no wheel's file name"),
    (f"own @ https://me:pw@files.invalid/own-1.0-py3-none-any.whl#sha256={'a' * 64}", "credential"),
    (f"torch @ https://files.invalid/torch-1.0-py3-none-any.whl#sha256={'a' * 64}", "chosen from the index"),
    ("own @ git+https://files.invalid/own.git", "only a https address"),
    ("-e .", "local project"), ("./own", "local project"), ("own >=", "is no requirement"), ("==1.0", "is no"),
])
def test_bad_requirement_is_one_clear_error(line: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        lock(asked(line))
    assert says in caught.value.what()
    assert caught.value.thing == f"--with {line}"


def test_same_input_same_lock() -> None:
    request = asked("torchvision", "transformers", pythons=("3.11", "3.10"), torch="==2.3.*")
    first, second = lock(request), lock(request.with_(pythons=("3.10", "3.11")))
    assert first == second
    world = {name: dict(reversed(releases.items())) for name, releases in reversed(projects().items())}
    assert lock(request, FakeIndex(world)) == first


def test_pins_that_differ_by_target_are_kept_by_each() -> None:
    world = projects()
    world["numpy"] = {"2.1": Release(tags=wheel_tags(("3.12",))), "2.0": Release(tags=wheel_tags(("3.10", "3.12")))}
    request = asked("numpy", pythons=("3.10", "3.12"))
    first = lock(request, FakeIndex(world))
    assert [pins(target)["numpy"] for target in first.targets] == ["2.0", "2.1"]
    world["numpy"]["2.2"] = Release(tags=wheel_tags(("3.10", "3.12")))
    kept = tuple((package.name, package.version) for target in first.targets for package in target.packages)
    assert lock(request.with_(kept=kept), FakeIndex(world)).targets == first.targets


def test_only_the_newest_sdists_of_a_project_are_looked_at() -> None:
    world = projects()
    world["built"] = {f"1.{minor}": Release(tags=(), static=False) for minor in range(30)}
    index = FakeIndex(world)
    with pytest.raises(SdistNeedsBuild) as caught:
        lock(asked("built", torch="==2.3.*"), index)
    assert caught.value.version == "1.29"
    assert {name for name in index.metadata_asked if name.startswith("built-")} == {
        "built-1.29.tar.gz", "built-1.28.tar.gz", "built-1.27.tar.gz",
    }
    world["built"]["1.2"] = Release(tags=())
    assert pins(lock(asked("built==1.2", torch="==2.3.*"), FakeIndex(world)))["built"] == "1.2"


def test_rule_that_two_packages_exclude_each_other() -> None:
    world = projects()
    world["other"] = {"1.0": Release(requires=("tokenizers",))}
    matrix = replace(MATRIX, rules=(rule("nvidia-cusparse-cu12", ">=12.3", "tokenizers<0"),))
    found = lock(asked("other"), FakeIndex(world), matrix=matrix)
    assert (found.stack.torch, pins(found)["tokenizers"]) == ("2.3.1", "0.20")
    error = refusal(asked("other", torch="==2.4.*"), FakeIndex(world), matrix=matrix)
    assert any("cannot stand beside tokenizers" in cause.text for cause in error.causes)
    assert [cause.asked.value for cause in error.causes if cause.asked] == ["2.4", "other"]


def test_libraries_of_another_cuda_are_told_and_are_not_torchs_own() -> None:
    world = projects()
    world["nvidia-cudnn-cu13"] = {"9.1": Release()}
    world["nvidia-nvjitlink-cu13"] = {"13.0": Release()}
    found = lock(asked("nvidia-cudnn-cu13", "nvidia-nvjitlink-cu13", torch="==2.3.*"), FakeIndex(world))
    assert (found.stack.cudnn, found.stack.nvjitlink) == ("8.9.2.26", "12.1.105")
    assert any("libraries of CUDA 13 are locked beside it: nvidia-cudnn-cu13 9.1" in note for note in found.notes)


def test_many_lines_on_one_project_are_each_held_against_its_versions_once() -> None:
    lines = [f"numpy>=0.{minor}" for minor in range(100)]
    profile = cProfile.Profile()
    found = profile.runcall(lock, asked(*lines, torch="==2.3.*"))
    compared = sum(
        entry.callcount for entry in profile.getstats()
        if getattr(entry.code, "co_name", "") == "admits"
    )
    assert pins(found)["numpy"] == "2.1"
    assert compared < 100 * len(projects()["numpy"]) * 3


@pytest.mark.parametrize(("requires", "tags", "told"), [
    (("torch>=2.0",), wheel_tags(("3.10",)), True),
    (("torch>=2.0,<2.4",), wheel_tags(("3.10",)), False),
    (("torch==2.3.1",), wheel_tags(("3.10",)), False),
    (("torch>=2.0",), ("py3-none-any",), False),
    (("filelock",), wheel_tags(("3.10",)), False),
    (('torch ; extra == "torch"',), wheel_tags(("3.10",)), False),
])
def test_compiled_extension_for_an_unnamed_torch_is_told(
    requires: tuple[str, ...], tags: tuple[str, ...], told: bool,
) -> None:
    world = projects()
    world["extension"] = {"1.0": Release(requires=requires, tags=tags, extras=("torch",))}
    found = lock(asked("extension[torch]", torch="==2.3.1"), FakeIndex(world))
    assert any("extension 1.0 holds compiled code" in note for note in found.notes) is told


def test_compiled_extension_that_the_matrix_knows_is_not_told() -> None:
    world = projects()
    world["extension"] = {"1.0": Release(requires=("torch>=2.0",), tags=wheel_tags(("3.10",)))}
    for confidence, told in (("high", False), ("low", True)):
        matrix = replace(MATRIX, rules=(rule("extension", ">=0", "torch>=2.3", confidence=confidence),))
        notes = lock(asked("extension", torch="==2.3.1"), FakeIndex(world), matrix=matrix).notes
        assert any("holds compiled code" in note for note in notes) is told


def test_summary_names_the_library_that_the_cuda_major_uses() -> None:
    world = projects()
    needs = ("nvidia-nvjitlink", "nvidia-nvjitlink-cu13", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
    world["torch"]["2.4.1"] = replace(world["torch"]["2.4.1"], requires=needs)
    for name, version in zip(needs, ("13.0.88", "0.0.1", "9.13", "9.1"), strict=True):
        world[name] = {version: Release()}
    matrix = replace(MATRIX, torch=(torch_build("2.4.1", "13.0", "13.0.2"),))
    stack = lock(asked(), FakeIndex(world), matrix=matrix).stack
    assert (stack.nvjitlink, stack.cudnn) == ("13.0.88", "9.13")


def test_bare_driver_branch_meets_a_floor_in_it_with_a_note() -> None:
    found = lock(asked(driver="525", torch="==2.3.*"))
    assert any("driver 525 is taken as 525.60.13 or a newer release of that branch" in note for note in found.notes)
    assert not any("branch" in note for note in lock(asked(driver="530", torch="==2.3.*")).notes)
    assert lock(asked(driver="524")).stack.cuda == "11.7"
    assert lock(asked(driver="525.0")).stack.cuda == "11.7"


def test_companion_of_another_cuda_minor_is_told() -> None:
    world = projects()
    world["former"] = {"1.0": Release(requires=("torch==2.3.1",))}
    for cuda, told in (("12.4", True), ("12.1", False)):
        rows = (*MATRIX.companions, companion("former", "1.0", "==2.3.1", cuda, same="major"))
        notes = lock(asked("former", torch="==2.3.1"), FakeIndex(world), matrix=replace(MATRIX, companions=rows)).notes
        assert any("former 1.0 is built for CUDA 12.4, torch 2.3.1 for CUDA 12.1" in note for note in notes) is told


def test_project_of_the_request_that_a_rule_holds_back_is_told() -> None:
    notes = lock(asked("transformers", torch="==2.3.*")).notes
    assert any("transformers 4.40 was chosen over 5.0, which needs torch>=2.4" in note for note in notes)
    assert not any("chosen over" in note for note in lock(asked("transformers<5", torch="==2.3.*")).notes)
    assert not any("chosen over" in note for note in lock(asked("transformers", torch="==2.4.*")).notes)


def test_compiled_extension_that_torch_itself_requires_is_not_told() -> None:
    world = projects()
    world["triton"] = {"2.0": Release(requires=("torch",), tags=wheel_tags(("3.10",)))}
    world["torch"]["2.3.1"] = replace(world["torch"]["2.3.1"], requires=("triton==2.0",))
    assert not any("holds compiled code" in note for note in lock(asked(torch="==2.3.1"), FakeIndex(world)).notes)


def test_a_lock_of_another_torch_keeps_nothing_of_its_toolkit() -> None:
    kept = (("torch", "2.4.1"), ("filelock", "3.0"), ("nvidia-nvjitlink-cu12", "12.4.127"))
    found = pins(lock(asked(torch="==2.3.1", kept=kept)))
    assert (found["torch"], found["nvidia-nvjitlink-cu12"], found["filelock"]) == ("2.3.1", "12.1.105", "3.0")


def test_an_sdist_is_told_with_the_glibc_that_has_wheels() -> None:
    world = projects()
    world["numpy"] = {"3.0": Release(tags=wheel_tags(("3.10", "3.11"), "manylinux_2_31_x86_64"), sdist=True)}
    [note] = [text for text in lock(asked("numpy"), FakeIndex(world)).notes if "sdist" in text]
    assert "numpy 3.0 is locked as an sdist" in note
    assert "with --glibc 2.31 it has wheels" in note
    newer = lock(asked("numpy", glibc="2.31"), FakeIndex(world))
    assert not [text for text in newer.notes if "sdist" in text]


def test_a_row_that_the_wheel_disproves_is_told() -> None:
    torch = (torch_build("2.3.1", "12.1", "12.1.1", requires=("nvidia-cusparse-cu12==12.3.1.170", "filelock")),)
    altered = replace(MATRIX, torch=torch)
    found = lock(asked(torch="==2.3.1"), matrix=altered)
    assert pins(found)["nvidia-cusparse-cu12"] == "12.1.0.106"
    [note] = [text for text in found.notes if "metadata was followed" in text]
    assert "requires nvidia-cusparse-cu12==12.3.1.170" in note
    assert not [text for text in lock(asked(torch="==2.3.1")).notes if "metadata was followed" in text]
