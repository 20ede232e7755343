"""What pip, uv, py-rattler, gcc and Python really say is recognised: each is made to fail here."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import rattler
from rattler.exceptions import SolverError

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from tests.replay.wheels import make_wheel

RULES = read_rules()
FACTS = MatrixFacts(None)
UV = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
CUDNN = "nvidia-cudnn-cu12"
WHEELS: Mapping[str, tuple[str, ...]] = {
    "torch-2.1.1-py3-none-any.whl": (f"{CUDNN}==8.9.2.26",),
    "torch-2.5.1-py3-none-any.whl": (f"{CUDNN}==9.1.0.70",),
    "torchvision-0.20.1-py3-none-any.whl": ("torch==2.5.1",),
    "nvidia_cudnn_cu12-8.9.2.26-py3-none-any.whl": (),
    "nvidia_cudnn_cu12-9.1.0.70-py3-none-any.whl": (),
    "nvidia_cudnn_cu12-9.5.1.17-py3-none-any.whl": (),
    "jax-0.4.33-py3-none-any.whl": (f"{CUDNN}>=9.1,<10",),
    "markupsafe-3.0.2-cp399-cp399-manylinux_2_17_x86_64.whl": (),
    "foo-1.0-py3-none-any.whl": ("bar==1",), "baz-1.0-py3-none-any.whl": ("bar==2",),
    "bar-1-py3-none-any.whl": (), "bar-2-py3-none-any.whl": (),
}
BACKEND = "import torch\n"          # what the build of such an extension begins with


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small wheels, and of one sdist whose build backend imports torch."""
    folder = tmp_path_factory.mktemp("index")
    for name, requires in WHEELS.items():
        (folder / name).write_bytes(make_wheel(name, requires=requires))
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    members = {"pyproject.toml": project, "backend.py": BACKEND,
               "PKG-INFO": "Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n"}
    with tarfile.open(folder / "flash_attn-2.8.3.tar.gz", "w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(f"flash_attn-2.8.3/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return folder


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment without pip: installers work on it from outside."""
    folder = tmp_path_factory.mktemp("venv") / "v"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    return folder


def words(command: Sequence[str | Path]) -> str:
    """What a command says, without this machine's settings of installers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_NO_CONFIG": "1"}
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120, env={**kept, **settings})
    return done.stdout + done.stderr


def pip(venv: Path, index: Path, *arguments: str | Path) -> str:
    return words([sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--target", venv / "none",
                  "--no-index", "--no-cache-dir", "--find-links", index, *arguments])


def uv(venv: Path, index: Path, *arguments: str | Path) -> str:
    return words([UV, "pip", "install", "--python", venv / "bin/python", "--no-index", "--offline", "--no-cache",
                  "--find-links", index, *arguments])


Install = Callable[..., str]
INSTALLERS = pytest.mark.parametrize("install", [pip, uv], ids=["pip", "uv"])


def explained(text: str) -> tuple[list[str], str]:
    """The rules that are found, and all that the causes say."""
    explanation = explain(read_text(text.encode()), RULES, FACTS, DERIVE)
    said = (part for each in explanation.causes
            for part in (each.summary, *each.because, each.culprit, each.cure, each.avoid) if part)
    return [message.rule for message in explanation.messages], "\n".join(said)


@INSTALLERS
def test_a_build_in_isolation_without_torch(install: Install, venv: Path, index: Path) -> None:
    rules, said = explained(install(venv, index, "flash-attn==2.8.3"))
    assert rules[0] == "build-without-torch"
    assert [each for each in ("flash-attn", "--no-build-isolation", "--flash-attn 2.8.3") if each not in said] == []


@INSTALLERS
def test_torch_and_another_want_another_cudnn(install: Install, venv: Path, index: Path) -> None:
    rules, said = explained(install(venv, index, "torch==2.1.1", "jax"))
    assert rules[0] in {"conflict-pip", "conflict-uv"}
    wanted = ("==8.9.2.26", f"{CUDNN}", "torch 2.4.0", "9.1.0.70", "stackfix lock --torch 2.4.0")
    assert [each for each in wanted if each not in said] == []


@INSTALLERS
def test_a_companion_of_another_torch(install: Install, venv: Path, index: Path) -> None:
    rules, said = explained(install(venv, index, "torch==2.1.1", "torchvision==0.20.1"))
    assert rules[0] in {"conflict-pip", "conflict-uv"}
    assert "torchvision 0.16.1" in said


@INSTALLERS
def test_packages_outside_of_the_stack_are_nobodys(install: Install, venv: Path, index: Path) -> None:
    assert explained(install(venv, index, "foo", "baz")) == ([], "")


@INSTALLERS
def test_a_local_version_that_is_on_another_index(install: Install, venv: Path, index: Path) -> None:
    rules, said = explained(install(venv, index, "torch==2.3.1+cu118"))
    assert "release-not-found" in rules
    assert "cu118" in said
    assert "stackfix lock --torch 2.3.1 --cuda 11.8" in said


@INSTALLERS
def test_a_file_that_is_not_the_locked_one(install: Install, venv: Path, index: Path, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"torch==2.5.1 --hash=sha256:{0:064d}\n")
    rules, said = explained(install(venv, index, "--no-deps", "--require-hashes", "-r", lock))
    assert rules == ["hash-mismatch"]
    assert "torch==2.5.1" in said


