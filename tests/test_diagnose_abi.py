"""Extensions built for another torch, CUDA or string ABI: reported cases, with the symbols that real wheels have."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from stackfix.abi.records import Books, JudgedWheel
from stackfix.diagnose.abi import check_extensions
from stackfix.diagnose.abi_names import before_arguments, other_numbers, other_string, readable
from stackfix.diagnose.abi_offers import NEW_CHECK, OLD_CHECK
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.faults import find_faults
from stackfix.diagnose.faults_cuda import is_about_torch
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.situation import View
from tests.diagnose_books import MINORS, FakeNvidiaBook, books
from tests.diagnose_world import SYSTEM, World, lib

DEVICE = "_ZN3c104cuda9SetDevice"
OPTIONAL = "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEE"
STD_OPTIONAL = "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorESt8optionalIN3c1010ScalarTypeEE"
NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
FLASH = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
LINKED = ("libc10.so", "libtorch_cpu.so", "libc10_cuda.so")
RUNPATH = "$ORIGIN:$ORIGIN/torch/lib:$ORIGIN/../torch/lib"
ADD, ERROR, WARNER = "_ZN2at4_ops3addEl", "_ZN3c105ErrorD1Ev", "_ZN3c106WarnerD1Ev"
SPANS = {DEVICE + "Ei": "2.1-2.2", DEVICE + "Ea": "2.3-2.7", DEVICE + "Eab": "2.8-", OPTIONAL: "-2.1",
         STD_OPTIONAL: "2.2-", ADD: "2.5-2.6", ERROR: "-", OLD_CHECK: "-", WARNER: "2.1-2.6",
         "_ZN2at10TensorBaseC1Ev": "-"}
BOOKS = books(SPANS)


def torch(world: World, version: str, *, device: str | None = "Ea", strings: str = OLD_CHECK, cudart: str = "12",
          offers: tuple[str, ...] = ()) -> World:
    """torch with what the cases look at; `device` None is a CPU build."""
    files = {
        "torch/lib/libc10.so": lib(offers=(strings, "_ZN3c105ErrorD1Ev")),
        "torch/lib/libtorch_cpu.so": lib(needs=("libc10.so",), offers=("_ZN2at10TensorBaseC1Ev", *offers),
                                         runpath="$ORIGIN"),
    }
    if device is not None:
        world.wheel(f"nvidia-cuda-runtime-cu{cudart[:2]}", f"{cudart}.1",
                    {f"nvidia/cuda_runtime/lib/libcudart.so.{cudart}": lib()})
        files["torch/lib/libc10_cuda.so"] = lib(
            needs=("libc10.so", f"libcudart.so.{cudart}"), offers=(DEVICE + device,),
            runpath="$ORIGIN:$ORIGIN/../../nvidia/cuda_runtime/lib")
    world.wheel("torch", version, files)
    for name in files:
        world.opens(name, project="torch", what="import torch", to_global=True)
    return world


def flash_attn(world: World, version: str, *wants: str) -> World:
    world.wheel("flash-attn", version, {FLASH: lib(needs=LINKED, wants=wants, runpath=RUNPATH)})
    return world.opens(f"{world.site}/{FLASH}", project="flash-attn", what="import flash_attn")


def judged(package: str, version: str, span: str, *, cuda: int) -> JudgedWheel:
    """An extension wheel that was read."""
    first, _, last = span.partition("-")
    return JudgedWheel(
        package=package, version=version, file=f"{package}-{version}-cp311-cp311-manylinux_2_28_x86_64.whl",
        sha256=sha256(version.encode()).hexdigest(), torch=MINORS[MINORS.index(first):MINORS.index(last) + 1],
        string_abi=None, cuda=(cuda,), declares=">=2.11", disproved=())


def findings(view: View, almanac: Books = BOOKS) -> dict[str, Finding]:
    """By code. What the almanac has is a table of the test: what is read of real wheels is judged in the cases."""
    view = replace(view, load_books=lambda: almanac)
    found = list(check_extensions(view))
    assert len({each.code for each in found}) == len(found), found
    return {each.code: each for each in found}


# --- SF501 ---

def test_flash_attn_257_on_torch_230(tmp_path: Path) -> None:
    """c10::cuda::SetDevice took an int until torch 2.2, and has a DeviceIndex since 2.3."""
    world = flash_attn(torch(World(tmp_path), "2.3.0+cu121"), "2.5.7", DEVICE + "Ei", "_ZN3c105ErrorD1Ev")
    finding = findings(world.view())["SF501"]
    assert (finding.kind, finding.severity, finding.level) == ("abi-mismatch", "error", "extensions")
    assert finding.symbols == (DEVICE + "Ei",)
    assert finding.culprit.path == f"{world.site}/{FLASH}"
    assert finding.culprit.package == "flash-attn 2.5.7"
    assert finding.error == f"{world.site}/{FLASH}: undefined symbol: {DEVICE}Ei"
    assert f"undefined symbol: {DEVICE}Ei" in world.really()
    assert "c10::cuda::SetDevice" in finding.why
    assert any("torch 2.1 to 2.2" in line for line in finding.evidence)
    assert f"torch has c10::cuda::SetDevice(int) as c10::cuda::SetDevice(signed char) ({DEVICE}Ea)" in finding.evidence
    assert finding.built_for is not None
    assert (finding.built_for.torch, finding.built_for.unknown) == (("2.1", "2.2"), ())
    assert [(each.package, each.version) for each in finding.installs] == [("flash-attn", "2.5.8"), ("torch", "2.2.2")]
    assert finding.cure[0].startswith("stackfix lock --torch 2.3.0 --cuda 12.1 --flash-attn 2.5.8")
    assert "torch2.3cxx11abiFALSE-cp311" in finding.cure[0]
    assert any(line == "stackfix lock --torch 2.2.2 --flash-attn 2.5.7" for line in finding.cure)
    assert finding.repairable


@pytest.mark.parametrize(("version", "device"), [("2.2.2+cu121", "Ei"), ("2.3.0+cu121", "Ea")])
def test_an_extension_for_this_torch_is_nothing(tmp_path: Path, version: str, device: str) -> None:
    world = flash_attn(torch(World(tmp_path), version, device=device), "2.5.8", DEVICE + device)
    assert findings(world.view()) == {}


def test_vllm_032_beside_torch_221(tmp_path: Path) -> None:
    """at::_ops took c10::optional until torch 2.1."""
    world = torch(World(tmp_path), "2.2.1+cu121", device="Ei", offers=(STD_OPTIONAL,))
    names = ("vllm/_C.cpython-311-x86_64-linux-gnu.so", "vllm/_moe_C.cpython-311-x86_64-linux-gnu.so")
    world.wheel("vllm", "0.3.2", {name: lib(needs=LINKED, wants=(OPTIONAL,), runpath=RUNPATH) for name in names},
                requires=("torch==2.1.2", "xformers==0.0.23.post1", "triton>=2.1.0"))
    for name in names:
        world.opens(name, project="vllm")
    finding = findings(world.view())["SF501"]
    assert finding.summary == ("vllm 0.3.2 was built for another torch than 2.2.1+cu121: its metadata requires "
                               "torch==2.1.2")
    assert finding.symbols == (OPTIONAL,)
    assert "at::_ops::to_dtype_layout::call" in finding.why
    assert sum(line.startswith(f"{world.site}/vllm/") for line in finding.evidence) == 2
    assert any("torch 2.1 or older" in line for line in finding.evidence)
    assert "stackfix lock --torch 2.1.2 --with vllm==0.3.2" in finding.cure


def test_torchvision_hides_the_loaders_line(tmp_path: Path) -> None:
    """xformers took torch back to 2.4.0; torchvision 0.20.1 stayed."""
    world = torch(World(tmp_path), "2.4.0+cu121")
    name = "torchvision/_C.so"
    world.wheel("torchvision", "0.20.1+cu121", {name: lib(needs=LINKED, wants=("_ZN2at4_ops3addEl",), runpath=RUNPATH)},
                requires=("torch==2.5.1",))
    world.opens(name, project="torchvision", may_fail="torchvision goes on without its operators")
    finding = findings(world.view())["SF501"]
    assert finding.severity == "error"
    assert finding.error == "RuntimeError: operator torchvision::nms does not exist"
    assert "its metadata requires torch==2.5.1" in finding.summary
    assert any("undefined symbol: _ZN2at4_ops3addEl" in line for line in finding.evidence)
    assert finding.cure[0] == "/venv/bin/python -m pip install --no-deps 'torchvision==0.19.0'"
    assert "stackfix lock --torch 2.5.1 --with torchvision==0.20.1" in finding.cure


def test_torchaudio_of_the_same_number_states_no_torch(tmp_path: Path) -> None:
    """torchaudio 2.11.1 is for torch 2.13 and later; 2.11.0 came with torch 2.11."""
    world = torch(World(tmp_path), "2.11.0+cu130")
    name = "torchaudio/lib/_torchaudio.so"
    world.wheel("torchaudio", "2.11.1", {name: lib(needs=LINKED, wants=("_ZN2at4_ops3addEl",), runpath=(
        "$ORIGIN/../../torch/lib"))})
    finding = findings(world.opens(name, project="torchaudio").view())["SF501"]
    assert finding.cure[0] == "/venv/bin/python -m pip install --no-deps 'torchaudio==2.11.0'"


def test_what_a_file_name_states(tmp_path: Path) -> None:
    """flash-attn's metadata says nothing; the wheel that it came from does."""
    world = flash_attn(torch(World(tmp_path), "2.6.0+cu124"), "2.7.4", "_ZN3c105Error1xEv")
    file = "flash_attn-2.7.4%2Bcu12torch2.5cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    world.write(f"{world.site}/flash_attn-2.7.4.dist-info/direct_url.json",
                f'{{"url": "https://wheels.test/{file}", "archive_info": {{}}}}')
    finding = findings(world.view())["SF501"]
    assert "its file says torch 2.5" in finding.summary
    assert "stackfix lock --torch 2.5.1 --flash-attn 2.7.4" in finding.cure


