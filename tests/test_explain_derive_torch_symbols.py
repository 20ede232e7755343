"""Functions of torch: whole names, cut ones and readable ones find the minors that the almanac's table has."""

from __future__ import annotations

import lzma
import random
import re
import secrets
from functools import cache

import pytest

from stackfix.abi.mangled import demangle
from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.torch_reading import read_symbol
from stackfix.explain.derive.torch_symbols import function_beginning, other_names, torch_symbol
from stackfix.matrix.toml_files import matrix_directory

FACTS = MatrixFacts(None)
BOOK, NAMES = FACTS.books.torch, FACTS.books.names
MINORS = [each.minor for each in BOOK.releases]
DRAWN = 30
NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


@cache
def table() -> dict[str, str]:
    """Name -> minors as the table writes them."""
    text = lzma.decompress((matrix_directory() / "abi" / "full.tsv.xz").read_bytes()).decode()
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {row[0]: row[1] for row in rows[1:] if "@" not in row[0]}


def minors(span: str) -> list[str]:
    """The minors that a span of the table stands for."""
    found: list[str] = []
    for part in span.split(","):
        first, dash, last = part.partition("-")
        end = MINORS.index(last) if last else len(MINORS) - 1 if dash else MINORS.index(first)
        found += MINORS[MINORS.index(first):end + 1]
    return found


def drawn(pattern: str, count: int = DRAWN) -> list[str]:
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    every = [name for name in table() if re.search(pattern, name)]
    return random.Random(seed).sample(every, min(count, len(every)))        # noqa: S311 - no secret


def test_a_whole_name_has_the_minors_of_the_table() -> None:
    for name in drawn(r"^_ZNK?(?:3c10|2at|5torch)"):
        told = torch_symbol({"symbol": name}, FACTS)
        if not told:            # in a namespace of torch's, and of another project's function
            continue
        assert told["for_minors"].split() == minors(table()[name]), name
        assert told["verdict"] in {"other-torch", "other-string", "should-have"}


