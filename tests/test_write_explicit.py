"""Explicit files: py-rattler reads them, conda-lock renders the same (judged with conda-lock.yml)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.write.explicit import MARK, render_explicit
from tests.conda_samples import ARM, COMMAND, SNAPSHOT, pip_part, record, target


def test_rattler_reads_each_address_with_its_hash(tmp_path: Path) -> None:
    from rattler.explicit_environment import ExplicitEnvironmentSpec

    one = target()
    path = tmp_path / "conda-linux-64.lock"
    path.write_text(render_explicit(one, command=COMMAND), encoding="utf-8")
    spec = ExplicitEnvironmentSpec.from_path(path)
    assert str(spec.platform) == "linux-64"
    assert {entry.url for entry in spec.packages} == {f"{each.url}#{each.md5}" for each in one.records}


def test_packages_stand_after_what_they_depend_on() -> None:
    lines = render_explicit(target(), command=COMMAND).splitlines()
    names = [line.rpartition("/")[2].rsplit("-", 2)[0] for line in lines[lines.index(MARK) + 1:] if line[0] != "#"]
    for before, after in (("python", "pip"), ("python", "numpy"), ("mkl", "libblas"), ("libblas", "numpy"),
                          ("numpy", "pytorch"), ("_libgcc_mutex", "libgcc-ng")):
        assert names.index(before) < names.index(after)


def test_the_packages_of_pip_are_comments_with_hashes() -> None:
    lines = render_explicit(target(), command=COMMAND).splitlines()
    pip = [line for line in lines if line.startswith("# pip ")]
    assert len(pip) == len(pip_part())
    for package in pip_part():
        url = package.files[0].url.replace("+", "%2B")
        assert f"# pip {package.name} @ {url}#sha256={package.files[0].sha256}" in pip


def test_the_header_says_how_it_is_installed_and_where_from() -> None:
    text = render_explicit(target(snapshot=SNAPSHOT, where=ARM), command=COMMAND, file_name="conda-linux-aarch64.lock")
    assert "#    conda-lock install --prefix PREFIX conda-linux-aarch64.lock (conda itself passes over" in text
    assert "2026-10-30, 0123456789ab" in text
    assert "# platform: linux-aarch64\n@EXPLICIT\n" in text
    alone = render_explicit(target(pip=()), command=COMMAND)
    assert "#    conda create --prefix PREFIX --file conda-linux-64.lock\n" in alone


def test_the_second_step_is_no_comment_for_pip() -> None:
    later = replace(pip_part()[0], step=2)
    text = render_explicit(target(pip=(later,)), command=COMMAND, second_steps=("requirements-flash-attn.txt",))
    assert "# pip " not in text
    assert "# second step: requirements-flash-attn.txt\n" in text


def test_a_package_without_md5_is_named() -> None:
    with pytest.raises(BadInput, match="no usable md5") as refused:
        render_explicit(target(records=(record("a", "1", "0", md5=None),)), command=COMMAND)
    assert refused.value.thing == "a-1-0.conda"
    assert refused.value.next_step() == "--format pixi needs sha256 alone"
