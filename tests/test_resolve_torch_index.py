"""Stacks of the torch index in the solver: their order, what comes from where, what is not held against them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from stackfix.errors import Unreachable
from stackfix.matrix.records import Matrix, TorchBuild, TorchIndexWheel
from stackfix.resolve.decide import decide
from stackfix.resolve.records import Lock, NoConsistentStack, ProjectPage, StackRequest
from stackfix.resolve.torch_family import composed, public, torch_lines
from stackfix.sources.records import CoreMetadata, IndexFile
from tests.resolve_world import (
    MATRIX,
    FakeIndex,
    FakePage,
    FakeReleases,
    Release,
    asked,
    companion,
    projects,
    rule,
    sha,
    told,
    torch_build,
    wheel_tags,
)

BASE = "https://torch.invalid"
CU118 = ("nvidia-cusparse-cu11==11.7.5.86", "filelock")


@dataclass
class FakePageOfPath(FakePage):
    """A page of one path of the torch index."""

    path: str = "cu118"

    def files(self, version: str) -> tuple[IndexFile, ...]:
        return tuple(replace(file, url=f"{BASE}/{self.path}/{file.filename.replace('+', '%2B')}", upload_time=None,
                             torch_path=self.path, sha256=sha(f"{self.path}/{file.filename}"))
                     for file in super().files(version))


@dataclass
class FakeTorchIndex:
    """Fills resolve.torch_family.TorchWheels. `read`: whether metadata of wheels are to be had."""

    paths: dict[str, dict[str, dict[str, Release]]]
    away: Unreachable | None = None
    rows: dict[str, TorchIndexWheel] = field(default_factory=dict)
    pages: list[tuple[str, str]] = field(default_factory=list)
    prefetched: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def prefetch(self, path: str, names: tuple[str, ...]) -> None:
        self.prefetched.append((path, names))

    def page(self, path: str, name: str) -> ProjectPage:
        self.pages.append((path, name))
        return FakePageOfPath(name, self.paths.get(path, {}).get(name, {}), path)

    def metadata(self, file: IndexFile) -> CoreMetadata | None:
        if self.away is not None:
            return None
        release = self.paths[str(file.torch_path)][file.project][file.version]
        return CoreMetadata(name=file.project, version=file.version, requires_dist=release.requires,
                            requires_python=None, provides_extra=(), basis="advertised")

    def row(self, file: IndexFile) -> TorchIndexWheel | None:
        return self.rows.get(file.filename)

    def states_hash(self, file: IndexFile) -> bool:
        return self.away is None


def torch_index(**changes: dict[str, dict[str, Release]]) -> FakeTorchIndex:
    tags = wheel_tags(("3.10", "3.11"), "linux_x86_64")
    paths = {"cu118": {
        "torch": {"2.3.1+cu118": Release(requires=CU118, tags=tags), "2.3.0+cu118": Release(requires=CU118, tags=tags)},
        "torchvision": {"0.18.1+cu118": Release(requires=("torch==2.3.1", "numpy"), tags=tags),
                        "0.19.1+cu118": Release(requires=("torch==2.4.1", "numpy"), tags=tags)},
    }, **changes}
    return FakeTorchIndex(paths)


def world() -> FakeIndex:
    found = projects()
    found["nvidia-cusparse-cu11"] = {"11.7.5.86": Release()}
    return FakeIndex(found)


def lock(request: StackRequest, wheels: FakeTorchIndex | None, matrix: Matrix = MATRIX,
         index: FakeIndex | None = None) -> Lock:
    return decide(request, matrix, index or world(), FakeReleases(), command=told, torch_wheels=wheels)


def refusal(request: StackRequest, wheels: FakeTorchIndex | None, matrix: Matrix = MATRIX) -> str:
    with pytest.raises(NoConsistentStack) as caught:
        lock(request, wheels, matrix)
    return "\n".join(cause.text for cause in caught.value.causes)


def packages(found: Lock) -> dict[str, tuple[str, str, bool]]:
    return {one.name: (one.version, one.files[0].url, one.direct) for one in found.targets[0].packages}


def test_the_family_comes_from_the_path_and_everything_else_does_not() -> None:
    found = packages(lock(asked("torchvision", torch="==2.3.*", cuda="11.8"), torch_index()))
    assert found["torch"][0] == "2.3.1+cu118"
    assert found["torch"][1].startswith(f"{BASE}/cu118/torch-2.3.1%2Bcu118-cp310")
    assert found["torch"][2]
    assert found["torchvision"][1].startswith(f"{BASE}/cu118/")
    assert not found["numpy"][2]
    assert not found["nvidia-cusparse-cu11"][2]
    assert "nvidia-cusparse-cu12" not in found


def test_the_default_index_is_enough_where_it_has_the_variant() -> None:
    wheels = torch_index()
    found = packages(lock(asked(torch="==2.3.*", cuda="12.1"), wheels))
    assert found["torch"][0] == "2.3.1"
    assert not found["torch"][2]
    assert wheels.pages == []
    assert wheels.prefetched == []


def test_no_variant_is_taken_that_nobody_asked_for() -> None:
    text = refusal(asked(torch="==2.3.*", driver="470.1"), torch_index())
    assert "needs driver 525.60.13 or newer" in text


def test_pages_of_the_path_are_asked_for_early() -> None:
    wheels = torch_index()
    lock(asked("torchvision", torch="==2.3.*", cuda="11.8"), wheels)
    assert wheels.prefetched == [("cu118", ("torch", "torchvision"))]


def test_a_bare_major_takes_the_default_build_first_then_the_newest() -> None:
    matrix = replace(MATRIX, torch=(*MATRIX.torch, torch_build("2.3.1", "12.6", "12.4.1", index="cu126"),
                                    torch_build("2.3.1", "12.4", "12.4.1", index="cu124")))
    usual = lock(asked(torch="==2.3.1", cuda="12"), torch_index(), matrix)
    assert usual.stack.cuda == "12.1"
    older = replace(matrix, torch=tuple(b for b in matrix.torch if (b.version, b.cuda) != ("2.3.1", "12.1")))
    wheels = torch_index(cu126={"torch": {"2.3.1+cu126": Release(requires=CU118, tags=wheel_tags(("3.10",)))}})
    assert lock(asked(torch="==2.3.1", cuda="12"), wheels, older).stack.cuda == "12.6"


def test_where_a_gpu_is_asked_what_is_known_to_run_goes_first() -> None:
    matrix = replace(MATRIX, torch=(
        *(build for build in MATRIX.torch if build.cuda != "12.1"),
        torch_build("2.3.1", "12.6", "12.4.1", index="cu126", gpu_archs=()),
        torch_build("2.3.1", "12.4", "12.4.1", index="cu124", gpu_archs=("sm_60",)),
    ))
    tags = wheel_tags(("3.10",))
    wheels = torch_index(cu126={"torch": {"2.3.1+cu126": Release(tags=tags)}},
                         cu124={"torch": {"2.3.1+cu124": Release(tags=tags)}})
    assert lock(asked(torch="==2.3.1", cuda="12", gpu_archs=("sm_60",)), wheels, matrix).stack.cuda == "12.4"


def test_a_companion_that_the_path_has_not_got_is_a_reason() -> None:
    wheels = torch_index()
    del wheels.paths["cu118"]["torchvision"]
    assert "there is no torchvision on the torch index (cu118)" in refusal(
        asked("torchvision", torch="==2.3.*", cuda="11.8"), wheels)


def test_a_companion_of_the_path_is_for_its_cuda_whatever_the_row_was_read_of() -> None:
    """The row of torchvision 0.18.1 says CUDA 12.1: that of the default index's wheel."""
    assert packages(lock(asked("torchvision", torch="==2.3.1", cuda="11.8"), torch_index()))["torchvision"][0] \
        == "0.18.1+cu118"


