"""What is written parses back to equal records, whatever channels state; and nothing of a login is in any file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackfix.conda.records import Channel, CondaRecord, CondaTarget
from stackfix.write.conda_clean import dependency_map
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
from stackfix.write.conda_read import parse_conda_file
from tests.conda_samples import COMMAND, FORGE, TORCH, X86, pip_part, record, target

NAMES = st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,12}[a-z0-9]", fullmatch=True)
VERSIONS = st.from_regex(r"(?:[0-9]!)?[0-9][a-z0-9_.+]{0,10}", fullmatch=True)
BUILDS = st.from_regex(r"[A-Za-z0-9_.+]{1,16}", fullmatch=True)
CONDITIONS = st.sampled_from(["", ">=1", "1.*", ">=1.2,<2.0a0", "* *_cpython", "1.0 h_0", "==1.10", "<3|>4", "~=2"])
LINES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)


@st.composite
def one_record(draw: st.DrawFn) -> CondaRecord:
    subdir = draw(st.sampled_from(["linux-64", "noarch"]))
    depends = draw(st.lists(st.tuples(NAMES, CONDITIONS).map(" ".join).map(str.strip), max_size=4,
                            unique_by=lambda line: line.partition(" ")[0]))
    more: dict[str, Any] = {
        "build_number": draw(st.integers(0, 10**6)), "constrains": tuple(draw(st.lists(LINES, max_size=2))),
        "license": draw(st.none() | LINES), "license_family": draw(st.none() | LINES),
        "size": draw(st.none() | st.integers(0, 2**40)), "timestamp": draw(st.none() | st.integers(0, 2**42)),
        "features": draw(st.none() | LINES), "track_features": tuple(draw(st.lists(LINES, max_size=2))),
        "noarch": draw(st.sampled_from(["python", "generic", None])) if subdir == "noarch" else None,
        "channel": draw(st.sampled_from([FORGE, TORCH])), "kind": draw(st.sampled_from(["conda", "tar.bz2"])),
    }
    return record(draw(NAMES), draw(VERSIONS), draw(BUILDS), *depends, subdir=subdir, **more)


TARGETS = st.lists(one_record(), max_size=5, unique_by=lambda one: one.name).map(
    lambda found: target(records=tuple(sorted(found, key=lambda one: one.name))))


def read(one: CondaTarget, kind: str) -> tuple[Any, ...]:
    (file,) = plan_conda((one,), formats=(kind,), name=None, command=COMMAND)
    (environment,) = parse_conda_file(file.text, file.path).environments
    assert [pin.name for pin in environment.pip] == [package.name for package in one.pip]
    return environment.conda


@given(TARGETS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_pixi_lock_gives_every_record_back(one: CondaTarget) -> None:
    found = tuple(
        CondaRecord(
            name=pin.name, version=pin.version, build=pin.build, build_number=pin.build_number, subdir=pin.subdir,
            channel=pin.channel, file_name=pin.file_name, url=pin.url, md5=pin.md5, sha256=pin.sha256,
            depends=pin.depends, constrains=pin.constrains, noarch=pin.noarch, size=pin.size, timestamp=pin.timestamp,
            license=pin.license, license_family=pin.license_family, features=pin.features,
            track_features=pin.track_features, python_site_packages_path=pin.python_site_packages_path)
        for pin in read(one, "pixi"))
    assert found == one.records


@given(TARGETS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_conda_lock_gives_back_all_that_it_has_a_place_for(one: CondaTarget) -> None:
    for pin, wanted in zip(read(one, "conda-lock"), one.records, strict=True):
        for field in ("name", "version", "build", "subdir", "channel", "file_name", "url", "md5", "sha256"):
            assert getattr(pin, field) == getattr(wanted, field), field
        assert dependency_map(pin.depends) == dependency_map(wanted.depends)


@given(TARGETS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_the_other_files_give_each_pin_back(one: CondaTarget) -> None:
    assert [(pin.url, pin.md5) for pin in read(one, "explicit")] == [(each.url, each.md5) for each in one.records]
    assert [(pin.name, pin.version, pin.build) for pin in read(one, "environment")] == [
        (each.name, each.version, each.build) for each in one.records]


@pytest.mark.parametrize("kind", CONDA_FORMATS)
def test_no_login_is_in_any_file(kind: str) -> None:
    """Records hold none; but should one slip in, it goes no further."""
    channel = Channel(name="https://u:hunter2@host.example/t/tk-hunter2/c",
                      url="https://u:hunter2@host.example/t/tk-hunter2/c")
    wheel = pip_part()[0]
    file = replace(wheel.files[0], url="https://u:hunter2@files.example/a.whl?token=hunter2")
    one = target(channels=(channel,), records=(record("a", "1", "0", channel=channel),), where=X86,
                 pip=(replace(wheel, files=(file,)),))
    (made,) = plan_conda((one,), formats=(kind,), name=None,
                         command="stackfix lock --index-url https://u:hunter2@files.example/simple --channel file:///x/y")
    assert "hunter2" not in made.text
    assert "/x/y" not in made.text
    assert "host.example/c" in made.text
