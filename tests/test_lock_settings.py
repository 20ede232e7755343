"""`stackfix lock` in a project with settings of uv: where its projects come from, what they limit, what is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_world import ASKED, Say, World, settle, speaker
from tests.replay.wheels import make_wheel
from tests.sources_servers import status

LOCK = ("lock", *ASKED, "--format", "requirements")


@pytest.fixture
def corp() -> Iterator[World]:
    """A second index, with a project of its own and one that the default index has, too."""
    files = {name: {f"{name.replace('-', '_')}-{version}-py3-none-any.whl": b""} for name, version in (
        ("corp-lib", "3.0"), ("idna", "9.9"))}
    for of_project in files.values():
        of_project.update((name, make_wheel(name)) for name in of_project)
    with World(projects=files, dated=True).served() as served:
        yield served


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with World(dated=True).served() as served:
        settle(monkeypatch, tmp_path, served.url)
        monkeypatch.delenv("UV_NO_CONFIG")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "home"))
        yield served


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    return speaker(capfd)


def pinned(corp: World, *lines: str, explicit: bool = True) -> None:
    """A pyproject.toml that pins corp-lib to the other index, with more sources."""
    Path("pyproject.toml").write_text("\n".join((
        "[[tool.uv.index]]", 'name = "corp"', f'url = "{corp.url}"', f"explicit = {str(explicit).lower()}",
        "[tool.uv.sources]", 'corp-lib = { index = "corp" }', *lines)))


def pins() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", Path("requirements.txt").read_text(), re.MULTILINE))


def test_a_pinned_project_comes_from_its_index_and_nothing_else_does(world: World, corp: World, say: Say) -> None:
    pinned(corp)
    said = say(*LOCK, "--with", "corp-lib", "--with", "idna")
    assert said.status == 0, said
    assert (pins()["corp-lib"], pins()["idna"]) == ("3.0", "3.7")
    assert {path for path in corp.asked if path.startswith("/simple/")} == {"/simple/corp-lib/"}
    assert "/simple/corp-lib/" not in world.asked
    assert f"taken from {corp.url} (as its sources say), not from the default index" in said.err
    assert corp.url not in Path("requirements.txt").read_text()


def test_the_first_index_that_has_a_project_wins_and_is_named(world: World, corp: World, say: Say) -> None:
    pinned(corp, explicit=False)
    said = say(*LOCK, "--with", "idna")
    assert said.status == 0, said
    assert pins()["idna"] == "9.9"
    origin = r"\(pyproject.toml \[tool.uv\], index corp\)"
    assert re.search(rf"taken from {corp.url} {origin}, not from .*: idna\n", said.err)
    assert "/simple/idna/" not in world.asked


def test_a_pinned_project_that_its_index_has_not_is_not_looked_for_elsewhere(
    world: World, corp: World, say: Say,
) -> None:
    pinned(corp, 'numpy = { index = "corp" }')
    said = say(*LOCK, "--with", "numpy")
    assert said.status == 1, said
    assert "numpy" in said.err
    assert f"{corp.url}: pyproject.toml [tool.uv] takes it from the index corp" in said.err
    assert "/simple/numpy/" not in world.asked
    assert not Path("requirements.txt").exists()


def test_what_comes_from_no_index_is_refused_by_name(world: World, say: Say) -> None:
    Path("pyproject.toml").write_text('[tool.uv.sources]\nidna = { path = "../idna" }\n')
    assert say(*LOCK).status == 0, "nobody asks for it"
    said = say(*LOCK, "--with", "idna")
    assert said.status == 1, said
    assert "idna is looked up on no index: pyproject.toml [tool.uv] takes it from a path" in said.err
    assert "/simple/idna/" not in world.asked


def test_flash_attn_is_chosen_from_its_releases_whatever_its_source(world: World, say: Say) -> None:
    Path("pyproject.toml").write_text('[tool.uv.sources]\nflash-attn = { url = "https://x.example/flash_attn.whl" }\n')
    said = say("lock", "--torch", "2.3", "--python", "3.11", "--format", "requirements", "--flash-attn-source",
               "http://127.0.0.1:9")
    assert said.status == 0, said
    assert "the source of flash-attn in the project's settings (url) is not followed" in said.err
    assert world.asked


def test_markers_choose_by_the_targets_of_the_lock(world: World, corp: World, say: Say) -> None:
    marked = """idna = [
      { index = "corp", marker = "sys_platform == 'linux' and platform_machine == 'x86_64'" },
      { git = "https://git.example/idna", marker = "sys_platform == 'win32'" },
    ]"""
    pinned(corp, marked)
    assert say(*LOCK, "--with", "idna").status == 0
    assert pins()["idna"] == "9.9"
    both = ("--platform", "linux-64", "--platform", "win-64", "--cuda", "12.1")
    said = say(*LOCK, "--with", "idna", *both)
    assert said.status == 2, said
    assert "one index for Python 3.11 on linux-64 and from another for Python 3.11 on win-64" in said.err
    pinned(corp, "idna = { index = 'corp', marker = 'sys_platform = linux' }")
    said = say(*LOCK, "--with", "idna")
    assert (said.status, "cannot be read" in said.err) == (2, True), said


def test_constraints_of_the_project_are_held(world: World, say: Say) -> None:
    Path("uv.toml").write_text("constraint-dependencies = ['idna<3.7']\n")
    assert say(*LOCK, "--with", "idna").status == 0
    assert pins()["idna"] == "3.6"
    said = say(*LOCK, "--with", "idna>=3.7")
    assert said.status == 1, said
    assert "no stack has --with idna>=3.7 together with idna<3.7 (uv.toml, constraint-dependencies)" in said.err
    offers = [line for line in said.err.splitlines() if line.strip().startswith("stackfix lock")]
    assert any(line.endswith("# take idna<3.7 out of uv.toml, constraint-dependencies") for line in offers)
    assert not any("--constraint 'idna<3.7'" in line for line in offers), "it stands in uv.toml"
    Path("uv.toml").write_text("override-dependencies = ['idna==3.6']\nindex-strategy = 'unsafe-best-match'\n")
    said = say(*LOCK, "--with", "idna", "--upgrade", "--json")
    assert pins()["idna"] == "3.7"
    notes = "\n".join(json.loads(said.out)["notes"])
    assert "override-dependencies in uv.toml is not followed" in notes
    assert "index-strategy = unsafe-best-match (uv.toml) is not followed" in notes


def test_a_mistyped_index_is_an_error_and_no_way_to_anothers_project(world: World, corp: World, say: Say) -> None:
    """The private index has idna 9.9; passed over, the default one's 3.7 would be pinned."""
    for typo in (corp.url.replace("http:", "htp:"), re.sub(r":\d+/", ":99999/", corp.url), corp.url.split("//")[1]):
        Path("uv.toml").write_text(f"[[index]]\nurl = '{typo}'\n")
        said = say(*LOCK, "--with", "idna")
        assert (said.status, said.err.count("error: uv.toml: the additional index")) == (2, 1), said
        assert not Path("requirements.txt").exists()
        assert not world.asked