@pytest.mark.parametrize("cuda", ["11.8", "cpu"])
def test_a_companion_of_the_default_index_is_for_the_default_cuda(cuda: str) -> None:
    """Though its row does not say for which: that of the torch it was built against."""
    tags = wheel_tags(("3.10",))
    matrix = replace(
        MATRIX, companions=(*MATRIX.companions, companion("vllm", "0.5.3", "==2.3.1", None, "any")),
        torch=(*MATRIX.torch, torch_build("2.3.1", "cpu", None, index="cpu", gpu_archs=())))
    wheels = torch_index(cpu={"torch": {"2.3.1+cpu": Release(tags=tags)}})
    index = world()
    index.projects["vllm"] = {"0.5.3": Release(requires=("torch==2.3.1",), tags=tags)}
    usual = packages(lock(asked("vllm", torch="==2.3.1", cuda="12.1"), wheels, matrix, index))
    assert usual["vllm"][0] == "0.5.3"
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("vllm", torch="==2.3.1", cuda=cuda), wheels, matrix, index)
    assert any("is built for CUDA 12.1, as torch 2.3.1 on the default index is" in one.text
               for one in caught.value.causes)


def test_a_wheel_without_a_local_part_is_the_paths_too() -> None:
    tags = wheel_tags(("3.10",), "linux_aarch64")
    matrix = replace(MATRIX, torch=(*MATRIX.torch, torch_build(
        "2.3.1", "12.4", None, index="cu124", platform="linux-aarch64", gpu_archs=())))
    wheels = torch_index(cu124={"torch": {"2.3.1": Release(requires=("filelock",), tags=tags)}})
    found = packages(lock(asked(torch="==2.3.1", cuda="12.4", platforms=("linux-aarch64",)), wheels, matrix))
    assert found["torch"][:2] == ("2.3.1", f"{BASE}/cu124/torch-2.3.1-{tags[0]}.whl")


