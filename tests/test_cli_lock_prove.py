"""`stackfix lock --prove` as a whole, against a small index of stand-ins whose libraries are real ELF files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stackfix.matrix.toml_files import matrix_directory
from tests.cli_world import Said, Say, World
from tests.cli_world import wheels as plain_wheels
from tests.diagnose_world import lib
from tests.real_environments.scenarios import NVJITLINK_12_1
from tests.real_environments.standins import write_wheels
from tests.real_environments.wheel_file import Wheel
from tests.replay.wheels import make_wheel
from tests.sources_servers import ok, status

ASKED = ("--torch", "2.3.1", "--python", "3.11", "--no-flash-attn", "--format", "requirements")
OLD = "nvidia-nvjitlink-cu12==12.0.140"


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Stand-ins by project, and what torch needs beside them."""
    found = plain_wheels()
    for path in sorted(write_wheels(tmp_path_factory.mktemp("index") / "wheels").iterdir()):
        name = path.name.partition("-")[0].replace("_", "-")
        if name in {"torch", "triton", "numpy"} or name.startswith("nvidia-"):
            others = {file: each for file, each in found.get(name, {}).items() if not is_replaced(file, path.name)}
            found[name] = {**others, path.name: path.read_bytes()}
    return found


def is_replaced(file: str, by: str) -> bool:
    """Whether a stand-in has the place of a plain wheel: of the same project and version."""
    return file.split("-")[:2] == by.split("-")[:2]


@pytest.fixture
def proving(world: World, projects: dict[str, dict[str, bytes]]) -> World:
    """The index with the stand-ins."""
    world.projects = {name: dict(files) for name, files in projects.items()}
    return world


