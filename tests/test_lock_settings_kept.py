"""A setting that changed is seen: no answer that was kept under another one is given."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stackfix.cli import lock_answer
from stackfix.cli.early import answered
from tests.cli_world import ASKED, Say, World, settle, speaker
from tests.replay.wheels import make_wheel
from tests.sources_servers import path_of

LOCK = ("lock", *ASKED, "--format", "requirements", "--with", "idna")
LONG_AGO = 100.0        # seconds before the tests: what is read was not changed while a command ran


class Dated(World):
    """The small index, saying how long its pages may be used."""

    def reply(self, head: str) -> bytes:
        answer = super().reply(head)
        if path_of(head).startswith("/simple/"):
            return answer.replace(b"\r\nContent-Length", b"\r\nCache-Control: max-age=600\r\nContent-Length", 1)
        return answer


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(lock_answer, "TICK", -LONG_AGO)
    with Dated(dated=True).served() as served:
        (tmp_path / "above/project").mkdir(parents=True)
        settle(monkeypatch, tmp_path / "above/project", served.url)
        monkeypatch.delenv("UV_NO_CONFIG")
        monkeypatch.setenv("STACKFIX_CACHE_DIR", str(tmp_path / "cache"))
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
            monkeypatch.setenv(name, str(tmp_path / "home"))
        written("pyproject.toml", '[project]\nname = "p"\n')
        yield served


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    return speaker(capfd)


def written(path: str, text: str) -> None:
    """A file that was there long before the command began."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    os.utime(path, (time.time() - LONG_AGO,) * 2)


def a_uv_toml_here() -> None:
    written("uv.toml", "constraint-dependencies = ['idna<3.7']\n")


def a_uv_toml_above() -> None:
    written("../uv.toml", "constraint-dependencies = ['idna<3.7']\n")


def another_table_in_pyproject() -> None:
    written("pyproject.toml", '[project]\nname = "p"\n[tool.uv]\nconstraint-dependencies = ["idna<3.7"]\n')


def another_source() -> None:
    written("pyproject.toml", '[project]\nname = "p"\n[tool.uv.sources]\nidna = { path = "x" }\n')


def a_workspace_above() -> None:
    written("../pyproject.toml", '[tool.uv.workspace]\nmembers = ["project"]\n[tool.uv.sources]\nidna = {path = "x"}\n')


def a_uv_toml_of_the_user() -> None:
    written(f"{os.environ['XDG_CONFIG_HOME']}/uv/uv.toml", "exclude-newer = '2024-01-01'\n")


def no_config() -> None:
    os.environ["UV_NO_CONFIG"] = "1"


def no_sources() -> None:
    os.environ["UV_NO_SOURCES"] = "1"


def a_keyring_provider() -> None:
    os.environ["UV_KEYRING_PROVIDER"] = "subprocess"


def a_keyring_provider_of_pip() -> None:
    os.environ["PIP_KEYRING_PROVIDER"] = "subprocess"


def a_date_of_uv() -> None:
    os.environ["UV_EXCLUDE_NEWER"] = "2024-01-01"


def a_date_of_pip() -> None:
    os.environ["PIP_UPLOADED_PRIOR_TO"] = "2024-01-01"


def a_login_of_a_name() -> None:
    os.environ["UV_INDEX_CORP_PASSWORD"] = "s3cret"


@pytest.mark.parametrize("change", [
    a_uv_toml_here, a_uv_toml_above, another_table_in_pyproject, another_source, a_workspace_above,
    a_uv_toml_of_the_user, no_config, no_sources, a_keyring_provider, a_keyring_provider_of_pip, a_date_of_uv,
    a_date_of_pip, a_login_of_a_name,
])
def test_a_changed_setting_leads_to_the_whole_way(
    change: Callable[[], None], world: World, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("UV_NO_CONFIG", "UV_NO_SOURCES", "UV_KEYRING_PROVIDER", "PIP_KEYRING_PROVIDER", "UV_EXCLUDE_NEWER",
                 "PIP_UPLOADED_PRIOR_TO", "UV_INDEX_CORP_PASSWORD"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)            # and put back as it was after the test
    assert say(*LOCK).status == 0
    assert say(*LOCK).status == 0
    assert answered(LOCK) == 0, "nothing changed"
    change()
    asked = len(world.asked)
    assert answered(LOCK) is None
    assert len(world.asked) == asked


def test_a_date_that_moves_with_the_clock_is_decided_each_time(world: World, say: Say) -> None:
    written("uv.toml", "exclude-newer = '1 day'\n")
    assert say(*LOCK).status == 0
    assert say(*LOCK).status == 0
    assert answered(LOCK) is None
    written("uv.toml", "exclude-newer = '2030-01-01'\n")
    assert say(*LOCK).status == 0
    assert say(*LOCK).status == 0
    assert answered(LOCK) == 0
    assert world.asked


def test_a_project_that_an_index_has_got_since_is_seen_offline(world: World, say: Say) -> None:
    """That it had not got it is kept, and is part of what an answer rests on."""
    name = "internal-{}-py3-none-any.whl"
    world.projects["internal"] = {name.format("9.0"): make_wheel(name.format("9.0"))}
    ask: tuple[str, ...] = (*LOCK, "--with", "internal", "--upgrade")
    with Dated(projects={"idna": world.projects["idna"]}, dated=True).served() as private:
        ask = (*ask, "--extra-index-url", private.url)
        assert say(*ask).status == 0
        assert [say(*ask, "--offline").status for _ in "12"] == [0, 0]
        assert answered((*ask, "--offline")) == 0
        private.projects["internal"] = {name.format("1.0"): make_wheel(name.format("1.0"))}
        assert say(*ask, "-o", "elsewhere").status == 0
    assert "internal==9.0" in Path("requirements.txt").read_text()
    assert answered((*ask, "--offline")) is None
    assert say(*ask, "--offline").status == 0
    assert "internal==1.0" in Path("requirements.txt").read_text()