def test_only_the_symbols_tell(tmp_path: Path) -> None:
    """flash-attn built for 2.6.0 and torch upgraded afterwards: nothing states what it was built for."""
    world = flash_attn(torch(World(tmp_path), "2.7.0+cu126"), "2.7.4", "_ZN3c106WarnerD1Ev")
    finding = findings(world.view())["SF501"]
    assert finding.summary == ("flash-attn 2.7.4 was built for another torch than 2.7.0+cu126: its symbols are those "
                               "of torch 2.1 to 2.6: c10::Warner::~Warner()")
    assert "only the symbols tell" in finding.why


@pytest.mark.parametrize(("name", "version", "cure"), [
    ("flash-attn", "2.7.4.post1", (
        "FLASH_ATTENTION_FORCE_BUILD=TRUE /venv/bin/python -m pip install --no-build-isolation --no-cache-dir "
        "--no-deps --force-reinstall --no-binary flash-attn flash-attn==2.7.4.post1")),
    ("flash-attn", "2.7.4", "compile flash-attn anew from its sources in this environment"),
    ("vllm-flash-attn", "2.5.7", "compile vllm-flash-attn anew from its sources in this environment"),
])
def test_a_build_from_the_index_is_told_where_there_is_an_sdist(tmp_path: Path, name: str, version: str,
                                                                cure: str) -> None:
    """Of most extensions there are wheels alone: `--no-binary` would find nothing to build."""
    world = torch(World(tmp_path), "2.7.0+cu126")
    world.wheel(name, version, {FLASH: lib(needs=LINKED, wants=(WARNER,), runpath=RUNPATH)})
    assert findings(world.opens(f"{world.site}/{FLASH}", project=name).view())["SF501"].cure[-1] == cure


