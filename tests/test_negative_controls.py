"""The judges can say no: a lock altered in one hex digit, one pin or one missing line is refused."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.judges import pip, pylock
from tests.judges.command import Run, clean_environment, run, stackfix
from tests.judges.lockfile import read_entries
from tests.judges.pages import Pages
from tests.judges.uv import UvJudge
from tests.replay.server import ReplayServer

pytestmark = pytest.mark.recorded

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SMALL = ("filelock", "mpmath", "typing-extensions")    # pure Python, under a megabyte each: really installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A good lock to be spoiled."""

    requirements: str
    pylock: str
    index: ReplayServer
    pages: Pages
    uv: UvJudge


@pytest.fixture(scope="module")
def subject(index: ReplayServer, pages: Pages, uv_cache: Path, stackfix_cache: Path,
            tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tmp_path_factory.mktemp("good")
    made = stackfix("lock", "--torch", "2.6", "--python", PYTHON, "--no-flash-attn", "--format", "requirements",
                    "--format", "pylock", "--index-url", index.url, cwd=folder, cache=stackfix_cache)
    assert made.status == 0, made
    return Subject(
        requirements=(folder / "requirements.txt").read_text(), pylock=(folder / "pylock.toml").read_text(),
        index=index, pages=pages, uv=UvJudge(index_url=index.url, cache=uv_cache, python=PYTHON, platform="linux-64"),
    )


def other_digit(text: str, name: str) -> str:
    """The text with one hex digit of the first hash of `name` changed."""
    digest = re.findall(r"sha256:([0-9a-f]{64})", one_entry(text, name))[0]
    return text.replace(digest, digest[:-1] + ("0" if digest[-1] != "0" else "1"))


def without_entry(text: str, name: str) -> str:
    """The text without the lines of one pin."""
    return text.replace(one_entry(text, name), "")


def small_lines(text: str) -> str:
    """Only the pins of the small packages."""
    return "".join(one_entry(text, name) for name in SMALL)


def install(tool: str, requirements: Path, index: str, scratch: Path) -> Run:
    """A real installation of the small packages, hashes required."""
    target = scratch / f"{tool}-target"
    options: list[str | Path] = ["--require-hashes", "--no-deps", "--target", target, "--index-url", index, "-r",
                                 requirements]
    environment = clean_environment(UV_CACHE_DIR=str(scratch / "uv"))
    words: list[str]
    if tool == "uv":
        words = [str(shutil.which("uv")), "pip", "install", "--python", sys.executable]
    else:
        words = [sys.executable, "-m", "pip", "install", "--no-cache-dir"]
    scratch.mkdir(exist_ok=True)
    return run([*words, *options], cwd=scratch, env=environment)


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_real_installation_takes_the_lock_and_refuses_one_hex_digit(
    subject: Subject, tool: str, tmp_path: Path,
) -> None:
    good = tmp_path / "good.txt"
    good.write_text(small_lines(subject.requirements))
    taken = install(tool, good, subject.index.url, tmp_path)
    assert taken.status == 0, taken
    assert (tmp_path / f"{tool}-target" / "filelock").is_dir()
    for name in SMALL:
        spoiled = tmp_path / "spoiled.txt"
        spoiled.write_text(every_digit(small_lines(subject.requirements), name))
        refused = install(tool, spoiled, subject.index.url, tmp_path / name)
        assert refused.status != 0
        assert re.search(r"hash", refused.stderr, re.IGNORECASE), refused


def every_digit(text: str, name: str) -> str:
    """The text with one hex digit changed in every hash of `name`."""
    for entry_hash in re.findall(r"sha256:([0-9a-f]{64})", one_entry(text, name)):
        text = text.replace(entry_hash, entry_hash[:-1] + ("0" if entry_hash[-1] != "0" else "1"))
    return text


def one_entry(text: str, name: str) -> str:
    found = re.search(rf"^{name}==.*?[^\\]\n(?=\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def test_the_page_reader_refuses_one_hex_digit(subject: Subject, tmp_path: Path) -> None:
    good, spoiled = tmp_path / "good.txt", tmp_path / "spoiled.txt"
    good.write_text(subject.requirements)
    spoiled.write_text(other_digit(subject.requirements, "torch"))
    assert subject.pages.complaints(good) == []
    assert [text.partition(":")[0] for text in subject.pages.complaints(spoiled)] == ["torch 2.6.0"]


def test_the_page_reader_refuses_one_hex_digit_of_pylock(subject: Subject, tmp_path: Path) -> None:
    spoiled = tmp_path / "pylock.toml"
    digest = re.findall(r'sha256 = "([0-9a-f]{64})"', subject.pylock)[0]
    spoiled.write_text(subject.pylock.replace(digest, digest[:-1] + ("0" if digest[-1] != "0" else "1")))
    assert len(subject.pages.complaints_of_pylock(spoiled)) == 1


def test_the_page_reader_refuses_another_versions_hash(subject: Subject, tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled.txt"
    spoiled.write_text(subject.requirements.replace("torch==2.6.0", "torch==2.5.1"))
    assert any("belongs to torch-2.6.0-" in text for text in subject.pages.complaints(spoiled))


def test_uv_and_pip_refuse_one_pin_that_torch_excludes(subject: Subject, tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled.txt"
    digest = next(digest for digest, (name, _) in subject.pages.stated("nvidia-cublas-cu12").items()
                  if name.startswith("nvidia_cublas_cu12-12.1.3.1-") and name.endswith("x86_64.whl"))
    text = without_entry(subject.requirements, "nvidia-cublas-cu12")
    spoiled.write_text(f"{text}nvidia-cublas-cu12==12.1.3.1 --hash=sha256:{digest}\n")
    assert subject.pages.complaints(spoiled) == []
    assert "nvidia-cublas-cu12" in refusal(subject.uv.dry_run(spoiled, tmp_path))
    assert "nvidia-cublas-cu12" in refusal(by_pip(subject, spoiled, tmp_path))


def test_uv_and_pip_refuse_a_missing_dependency(subject: Subject, tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled.txt"
    spoiled.write_text(without_entry(subject.requirements, "sympy"))
    assert "sympy" in refusal(subject.uv.dry_run(spoiled, tmp_path))
    assert "sympy" in refusal(by_pip(subject, spoiled, tmp_path))


def test_uv_refuses_a_pin_that_is_not_its_own_choice(subject: Subject, tmp_path: Path) -> None:
    good = tmp_path / "good.txt"
    good.write_text(subject.requirements.replace("sympy==1.13.1", "sympy==1.13.0"))
    compiled = subject.uv.compile(["torch==2.6.*"], read_entries(good), tmp_path)
    assert "sympy" in refusal(compiled)


def test_packaging_refuses_a_pylock_without_one_package(subject: Subject, tmp_path: Path) -> None:
    entries_file, spoiled = tmp_path / "requirements.txt", tmp_path / "pylock.toml"
    entries_file.write_text(subject.requirements)
    tables = subject.pylock.split("[[packages]]")
    spoiled.write_text("[[packages]]".join(table for table in tables if not table.startswith('\nname = "sympy"')))
    said = pylock.complaints(spoiled, read_entries(entries_file), python=PYTHON, platform="linux-64", glibc="2.28")
    assert said == ["sympy: not selected"]


def by_pip(subject: Subject, requirements: Path, scratch: Path) -> Run:
    return pip.dry_run(requirements, scratch, pages=subject.pages, python=PYTHON, platform="linux-64", glibc="2.28")


def refusal(run_: Run) -> str:
    assert run_.status != 0, run_
    return run_.stderr + run_.stdout
