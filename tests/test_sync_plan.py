"""The commands of a plan, and where the installer comes from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.sync.install import find_installer
from stackfix.sync.plan import LEFT_OUT, pip_installer, plan_commands, requirement_line, uv_installer
from stackfix.sync.records import Interpreter, Step
from stackfix.sync.source import file_name
from stackfix.write.records import Entry

A, B = "0a" * 32, "1b" * 32
INTERPRETER = Interpreter(executable="/v/bin/python", prefix="/v", python="3.11", implementation="cpython",
                          platform="linux-64", externally_managed=False, has_pip=False, markers=())
PIN = Entry(name="a", version="1", url=None, sha256=(A, B), extras=("x", "y"), marker="python_version < '4'")
WHEEL = Entry(name="flash-attn", version=None, url="https://h/f.whl", sha256=(A,))
FIRST = Step(path=Path("requirements.txt"), entries=(PIN, WHEEL), build=False, native=True)
LATER = Step(path=Path("requirements-flash-attn.txt"), entries=(WHEEL,), build=True, native=True)
PYLOCK = Step(path=Path("pylock.toml"), entries=(PIN, WHEEL), build=False, native=False)
UV = uv_installer(("uv",), INTERPRETER)
PIP = pip_installer("/own/python", INTERPRETER)


def test_uv_takes_both_files_as_they_are() -> None:
    first, later = plan_commands((PYLOCK, LATER), UV, environ={}, replaced={})
    assert first.words == ("uv", "pip", "install", "--require-hashes", "--no-deps", "--python", "/v/bin/python")
    assert later.words == ("uv", "pip", "install", "--require-hashes", "--no-deps", "--no-build-isolation", "--python",
                           "/v/bin/python")
    assert (first.text, later.text) == (None, None)


def test_pip_is_given_a_pylock_as_requirements() -> None:
    command, = plan_commands((PYLOCK,), PIP, environ={}, replaced={})
    assert command.words[:6] == ("/own/python", "-m", "pip", "--python", "/v/bin/python", "install")
    assert command.text == f"{requirement_line(PIN, None)}{requirement_line(WHEEL, 'https://h/f.whl')}"
    assert plan_commands((FIRST,), PIP, environ={}, replaced={})[0].text is None


def test_a_line() -> None:
    assert requirement_line(PIN, None) == (
        f"a[x,y]==1 ; python_version < '4' --hash=sha256:{A} --hash=sha256:{B}\n")
    assert requirement_line(WHEEL, "file:///w/f.whl") == f"flash-attn @ file:///w/f.whl --hash=sha256:{A}\n"


def test_no_address_asks_an_installer_for_a_variable() -> None:
    """A mirror's page can name a file so, too."""
    for url in ("https://h/${HF_TOKEN}/f.whl", "https://h/$%7BHF_TOKEN}/f.whl"):
        assert "$" not in requirement_line(WHEEL, url)
    assert requirement_line(WHEEL, "https://h/$a/f.whl").startswith("flash-attn @ https://h/%24a/f.whl ")


def test_a_replaced_address_is_in_the_text_alone() -> None:
    command, = plan_commands((FIRST,), UV, environ={}, replaced={"flash-attn": "file:///w/f.whl"})
    assert command.text is not None
    assert "file:///w/f.whl" in command.text
    assert "https://h/f.whl" not in command.text


def test_settings_that_would_install_something_else_are_left_out() -> None:
    kept = {"PIP_INDEX_URL": "https://i", "UV_DEFAULT_INDEX": "https://i", "PATH": "/b"}
    command, = plan_commands((FIRST,), UV, environ={**dict.fromkeys(LEFT_OUT, "1"), **kept}, replaced={})
    assert dict(command.environment) == {"PIP_CONSTRAINT": os.devnull, **kept}


def test_the_environments_own_pip_comes_first() -> None:
    own = Interpreter(**{**{name: getattr(INTERPRETER, name) for name in INTERPRETER.__slots__}, "has_pip": True})
    assert pip_installer("/own/python", own).words == ("/v/bin/python", "-m", "pip", "install")


def test_uv_on_the_path_comes_before_the_one_beside_us(tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    assert find_installer(INTERPRETER, {"PATH": str(tmp_path)}).words[0] == str(uv)
    beside = find_installer(INTERPRETER, {"PATH": "/nowhere"})
    assert beside.words == (sys.executable, "-m", "uv", "pip", "install")


@pytest.mark.parametrize("url", ["https://h/x.tar.gz", "https://h/", "https://h/..%2F..%2Fa-1-py3-none-any.whl",
                                 "https://h/..%5Ca-1-py3-none-any.whl", "https://h/short.whl"])
def test_an_address_that_is_of_no_wheel(url: str) -> None:
    with pytest.raises(BadInput, match="is not the address of a wheel"):
        file_name(Entry(name="flash-attn", version=None, url=url, sha256=(A,)))
