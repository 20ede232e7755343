"""What is written is read back as the same text by readers of YAML 1.1 and 1.2 alike."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stackfix.write.yaml_read import Node, Source, parse_yaml
from stackfix.write.yaml_text import render_yaml, scalar

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
LIKE_NUMBERS = st.from_regex(r"[-+]?[0-9.xobeEtTzZ_:a-f+-]{1,12}", fullmatch=True)
DOCUMENTS = st.dictionaries(TEXT, st.recursive(
    st.one_of(TEXT, LIKE_NUMBERS, st.booleans(), st.integers(0, 10**18)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)), max_leaves=12),
    min_size=1, max_size=5)


def readings(text: str) -> dict[str, Any]:
    """The document as each reader has it."""
    from ruamel.yaml import YAML

    found: dict[str, Any] = {
        "PyYAML": yaml.load(text, Loader=yaml.SafeLoader),
        "PyYAML with libyaml": yaml.load(text, Loader=yaml.CSafeLoader),
    }
    for version in ("1.1", "1.2"):
        reader = YAML(typ="safe", pure=True)
        reader.version = version
        found[f"ruamel {version}"] = reader.load(text)
    return found


@given(DOCUMENTS)
def test_every_reader_reads_what_was_meant(document: dict[str, Any]) -> None:
    text = render_yaml(document)
    for reader, read in readings(text).items():
        assert read == document, reader


@given(st.one_of(TEXT, LIKE_NUMBERS))
def test_text_stays_text(text: str) -> None:
    for reader, read in readings(f"a: {scalar(text)}\n").items():
        assert read == {"a": text}, reader
        assert isinstance(read["a"], str)


@pytest.mark.parametrize("text", ["1.10", "0", "12e3", "1_000", "0x1f", "0b1", "0o7", "12:30:45", "2024-01-02", "1e5",
                                  "no", "Yes", "on", "OFF", "y", "n", "null", "~", "", ".inf", "True", "<<", "=", "- a",
                                  "a: b", "a:", "#", "a #b", "*a", "&a", "!a", "%a", "@a", "`a", "'", '"', "{", "[",
                                  "|", " a", "a ", "2001-12-14t21:59:43.10-05:00", "1.5.", "+1", "-1", ".5"])
def test_what_could_be_more_than_text_is_quoted(text: str) -> None:
    assert scalar(text) == "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("text", ["numpy", "py3.11_cuda12.1_cudnn8.9.2_0", "https://a.example/b/c-1.0-0.conda", "2024a",
                                  "_libgcc_mutex=0.1=conda_forge", "conda-forge::numpy=1.26.4=py311h64a7726_0",
                                  "linux-64", "1.0rc1", "5f" * 16])
def test_what_is_text_to_everyone_stands_plain(text: str) -> None:
    assert scalar(text) == text


def plain(node: Node) -> Any:
    """The node as lists and dictionaries."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    return [plain(item) for item in node.value] if isinstance(node.value, list) else node.value


def texts(value: Any) -> Any:
    """The document as our reader has it: all scalars text, the empty plain ones None."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


@given(DOCUMENTS)
def test_our_own_reader_reads_it_too(document: dict[str, Any]) -> None:
    assert plain(parse_yaml(render_yaml(document), Source(path="x"))) == texts(document)
