"""Nothing of the machine, no credential and no line break gets into a lockfile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.write.clean import comment_text, locked_url, one_line


@pytest.mark.parametrize(
    ("url", "locked"),
    [
        ("https://h/a+b.whl", "https://h/a%2Bb.whl"),
        ("https://h/a%2Bb.whl", "https://h/a%2Bb.whl"),
        ("https://me:word@h:8080/a.whl#sha256=0", "https://h:8080/a.whl"),
        ("https://h/a b.whl", "https://h/a%20b.whl"),
        ("https://h/a.whl?x=1", "https://h/a.whl?x=1"),
        ("https://h/a.whl?x=1&X-Amz-Signature=abc", "https://h/a.whl"),
        ("https://h/a.whl?token=abc", "https://h/a.whl"),
        ("https://h/${HOME}/a.whl", "https://h/%24%7BHOME%7D/a.whl"),
        ("https://h/a\\\n.whl", "https://h/a%5C.whl"),
    ],
)
def test_a_url_as_a_lockfile_holds_it(url: str, locked: str) -> None:
    assert locked_url(url) == locked


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("stackfix lock --index-url https://u:p@h/simple", "stackfix lock --index-url https://h/simple"),
        ("stackfix lock --index-url=https://u:p@h/simple", "stackfix lock --index-url=https://h/simple"),
        ("lock --with 'a @ https://tok@h/a.whl' https://u:p@g/", "lock --with 'a @ https://h/a.whl' https://g/"),
        ("-r /home/me/deps.in -o ~/out", "-r deps.in -o out"),
        ("--with 'x @ file:///home/me/x.whl'", "--with 'x @ file:x.whl'"),
        ("-r ../deps.in", "-r ../deps.in"),
        ("-o 'C:\\Users\\me\\out'", "-o 'out'"),
        ("a\r\nb\x0bc\u2028d", "a b c d"),
        ("ends \\", "ends"),
        ("https://h/simple/", "https://h/simple/"),
    ],
)
def test_a_comment_as_a_lockfile_holds_it(text: str, clean: str) -> None:
    assert comment_text(text) == clean


@pytest.mark.parametrize("url", ["file:///home/me/a.whl", "ftp://h/a.whl", "a.whl", "javascript:x", "https://[h/a.whl",
                                 "https:///a.whl", ""])
def test_an_address_that_others_cannot_reach_is_not_locked(url: str) -> None:
    with pytest.raises(BadInput, match="only an http or https address can be locked"):
        locked_url(url)


@given(st.text())
def test_a_comment_is_one_line_that_continues_nothing(text: str) -> None:
    clean = one_line(text)
    assert len(clean.splitlines()) <= 1
    assert not clean.endswith("\\")
    assert one_line(clean) == clean


@given(st.text(alphabet=st.sampled_from("ab:@/?#+%{$} \\\n."), max_size=60))
def test_a_url_is_one_word(path: str) -> None:
    locked = locked_url(f"https://user:secret@host/{path}")
    assert locked.split() == [locked]
    assert "secret" not in locked
    assert "${" not in locked
    assert "+" not in locked
    assert locked_url(locked) == locked
