"""A project of torch's stack that `[tool.uv.sources]` put on another index is there and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_world import ASKED, Say, World, settle, speaker
from tests.hostile.replicas import torch_index
from tests.hostile.stage import Stage, html_page
from tests.replay.wheels import make_wheel
from tests.sources_servers import path_of

VISION = "torchvision-0.18.1-cp311-cp311-manylinux1_x86_64.whl"
LOCK = ("lock", *ASKED, "--format", "requirements", "-o", "out")


class Played:
    """The small index, a copy of the torch index with torch for CUDA 11.8, and an index of the project's own."""

    def __init__(self, stage: Stage, say: Say) -> None:
        self._say, self.stage, self.own = say, stage, World(projects={})
        self.own_server = stage.open(self.own.reply)
        self.own.url = f"{self.own_server.url}/simple"

    def pin(self, *projects: str, marker: str = "") -> None:
        """A pyproject.toml that pins these projects to the own index; with a marker, to the torch index elsewhere."""
        here, there = "{ index = 'own' }", ""
        if marker:
            here = f"{{ index = 'own', marker = \"{marker}\" }}"
            there = f", {{ index = 'torch', marker = \"{marker.replace('==', '!=')}\" }}"
        Path("pyproject.toml").write_text("\n".join((
            "[[tool.uv.index]]", "name = 'own'", f"url = '{self.own.url}'", "explicit = true",
            "[[tool.uv.index]]", "name = 'torch'", f"url = '{self.copy}/cu118'", "explicit = true",
            "[tool.uv.sources]", *(f"{project} = [{here}{there}]" for project in projects))))

    def has(self, filename: str, *requires: str) -> None:
        self.own.projects.setdefault(filename.partition("-")[0].replace("_", "-"), {})[filename] = make_wheel(
            filename, requires=requires)

    def copy_has(self, **pages: bytes) -> None:
        """Opens the copy of the torch index, with these pages beside torch's."""
        server = torch_index(self.stage, None, **pages)
        self.copy, self.copy_heads = f"{server.url}/whl", server.heads

    def asked(self, project: str) -> list[str]:
        """Requests to the copy for a project."""
        return [path_of(head) for head in self.copy_heads if f"/{project}" in path_of(head)]

    def lock(self, *words: str) -> tuple[int, str, str]:
        """Exit status, what was said, and the lock."""
        said = self._say(*LOCK, "--index-url", self.stage.index_url, *self.stage.words[2:], *words)
        file = Path("out/requirements.txt")
        return said.status, said.err, file.read_text() if file.exists() else ""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Played]:
    with Stage(tmp_path) as stage:
        settle(monkeypatch, tmp_path, stage.index_url)
        monkeypatch.delenv("UV_NO_CONFIG")
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
            monkeypatch.setenv(name, str(tmp_path / "home"))
        yield Played(stage, speaker(capfd))


def wheel_page(filename: str) -> bytes:
    return html_page(f'<a href="/whl/cu118/{filename.replace("+", "%2B")}#sha256={"a" * 64}">x</a>')


def test_a_companion_that_is_pinned_comes_from_there(played: Played) -> None:
    """A release of its own for this torch: what metadata say counts, since no row is about it."""
    played.copy_has(torchvision=wheel_page("torchvision-0.18.1+cu118-cp311-cp311-linux_x86_64.whl"))
    played.has("torchvision-0.18.9-py3-none-any.whl", "torch==2.3.1")
    played.pin("torchvision")
    status, said, lock = played.lock("--with", "torchvision")
    assert status == 0, said
    assert "torchvision==0.18.9" in lock
    assert f"taken from {played.own.url}" in said
    assert played.asked("torchvision") == []


def test_a_companion_that_is_pinned_and_does_not_fit_is_refused(played: Played) -> None:
    played.copy_has(torchvision=wheel_page("torchvision-0.18.1+cu118-cp311-cp311-linux_x86_64.whl"))
    played.has(VISION, "torch==2.3.1")
    played.pin("torchvision")
    status, said, lock = played.lock("--with", "torchvision")
    assert (status, lock) == (1, ""), said
    assert "torchvision 0.18.1 is built for CUDA 12.1" in said
    assert played.asked("torchvision") == []


@pytest.mark.parametrize("project", ["nvidia-cublas-cu11", "triton"])
def test_a_library_that_is_pinned_does_not_fall_back_on_the_torch_index(project: str, played: Played) -> None:
    name = project.replace("-", "_")
    played.copy_has(**{name: wheel_page(f"{name}-99.0-py3-none-any.whl")})
    played.has(f"{name}-1.0-py3-none-any.whl")
    played.pin(project)
    status, said, lock = played.lock("--with", f"{project}>=99")
    assert (status, lock) == (1, ""), said
    assert played.asked(project) == []


def test_what_no_torch_requires_does_not_fall_back_on_it_for_its_name(played: Played) -> None:
    """Somebody's own project whose name begins with `nvidia-`."""
    played.copy_has(nvidia_foo=wheel_page("nvidia_foo-99.0-py3-none-any.whl"))
    played.stage.has("nvidia-foo", "nvidia_foo-1.0-py3-none-any.whl")
    status, said, _ = played.lock("--with", "nvidia-foo>=99")
    assert status == 1, said
    assert played.asked("nvidia-foo") == []


def test_a_torch_that_is_pinned_elsewhere_is_no_build_of_the_torch_index(played: Played) -> None:
    played.copy_has()
    for name, content in World().projects["torch"].items():
        played.own.projects.setdefault("torch", {})[name] = content
    played.pin("torch")
    status, said, lock = played.lock()
    assert (status, lock) == (1, ""), said
    assert "which was not looked at: pyproject.toml [tool.uv] takes it from the index own" in said
    assert played.copy_heads == []


def test_a_pin_that_holds_on_no_target_counts_for_nothing(played: Played) -> None:
    """The own index is for Windows; for Linux the torch index is meant."""
    played.copy_has()
    played.pin("torch", marker="sys_platform == 'win32'")
    status, said, lock = played.lock()
    assert status == 0, said
    assert "2.3.1%2Bcu118" in lock


def test_the_torch_index_on_one_target_and_another_index_elsewhere_are_not_one_lock(played: Played) -> None:
    played.copy_has()
    played.pin("torch", marker="sys_platform == 'win32'")
    status, said, lock = played.lock("--platform", "linux-64", "--platform", "win-64")
    assert (status, lock) == (2, ""), said
    assert "torch comes from the torch index (torch) and from another (own)" in said
    played.pin("torch", marker="sys_platform == 'linux'")
    status, said, _ = played.lock()
    assert status == 1, said
    assert played.copy_heads == []
