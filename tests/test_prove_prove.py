"""What breaks a stack, what the machine is trusted to have, what nobody can tell, and what lies in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.inspect.places import Root
from stackfix.inspect.records import Symbols
from stackfix.matrix.library_records import Libraries
from stackfix.matrix.records import ToolkitComponent
from stackfix.prove.proof_records import CANNOT_TELL, FAILS, LOADS, NOT_TRIED, OutsideOfProof, ProvenTarget, Tried
from stackfix.prove.prove import Prover, Subject
from stackfix.prove.records import NotFetched, PlannedWheel, WheelTables
from stackfix.prove.refusal import bounds_of, refusal
from stackfix.prove.surroundings import Locked, is_wanted, lay
from stackfix.resolve.records import Target
from tests.diagnose_world import LIBRARIES, World, lib
from tests.prove_world import TARGET, InstalledTables, knowledge
from tests.test_prove_simulate import CUSPARSE, JITLINK, MODULE, stack_world

LOCKED = Locked(cuda="12.1", platform="linux-64", versions={"nvidia-nvjitlink-cu12": "12.1.105"})


class Shop(InstalledTables):
    """Tables of a world, and of wheels beside it that ship."""

    def __init__(self, world: World, *others: World) -> None:
        super().__init__(world.site, Root(str(world.folder)))
        self.beside = [InstalledTables(each.site, Root(str(each.folder))) for each in others]

    def shipped(self, name: str) -> tuple[PlannedWheel, ...]:
        return tuple(planned(each) for other in self.beside for each in other.wheels() if each.project.name == name)

    def known(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Mapping[str, WheelTables]:
        found = dict(super().known(wheels))
        for other in self.beside:
            found |= other.known(wheels)
        return found

    def symbols(self, sha256: str, path: str) -> Symbols:
        owner = next((each for each in self.beside if sha256 in each.tables), None)
        return owner.symbols(sha256, path) if owner is not None else super().symbols(sha256, path)


def planned(tables: WheelTables) -> PlannedWheel:
    file = f"{tables.project.name}-{tables.project.version}-py3-none-manylinux_2_17_x86_64.whl"
    return PlannedWheel(name=tables.project.name, version=tables.project.version, file=file, sha256=tables.sha256,
                        url=None, size=None)


def prover(shop: Shop, *, libraries: Libraries = LIBRARIES, target: Target = TARGET,
           without: Sequence[str] = ()) -> Prover:
    """Of all packages of a world; nothing is known of those in `without`."""
    wheels = tuple(planned(each) for each in shop.wheels())
    known = {each.sha256: shop.tables[each.sha256] for each in wheels if each.name not in without}
    failed = tuple(NotFetched(wheel=each, code="unreachable", reason="no answer", next_step=None)
                   for each in wheels if each.name in without)
    return Prover(Subject(target=target, wheels=wheels, outside=(), tables=known, failed=failed), shop,
                  knowledge(libraries))


def clean(target: ProvenTarget) -> Tried:
    return next(each for each in target.environments if each.name == "clean")


def test_a_stack_that_loads_says_who_gets_what_from_where(tmp_path: Path) -> None:
    target = prover(Shop(stack_world(World(tmp_path), "__nvJitLinkAddData_12_1"))).proven(())
    assert target.verdict == LOADS
    module = next(each for each in target.imports if each.project == "some")
    assert module.maps == (MODULE, CUSPARSE, JITLINK)
    assert {(each.requester, each.name, each.winner, each.how) for each in module.resolved} >= {
        ("", MODULE, MODULE, "path"), (MODULE, "libcusparse.so.12", CUSPARSE, "RUNPATH"),
        (CUSPARSE, "libnvJitLink.so.12", JITLINK, "RUNPATH"), (CUSPARSE, "libc.so.6", "libc.so.6", "loaded name")}
    bound = {(each.requester, each.provider): (each.count, each.versions) for each in module.bound}
    assert bound[CUSPARSE, JITLINK] == (1, ("libnvJitLink.so.12",))
    assert bound[CUSPARSE, "libc.so.6"][1] == ("GLIBC_2.14",)
    assert [each.path for each in target.files] == sorted([MODULE, CUSPARSE, JITLINK])
    libc = next(each for each in target.assumed if each.library == "libc.so.6")
    assert (libc.part, libc.level, libc.versions) == ("glibc", "2.28", ("GLIBC_2.14",))


def test_what_fails_is_named_with_what_would_do(tmp_path: Path) -> None:
    target = prover(Shop(stack_world(World(tmp_path), "__nvJitLinkAddData_12_0"))).proven(())
    assert target.verdict == FAILS
    trouble, = clean(target).troubles
    assert (trouble.library, trouble.provider, trouble.requester) == ("libnvJitLink.so.12", JITLINK, CUSPARSE)
    assert trouble.provider_package == "nvidia-nvjitlink-cu12 12.1.105"
    assert trouble.symbols == ("__nvJitLinkAddData_12_1",)
    assert "/planned" not in str(trouble)
    error = refusal(target)
    assert error.exit_status == 1
    assert error.reference == "stack-does-not-load"
    assert "__nvJitLinkAddData_12_1" in " ".join(each.text for each in error.causes)


def test_a_bound_for_the_next_candidate_comes_from_the_almanac(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_0").wheel(
        "nvidia-nvjitlink-cu12", "12.0.140", {JITLINK: lib(offers=["__nvJitLinkAddData_12_0@libnvJitLink.so.12"])})
    bound, = bounds_of(prover(Shop(world)).proven(()))
    assert bound.constraint
    assert bound.text == "nvidia-nvjitlink-cu12>=12.1.55"
    assert bound.origin.startswith("lock --prove: ")


def test_a_library_of_the_system_that_no_wheel_has_cannot_be_told(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("some", "1.0", {MODULE: lib(needs=("libmpi.so.12", "libc.so.6"))})
    proof = prover(Shop(world)).proven(())
    assert proof.verdict == LOADS, "a module that is perhaps never imported"
    assert any("libmpi.so.12" in each and "the system has to have it" in each for each in proof.unknown)
    assert next(each for each in proof.imports if each.project == "some").verdict == CANNOT_TELL


def test_a_library_that_the_stack_has_in_another_major_is_a_failure(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_1").wheel("other", "1.0", {
        "other/core.cpython-311-x86_64-linux-gnu.so": lib(needs=("libnvJitLink.so.13",))})
    target = prover(Shop(world)).proven(())
    assert target.verdict == FAILS
    assert clean(target).troubles[0].kind == "library"
    assert clean(target).troubles[0].library == "libnvJitLink.so.13"


def test_a_library_that_lies_where_nobody_looks_is_told_and_no_refusal(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_1").wheel("other", "1.0", {
        "other/core.cpython-311-x86_64-linux-gnu.so": lib(needs=("libnvJitLink.so.12", "libcusparse.so.12"))})
    target = prover(Shop(world)).proven(())
    assert target.verdict == LOADS
    told, = clean(target).beware
    assert told.startswith("core.cpython-311-x86_64-linux-gnu.so of other does not look where the stack has "
                           "libnvJitLink.so.12, libcusparse.so.12: ")
    assert next(each.verdict for each in target.imports if each.project == "other") == CANNOT_TELL


def test_symbols_without_a_version_that_zlib_may_have_are_trusted(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("some", "1.0", {MODULE: lib(needs=("libz.so.1",), wants=("inflate",))})
    target = prover(Shop(world)).proven(())
    assert (target.verdict, target.unknown) == (LOADS, ())
    assert any(each.library == "libz.so.1" for each in target.assumed)


def test_symbols_that_nobody_names_cannot_be_told(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("some", "1.0", {MODULE: lib(needs=("libc.so.6",), wants=("frobnicate",))})
    target = prover(Shop(world)).proven(())
    assert any("frobnicate" in each for each in target.unknown)


def test_what_the_targets_glibc_does_not_have_is_a_failure(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_1").wheel("torch", "2.3.1", {
        "torch/_C.cpython-311-x86_64-linux-gnu.so": lib(needs=("libc.so.6",),
                                                         wants=("pthread_create@GLIBC_2.34@libc.so.6",))})
    libraries = knowledge().libraries
    broken = prover(Shop(world), libraries=libraries).proven(())
    troubles = clean(broken).troubles
    assert any(each.versions == ("GLIBC_2.34",) and "glibc 2.28" in each.summary for each in troubles), troubles
    assert refusal(replace(broken, environments=(replace(clean(broken), troubles=tuple(
        each for each in troubles if each.versions)),))).next_step() == (
        "--glibc 2.34, if every machine that the lock is for has that or a newer one")
    newer = prover(Shop(world), libraries=libraries, target=replace(TARGET, glibc="2.35")).proven(())
    assert not any(each.versions for each in clean(newer).troubles)


def test_a_wheel_of_which_nothing_is_known_is_no_pass(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_1").wheel("more", "1.0", {"more/a.py": ""})
    target = prover(Shop(world), without=("more",)).proven(())
    assert target.verdict == CANNOT_TELL
    assert clean(target).why == "nothing is known of more"
    assert any(each.endswith(": it could not be had") for each in target.unknown)
    assert "no answer" not in repr(target), "the reason is one of a machine, the proof is the same everywhere"
    assert [each.basis for each in target.wheels if each.name == "more"] == [None]


def test_two_wheels_with_one_file_are_told(tmp_path: Path) -> None:
    other = World(tmp_path / "other").wheel("nvidia-nvjitlink-cu11", "11.0", {
        JITLINK: lib(offers=["__nvJitLinkAddData_11_0@libnvJitLink.so.12"])})
    shop = Shop(stack_world(World(tmp_path / "stack"), "__nvJitLinkAddData_12_1"), other)
    wheels = tuple(planned(each) for one in (shop, *shop.beside) for each in one.wheels())
    subject = Subject(target=TARGET, wheels=wheels, outside=(), tables=shop.known(wheels))
    target = Prover(subject, shop, knowledge(LIBRARIES)).proven(())
    assert any("nvidia-nvjitlink-cu11" in each and JITLINK in each for each in target.unknown), target.unknown
    assert target.verdict == FAILS, "what was laid last was tried"
    alike = replace(subject, wheels=(*wheels[::-1],))
    assert Prover(alike, shop, knowledge(LIBRARIES)).proven(()).verdict == CANNOT_TELL


def test_what_is_outside_of_the_proof_stays_in_it(tmp_path: Path) -> None:
    shop = Shop(stack_world(World(tmp_path), "__nvJitLinkAddData_12_1"))
    made = prover(shop)
    outside = OutsideOfProof(name="flash-attn", version="2.5.8", why="is an sdist")
    subject = replace(made.subject, outside=(outside,))
    assert Prover(subject, shop, knowledge(LIBRARIES)).proven(()).outside == (outside,)


# --- environments ---


def older(tmp_path: Path) -> World:
    return World(tmp_path / "older").wheel("nvidia-nvjitlink-cu12", "12.0.140", {
        JITLINK: lib(offers=["__nvJitLinkAddData_12_0@libnvJitLink.so.12"])})


@pytest.mark.parametrize(("name", "variable"), [("older-toolkit", "LD_LIBRARY_PATH"),
                                                ("preloaded-nvjitlink", "LD_PRELOAD")])
def test_an_older_library_in_the_way_breaks_a_stack_that_loads(name: str, variable: str, tmp_path: Path) -> None:
    shop = Shop(stack_world(World(tmp_path / "stack"), "__nvJitLinkAddData_12_1"), older(tmp_path))
    row = next(each for each in knowledge().table.surroundings if each.name == name)
    components = [ToolkitComponent(toolkit="12.0.1", package="nvidia-nvjitlink-cu12", version="12.0.140",
                                   source="tests", confidence="certain")]
    target = prover(shop).proven([lay(row, LOCKED, components, shop)])
    assert target.verdict == LOADS, "nothing is in the way of a clean one"
    tried = next(each for each in target.environments if each.name == name)
    assert tried.verdict == FAILS
    assert tried.holds == ("nvidia-nvjitlink-cu12 12.0.140",)
    assert dict(tried.variables)[variable].startswith("/usr/local/cuda/lib64")
    trouble, = tried.troubles
    assert trouble.provider == "/usr/local/cuda/lib64/libnvJitLink.so.12"
    assert f"unset {variable}" in trouble.avoid
    assert any(each.winner == trouble.provider for each in tried.taken)


def test_an_environment_that_cannot_be_made_is_not_tried(tmp_path: Path) -> None:
    shop = Shop(stack_world(World(tmp_path), "__nvJitLinkAddData_12_1"))
    row = next(each for each in knowledge().table.surroundings if each.name == "preloaded-nvjitlink")
    tried = prover(shop).proven([lay(row, LOCKED, (), shop)]).environments[1]
    assert (tried.verdict, tried.troubles) == (NOT_TRIED, ())
    assert tried.why is not None
    cpu = lay(row, replace(LOCKED, cuda="cpu"), (), shop)
    assert (cpu.met, cpu.why) == (None, "the stack is for the CPU")


@pytest.mark.parametrize(("release", "version", "own", "wanted"), [
    ("older minor", "12.0.1", "12.1", True), ("older minor", "12.1.0", "12.1", False),
    ("older minor", "11.8.0", "12.1", False), ("newer minor", "12.9.1", "12.1", True),
    ("newer minor", "13.0.0", "12.1", False), ("older major", "11.8.0", "12.1", True),
    ("older major", "12.0.0", "12.1", False), ("older minor", "13.4.0rc1", "13.5", False),
    ("newer minor", "x", "12.1", False),
])
def test_which_releases_are_another_minor(release: str, version: str, own: str, *, wanted: bool) -> None:
    assert is_wanted(release, version, own) is wanted


def test_without_a_driver_only_what_an_import_needs_of_it_fails(tmp_path: Path) -> None:
    row = next(each for each in knowledge().table.surroundings if each.name == "no-driver")
    for needs, verdict in ((("libc.so.6",), LOADS), (("libcuda.so.1",), FAILS)):
        world = World(tmp_path / verdict).wheel("torch", "2.3.1", {
            "torch/lib/libtorch_global_deps.so": lib(needs=needs),
            "torch/_C.cpython-311-x86_64-linux-gnu.so": lib()})
        shop = Shop(world)
        made = prover(shop, libraries=knowledge().libraries)
        tried = made.proven([lay(row, LOCKED, (), shop)]).environments
        assert [each.verdict for each in tried] == [LOADS, verdict]