@INSTALLERS
def test_a_lock_without_all_hashes(install: Install, venv: Path, index: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256((index / "torch-2.5.1-py3-none-any.whl").read_bytes()).hexdigest()
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"torch==2.5.1 --hash=sha256:{digest}\n{CUDNN}==9.1.0.70\n")
    rules, said = explained(install(venv, index, "--require-hashes", "-r", lock))
    assert rules == ["hash-missing"]
    assert CUDNN in said


def test_a_wheel_of_another_python(venv: Path, index: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp38-cp38-linux_x86_64.whl"
    wheel.write_bytes(make_wheel(wheel.name))
    rules, said = explained(pip(venv, index, "--no-deps", wheel))
    assert rules == ["wheel-not-supported"]
    assert "Python 3.8" in said


def test_a_release_whose_wheels_are_for_another_python(venv: Path, index: Path) -> None:
    rules, _ = explained("$ uv pip install torch\n" + uv(venv, index, "markupsafe", "torch==2.5.1"))
    assert rules == ["helper-from-torch-index"]


def test_what_pip_only_warns_about(index: Path, tmp_path: Path) -> None:
    venv = tmp_path / "v"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    assert "torch" in uv(venv, index, "torch==2.1.1")
    command = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python")]
    warned = words([*command, "install", "--no-index", "--find-links", str(index), f"{CUDNN}==9.5.1.17"])
    for text in (warned, words([*command, "check"]), words([UV, "pip", "check", "--python", str(venv / "bin/python")])):
        rules, said = explained(text)
        assert rules == ["pin-not-kept"], text
        assert [each for each in ("==8.9.2.26", "9.5.1.17", "2.7.0", "2.4.0 (9.1.0.70)") if each not in said] == []


def record(
    name: str, version: str, build: str, depends: Sequence[str] = (), constrains: Sequence[str] = (),
) -> dict[str, object]:
    return {"name": name, "version": version, "build": build, "build_number": 0, "depends": depends, "size": 1,
            "constrains": constrains, "subdir": "linux-64", "md5": "0" * 32, "sha256": "0" * 64}


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("channel")
    packages = {f"{each['name']}-{each['version']}-{each['build']}.conda": each for each in (
        record("jaxlib", "0.4.35", "cuda126py311_0", ["__cuda"]), record("jaxlib", "0.4.35", "cpu_py311_0"),
        record("cudatoolkit", "11.0.3", "h_0", ["__glibc >=2.17,<3.0.a0"]),
        record("libcublas", "12.9.1", "0", ["cuda-version >=12.9,<12.10"]),
        record("pytorch", "2.5.1", "cuda126_0", ["cuda-version >=12.6,<13"]),
        record("cuda-version", "12.6", "0", constrains=["__cuda >=12"]),
    )}
    for subdir, held in (("linux-64", packages), ("noarch", {})):
        (folder / subdir).mkdir()
        content = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": held}
        (folder / subdir / "repodata.json").write_text(json.dumps(content))
    return folder


def refusal(channel: Path, spec: str) -> str:
    """What the solver of pixi says, without any virtual package."""
    with pytest.raises(SolverError) as caught:
        asyncio.run(rattler.solve([rattler.Channel(channel.as_uri())], [spec], platforms=["linux-64", "noarch"]))
    return str(caught.value)


@pytest.mark.parametrize(("spec", "rule", "words"), [
    ("jaxlib * *cuda*", "virtual-package", ("jaxlib 0.4.35", "__cuda", "CONDA_OVERRIDE_CUDA", "system-requirements")),
    ("cudatoolkit=11.0", "virtual-package", ("cudatoolkit 11.0.3", "__glibc >=2.17", "CONDA_OVERRIDE_GLIBC=2.17")),
    ("libcublas=12.9", "conda-not-provided", ("cuda-version >=12.9,<12.10",)),
    ("pytorch=2.4", "conda-not-provided", ("pytorch 2.4.*",)),
])
def test_what_the_solver_of_pixi_says(channel: Path, spec: str, rule: str, words: tuple[str, ...]) -> None:
    rules, said = explained(refusal(channel, spec))
    assert rules == [rule]
    assert [each for each in words if each not in said] == []


@pytest.mark.parametrize("header", ["cusparse.h", "Python.h"])
def test_a_header_that_gcc_does_not_find(header: str, tmp_path: Path) -> None:
    source = tmp_path / "torch_ext.c"
    source.write_text(f"#include <{header}>\n")
    rules, said = explained(words(["gcc", "-c", source, "-o", tmp_path / "o"]))
    assert rules == ["build-header-missing"]
    assert header in said


def python(code: str, folder: Path) -> str:
    """What a program says that is run in a folder."""
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False, text=True,
                          timeout=60).stderr


def test_a_file_that_stands_in_the_place_of_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import other\n")
    (tmp_path / "other.py").write_text("from torch import Tensor\n")
    rules, said = explained(python("import torch", tmp_path))
    assert "partially-initialised" in rules
    assert f"Rename {tmp_path / 'torch.py'}" in said


def test_an_interpreter_without_torch(venv: Path) -> None:
    assert explained(words([venv / "bin/python", "-c", "import torch"]))[0] == ["interpreter-without-torch"]


def test_a_git_lfs_pointer_in_the_place_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_text("version of a pointer\n")
    code = "import pickle; pickle.load(open('model.pt', 'rb'))  # as torch.load does"
    rules, said = explained(f"torch.load('model.pt')\n{python(code, tmp_path)}")
    assert rules == ["not-a-checkpoint"]
    assert "git lfs pull" in said
