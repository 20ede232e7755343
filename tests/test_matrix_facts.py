"""Laws over the rows, and the traps that a resolver falls into when a row is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.deep import deep_faults, known_packages
from stackfix.matrix.load import load_matrix
from stackfix.matrix.parse_flash_attn import wheel_name
from stackfix.matrix.records import Companion, FlashAttnWheel, TorchBuild
from stackfix.platforms import PLATFORMS

MATRIX = load_matrix()
DEFAULTS = query.builds(MATRIX, index="default")
X86 = {build.version: build for build in DEFAULTS if build.platform == "linux-64"}
ARM = {build.version: build for build in DEFAULTS if build.platform == "linux-aarch64"}
COMPANIONS = {(row.package, row.version): row for row in MATRIX.companions}

# Pins of a torch wheel that its own CUDA toolkit release does not have: (release, package) -> pin, component.
ODD_PINS = {
    ("2.7.0", "nvidia-cuda-nvrtc-cu12"): ("12.6.77", "12.6.85"),
    ("2.7.1", "nvidia-cuda-nvrtc-cu12"): ("12.6.77", "12.6.85"),
}
ASSET = re.compile(
    r"flash_attn-(?P<version>[^+]+)\+cu(?P<cuda>\d+)torch(?P<torch>\d+\.\d+)cxx11abi(?P<abi>TRUE|FALSE)"
    r"-cp3(?P<minor>\d+)-cp3(?P=minor)-linux_(?P<machine>x86_64|aarch64)\.whl"
)
MACHINES = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}


def exact_pins(build: TorchBuild) -> Iterator[tuple[str, str]]:
    for line in build.requires:
        requirement = Requirement(line)
        clauses = list(requirement.specifier)
        if len(clauses) == 1 and clauses[0].operator == "==" and requirement.name.startswith("nvidia-"):
            yield requirement.name, clauses[0].version


def pin(build: TorchBuild, name: str) -> str:
    return next(str(Requirement(line).specifier) for line in build.requires if Requirement(line).name == name)


def fits(package: str, version: str, torch: str) -> bool:
    return query.companion_fits(COMPANIONS[package, version], X86[torch]) is None


def needs(package: str, version: str) -> set[str]:
    return {rule.needs for rule in query.rules_for(MATRIX, package, version)}


def test_nothing_is_malformed_or_dangling() -> None:
    assert deep_faults(MATRIX) == ()


def test_pins_are_the_components_of_the_toolkit_release() -> None:
    odd = {}
    compared = 0
    for version, build in X86.items():
        for package, pinned in exact_pins(build) if build.toolkit else ():
            component = query.component_version(MATRIX, build.toolkit or "", package)
            compared += component is not None
            if component not in {None, pinned}:
                odd[version, package] = (pinned, component)
    assert odd == ODD_PINS
    assert compared > 150


def test_the_toolkit_is_of_the_builds_cuda() -> None:
    for build in MATRIX.torch:
        if build.toolkit is not None:
            assert build.toolkit.startswith(f"{build.cuda}."), build


def test_every_release_since_2_0_is_there_on_both_platforms() -> None:
    assert X86.keys() == ARM.keys()
    minors = {query.minor_of(version) for version in X86}
    assert minors == {"1.13"} | {f"2.{minor}" for minor in range(16)}


def test_every_hashed_asset_agrees_with_its_name() -> None:
    hashed = [wheel for wheel in MATRIX.flash_attn_wheels if wheel.sha256]
    assert len(hashed) == 209
    for wheel in hashed:
        match = ASSET.fullmatch(wheel.file)
        assert match is not None, wheel.file
        assert (match["version"], f"cu{match['cuda']}", match["torch"]) == (
            wheel.version, wheel.cuda_tag, wheel.torch_minor,
        )
        assert (match["abi"] == "TRUE", f"3.{match['minor']}", MACHINES[match["machine"]]) == (
            wheel.cxx11_abi, wheel.python, wheel.platform,
        )
        assert wheel.basis == "hashed"


def test_every_asset_has_the_name_that_its_fields_make() -> None:
    for wheel in MATRIX.flash_attn_wheels:
        flag = "TRUE" if wheel.cxx11_abi else "FALSE"
        tag = wheel.cuda_tag.removeprefix("cu")
        assert wheel.file == wheel_name(wheel.version, tag, wheel.torch_minor, flag, wheel.python, wheel.platform)


def test_hashes_are_well_formed_and_of_one_file_each() -> None:
    hashes = Counter(wheel.sha256 for wheel in MATRIX.flash_attn_wheels if wheel.sha256)
    assert all(re.fullmatch(r"[0-9a-f]{64}", sha256) for sha256 in hashes)
    assert max(hashes.values()) == 1


def test_every_rule_is_about_packages_that_are_known() -> None:
    known = known_packages(MATRIX)
    for rule in MATRIX.rules:
        assert rule.package in known
        assert Requirement(rule.needs).name in known
        assert SpecifierSet(rule.versions)
        assert Requirement(rule.needs).specifier


def test_floors_stay_inside_one_cuda_major() -> None:
    for rule in MATRIX.rules:
        if rule.package.startswith("nvidia-") and ">=" in rule.needs:
            assert rule.package.rpartition("-cu1")[2][:1] == Requirement(rule.needs).name.rpartition("-cu1")[2][:1]


def test_libraries_with_one_soname_in_two_cuda_majors_exclude_each_other() -> None:
    for component in ("cusparse", "curand", "cufile"):
        [rule] = [
            rule for rule in query.rules_for(MATRIX, f"nvidia-{component}", "12.6.3.3") if rule.needs.endswith("<0")
        ]
        assert Requirement(rule.needs).name == f"nvidia-{component}-cu12"
        assert not SpecifierSet("<0").contains("12.1.0.106")


def test_every_stack_of_the_default_index_meets_the_rules() -> None:
    for build in X86.values():
        versions = {**query.preferred_versions(MATRIX, build), "torch": build.version}
        for package, version in versions.items():
            for rule in query.rules_for(MATRIX, package, version):
                need = Requirement(rule.needs)
                if need.name in versions:
                    assert need.specifier.contains(versions[need.name], prereleases=True), (build.version, rule)


# The traps of the facts, one each.


@pytest.mark.parametrize("version", ["2.1.2", "2.2.2", "2.3.1", "2.4.1"])
def test_nvjitlink_is_not_pinned_by_torch_2_1_to_2_4(version: str) -> None:
    assert not [line for line in X86[version].requires if "nvjitlink" in line]
    assert query.preferred_versions(MATRIX, X86[version])["nvidia-nvjitlink-cu12"] == "12.1.105"


def test_nvjitlink_is_pinned_from_2_5_and_behind_an_extra_from_2_11() -> None:
    assert pin(X86["2.5.1"], "nvidia-nvjitlink-cu12") == "==12.4.127"
    line = next(line for line in X86["2.11.0"].requires if line.startswith("cuda-toolkit"))
    assert "nvjitlink" in Requirement(line).extras


@pytest.mark.parametrize(
    ("package", "version", "floor"),
    [
        ("nvidia-cusparse-cu12", "12.1.0.106", "nvidia-nvjitlink-cu12>=12.1.55"),
        ("nvidia-cusparse-cu12", "12.5.10.65", "nvidia-nvjitlink-cu12>=12.9.41"),
        ("nvidia-cusparse-cu12", "12.4.1.24", "nvidia-nvjitlink-cu12>=12.5.40"),
        ("nvidia-cusparse", "12.6.3.3", "nvidia-nvjitlink>=13.0"),
        ("nvidia-cusolver-cu12", "11.7.5.82", "nvidia-cublas-cu12>=12.9.0.13"),
        ("torch", "2.3.1", "nvidia-nccl-cu12>=2.19.3"),
        ("torch", "2.7.0", "nvidia-cuda-cupti-cu12>=12.5.39"),
        ("torch", "2.15.0", "nvidia-nccl-cu13>=2.29.7"),
    ],
)
def test_floors_that_no_metadata_states(package: str, version: str, floor: str) -> None:
    assert floor in needs(package, version)


def test_cusparse_of_cuda_12_0_and_cusolver_before_12_9_set_no_floor() -> None:
    assert needs("nvidia-cusparse-cu12", "12.0.0.76") == set()
    assert not any("nvjitlink" in need for need in needs("nvidia-cusparse", "12.7.2.19"))       # none from CUDA 13.1 on
    assert needs("nvidia-cusolver-cu12", "11.7.3.90") == set()


def test_the_default_cuda_of_each_minor() -> None:
    expected = {"11.7": ["1.13", "2.0"], "12.1": ["2.1", "2.2", "2.3", "2.4"], "12.4": ["2.5", "2.6"], "12.6": ["2.7"],
                "12.8": ["2.8", "2.9", "2.10"], "13.0": ["2.11", "2.12", "2.13", "2.14"], "13.2": ["2.15"]}
    found: dict[str, set[str]] = {}
    for version, build in X86.items():
        found.setdefault(build.cuda, set()).add(query.minor_of(version))
    assert found == {cuda: set(minors) for cuda, minors in expected.items()}


def test_aarch64_wheels_are_cpu_builds_through_2_10_though_their_metadata_lists_cuda() -> None:
    for version, build in ARM.items():
        assert (build.cuda == "cpu") == (Version(version) < Version("2.11")), version
        if build.cuda == "cpu":
            assert (build.toolkit, build.cudnn, build.nccl, build.gpu_archs) == (None, None, None, ())
    assert any(line.startswith("nvidia-cudnn-cu12") for line in ARM["2.3.1"].requires)
    assert not any(line.startswith("nvidia-") for line in ARM["2.1.0"].requires)


@pytest.mark.parametrize("platform", ["win-64", "osx-arm64"])
def test_the_default_index_has_the_cpus_build_alone_for_windows_and_macos(platform: str) -> None:
    found = {build.version: build for build in DEFAULTS if build.platform == platform}
    assert set(found) == set(X86)
    for build in found.values():
        assert (build.cuda, build.cudnn, build.toolkit, build.gpu_archs, build.confidence) == (
            "cpu", None, None, (), "certain")
        assert build.glibc is None
        assert (build.macos is not None) == (platform == "osx-arm64")


def test_a_library_that_metadata_list_is_none_of_windows_or_macos() -> None:
    """From 2.1.1 on the wheels of all platforms declare the same, CUDA pins among it: markers keep those to Linux."""
    for platform in ("win-64", "osx-arm64"):
        there = PLATFORMS[platform]
        environment = {"platform_system": there.system, "sys_platform": there.sys_platform, "os_name": there.os_name,
                       "platform_machine": there.machine, "python_version": "3.11"}
        listed = 0
        for build in query.builds(MATRIX, platform=platform):
            lines = [each for each in map(Requirement, build.requires)
                     if each.name.startswith(("nvidia-", "cuda-", "triton"))]
            listed += len(lines)
            assert not [each for each in lines if each.marker is None or each.marker.evaluate(environment)], build
        assert listed > 200


def test_macos_has_no_cuda_and_the_floor_rises() -> None:
    builds = query.builds(MATRIX, platform="osx-arm64")
    assert {build.cuda for build in builds} == {"cpu"}
    floors = {query.minor_of(build.version): build.macos for build in builds if build.index == "default"}
    assert {minor for minor, floor in floors.items() if floor == "14.0"} == {"2.12", "2.13", "2.14", "2.15"}
    assert set(floors.values()) == {"11.0", "14.0"}


def test_cuda_on_windows_is_on_the_torch_index_with_its_libraries_inside() -> None:
    builds = [build for build in query.builds(MATRIX, platform="win-64") if build.cuda != "cpu"]
    assert {build.index for build in builds} == {"cu117", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130"}
    assert {(build.requires, build.confidence, build.cxx11_abi) for build in builds} == {((), "medium", None)}


def test_xformers_for_windows_is_built_for_cuda_though_torch_there_is_not() -> None:
    """Its metadata pin the release alone; its cpp_lib.json says torch 2.10.0+cu128."""
    row = COMPANIONS["xformers", "0.0.34"]
    windows, cuda = (next(build for build in query.builds(MATRIX, platform="win-64", index=index)
                          if build.version == "2.10.0") for index in ("default", "cu128"))
    reason = query.companion_fits(row, windows)
    assert reason is not None
    assert "on Windows too" in reason
    assert query.companion_fits(row, cuda) is None
    for package, version in (("torchvision", "0.25.0"), ("torchaudio", "2.10.0")):
        assert query.companion_fits(COMPANIONS[package, version], windows) is None


def test_a_pin_of_13_0_3_is_the_release_13_0_3_0() -> None:
    assert pin(X86["2.13.0"], "cuda-toolkit") == "==13.0.3"
    assert X86["2.13.0"].toolkit == "13.0.3.0"
    assert query.component_version(MATRIX, "13.0.3", "nvidia-nvjitlink") == "13.0.88"


def test_torch_2_12_takes_cublas_by_a_range_of_its_own() -> None:
    line = next(line for line in X86["2.12.1"].requires if line.startswith("cuda-toolkit"))
    assert "cublas" not in Requirement(line).extras
    assert Requirement("nvidia-cublas" + pin(X86["2.12.1"], "nvidia-cublas")).specifier.contains(
        query.preferred_versions(MATRIX, X86["2.12.1"])["nvidia-cublas"]
    )


def test_the_cxx11_abi_switches_per_variant() -> None:
    assert (X86["2.6.0"].cxx11_abi, X86["2.7.0"].cxx11_abi) == (False, True)
    assert (ARM["2.5.1"].cxx11_abi, ARM["2.6.0"].cxx11_abi) == (False, True)
    variants = {build.index: build for build in query.builds(MATRIX, platform="linux-64") if build.version == "2.6.0"}
    assert {name: variants[name].cxx11_abi for name in ("cu118", "default", "cu126")} == {
        "cu118": False, "default": False, "cu126": True,
    }


def test_gpu_floors_of_the_default_builds() -> None:
    assert X86["2.7.1"].gpu_archs[0] == "sm_50"
    assert X86["2.8.0"].gpu_archs[0] == "sm_70"
    assert X86["2.11.0"].gpu_archs[0] == "sm_75"
    assert "sm_90" not in X86["2.0.1"].gpu_archs
    assert not query.gpu_runs(X86["2.5.1"].gpu_archs, "sm_120")
    assert query.gpu_runs(X86["2.8.0"].gpu_archs, "sm_120")


def test_torchvision_belongs_to_one_major_of_cuda_though_it_takes_any_newer_torch() -> None:
    """Its own check, on import, compares the majors alone since 0.16."""
    assert COMPANIONS["torchvision", "0.29.1"].torch == COMPANIONS["torchvision", "0.29.2"].torch == ">=2.14.0"
    assert (fits("torchvision", "0.29.1", "2.14.1"), fits("torchvision", "0.29.2", "2.14.1")) == (True, True)
    assert (fits("torchvision", "0.29.1", "2.15.0"), fits("torchvision", "0.29.2", "2.15.0")) == (True, True)
    assert {each.same_cuda for each in COMPANIONS.values() if each.package == "torchvision" and each.torch and
            SpecifierSet("<0.16").contains(each.version)} == {"minor"}


def test_torchaudio_that_names_no_torch() -> None:
    assert COMPANIONS["torchaudio", "2.11.0"].torch is None
    assert fits("torchaudio", "2.11.0", "2.14.1")
    assert not fits("torchaudio", "2.11.0", "2.15.0")
    assert not fits("torchaudio", "2.11.0", "2.10.0")
    assert fits("torchaudio", "2.11.1", "2.15.0")
    assert needs("torchaudio", "2.11.0") == {"torch>=2.11"}
    assert needs("torchaudio", "2.11.1") == {"torch>=2.13"}


def test_torchvision_that_pins_a_local_version_fits_no_torch_of_the_index() -> None:
    assert not [version for version in X86 if fits("torchvision", "0.15.0", version)]
    assert fits("torchvision", "0.15.1", "2.0.0")


def test_xformers_of_another_cuda() -> None:
    assert not fits("xformers", "0.0.33", "2.9.0")
    assert fits("xformers", "0.0.33.post1", "2.9.0")
    assert fits("xformers", "0.0.31", "2.7.1")
    assert fits("xformers", "0.0.20", "2.0.1")
    assert not fits("xformers", "0.0.35", "2.11.0")


@pytest.mark.parametrize("package", ["torchvision", "torchaudio"])
def test_every_torch_has_its_companions(package: str) -> None:
    for version, build in X86.items():
        fitting = [row for row in MATRIX.companions if row.package == package and companion_holds(row, build)]
        assert fitting, (package, version)


def companion_holds(row: Companion, build: TorchBuild) -> bool:
    allowed = all(
        Requirement(rule.needs).specifier.contains(build.version)
        for rule in query.rules_for(MATRIX, row.package, row.version)
    )
    return allowed and query.companion_fits(row, build) is None


def test_vllm_whose_marker_drops_the_torch_pin() -> None:
    assert needs("vllm", "0.6.5") == {"torch==2.5.1"}
    assert needs("vllm", "0.2.0") == {"torch<2.2"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("4.35.2", set()),
        ("4.40.0", {"flash-attn>=2.1.0"}),
        ("4.57.1", {"torch>=2.1", "flash-attn>=2.1.0"}),
        ("5.0.0", {"torch>=2.2", "flash-attn>=2.1.0"}),
        ("5.14.1", {"torch>=2.4", "flash-attn>=2.3.3"}),
        ("5.15.0", {"torch>=2.5", "flash-attn>=2.3.3"}),
        ("5.24.0", {"torch>=2.6", "flash-attn>=2.3.3"}),
        ("5.99.0", {"torch>=2.6", "flash-attn>=2.3.3"}),
    ],
)
def test_what_transformers_checks_at_run_time(version: str, expected: set[str]) -> None:
    assert needs("transformers", version) == expected


def test_a_transformers_newer_than_any_that_was_read_is_of_low_confidence() -> None:
    assert {rule.confidence for rule in query.rules_for(MATRIX, "transformers", "5.99.0")} == {"low"}
    assert {rule.confidence for rule in query.rules_for(MATRIX, "transformers", "5.24.0")} == {"high"}


def wheels(version: str, torch: str) -> list[FlashAttnWheel]:
    return [row for row in MATRIX.flash_attn_wheels if (row.version, row.torch_minor) == (version, torch)]


def test_flash_attn_names_do_not_follow_torchs_cuda() -> None:
    assert {row.cuda_tag for row in wheels("2.5.8", "2.3")} == {"cu118", "cu122"}
    assert {row.cuda_tag for row in wheels("2.6.3", "2.3")} == {"cu118", "cu123"}
    assert {row.cuda_tag for row in wheels("2.7.3", "2.3")} == {"cu11", "cu12"}
    assert {row.cuda_tag for row in wheels("2.8.3", "2.6")} == {"cu12"}


def test_a_release_whose_assets_the_inventory_lacks_has_none() -> None:
    assert not [row for row in MATRIX.flash_attn_wheels if row.version in {"2.7.0", "2.5.9", "2.8.0"}]
    assert query.flash_attn_release(MATRIX, "2.7.0") is not None


def test_planned_assets_are_of_low_confidence_and_only_of_the_release_nobody_listed() -> None:
    planned = [row for row in MATRIX.flash_attn_wheels if row.basis == "planned"]
    assert {(row.version, row.confidence) for row in planned} == {("2.8.3.post1", "low")}


def test_an_asset_built_against_a_nightly_is_of_low_confidence() -> None:
    assert {row.confidence for row in wheels("2.5.7", "2.3")} == {"low"}
    assert {row.confidence for row in wheels("2.5.8", "2.3")} == {"high", "medium"}


def test_assets_uploaded_later_than_the_inventory_are_known_by_their_hash() -> None:
    assert {(row.basis, row.cuda_tag) for row in wheels("2.8.1", "2.9")} == {("hashed", "cu12"), ("hashed", "cu13")}


def test_flash_attn_never_has_sm_75_and_blackwell_only_from_2_8() -> None:
    archs = {row.version: row.gpu_archs for row in MATRIX.flash_attn}
    assert not [version for version, found in archs.items() if "sm_75" in found]
    assert archs["2.7.3"] == ("sm_80", "sm_90")
    assert archs["2.8.3"] == ("sm_80", "sm_90", "sm_100", "sm_120")


def test_there_is_no_cuda_12_7() -> None:
    assert not [row for row in MATRIX.components if row.toolkit.startswith("12.7")]


def test_toolkit_12_5_1_keeps_the_older_nvjitlink() -> None:
    assert query.component_version(MATRIX, "12.5.1", "nvidia-nvjitlink-cu12") == "12.5.40"


def test_cuda_13_components_have_no_suffix() -> None:
    assert query.component_version(MATRIX, "13.0.2", "nvidia-cublas") == "13.1.0.3"
    assert query.component_version(MATRIX, "13.0.2", "nvidia-cublas-cu13") is None


def test_triton_is_exact_before_2_14_and_compatible_from_there() -> None:
    assert pin(X86["2.13.0"], "triton") == "==3.7.1"
    assert pin(X86["2.14.0"], "triton") == "~=3.8.0"


def test_other_variants_exist_upstream_but_not_on_the_default_index() -> None:
    variants = {build.index for build in query.builds(MATRIX, platform="linux-64") if build.version == "2.3.1"}
    assert {"default", "cu118", "cpu"} <= variants
    assert all(build.confidence != "certain" for build in MATRIX.torch if build.index != "default")


def test_addresses_are_named_nowhere_but_in_sources() -> None:
    from stackfix.matrix.load import FILES, matrix_directory

    for name in FILES:
        if name != "sources.toml":
            assert "://" not in (matrix_directory() / name).read_text(encoding="utf-8"), name


def test_torch_before_2_3_takes_no_numpy_2() -> None:
    assert "numpy<2" in needs("torch", "2.2.2")
    assert "numpy<2" not in needs("torch", "2.3.0")


def test_extensions_belong_to_the_torch_that_their_makers_name() -> None:
    assert needs("torchtext", "0.18.0") == {"torch<2.4"}
    assert needs("torchcodec", "0.9.1") == {"torch==2.9.*"}
    assert needs("torchcodec", "0.5") == {"torch==2.7.*"}
    assert needs("torchcodec", "0.12.0") == {"torch>=2.11"}
    assert needs("fbgemm-gpu", "1.4.2") == {"torch==2.9.*"}
    unread = (*query.rules_for(MATRIX, "torchcodec", "0.17.0"), *query.rules_for(MATRIX, "fbgemm-gpu", "1.9.0"))
    assert {rule.confidence for rule in unread} == {"low"}