def test_a_name_that_is_cut_has_the_minors_of_all_that_begin_so() -> None:
    for name in drawn(r"^_ZN2at4_ops\d"):
        cut = name[:len(name) * 3 // 4]
        told = torch_symbol({"symbol": f"{cut}..."}, FACTS)
        every = [each for each in table() if each.startswith(cut)]
        united = {minor for each in every for minor in minors(table()[each])}
        if len(every) > 64:
            assert told["verdict"] == "cut-short"
        else:
            assert told.get("for_minors", "").split() == [each for each in MINORS if each in united], cut
            assert (told["verdict"] == "cut-short") == (len(united) == len(MINORS))
        assert "signature" not in told


def test_a_readable_name_is_the_one_with_these_parameters() -> None:
    for name in drawn(r"^_ZN2at4_ops\d\w+4callE"):
        shown = demangle(name)
        assert shown is not None
        found = read_symbol(shown, BOOK, NAMES)
        assert found is not None
        assert demangle(found.name) == shown
        assert set(minors(table()[name])) <= set(found.minors)


@pytest.mark.parametrize("end", ["", "NS", "NSt7_", NEW_STRING[:9], NEW_STRING[:14], NEW_STRING[:20], NEW_STRING])
def test_the_new_string_is_seen_where_the_name_is_cut_in_it(end: str) -> None:
    dots = "" if end == NEW_STRING else "..."
    told = torch_symbol({"symbol": f"_ZN3c105ErrorC2ENS_14SourceLocationE{end}{dots}"}, FACTS)
    if len(end) < 4:
        assert told["verdict"] == "cut-short"
        return
    assert (told["string_abi"], told["verdict"], told["flag"]) == ("new", "other-string", "TRUE")
    new = [each.minor for each in BOOK.releases if each.string_abi == "new"]
    assert told["string_minors"].split() == [each for each in new if each in minors(table()[
        "_ZN3c105ErrorC2ENS_14SourceLocationESs"])]


@pytest.mark.parametrize(("torch", "cuda", "verdict"), [
    ("2.6.0", "12.4", "other-string"), ("2.7.1", "12.6", "should-have"), ("2.4.1", "12.1", "other-string"),
    ("77.0", "12.1", "other-string"),
])
def test_the_torch_that_is_named_decides(torch: str, cuda: str, verdict: str) -> None:
    symbol = f"_ZN3c105ErrorC2ENS_14SourceLocationE{NEW_STRING}"
    assert torch_symbol({"symbol": symbol, "torch": torch, "cuda": cuda}, FACTS)["verdict"] == verdict


@pytest.mark.parametrize("minor", MINORS)
def test_set_device_tells_which_torch_was_meant(minor: str) -> None:
    names = [name for name, span in table().items() if name.startswith("_ZN3c104cuda9SetDeviceE")
             and minor in minors(span)]
    for name in names:
        told = torch_symbol({"symbol": name}, FACTS)
        assert minor in told["for_minors"].split()
        assert told["readable"] == "c10::cuda::SetDevice"
        assert told["cuda_only"] == "yes"
        assert told["signature"] not in told["others"]
    assert names or minor in {"1.13", "2.0"}


def test_others_are_those_of_no_common_release() -> None:
    found = read_symbol("_ZN3c104cuda9SetDeviceEi", BOOK, NAMES)
    assert found is not None
    told = other_names(found, MINORS, NAMES)
    assert "c10::cuda::SetDevice(signed char)" in told
    assert "c10::cuda::SetDevice(int)" not in told


@pytest.mark.parametrize("symbol", [
    "_ZN6google8protobuf7MessageC2Ev", "_ZN2cv3MatC1Ev", "PyUnicode_New", "sqlite3_open", "", "...", "_Z",
    "std::string", "google::protobuf::Message::Message()", "_ZN6helper5twiceERKN2at6TensorE", "torchx", "_ZSt4endl",
])
def test_names_of_others_are_not_torchs(symbol: str) -> None:
    assert torch_symbol({"symbol": symbol}, FACTS) == {}


@pytest.mark.parametrize(("symbol", "beginning"), [
    ("_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceE"), ("_ZNK2at6Tensor3dimEv", "_ZNK2at6Tensor3dimE"),
    ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "_ZN3c105ErrorC2E"), ("_ZN2at4_ops5zeros4ca", None),
    ("_ZN3c1013intrusive_ptrINS_10TensorImplEE5resetEv", None), ("aoti_torch_abi_version", None), ("_ZN99999x", None),
])
def test_a_function_begins_before_its_parameters(symbol: str, beginning: str | None) -> None:
    assert function_beginning(symbol) == beginning


def test_a_hostile_name_is_no_traceback() -> None:
    chance = random.Random(secrets.randbits(32))        # noqa: S311 - no secret
    for _ in range(300):
        tail = "".join(chance.choice("NSt7_cx1E35I0KRPv.…:()<>,~ at") for _ in range(chance.randint(0, 80)))
        symbol = chance.choice(["_ZN3c10", "_ZNK2at", "_ZN5torch", "c10::", "at::", "__ZN2at", "aoti_torch_"]) + tail
        told = torch_symbol({"symbol": symbol}, FACTS)
        assert all(told.values()), symbol


def test_the_torch_that_is_meant_has_the_string_of_the_name() -> None:
    found = torch_symbol({"symbol": "_ZN5torch3jit17parseSchemaOrNameERKSsb"}, FACTS)
    assert found["meant"] == found["string_fits"] != found["exported"]
    found = torch_symbol({"symbol": "_ZN3c104cuda9SetDeviceEi"}, FACTS)
    assert found["meant"] == found["exported"]


def test_who_asks_is_told_by_its_file_where_there_is_one() -> None:
    symbol = {"symbol": "_ZN3c104cuda9SetDeviceEi"}
    assert torch_symbol(symbol, FACTS)["asker"] == "what asks for it"
    assert torch_symbol({**symbol, "who": "_C.so"}, FACTS)["asker"] == "_C.so"