@pytest.fixture
def blind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the matrix that knows nothing of what libraries need of one another."""
    folder = tmp_path_factory.mktemp("matrix") / "copy"
    shutil.copytree(matrix_directory(), folder)
    rules = folder / "rules.toml"
    rules.write_text("\n".join(line for line in rules.read_text().splitlines() if "__nvJitLink" not in line))
    uses = folder / "abi" / "uses.tsv"
    uses.write_text("".join(line for line in uses.read_text().splitlines(keepends=True) if line.startswith("#")))
    yield folder
    shutil.rmtree(folder)


def proof() -> Any:
    return json.loads(Path("stack-proof.json").read_text())


def clean(said: Said) -> Any:
    """The clean environment of `lock --json`."""
    return next(each for each in said.json["proof"]["targets"][0]["environments"] if each["name"] == "clean")


def test_a_stack_that_loads_is_written_with_its_proof(proving: World, say: Say) -> None:
    said = say("lock", *ASKED, "--prove", "--json")
    assert said.status == 0, said
    assert said.json["files"] == ["requirements.txt", "stack-proof.json"]
    assert said.json["proof"]["file"] == "stack-proof.json"
    assert clean(said)["verdict"] == "loads"
    target = proof()["targets"][0]
    torch = next(each for each in target["imports"] if (each["project"], each["phase"]) == ("torch", "import"))
    assert "nvidia/nvjitlink/lib/libnvJitLink.so.12" in torch["maps"]
    assert {"requester": "nvidia/cusparse/lib/libcusparse.so.12", "name": "libnvJitLink.so.12", "how": "RUNPATH",
            "winner": "nvidia/nvjitlink/lib/libnvJitLink.so.12"} in torch["resolved"]
    bound = next(each for each in torch["bound"] if each["provider"].endswith("libnvJitLink.so.12"))
    assert bound["requester"] == "nvidia/cusparse/lib/libcusparse.so.12"
    assert (bound["count"], bound["versions"]) == (len(NVJITLINK_12_1), ["libnvJitLink.so.12"])
    assert proving.url not in Path("stack-proof.json").read_text()


def test_what_is_downloaded_is_said_before_and_only_once(proving: World, say: Say) -> None:
    first = say("lock", *ASKED, "--prove")
    assert "are downloaded once, reduced to tables, and not kept" in first.err
    proving.asked.clear()
    before = Path("stack-proof.json").read_bytes()
    again = say("lock", *ASKED, "--prove")
    assert again.status == 0, again
    assert "downloaded" not in again.err
    assert not [path for path in proving.asked if path.endswith(".whl")]
    assert Path("stack-proof.json").read_bytes() == before


def test_a_stack_that_would_not_load_is_refused_by_its_symbols(proving: World, blind: Path, say: Say) -> None:
    said = say("lock", *ASKED, "--with", OLD, "--matrix", blind, "--prove", "--json")
    assert said.status == 1, said
    error = said.json["error"]
    assert error["code"] == "stack-does-not-load"
    told = " ".join(each["text"] for each in error["causes"])
    for word in ("libcusparse.so.12", "libnvJitLink.so.12", "__nvJitLinkAddData_12_1", OLD.replace("==", " ")):
        assert word in told
    assert {each["kind"] for each in error["causes"]} == {"symbols"}
    assert any("12.1.105" in each["change"] for each in error["nearest"])
    assert not Path("requirements.txt").exists()
    assert not Path("stack-proof.json").exists()
    assert say("lock", *ASKED, "--with", OLD, "--matrix", blind).status == 0, "the matrix alone is content"


def test_the_next_candidate_is_taken_where_one_would_load(proving: World, blind: Path, say: Say) -> None:
    assert say("lock", *ASKED, "--with", OLD, "--matrix", blind).status == 0
    assert OLD in Path("requirements.txt").read_text()      # a pin that is kept as long as nothing speaks against it
    said = say("lock", *ASKED, "--matrix", blind, "--prove", "--json")
    assert said.status == 0, said
    assert clean(said)["verdict"] == "loads"
    assert said.json["stack"]["nvjitlink"] == "12.1.105"
    assert any("a candidate was passed over" in note and "nvidia-nvjitlink-cu12>=12.1" in note
               for note in said.json["notes"])


def test_an_environment_in_the_way_is_a_note_and_no_refusal(proving: World, say: Say) -> None:
    said = say("lock", *ASKED, "--prove", "--json")
    environments = {each["name"]: each for each in said.json["proof"]["targets"][0]["environments"]}
    hostile = environments["preloaded-nvjitlink"]
    assert hostile["verdict"] == "fails", hostile
    assert hostile["holds"] == ["nvidia-nvjitlink-cu12 12.0.140"]
    trouble, = hostile["troubles"]
    assert trouble["provider"] == "/usr/local/cuda/lib64/libnvJitLink.so.12"
    assert set(trouble["symbols"]) == NVJITLINK_12_1
    assert "unset LD_PRELOAD" in trouble["avoid"]
    assert any("LD_PRELOAD loads an older nvJitLink" in note for note in said.json["notes"])
    assert environments["no-driver"]["verdict"] == "loads"


def test_named_stacks_have_proofs_of_their_own(proving: World, say: Say) -> None:
    assert say("lock", *ASKED, "--prove", "--name", "train").status == 0
    assert Path("train.stack-proof.json").is_file()
    assert Path("requirements-train.txt").is_file()


def test_check_covers_a_proof_that_is_there(proving: World, say: Say) -> None:
    assert say("lock", *ASKED, "--prove").status == 0
    assert say("lock", *ASKED, "--check").status == 0
    assert say("lock", *ASKED, "--prove", "--check").status == 0
    place = Path("stack-proof.json")
    good = place.read_text()
    sha256 = proof()["targets"][0]["wheels"][0]["sha256"]
    place.write_text(good.replace(sha256, "0" * 64))
    said = say("lock", *ASKED, "--check")
    assert said.status == 1, said
    assert "0" * 64 in said.out
    assert sha256 in said.out
    place.write_text(good.replace('"how": "RUNPATH"', '"how": "magic"', 1))
    assert say("lock", *ASKED, "--check").status == 0, "of this lock it is; what it says is compared with --prove"
    assert say("lock", *ASKED, "--prove", "--check").status == 1
    place.write_text("{}")
    said = say("lock", *ASKED, "--check")
    assert said.status == 1, said
    assert "stack-proof.json:1" in said.out


def test_a_proof_of_another_lock_does_not_outlive_it(proving: World, say: Say) -> None:
    assert say("lock", *ASKED, "--prove").status == 0
    assert say("lock", *ASKED).status == 0
    assert Path("stack-proof.json").is_file(), "the lock is the same"
    said = say("lock", *ASKED, "--with", "nvidia-nvjitlink-cu12==12.9.86")
    assert said.status == 0, said
    assert "proves another lock" in said.err
    assert not Path("stack-proof.json").exists()


def test_a_file_by_hand_in_the_proofs_place_is_kept(proving: World, say: Say) -> None:
    Path("stack-proof.json").write_text('{"mine": 1}')
    said = say("lock", *ASKED, "--prove")
    assert said.status == 2, said
    assert "stack-proof.json" in said.err
    assert not Path("requirements.txt").exists()
    assert proving.asked == [], "refused before the index is asked"
    assert say("lock", *ASKED).status == 0
    assert Path("stack-proof.json").read_text() == '{"mine": 1}'


def test_packages_of_channels_are_said_to_be_outside(proving: World, say: Say) -> None:
    said = say("lock", *ASKED, "--format", "conda-lock", "--prove", "--json")
    assert said.status == 0, said
    outside, = proof()["outside"]
    assert outside.startswith("conda, Python 3.11 on linux-64: its ")
    assert outside in said.json["notes"]


MAC = "torch-2.3.1-cp311-none-macosx_11_0_arm64.whl"
NEEDS = ("filelock", "typing-extensions>=4.8.0", "sympy", "networkx", "jinja2", "fsspec")


def test_what_is_not_for_linux_is_told_and_the_rest_is_proven(proving: World, say: Say) -> None:
    proving.projects["torch"][MAC] = make_wheel(MAC, requires=NEEDS)
    words = ("lock", *ASKED, "--platform", "linux-64", "--platform", "osx-arm64", "--prove")
    said = say(*words)
    assert said.status == 0, said
    told = ("Python 3.11 on osx-arm64: not simulated, so it cannot be told whether it loads; "
            "only Linux's loader is known here")
    assert told in said.err
    assert ([each["platform"] for each in proof()["targets"]], proof()["outside"]) == (["linux-64"], [told])
    assert proof()["targets"][0]["verdict"] == "loads"
    assert say(*words, "--check").status == 0
    assert say(*words[:-1], "--check").status == 0
    assert say(*words[:-1]).status == 0
    assert Path("stack-proof.json").is_file()


def test_a_lock_for_macos_alone_cannot_be_proven(proving: World, say: Say) -> None:
    said = say("lock", *ASKED, "--platform", "osx-arm64", "--prove")
    assert (said.status, proving.asked) == (2, []), said
    assert "--prove: simulates Linux's loader, and the lock is for osx-arm64" in said.err


def test_conda_alone_cannot_be_proven(say: Say) -> None:
    said = say("lock", "--torch", "2.3.1", "--format", "conda-lock", "--prove")
    assert said.status == 2, said
    assert "--prove" in said.err


def test_offline_nothing_is_proven_of_what_is_not_known(proving: World, say: Say) -> None:
    assert say("lock", *ASKED).status == 0
    said = say("lock", *ASKED, "--prove", "--offline", "--json")
    assert said.status == 0, said
    assert said.json["proof"]["targets"][0]["verdict"] == "cannot-tell"
    assert any("not everything could be proven" in note for note in said.json["notes"])


def test_why_a_wheel_could_not_be_had_is_said_and_is_in_no_proof(proving: World, say: Say) -> None:
    assert say("lock", *ASKED).status == 0
    name = next(each for each in proving.projects["nvidia-cusparse-cu12"] if "12.1.0.106" in each)
    proving.answers[f"/files/nvidia-cusparse-cu12/{name}"] = status("403 Forbidden")
    said = say("lock", *ASKED, "--prove")
    assert said.status == 0, said
    line = next(each for each in said.err.splitlines() if f"nothing is known of {name}: " in each)
    assert "403" in line
    assert any("it cannot be told" in each for each in said.out.splitlines() + said.err.splitlines())
    text = Path("stack-proof.json").read_text()
    assert f"nothing is known of {name}: it could not be had" in text
    assert "403" not in json.dumps(proof()["targets"][0]["unknown"])
    assert "127.0.0.1" not in text


def test_other_bytes_than_the_index_promises_are_refused(proving: World, say: Say) -> None:
    assert say("lock", *ASKED).status == 0
    Path("requirements.txt").unlink()
    name = next(each for each in proving.projects["nvidia-cusparse-cu12"] if "12.1.0.106" in each)
    content = proving.projects["nvidia-cusparse-cu12"][name]
    proving.answers[f"/files/nvidia-cusparse-cu12/{name}"] = ok(content[:-1] + b"\1", kind="application/zip")
    said = say("lock", *ASKED, "--prove", "--json")
    assert said.status == 3, said
    assert said.json["error"]["code"] == "hash-mismatch"
    assert name in said.json["error"]["message"]
    assert not Path("requirements.txt").exists()
    assert not Path("stack-proof.json").exists()


def test_an_extension_of_another_torch_is_refused(proving: World, say: Say, tmp_path: Path) -> None:
    wheel = Wheel(name="some-extension", version="1.0", requires=("torch",), files={
        "some_extension/core.cpython-311-x86_64-linux-gnu.so": lib(
            needs=("libc10_cuda.so", "libtorch.so"), wants=("_ZN3c104cuda9SetDeviceEi",))})
    folder = tmp_path / "made"
    folder.mkdir()
    wheel.write(folder)
    proving.projects["some-extension"] = {path.name: path.read_bytes() for path in folder.iterdir()}
    said = say("lock", *ASKED, "--with", "some-extension", "--prove", "--json")
    assert said.status == 1, said
    assert "_ZN3c104cuda9SetDeviceEi" in json.dumps(said.json["error"]["causes"])


def test_hostile_names_of_a_wheel_are_shown_and_not_obeyed(proving: World, say: Say, tmp_path: Path) -> None:
    names = ("_ZN3c104cuda9SetDeviceEi\x1b[31m", "_ZN3c10\u202eABC")
    wheel = Wheel(name="evil", version="1.0", requires=("torch",), files={
        "evil/core.cpython-311-x86_64-linux-gnu.so": lib(
            needs=("libc10_cuda.so", "libtorch.so", "lib\x1b]0;x\x07.so.1"), wants=names)})
    folder = tmp_path / "made"
    folder.mkdir()
    wheel.write(folder)
    proving.projects["evil"] = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words in ((), ("--json",)):
        said = say("lock", *ASKED, "--with", "evil", "--prove", *words)
        assert said.status in {0, 1}, said
        assert "Traceback" not in said.err
        assert not {"\x1b", "\x07", "\u202e"} & set(said.out + said.err)