@pytest.mark.parametrize(("version", "strings", "wants", "mine", "torchs"), [
    ("2.7.0+cu126", NEW_CHECK, OLD_CHECK, "old", "new"), ("2.6.0+cu124", OLD_CHECK, NEW_CHECK, "new", "old"),
])
def test_another_string_abi(tmp_path: Path, version: str, strings: str, wants: str, mine: str, torchs: str) -> None:
    world = flash_attn(torch(World(tmp_path), version, strings=strings), "2.7.4", wants)
    finding = findings(world.view())["SF501"]
    assert "another std::string ABI" in finding.summary
    assert f"compiled with the {mine} std::string" in finding.why
    assert f"torch with the {torchs} one" in finding.why
    assert f"torch has c10::detail::torchCheckFail(…) with the other std::string ({strings})" in finding.evidence
    assert "each torch release that was read, 1.13 to 2.15, has all of its symbols" in finding.evidence
    of_index = "2.6 or older" if mine == "old" else "2.7 or newer"
    assert (f"it asks for the {mine} std::string; of the package index's wheels those of torch {of_index} have it"
            in finding.evidence)
    nearest = "2.6.0" if mine == "old" else "2.7.1"
    assert f"stackfix lock --torch {nearest} --flash-attn 2.7.4" in finding.cure


def test_symbols_of_no_release(tmp_path: Path) -> None:
    """A nightly build's, a fork's, or those of a release that is newer than the almanac: no release is guessed."""
    world = flash_attn(torch(World(tmp_path), "2.6.0+cu124"), "2.7.4", "_ZN3c107NightlyEv", DEVICE + "Ea")
    finding = findings(world.view())["SF501"]
    assert finding.summary.endswith("no torch release up to 2.15 has c10::Nightly(): it was built for a nightly build, "
                                    "a fork, or a later release")
    assert "all its other symbols are those of torch 2.3 to 2.7" in finding.evidence
    assert finding.built_for is not None
    assert (finding.built_for.torch, finding.built_for.unknown) == ((), ("_ZN3c107NightlyEv",))
    assert not any("stackfix lock --torch 2." in line and line.endswith("--flash-attn 2.7.4") for line in finding.cure)


def test_names_that_only_the_installed_torch_has(tmp_path: Path) -> None:
    """A fork's own: they fail nowhere, and say nothing about what fails."""
    fork = "_ZN3c104ForkEv"
    world = flash_attn(torch(World(tmp_path), "2.3.0+fork", offers=(fork,)), "2.5.7", DEVICE + "Ei", fork)
    finding = findings(world.view())["SF501"]
    assert finding.built_for is not None
    assert (finding.built_for.torch, finding.built_for.unknown) == (("2.1", "2.2"), ())
    assert (f"the symbol {fork} it asks for is in the torch that is installed and in no release from 1.13 to 2.15: "
            "that torch is a build of its own") in finding.evidence


