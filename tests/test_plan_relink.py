"""Links that are planned lead where they should, relative and inside of the prefix."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.plan.relink import relink_steps


def test_a_link_in_another_folder_is_relative_to_its_own() -> None:
    steps = relink_steps({"site/nvidia/cusparse/lib/libnvJitLink.so.12": "site/nvidia/nvjitlink/lib/libnvJitLink.so.12",
                          "lib/libstdc++.so.6": "lib/libstdc++.so.6.0.34"})
    assert [(step.path, step.target) for step in steps] == [
        ("lib/libstdc++.so.6", "libstdc++.so.6.0.34"),
        ("site/nvidia/cusparse/lib/libnvJitLink.so.12", "../../nvjitlink/lib/libnvJitLink.so.12"),
    ]


def test_a_link_comes_after_the_one_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "z.so.1.2").write_text("found")
    seen = []
    for step in relink_steps({"a.so": "m/b.so.1", "m/b.so.1": "z.so.1", "z.so.1": "z.so.1.2"}):
        (tmp_path / step.path).parent.mkdir(exist_ok=True)
        (tmp_path / step.path).symlink_to(step.target)
        assert (tmp_path / step.path).read_text() == "found"
        seen.append(step.path)
    assert seen == ["z.so.1", "m/b.so.1", "a.so"]


@pytest.mark.parametrize("links", [
    {"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}, {"../a": "b"}, {"a": "../b"}, {"/a": "b"},
    {"a": "/usr/lib/b"}, {"a//b": "c"}, {"a": "b/../../c"}, {"": "b"}, {"a": "."}, {"..": "b"}, {"a": "lib\udcff"},
    {"a\0": "b"},
], ids=str)
def test_what_leads_outside_or_nowhere_is_refused(links: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        relink_steps(links)


PATHS = st.lists(st.sampled_from(["a", "b", "..c", "lib d", "e'"]), min_size=1, max_size=4).map("/".join)


@given(PATHS, PATHS)
def test_the_text_leads_to_the_target(path: str, target: str) -> None:
    if path != target:
        (step,) = relink_steps({path: target})
        assert posixpath.normpath(posixpath.join(posixpath.dirname(path), step.target)) == target
        assert not step.target.startswith("/")
