"""Versions as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.errors import BadInput
from stackfix.request.versions import version_specifier


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        ("2", "==2.*"), ("2.3", "==2.3.*"), (" 2.3 ", "==2.3.*"), ("v2.3", "==2.3.*"), ("2.3.*", "==2.3.*"),
        ("2.10", "==2.10.*"), ("2.3.1", "==2.3.1"), ("2.3.1.*", "==2.3.1.*"), ("2.8.3.post1", "==2.8.3.post1"),
        ("2.9.0rc1", "==2.9.0rc1"), ("2.9rc1", "==2.9rc1"), ("==2.3", "==2.3"), (">=2.2, <2.5", ">=2.2,<2.5"),
        ("~= 2.3", "~=2.3"), (">=2.2,", ">=2.2"), ("!=2.4.0,>=2.3", "!=2.4.0,>=2.3"), ("===2.3.1", "===2.3.1"),
    ],
)
def test_a_version_as_specifier(text: str, specifier: str) -> None:
    assert version_specifier(text) == specifier


def test_a_prefix_takes_every_release_of_it_and_a_release_itself_alone() -> None:
    assert "2.3.1" in SpecifierSet(version_specifier("2.3"))
    assert "2.30.0" not in SpecifierSet(version_specifier("2.3"))
    assert "2.3.1.post1" not in SpecifierSet(version_specifier("2.3.1"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "write `2.3`"), ("latest", "write `2.3`"), ("2.x", "write `2.3`"), ("2.3,<2.5", "write `2.3`"),
        (">=2.2 <2.5", "write `2.3`"), (">=", "write `2.3`"), ("=2.3", "write `2.3`"), ("2.3rc1.*", "write `2.3`"),
        ("2.3.1+cu121", "choose the build with --cuda"), ("==2.3.1+cu121", "choose the build with --cuda"),
        ("9" * 300, "write `2.3`"), (">=2.3; x", "write `2.3`"),
    ],
)
def test_what_is_no_version_is_refused_with_the_way_to_write_it(text: str, hint: str) -> None:
    with pytest.raises(BadInput, match="--flash-attn") as caught:
        version_specifier(text, "--flash-attn")
    assert hint in (caught.value.hint or "")


@given(st.text(max_size=20))
def test_any_text_is_a_specifier_or_refused(text: str) -> None:
    try:
        specifier = version_specifier(text)
    except BadInput:
        return
    assert version_specifier(specifier) == specifier
    SpecifierSet(specifier)


@given(st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){2}", fullmatch=True))
def test_a_release_is_met_by_itself(release: str) -> None:
    assert Version(release) in SpecifierSet(version_specifier(release))