def test_symbols_that_no_single_release_has(tmp_path: Path) -> None:
    world = flash_attn(torch(World(tmp_path), "2.6.0+cu124"), "2.7.4", DEVICE + "Ei", ADD)
    finding = findings(world.view())["SF501"]
    assert finding.summary.endswith("no single torch release has all of its symbols")
    assert {f"c10::cuda::SetDevice(int) ({DEVICE}Ei) is in torch 2.1 to 2.2",
            f"at::_ops::add(long) ({ADD}) is in torch 2.5 to 2.6"} <= set(finding.evidence)


def test_metadata_that_admits_what_symbols_do_not(tmp_path: Path) -> None:
    """torchaudio 2.11.1 admits torch 2.11, and asks for what came with 2.13."""
    what = "torch_exception_get_what"
    world = torch(World(tmp_path), "2.11.0+cu130", device="Eab", strings=NEW_CHECK, cudart="13")
    name = "torchaudio/lib/_torchaudio.so"
    world.wheel("torchaudio", "2.11.1", {name: lib(needs=LINKED, wants=(what,), runpath="$ORIGIN/../../torch/lib")},
                requires=("torch>=2.11",))
    almanac = books({**SPANS, what: "2.13-"}, judged("torchaudio", "2.11.0", "2.11-2.15", cuda=13),
                    judged("torchaudio", "2.11.1", "2.13-2.15", cuda=13))
    finding = findings(world.opens(name, project="torchaudio").view(), almanac)["SF501"]
    assert finding.summary.endswith("its symbols are those of torch 2.13 or newer: torch_exception_get_what")
    assert "its metadata admits torch 2.11, its symbols need 2.13 or newer" in finding.evidence
    assert finding.cure[:2] == (
        "/venv/bin/python -m pip install --no-deps 'torchaudio==2.11.0'  # its symbols are those of torch 2.11",
        "stackfix lock --torch 2.13.0 --with torchaudio==2.11.1")


def test_metadata_that_symbols_disprove(tmp_path: Path) -> None:
    """It says 2.1, and was built for 2.3 to 2.7: the torch that it says would not do either."""
    world = torch(World(tmp_path), "2.2.1+cu121", device="Ei")
    world.wheel("ext", "1", {"ext/_C.so": lib(needs=LINKED, wants=(DEVICE + "Ea",), runpath=RUNPATH)},
                requires=("torch==2.1.2",))
    finding = findings(world.opens("ext/_C.so", project="ext").view())["SF501"]
    assert finding.summary.endswith("its symbols are those of torch 2.3 to 2.7: c10::cuda::SetDevice(signed char)")
    assert ("its metadata is disproved: its metadata requires torch==2.1.2, and its symbols need 2.3 to 2.7"
            in finding.evidence)
    assert not any("stackfix lock" in line for line in finding.cure)        # its own metadata would refuse it


def test_no_lock_is_told_of_a_build_that_is_on_another_index(tmp_path: Path) -> None:
    """torch 2.6.0+cu126 has the new std::string and is nearer: the default index's 2.6.0, which is locked, has not."""
    world = flash_attn(torch(World(tmp_path), "2.3.1+cu121"), "2.7.4", NEW_CHECK)
    locks = [line for line in findings(world.view())["SF501"].cure if line.endswith("--flash-attn 2.7.4")]
    assert locks == ["stackfix lock --torch 2.7.1 --flash-attn 2.7.4"]


def test_lines_of_metadata_for_another_python_state_nothing(tmp_path: Path) -> None:
    """Those that apply are taken together."""
    world = torch(World(tmp_path), "2.2.1+cu121", device="Ei")
    world.wheel("ext", "1", {"ext/_C.so": lib(needs=LINKED, wants=(DEVICE + "Ea",), runpath=RUNPATH)}, requires=(
        "torch==2.1.2 ; python_version < '3.8'", "torch[x]>=2.4", "torch<2.6 ; sys_platform == 'linux'",
        "torch==2.1.0 ; extra == 'old'"))
    finding = findings(world.opens("ext/_C.so", project="ext").view())["SF501"]
    assert [each for each in finding.evidence if "metadata" in each] == ["its metadata requires torch>=2.4,<2.6"]
    assert "stackfix lock --torch 2.4.1 --with ext==1" in finding.cure


def test_a_name_that_one_patch_alone_has(tmp_path: Path) -> None:
    """torch 2.4.0 has it, and neither 2.4.1 nor another minor."""
    world = torch(World(tmp_path), "2.4.1+cu121")
    world.wheel("ext", "1", {"ext/_C.so": lib(needs=LINKED, wants=(ADD,), runpath=RUNPATH)}, requires=("torch==2.4.0",))
    almanac = books({**SPANS, ADD: "none"}, having={"2.4.0": (ADD,)})
    finding = findings(world.opens("ext/_C.so", project="ext").view(), almanac)["SF501"]
    assert not any("disproved" in each or "admits" in each for each in finding.evidence)
    assert "its symbols are those of torch 2.4.0 alone" in finding.evidence
    assert "stackfix lock --torch 2.4.0 --with ext==1" in finding.cure