def test_an_index_that_is_left_out_is_in_the_notes(world: World, corp: World, say: Say) -> None:
    Path("uv.toml").write_text(f"[[index]]\nurl = '{corp.url}'\nformat = 'flat'\n[[index]]\nurl = 'file:///srv/x'\n")
    said = say(*LOCK, "--with", "idna")
    assert (said.status, pins()["idna"]) == (0, "3.7"), said
    left_out = [f"the index {corp.url} (uv.toml) was left out, since it is flat",
                "the index file:///srv/x (uv.toml) was left out, since it holds for this machine alone"]
    assert all(said.err.count(note) == 1 for note in left_out), said.err
    again = say(*LOCK, "--with", "idna", "--json")      # answered from what is kept
    assert again.status == 0
    notes = json.loads(again.out)["notes"]
    assert all(any(note.startswith(start) for note in notes) for start in left_out), notes
    assert "srv/x" not in Path("requirements.txt").read_text()
    Path("uv.toml").write_text("")
    assert "left out" not in say(*LOCK, "--with", "idna").err, "a changed setting is seen"


def test_what_is_long_is_cut_in_an_error(world: World, say: Say) -> None:
    for name, text in (("uv.toml", f"constraint-dependencies = ['{'(' * 50000}']"),
                       ("stackfix.toml", f"torch = '{'9' * 50000}'"), ("stackfix.toml", f"torch = '>={'1.' * 9000}'"),
                       *(("stackfix.toml", f"torch = '2.3'\n{key} = '{'9' * 6000}'") for key in (
                           "driver", "python", "glibc", "macos", "gpu-arch", "cuda", "platform"))):
        Path(name).write_text(text)
        said = say(*(LOCK if name == "uv.toml" else ("lock", "--format", "requirements")))
        Path(name).unlink()
        assert said.status == 2, said
        assert said.err.startswith(f"error: {name}"), said.err[:200]
        assert len(said.err) < 1500, name
    said = say(*LOCK, "--glibc", "9" * 6000, "--json")
    assert (said.status, len(said.out) < 1500) == (2, True)


