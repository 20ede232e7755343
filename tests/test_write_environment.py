"""environment.yml: every package pinned, as conda, conda-lock, rattler and pip read it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stackfix.conda.records import Channel
from stackfix.errors import BadInput
from stackfix.write.environment import conda_requirement, render_environment
from tests.conda_samples import COMMAND, FORGE, SNAPSHOT, TORCH, pip_part, record, records, target
from tests.judges.command import run
from tests.judges.conda_lock import part
from tests.lock_samples import loopback, sample_packages


def document(**more: Any) -> Any:
    return yaml.load(render_environment(target(**more), command=COMMAND), Loader=yaml.CSafeLoader)


def test_each_package_is_pinned_with_its_channel_and_build() -> None:
    made = document()
    assert made["channels"] == ["pytorch", "conda-forge", "nodefaults"]
    assert made["dependencies"][:-1] == [
        f"{'pytorch' if one.channel == TORCH.url else 'conda-forge'}::{one.name}={one.version}={one.build}"
        for one in records()]


def test_one_channel_needs_no_name() -> None:
    only = tuple(one for one in records() if one.channel == FORGE.url)
    assert document(channels=(FORGE,), records=only, pip=())["dependencies"] == [
        f"{one.name}={one.version}={one.build}" for one in only]


@pytest.mark.parametrize(("name", "prefix"), [
    ("conda-forge", "conda-forge::"), ("nvidia/label/cuda-12.1.0", ""), ("https://host.example/c", ""),
    ("file:///channels/mine", ""), ("odd name", ""),
])
def test_a_channel_is_named_where_every_reader_takes_its_name(name: str, prefix: str) -> None:
    channel = Channel(name=name, url="https://host.example/c")
    assert conda_requirement(record("a", "1", "0", channel=channel), (FORGE, channel)) == f"{prefix}a=1=0"


def test_conda_and_rattler_read_each_line_as_that_package() -> None:
    from rattler import MatchSpec

    for line, one in zip(document()["dependencies"], records(), strict=False):
        theirs = part("interfaces.vendored_conda").MatchSpec(line)
        assert (theirs.name, theirs.get("version"), theirs.get("build")) == (one.name, one.version, one.build)
        spec = MatchSpec(line)
        assert (str(spec.version), str(spec.build)) == (f"=={one.version}", one.build)
        assert f"::{one.name} ==" in repr(spec)


def test_pip_takes_its_section_as_requirements(tmp_path: Path) -> None:
    """conda writes the lines into a file and hands it to pip."""
    with loopback(tmp_path / "index") as servers:
        packages = sample_packages(servers)
        section = document(pip=packages)["dependencies"][-1]["pip"]
        assert all(re.search(r" --hash=sha256:[0-9a-f]{64}$|#sha256=[0-9a-f]{64}$", line) for line in section)
        path = tmp_path / "requirements.txt"
        command = (sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps",
                   "--no-cache-dir", "--report", tmp_path / "report.json", "--index-url", servers.index_url, "-r", path)
        path.write_text("\n".join(section), encoding="utf-8")
        done = run(command, cwd=tmp_path)
        assert done.status == 0, done
        report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
        assert {item["metadata"]["name"] for item in report["install"]} == {package.name for package in packages}
        wrong = [re.sub(r"(sha256[:=]).{8}", r"\g<1>01234567", line) for line in section]
        path.write_text("\n".join(wrong), encoding="utf-8")
        refused = run(command, cwd=tmp_path)
        assert refused.status != 0
        assert "HASHES" in refused.stderr.upper()


def test_without_a_pip_part_there_is_no_section() -> None:
    assert all(isinstance(line, str) for line in document(pip=())["dependencies"])
    later = (replace(pip_part()[0], step=2),)
    assert all(isinstance(line, str) for line in document(pip=later)["dependencies"])


def test_the_header_says_what_the_format_cannot_hold_and_where_the_records_come_from() -> None:
    text = render_environment(target(snapshot=SNAPSHOT), command=COMMAND, file_name="environment-train.yml",
                              second_steps=("requirements-flash-attn-train.txt",))
    header = text.partition("channels:")[0]
    assert "the hashes of conda packages have no place in environment.yml" in header
    assert "conda env create --file environment-train.yml" in header
    assert "2026-10-30, 0123456789ab" in header
    assert "# second step: requirements-flash-attn-train.txt\n" in header


def test_a_package_of_no_channel_is_refused() -> None:
    with pytest.raises(BadInput, match="none of the channels"):
        document(channels=(FORGE,))


@pytest.mark.parametrize("name", ["conda-forge", "nvidia", "pytorch", "bioconda", "rapidsai"])
def test_conda_lock_calls_these_channels_as_we_do(name: str) -> None:
    spec = part("src_parser.conda_common").conda_spec_to_versioned_dep(f"{name}::a=1=0", "main")
    assert spec.conda_channel == name