def test_a_torch_that_ought_to_have_it(tmp_path: Path) -> None:
    """Another build than the index's, or a file that was exchanged: another release of torch is no cure."""
    finding = findings(flash_attn(torch(World(tmp_path), "2.6.0+cu124"), "2.7.4", ADD).view())["SF501"]
    assert "The package index's torch 2.6 has all of its symbols: the torch that is installed is another build" in (
        finding.why)
    assert not any(line.endswith("--flash-attn 2.7.4") for line in finding.cure)


def test_an_early_patch_that_lacks_it(tmp_path: Path) -> None:
    world = flash_attn(torch(World(tmp_path), "2.4.0+cu121"), "2.6.3", ERROR, DEVICE + "Ea", ADD)
    finding = findings(world.view(), books({**SPANS, ADD: "2.4-"}, lacking={"2.4.0": (ADD,)}))["SF501"]
    assert finding.why.endswith("Later patches of torch 2.4 have it.")
    assert "torch 2.4.0 lacks at::_ops::add(long), which the newest 2.4 has" in finding.evidence
    assert "stackfix lock --torch 2.4.1 --flash-attn 2.6.3" in finding.cure


def test_a_torch_newer_than_the_almanac(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.16.0+cu130", device="Eab", strings=NEW_CHECK, cudart="13")
    finding = findings(flash_attn(world, "2.8.3", NEW_CHECK, ADD).view(), books({**SPANS, ADD: "2.9-"}))["SF501"]
    assert finding.summary.endswith("its symbols are those of torch 2.9 to 2.15: at::_ops::add(long)")


def test_names_that_its_own_package_supplies_are_not_asked_of_torch(tmp_path: Path) -> None:
    """libtorchaudio.so defines names of torch's namespaces for the modules beside it."""
    own = "_ZN5torch5audio4initEv"
    world = torch(World(tmp_path), "2.3.0+cu121")
    world.wheel("audio", "1", {
        "audio/libown.so": lib(offers=(own,)),
        "audio/_C.so": lib(needs=("libown.so", *LINKED), wants=(own, DEVICE + "Ei"), runpath=f"$ORIGIN:{RUNPATH}")})
    finding = findings(world.opens("audio/_C.so", project="audio").view())["SF501"]
    assert finding.built_for is not None
    assert (finding.built_for.torch, finding.built_for.unknown) == (("2.1", "2.2"), ())


def test_files_for_several_releases_side_by_side(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.7.0+cu126", device=None)
    devices = {"22": "Ei", "28": "Eab"}
    world.wheel("ext", "1", {f"ext/_ops_{minor}.so": lib(
        needs=("libc10.so",), wants=(DEVICE + device,), runpath=RUNPATH) for minor, device in devices.items()})
    for minor in devices:
        world.opens(f"ext/_ops_{minor}.so", project="ext")
    finding = findings(world.view())["SF501"]
    assert finding.built_for is not None
    assert finding.built_for.torch == ("2.1", "2.2")        # of the one that fails first


def test_another_processor_was_not_read(tmp_path: Path) -> None:
    view = flash_attn(torch(World(tmp_path), "2.3.0+cu121"), "2.5.7", DEVICE + "Ei").view()
    python = view.environment.python
    assert python is not None
    elsewhere = replace(view.environment, python=replace(python, platform="linux-aarch64"))
    finding = findings(replace(view, situation=replace(view.situation, environment=elsewhere)))["SF501"]
    assert finding.built_for is None
    assert not any("torch 2.1 to 2.2" in line for line in finding.evidence)


def test_a_file_that_nobody_owns(tmp_path: Path) -> None:
    """`--ext build/mine.so`."""
    world = torch(World(tmp_path), "2.3.0+cu121")
    world.library("/build/mine.so", lib(needs=("libc10_cuda.so",), wants=(DEVICE + "Eab",),
                                        runpath=f"{world.site}/torch/lib"))
    finding = findings(world.opens("/build/mine.so", phase="module").view())["SF501"]
    assert (finding.severity, finding.culprit.path, finding.culprit.package) == ("error", "/build/mine.so", None)
    assert "torch 2.8 or newer" in finding.summary


def test_what_may_fail_is_a_note(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.3.0+cu121")
    world.wheel("torchaudio", "2.5.1", {"torio/lib/_torio_ffmpeg6.so": lib(wants=("_ZN3c106WarnerD1Ev",))},
                requires=("torch",))
    world.opens("torio/lib/_torio_ffmpeg6.so", project="torchaudio", may_fail="only for FFmpeg 6")
    assert findings(world.view())["SF501"].severity == "note"


def test_a_healthy_environment_opens_no_book(tmp_path: Path) -> None:
    def opened() -> Books:
        raise AssertionError("the almanac was opened")

    world = flash_attn(torch(World(tmp_path), "2.3.0+cu121"), "2.5.8", DEVICE + "Ea")
    assert [each for each in diagnose(world.view(load_books=opened)).findings if each.severity != "note"] == []


# --- SF502, SF504 ---

def xformers(world: World, cudart: str = "12", wants: tuple[str, ...] = (DEVICE + "Ei",)) -> World:
    world.wheel("xformers", "0.0.22.post7", {"xformers/_C.so": lib(
        needs=(*LINKED, f"libcudart.so.{cudart}"), wants=wants, runpath=RUNPATH)}, requires=("torch==2.1.0",))
    return world.opens("xformers/_C.so", project="xformers", may_fail="xformers warns and goes on")


def test_xformers_for_cuda_beside_a_cpu_torch(tmp_path: Path) -> None:
    view = xformers(torch(World(tmp_path), "2.1.0+cpu", device=None)).view()
    finding = findings(view)["SF502"]
    assert (finding.severity, finding.culprit.package) == ("error", "torch 2.1.0+cpu")
    assert finding.symbols == (DEVICE + "Ei",)
    assert "libc10_cuda.so" in finding.why
    assert (finding.error or "").startswith("WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.")
    assert any("libc10_cuda.so: cannot open shared object file" in line for line in finding.evidence)
    assert finding.cure[0].startswith("stackfix lock --torch 2.1.0 --cuda 12.1")
    missing = [fault for fault in find_faults(view) if fault.category == "missing"]
    assert {each.name for each in missing} == {"libc10_cuda.so", "libcudart.so.12"}
    assert all(is_about_torch(view, each) for each in missing)


def test_vllm_022_for_cuda_12_beside_a_torch_for_cuda_11(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.1.0+cu118", device="Ei", cudart="11.0")
    names = ("vllm/attention_ops.so", "vllm/cache_ops.so", "vllm/cuda_utils.so")
    world.wheel("vllm", "0.2.2", {name: lib(needs=(*LINKED, "libcudart.so.12"), runpath=RUNPATH) for name in names},
                requires=("torch>=2.1.0", "xformers>=0.0.22.post7"))
    for name in names:
        world.opens(name, project="vllm")
    view = world.view()
    finding = findings(view)["SF504"]
    assert (finding.kind, finding.severity) == ("cuda-major-mismatch", "error")
    assert finding.summary == "vllm 0.2.2 is built for CUDA 12, and torch 2.1.0+cu118 for CUDA 11.8"
    assert finding.error == ("libcudart.so.12: cannot open shared object file: No such file or directory")
    assert sum(line.startswith(f"{world.site}/vllm/") for line in finding.evidence) == 3
    assert "stackfix lock --torch 2.1.0 --cuda 12.1 --with vllm==0.2.2" in finding.cure
    assert any("does not help" in line for line in finding.cure)
    assert is_about_torch(view, find_faults(view)[0])


def test_the_other_cuda_is_found_in_the_system(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.1.0+cu118", device="Ei", cudart="11.0")
    world.library(f"{SYSTEM}/libcudart.so.12", lib())
    finding = findings(xformers(world).view())
    assert finding == {}        # may fail, and does not
    world.opens("xformers/_C.so", project="xformers")
    again = torch(World(tmp_path / "2"), "2.1.0+cu118", device="Ei", cudart="11.0")
    again.library(f"{SYSTEM}/libcudart.so.12", lib())
    again.wheel("ext", "1", {"ext/_C.so": lib(needs=(*LINKED, "libcudart.so.12"), runpath=RUNPATH)})
    found = findings(again.opens("ext/_C.so", project="ext").view())["SF504"]
    assert (found.severity, found.culprit.package) == ("warning", "ext 1")
    assert f"libcudart.so.12 is {SYSTEM}/libcudart.so.12" in found.evidence


def test_cusparse_of_cuda_13_is_number_12(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.9.1+cu130", device="Eab", cudart="13")
    world.wheel("nvidia-cusparse", "12.6.3.3", {"nvidia/cu13/lib/libcusparse.so.12": lib()})
    world.wheel("ext", "1", {"ext/_C.so": lib(needs=("libcusparse.so.12", *LINKED),
                                              runpath=f"{RUNPATH}:$ORIGIN/../nvidia/cu13/lib")})
    assert findings(world.opens("ext/_C.so", project="ext").view()) == {}


def test_a_package_that_is_no_extension_of_torch_is_left_to_others(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.9.1+cu130", cudart="13")
    world.wheel("onnxruntime-gpu", "1.20", {"onnxruntime/capi/x.so": lib(needs=("libcudart.so.12",))})
    view = world.opens("onnxruntime/capi/x.so", project="onnxruntime-gpu").view()
    assert findings(view) == {}
    assert not any(is_about_torch(view, each) for each in find_faults(view))


def test_what_comes_of_a_build_for_another_torch_is_told_once(tmp_path: Path) -> None:
    """torchaudio of CUDA 13 beside a torch of CUDA 12.8, with the runtime that it requires: one root."""
    world, name = torch(World(tmp_path), "2.10.0+cu128"), "torchaudio/lib/_torchaudio.so"
    world.wheel("nvidia-cuda-runtime", "13.0.48", {"nvidia/cu13/lib/libcudart.so.13": lib()})
    for wants in ("_ZN3c105ErrorD1Ev", "_ZN2at4_ops3addEl"):
        world.wheel("torchaudio", "2.11.0", {name: lib(
            needs=(*LINKED, "libcudart.so.13"), wants=(wants,),
            runpath="$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib")})
        view = world.opens_nothing().opens("torch/lib/libc10_cuda.so", project="torch").opens(
            "torch/lib/libtorch_cpu.so", project="torch").opens(name, project="torchaudio").view()
        found = diagnose(replace(view, load_books=lambda: BOOKS)).findings
        loud = {each.code for each in found if each.severity != "note" and each.code < "SF6"}
        assert loud == ({"SF301", "SF504"} if wants == "_ZN3c105ErrorD1Ev" else {"SF501"})


# --- SF503, no torch, torch itself ---

def test_a_symbol_that_nobody_has(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": lib(needs=("libc.so.6",), wants=("frobnicate",))})
    finding = findings(world.opens("mine/_x.so", project="mine").view())["SF503"]
    assert (finding.symbols, finding.severity) == (("frobnicate",), "error")
    assert "frobnicate" in finding.summary
    assert any("libc.so.6" in line for line in finding.evidence)
    assert not finding.repairable


def test_a_name_of_another_project_that_speaks_of_torch(tmp_path: Path) -> None:
    """torch is fine: a library is missing that has helper::twice."""
    helper = "_ZN6helper5twiceERKN2at6TensorE"
    world = flash_attn(torch(World(tmp_path), "2.3.0+cu121"), "2.5.8", DEVICE + "Ea", helper)
    found = findings(world.view())
    assert set(found) == {"SF503"}
    assert found["SF503"].symbols == (helper,)
    assert found["SF503"].cure == ()
    assert found["SF503"].why_not == "it has to be linked against the library that has the symbol"
    assert helper in world.really()
    exported = findings(world.view(), books({**SPANS, helper: "2.1-2.2"}))      # a torch has it all the same
    assert set(exported) == {"SF501"}


def test_a_function_of_a_library_that_is_not_linked_against(tmp_path: Path) -> None:
    """Whose it is, and since when it exists, is in the almanac; that the file must be linked against it is a cure."""
    almanac = books({}, nvidia=FakeNvidiaBook({"libcublas.so.12": (
        "nvidia-cublas-cu12", ("12.1.3.1", "12.4.2.65"), {"cublasSgemmGroupedBatched": "12.4.2.65-"})}))
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": lib(
        needs=("libc.so.6",), wants=("cublasSgemmGroupedBatched",))})
    finding = findings(world.opens("mine/_x.so", project="mine").view(), almanac)["SF503"]
    assert ("cublasSgemmGroupedBatched is in nvidia-cublas-cu12 from 12.4.2.65 on, not in 12.1.3.1, as a function of "
            "libcublas.so.12, which it is not linked against") in finding.evidence
    assert finding.why_not == "it has to be linked against the library that has the symbol"


def test_a_library_that_is_found_by_a_way_around_has_its_own_path(tmp_path: Path) -> None:
    """`$ORIGIN/../mine/lib` in the loader's line, and no `..` where scripts read."""
    world = World(tmp_path).wheel("mine", "1", {
        "other/_y.so": lib(needs=("libmine.so.1",), runpath="$ORIGIN/../mine/lib"),
        "mine/lib/libmine.so.1": lib(wants=("frobnicate",))})
    finding = findings(world.opens("other/_y.so", project="mine").view())["SF503"]
    assert finding.culprit.path == f"{world.site}/mine/lib/libmine.so.1"
    assert finding.requester is not None
    assert finding.requester.path == finding.culprit.path
    assert finding.error is not None
    assert "/other/../mine/lib/" in finding.error


def test_what_has_no_sources_is_not_to_be_compiled(tmp_path: Path) -> None:
    name = "nvidia/cudnn/lib/libcudnn.so.8"
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "8.9.2.26", {name: lib(wants=("frobnicate",))})
    finding = findings(world.opens(name).view())["SF503"]
    assert finding.cure == (
        "/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==8.9.2.26",)


def test_a_module_that_is_perhaps_never_imported(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": lib(wants=("frobnicate",)), "mine/_y.so": lib()})
    view = world.opens("mine/_x.so", project="mine", phase="module").view()
    assert findings(view)["SF503"].severity == "warning"
    asked = replace(view, situation=replace(view.situation, extra=(f"{world.site}/mine/_x.so",)))
    assert findings(asked)["SF503"].severity == "error"
    other = world.opens("mine/_y.so", project="mine", phase="module").view()
    assert findings(other)["SF503"].severity == "note"


def test_a_module_with_a_twin_for_this_torch_is_a_note(tmp_path: Path) -> None:
    names = ("ext/_ops_torch22.so", "ext/_ops_torch23.so")
    world = torch(World(tmp_path), "2.3.0+cu121")
    world.wheel("ext", "1", {name: lib(needs=LINKED, wants=(DEVICE + kind,), runpath=RUNPATH)
                             for name, kind in zip(names, ("Ei", "Ea"), strict=True)})
    world.opens(names[0], project="ext", phase="module")
    assert findings(world.view())["SF501"].severity == "error"
    assert findings(world.opens(names[1], project="ext", phase="module").view())["SF501"].severity == "note"


@pytest.mark.parametrize("code", ["SF501", "SF502", "SF503", "SF504", "SF401"])
def test_no_other_check_says_more_than_a_note(tmp_path: Path, code: str) -> None:
    if code == "SF501":
        world = flash_attn(torch(World(tmp_path), "2.3.0+cu121"), "2.5.7", DEVICE + "Ei")
    elif code == "SF502":
        world = xformers(torch(World(tmp_path), "2.1.0+cpu", device=None))
    elif code == "SF504":
        world = torch(World(tmp_path), "2.1.0+cu118", device="Ei", cudart="11.0")
        world.wheel("vllm", "0.2.2", {"vllm/ops.so": lib(needs=(*LINKED, "libcudart.so.12"), runpath=RUNPATH)})
        world.opens("vllm/ops.so", project="vllm")
    else:
        needs, wants = (LINKED, ()) if code == "SF401" else ((), ("frobnicate",))
        world = World(tmp_path).wheel("mine", "1", {"mine/_x.so": lib(needs=needs, wants=wants)},
                                      requires=("torch",) if code == "SF401" else ())
        world.opens("mine/_x.so", project="mine")
    found = diagnose(world.view(load_books=lambda: BOOKS)).findings
    assert [each.code for each in found if each.severity != "note"] == [code]


@pytest.mark.parametrize(("requires", "severity"), [(("torch==2.3.1",), "error"), ((), "note")])
def test_torch_is_not_installed(tmp_path: Path, requires: tuple[str, ...], severity: str) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": lib(needs=LINKED)}, requires=requires)
    finding = findings(world.opens("mine/_x.so", project="mine").view())["SF401"]
    assert finding.severity == severity
    assert "torch, which is not installed" in finding.summary


def test_torchs_own_libraries_are_of_two_builds(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.3.0")
    world.library("torch/lib/libtorch_cpu.so",
                  lib(needs=("libc10.so",), wants=("_ZN3c106WarnerD1Ev",), runpath="$ORIGIN"))
    finding = findings(world.view())["SF302"]
    assert (finding.severity, finding.level) == ("error", "torch")
    assert finding.symbols == ("_ZN3c106WarnerD1Ev",)
    assert finding.culprit.path == f"{world.site}/torch/lib/libtorch_cpu.so"


# --- names ---

TO_DTYPE = f"{OPTIONAL[:-1]}ENS6_INS5_6LayoutEEENS6_INS5_6DeviceEEENS6_IbEEbbNS6_INS5_12MemoryFormatEEE"


@pytest.mark.parametrize(("name", "written"), [
    (DEVICE + "Ei", "c10::cuda::SetDevice(int)"), (TO_DTYPE, "at::_ops::to_dtype_layout::call(…)"),
    ("_ZN2at10TensorBaseC1Ev", "at::TensorBase::TensorBase()"), ("frobnicate", "frobnicate"), ("_Z", "_Z"),
    ("_ZTVN3c105ErrorE", "vtable for c10::Error"),
])
def test_a_name_as_people_read_it(name: str, written: str) -> None:
    assert readable(name) == written


@pytest.mark.parametrize(("written", "before"), [
    ("c10::cuda::SetDevice(int)", "c10::cuda::SetDevice"), ("x", "x"), ("f(void (*)(int), g<(int)1>)", "f"),
    ("c10::Error::what() const", "c10::Error::what"), ("a::operator()(int)", "a::operator()"),
    ("(anonymous)", "(anonymous)"),
])
def test_what_stands_before_the_arguments(written: str, before: str) -> None:
    assert before_arguments(written) == before


def test_the_other_string_of_a_name() -> None:
    assert other_string(OLD_CHECK) == NEW_CHECK
    assert other_string(NEW_CHECK) == OLD_CHECK
    assert other_string(DEVICE) is None


def test_other_integers_of_a_function() -> None:
    assert {DEVICE + "Ea", DEVICE + "Eab"} < set(other_numbers(DEVICE + "Ei"))
    assert DEVICE + "Ei" not in other_numbers(DEVICE + "Ei")
    assert list(other_numbers(OLD_CHECK)) == []
    assert list(other_numbers("frobnicate")) == []