@pytest.mark.parametrize(("version", "told_of"), [("0.18.1", True), ("0.18.1+cu124", False)])
def test_a_companion_whose_name_says_nothing_of_cuda_is_told(version: str, *, told_of: bool) -> None:
    """A wheel for the CPU has the same name on another path: that this one has kernels would be a guess."""
    tags = wheel_tags(("3.10",), "linux_aarch64")
    matrix = replace(MATRIX, torch=(*MATRIX.torch, torch_build(
        "2.3.1", "12.4", None, index="cu124", platform="linux-aarch64", gpu_archs=())))
    wheels = torch_index(cu124={"torch": {"2.3.1": Release(requires=("filelock",), tags=tags)},
                                "torchvision": {version: Release(requires=("torch==2.3.1",), tags=tags)}})
    found = lock(asked("torchvision", torch="==2.3.1", cuda="12.4", platforms=("linux-aarch64",)), wheels, matrix)
    assert packages(found)["torchvision"][0] == version
    notes = [note for note in found.notes if "has CUDA kernels is not known" in note]
    assert [note.split(" for aarch64")[0] for note in notes] == ["whether torchvision 0.18.1"] * told_of


def test_triton_comes_from_the_torch_index_where_the_default_one_has_no_file_that_fits() -> None:
    wheels = torch_index()
    lines = (*CU118, "triton==2.3.1")
    wheels.paths["cu118"]["torch"]["2.3.1+cu118"] = Release(requires=lines, tags=wheel_tags(("3.10",)))
    wheels.paths["cu118"]["triton"] = {"2.3.1": Release(tags=wheel_tags(("3.10",)))}
    index = world()
    index.projects["triton"] = {"2.3.1": Release(tags=wheel_tags(("3.12",)))}
    assert packages(lock(asked(torch="==2.3.1", cuda="11.8"), wheels, index=index))["triton"][2]
    index = world()
    index.projects["triton"] = {"2.3.1": Release(tags=wheel_tags(("3.10",)))}
    wheels.pages.clear()
    assert not packages(lock(asked(torch="==2.3.1", cuda="11.8"), wheels, index=index))["triton"][2]
    assert ("cu118", "triton") not in wheels.pages


def test_a_rule_of_the_default_build_gives_way_to_the_variants_own_pin() -> None:
    matrix = replace(MATRIX, rules=(*MATRIX.rules, rule("torch", "==2.3.1", "nvidia-cusparse-cu11>=12")))
    found = packages(lock(asked(torch="==2.3.1", cuda="11.8"), torch_index(), matrix))
    assert found["nvidia-cusparse-cu11"][0] == "11.7.5.86"


def test_what_the_metadata_leave_open_a_rule_bounds() -> None:
    matrix = replace(MATRIX, rules=(*MATRIX.rules, rule("torch", "==2.3.1", "filelock<3.1")))
    assert packages(lock(asked(torch="==2.3.1", cuda="11.8"), torch_index(), matrix))["filelock"][0] == "3.0"
    assert packages(lock(asked(torch="==2.3.1", cuda="11.8"), torch_index()))["filelock"][0] == "3.1"


def test_a_refusal_names_the_variants_that_there_are() -> None:
    text = refusal(asked(torch="==2.3.1", cuda="12.4"), torch_index())
    assert "torch 2.3.1 is built for CUDA 12.1 on the default index; the torch index has CUDA 11.8" in text
    assert "the torch index has" not in refusal(asked(cuda="12.9"), torch_index())


def test_a_kept_pin_is_a_public_version() -> None:
    matrix = replace(MATRIX, torch=(*MATRIX.torch, torch_build("2.3.0", "11.8", "11.8.0", index="cu118")))
    kept = asked(torch="==2.3.*", cuda="11.8", kept=(("torch", "2.3.0"),))
    assert packages(lock(kept, torch_index(), matrix))["torch"][0] == "2.3.0+cu118"
    renewed = asked(torch="==2.3.*", cuda="11.8")
    assert packages(lock(renewed, torch_index(), matrix))["torch"][0] == "2.3.1+cu118"


def test_a_requirement_on_the_local_version_names_the_variant() -> None:
    assert lock(asked("torch==2.3.1+cu118"), torch_index()).stack.cuda == "11.8"
    refusal(asked("torch==2.3.1+cu999"), torch_index())


def test_without_the_torch_index_variants_are_only_named() -> None:
    assert "only on the torch index, which was not looked at" in refusal(asked(torch="==2.3.1", cuda="11.8"), None)


