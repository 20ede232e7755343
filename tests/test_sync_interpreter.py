"""Which environment is meant, and what its Python says of itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.markers import default_environment

from stackfix.errors import BadInput, Unreachable
from stackfix.sync import interpreter as module
from stackfix.sync.interpreter import find_executable, parse_answer, read_interpreter
from tests.judges.command import run


def fake_python(folder: Path, script: str = "") -> Path:
    path = folder / "bin" / "python"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def find(environ: Mapping[str, str] | None = None, prefix: str | None = None, python: str | None = None) -> Path:
    return find_executable(prefix=prefix, python=python, environ=environ or {})


def test_the_order_in_which_an_environment_is_looked_for(tmp_path: Path) -> None:
    paths = {name: fake_python(tmp_path / name) for name in ("asked", "venv", "conda")}
    both = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert find() == Path(sys.executable)
    assert find({"CONDA_PREFIX": str(tmp_path / "conda")}) == paths["conda"]
    assert find(both) == paths["venv"]
    assert find(both, prefix=str(tmp_path / "asked")) == paths["asked"]
    assert find(both, python=str(paths["asked"])) == paths["asked"]


def test_an_environment_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, shown in (({"prefix": str(tmp_path)}, "--prefix"), ({"python": str(tmp_path / "file")}, "--python"),
                         ({"environ": {"VIRTUAL_ENV": str(tmp_path)}}, "VIRTUAL_ENV=")):
        with pytest.raises(BadInput, match="no Python there") as caught:
            find(**words)
        assert caught.value.thing.startswith(shown)
    with pytest.raises(BadInput, match="name the environment twice"):
        find(prefix="a", python="b")


def test_what_this_python_says() -> None:
    found = read_interpreter(Path(sys.executable))
    assert found.python == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found.implementation == "cpython"
    assert found.prefix == sys.prefix
    assert dict(found.markers) == {key: str(value) for key, value in default_environment().items()}
    assert found.platform == {"x86_64": "linux-64", "aarch64": "linux-aarch64"}.get(os.uname().machine)


def test_a_venvs_python_is_the_venvs_though_it_is_a_link(tmp_path: Path) -> None:
    made = run([sys.executable, "-m", "uv", "venv", "--python", sys.executable, tmp_path / "v"], cwd=tmp_path)
    assert made.status == 0, made
    found = read_interpreter(find(prefix=str(tmp_path / "v")))
    assert found.prefix == str(tmp_path / "v")
    assert not found.externally_managed
    assert not found.has_pip


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "ended with status 3: no message"),
        ("echo 'no such option: -I' >&2; exit 2", "ended with status 2: no such option: -I"),
        ("true", "did not answer as a Python"),
        ("echo hello", "did not answer as a Python"),
        ("echo '{}'", "did not answer as a Python"),
        ("echo '[1]'", "did not answer as a Python"),
        ("echo '{\"markers\": 1}'", "did not answer as a Python"),
        ("printf '\\377\\n'", "did not answer as a Python"),
    ],
)
def test_what_is_no_python(tmp_path: Path, script: str, reason: str) -> None:
    with pytest.raises(Unreachable, match=reason):
        read_interpreter(fake_python(tmp_path, script))


def test_a_file_that_cannot_be_started(tmp_path: Path) -> None:
    path = fake_python(tmp_path)
    path.write_text("#!/nowhere/sh\n")
    with pytest.raises(Unreachable, match="cannot be started: No such file"):
        read_interpreter(path)


def test_one_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 1)
    with pytest.raises(Unreachable, match="did not answer within 1 s"):
        read_interpreter(fake_python(tmp_path, "exec sleep 30"))


def test_other_machines_and_noise_before_the_answer() -> None:
    answer = {"prefix": "/x", "externally_managed": True, "has_pip": True, "sites": ["/x/lib", "/x/lib"],
              "markers": {"sys_platform": "darwin", "platform_machine": "arm64", "python_version": "3.12",
                          "implementation_name": "pypy"}}
    found = parse_answer(f"a greeting of sitecustomize\n{json.dumps(answer)}\n", "/x/bin/python")
    assert (found.platform, found.implementation, found.python) == ("osx-arm64", "pypy", "3.12")
    assert found.externally_managed
    assert found.has_pip
    assert found.sites == ("/x/lib",)


def test_a_prefix_that_has_only_python3(tmp_path: Path) -> None:
    path = fake_python(tmp_path)
    only = path.rename(path.with_name("python3"))
    assert find(prefix=str(tmp_path)) == only
    both = fake_python(tmp_path)
    assert find(prefix=str(tmp_path)) == both