# -- upload dates ----------------------------------------------------------------------------------------------------

def test_the_setting_of_uv_limits_upload_dates_and_the_option_wins(world: World, say: Say) -> None:
    Path("uv.toml").write_text("exclude-newer = 2024-06-04\n")
    said = say(*LOCK, "--with", "idna")
    assert said.status == 1, said
    assert "files uploaded before 2024-06-05T00:00:00Z (uv.toml, exclude-newer: 2024-06-04)" in said.err
    assert "# take 2024-06-04 out of uv.toml, exclude-newer" in said.err
    Path("uv.toml").write_text("exclude-newer = '2024-06-05'\n")        # a date stands for its end
    said = say(*LOCK, "--with", "idna")
    assert said.status == 0, said
    assert "only files uploaded before 2024-06-06T00:00:00Z were taken (uv.toml, exclude-newer: 2024-06-05)" in said.err
    Path("uv.toml").write_text("exclude-newer = 2024-06-04\n")
    assert say(*LOCK, "--with", "idna", "--exclude-newer", "2024-06-06").status == 0


@pytest.mark.parametrize("first", ["0001-01-01", "0999-12-31"])
def test_a_year_of_few_digits_is_a_date(first: str, world: World, say: Say) -> None:
    """As with uv: nothing is that old, and that is the answer."""
    Path("uv.toml").write_text(f"exclude-newer = '{first}'\n")
    said = say(*LOCK, "--with", "idna")
    assert said.status == 1, said
    assert f"(uv.toml, exclude-newer: {first})" in said.err
    Path("uv.toml").write_text("")
    assert say(*LOCK, "--with", "idna", "--exclude-newer", first).status == 1
    said = say(*LOCK, "--with", "idna", "--exclude-newer", "0001-01-01T00:00:00+14:00")
    assert (said.status, "--exclude-newer 0001-01-01T00:00:00+14:00: is not" in said.err) == (2, True), said


def test_the_last_day_is_a_date(world: World, say: Say) -> None:
    assert say(*LOCK, "--with", "idna", "--exclude-newer", "9999-12-31").status == 0


def test_single_projects_and_indexes_have_limits_of_their_own(world: World, corp: World, say: Say) -> None:
    Path("uv.toml").write_text("exclude-newer = '1 day'\n[exclude-newer-package]\nidna = '2024-01-01'\n")
    said = say(*LOCK, "--with", "idna")
    assert (said.status, "idna" in said.err) == (1, True), said
    Path("uv.toml").write_text("exclude-newer = '2024-01-01'\n[[index]]\n"
                               f'url = "{world.url}"\ndefault = true\nexclude-newer = false\n')
    assert say(*LOCK, "--with", "idna").status == 0


def test_an_index_without_upload_times_is_refused_by_name(world: World, say: Say) -> None:
    world.dated = False
    said = say(*LOCK, "--exclude-newer", "2030-01-01")
    assert said.status == 1, said
    assert f"{world.url} does not say when files of torch were uploaded" in said.err
    assert not Path("requirements.txt").exists()


def test_an_html_index_without_upload_times_is_refused_by_name(world: World, say: Say) -> None:
    world.answers.update({f"/simple/{name}/": html(world, name) for name in world.projects})
    said = say(*LOCK, "--exclude-newer", "2030-01-01")
    assert said.status == 1, said
    assert f"{world.url} does not say when files of torch were uploaded" in said.err
    assert say(*LOCK).status == 0, "a whole lock of pages in HTML alone"


def html(world: World, name: str) -> bytes:
    """The page of a project in PEP 503 HTML."""
    page = json.loads(world.page(name, world.projects[name]))
    links = "".join(f'<a href="{row["url"]}#sha256={row["hashes"]["sha256"]}">{row["filename"]}</a>\n'
                    for row in page["files"])
    body = f"<!DOCTYPE html><html><body>\n{links}</body></html>".encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_files_without_a_time_among_others_are_left_out_and_said(world: World, say: Say) -> None:
    page = json.loads(world.page("idna", world.projects["idna"]))
    for row in page["files"]:
        if "3.7" in row["filename"]:
            del row["upload-time"]
    body = json.dumps(page).encode()
    world.answers["/simple/idna/"] = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.pypi.simple.v1+json\r\nContent-Length: %d\r\n\r\n"
        % len(body) + body)
    said = say(*LOCK, "--with", "idna", "--exclude-newer", "2030-01-01")
    assert said.status == 0, said
    assert pins()["idna"] == "3.6"
    assert re.search(r"idna 3\.6 was taken: 3\.7 left out, since the index does not say when", said.err)