def test_what_stands_in_is_told() -> None:
    wheels = torch_index()
    wheels.away = Unreachable("torch index", "no connection")
    matrix = replace(MATRIX, torch=tuple(
        replace(b, requires=("nvidia-cusparse-cu11==11.7.5.86",)) if b.index == "cu118" else b for b in MATRIX.torch))
    found = lock(asked("torchvision", torch="==2.3.1", cuda="11.8"), wheels, matrix)
    assert set(packages(found)) == {"torch", "torchvision", "numpy", "filelock", "nvidia-cusparse-cu11"}
    said = "\n".join(found.notes)
    assert "torch index could not be reached (no connection): torch 2.3.1+cu118 and torchvision 0.18.1+cu118" in said
    assert "what torch 2.3.1+cu118 requires was not read of its wheel" in said
    assert "what torchvision 0.18.1+cu118 requires was not read" in said


# -- requirements that nobody read -------------------------------------------------------------------------------------

FILE = IndexFile(
    project="torch", filename="torch-2.3.1+cu118-cp310-cp310-linux_x86_64.whl", version="2.3.1+cu118", url="x",
    sha256=None, requires_python=None, yanked=None, size=None, upload_time=None, core_metadata=None, index="x",
    torch_path="cu118",
)
SIBLING = CoreMetadata(
    name="torch", version="2.3.1", requires_python=">=3.8", provides_extra=("opt",), basis="advertised",
    requires_dist=("filelock", "sympy", "nvidia-cublas-cu12==12.1.3.1 ; x", "cuda-bindings<14", "triton==2.3.1 ; y"),
)


def build(*requires: str, cuda: str = "11.8") -> TorchBuild:
    return torch_build("2.3.1", cuda, None, index="cu118" if cuda != "cpu" else "cpu", requires=requires)


@pytest.mark.parametrize(("own", "lines"), [
    (build("nvidia-cublas-cu11==11"), ("filelock", "sympy", "triton==2.3.1 ; y", "nvidia-cublas-cu11==11")),
    (build("triton==2.3.0"), ("filelock", "sympy", "triton==2.3.0")),
    (build(cuda="cpu"), ("filelock", "sympy")),
])
def test_torch_of_a_variant_requires_its_own_libraries(own: TorchBuild, lines: tuple[str, ...]) -> None:
    assert torch_lines(MATRIX, own, SIBLING.requires_dist) == lines


def test_a_row_that_states_requirements_is_followed() -> None:
    row = TorchIndexWheel(file="xformers-0.0.24+cu118-x.whl", project="xformers", version="0.0.24+cu118", path="cu118",
                          sha256="0" * 64, requires=("torch==2.2.0",), source="locks", confidence="high")
    file = replace(FILE, project="xformers", filename=row.file, version=row.version)
    found = composed(MATRIX, file, row, replace(SIBLING, name="xformers"))
    assert found is not None
    assert found.requires_dist == ("torch==2.2.0",)
    assert (found.version, found.basis, found.requires_python) == ("0.0.24+cu118", "matrix", ">=3.8")


def test_where_nothing_is_known_nothing_is_made_up() -> None:
    assert composed(MATRIX, replace(FILE, project="xformers", version="0.0.1"), None, None) is None
    assert composed(MATRIX, replace(FILE, version="9.9+cu118"), None, SIBLING) is None


def test_a_wheel_that_is_known_by_name_alone_is_no_candidate() -> None:
    wheels = torch_index()
    wheels.away = Unreachable("torch index", "no connection")
    wheels.paths["cu118"]["xformers"] = {"0.0.26+cu118": Release(tags=wheel_tags(("3.10",)))}
    index = world()
    index.projects["xformers"] = {"0.0.1": Release(tags=wheel_tags(("3.10",)))}
    with pytest.raises(NoConsistentStack) as caught:
        lock(asked("xformers", torch="==2.3.1", cuda="11.8"), wheels, index=index)
    text = "\n".join(cause.text for cause in caught.value.causes)
    assert "is known by name alone: nobody read what it requires" in text
    assert "the torch index could not be reached (no connection)" in text


def test_a_cpu_build_is_told_with_the_cuda_that_the_torch_index_has_it_for() -> None:
    matrix = replace(MATRIX, torch=(*MATRIX.torch, torch_build(
        "2.3.1", "12.4", None, index="cu124", platform="linux-aarch64", gpu_archs=())))
    found = lock(asked(torch="==2.3.1", platforms=("linux-aarch64",)), torch_index(), matrix)
    assert any("is a CPU build; with --cuda 12.4 it comes from the torch index" in note for note in found.notes)


def test_a_public_version_has_no_local_part() -> None:
    from packaging.version import Version

    assert public(Version("2.3.1+cu118")) == Version("2.3.1")
