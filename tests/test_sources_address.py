"""Addresses of index pages: absolute ones take a short way, which must lead to the same place."""

from __future__ import annotations

from urllib.parse import urljoin, urlunsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.sources.address import parse_address, resolve_link, without_credentials

BASE = "https://index.test/simple/demo/"
LETTERS = "abcXYZ019/._~%+!$&'()*,;=:-@#?[]\\ \t<>\""


@given(
    scheme=st.sampled_from(["http", "https", "ftp", "HTTP"]),
    host=st.text("ab9.-_@:[]", min_size=1, max_size=12),
    port=st.sampled_from(["", ":80", ":59999", ":65535", ":99999", ":0", ":x"]),
    path=st.text(LETTERS, max_size=12),
)
def test_the_short_way_leads_where_the_long_one_does(scheme: str, host: str, port: str, path: str) -> None:
    link = urlunsplit((scheme, host + port, "/" + path, "", "")) if "[" not in host + path else f"{scheme}://{host}/{path}"

    def long_way() -> str:
        url = without_credentials(urljoin(BASE, link.strip()))
        parse_address(url)
        return url

    try:
        expected = long_way()
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            resolve_link(BASE, link)
    else:
        assert resolve_link(BASE, link) == expected


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("../../files/demo-1.0.whl#sha256=00", "https://index.test/files/demo-1.0.whl"),
        ("//other.test/x.whl", "https://other.test/x.whl"),
        ("https://user:word@other.test/x.whl", "https://other.test/x.whl"),
        ("https://other.test/a+b%2Bc.whl", "https://other.test/a+b%2Bc.whl"),
    ],
)
def test_links_become_absolute_and_lose_credentials_and_fragment(link: str, address: str) -> None:
    assert resolve_link(BASE, link) == address


@pytest.mark.parametrize("link", ["file:///etc/passwd", "javascript:x", "https://a b/x"])
def test_other_schemes_and_impossible_hosts_are_refused(link: str) -> None:
    with pytest.raises(ValueError, match=r"scheme|host|address"):
        resolve_link(BASE, link)