# -- the build of torch ----------------------------------------------------------------------------------------------

def torch_pins(*entries: str, base: str = "https://mirror.example/whl") -> None:
    """A pyproject.toml that pins torch, as uv's guide to PyTorch has it."""
    indexes = "".join(f'[[tool.uv.index]]\nname = "{path}"\nurl = "{base}/{path}"\nexplicit = true\n'
                      for path in ("cu121", "cu118", "cpu", "rocm6.3"))
    Path("pyproject.toml").write_text(f"{indexes}[tool.uv.sources]\ntorch = [{', '.join(entries)}]\n")


def test_a_pin_of_torch_means_its_build(world: World, say: Say) -> None:
    torch_pins("{ index = 'cu121' }")
    said = say(*LOCK)
    assert said.status == 0, said
    assert "the build of torch for CUDA 12.1 was taken, as the project's sources say" in said.err
    assert "torch from https://mirror.example/whl/cu121" in said.err
    assert pins()["torch"] == "2.3.1"


def test_a_pin_to_nightly_builds_takes_none_without_its_day(world: World, say: Say) -> None:
    torch_pins("{ index = 'cu121' }", base="https://mirror.example/whl/nightly")
    said = say(*LOCK)
    assert said.status == 0, said
    assert pins()["torch"] == "2.3.1"
    assert "take torch from nightly builds: one is locked by its exact day alone" in said.err
    assert "torch from https://mirror.example/whl/nightly/cu121" in said.err


def test_the_option_wins_over_a_pin_of_torch_and_that_is_said(world: World, say: Say) -> None:
    torch_pins("{ index = 'cu118' }")
    said = say(*LOCK, "--cuda", "12.1")
    assert said.status == 0, said
    assert "--cuda 12.1 was followed, though the project's sources mean CUDA 11.8" in said.err
    torch_pins("{ index = 'cu121' }")
    assert "--cuda 12 was followed" not in say(*LOCK, "--cuda", "12").err


def test_pins_of_torch_by_extras_are_a_choice_that_is_left_to_the_user(world: World, say: Say) -> None:
    torch_pins("{ index = 'cpu', extra = 'cpu' }", "{ index = 'cu121', extra = 'cu121' }")
    said = say(*LOCK)
    assert said.status == 0, said
    assert "which build of torch is meant is not said" in said.err
    assert "choose with --cuda 12.1, --cuda cpu" in said.err


def test_pins_of_torch_that_no_lock_can_hold_are_one_error(world: World, say: Say) -> None:
    torch_pins("{ index = 'rocm6.3' }")
    said = say(*LOCK)
    assert (said.status, "builds for rocm6.3" in said.err) == (2, True), said
    assert "say which with --cuda" in said.err
    torch_pins("{ index = 'cu121', marker = \"sys_platform == 'linux'\" }",
               "{ index = 'cpu', marker = \"sys_platform == 'win32'\" }")
    said = say(*LOCK, "--platform", "linux-64", "--platform", "win-64")
    assert said.status == 2, said
    assert "--cuda 12.1 --platform linux-64 --platform win-64-cpu" in said.err
    assert say(*LOCK).status == 0


def test_other_projects_of_the_torch_index_are_asked_for_there(world: World, corp: World, say: Say) -> None:
    corp.answers["/simple/idna/"] = status("403 Forbidden")
    pinned(corp, "idna = { index = 'corp' }")
    said = say(*LOCK, "--with", "idna")
    assert said.status == 3, said
    Path("pyproject.toml").write_text(Path("pyproject.toml").read_text().replace(
        "explicit = true", "explicit = true\nignore-error-codes = [403]"))
    said = say(*LOCK, "--with", "idna")
    assert said.status == 1, said
    assert "idna" in said.err


def test_an_explicit_default_index_leaves_projects_without_a_source_nowhere(
    world: World, corp: World, say: Say,
) -> None:
    """As in uv: the default index is gone, and only pinned projects are looked up."""
    pinned(corp)
    Path("pyproject.toml").write_text(Path("pyproject.toml").read_text().replace(
        "explicit = true", "explicit = true\ndefault = true"))
    said = say(*LOCK, "--with", "corp-lib")
    assert said.status == 2, said
    assert "keep the default index for pinned projects" in said.err
    assert world.asked == []
    said = say(*LOCK, "--with", "corp-lib", "--index-url", world.url)
    assert said.status == 0, said
    assert pins()["corp-lib"] == "3.0"
