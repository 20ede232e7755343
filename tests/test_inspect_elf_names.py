"""Names hashed by the thousand give what the definition gives, one by one; equal hashes do not hide a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.inspect import elf_names
from stackfix.inspect.elf_names import SymbolNames, encode, gnu_hash, gnu_hashes, hash_bytes
from stackfix.inspect.elf_symbols import MappedSymbols
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Definition, Library

TWINS = ("_Zab", "_ZbA")        # 33 * "a" + "b" is 33 * "b" + "A"
NEIGHBOURS = ("s4", "s5")       # their hashes differ in the last bit, which a chain does not keep


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf_names, "_known", {})


NAMES = st.binary(max_size=300).map(lambda name: name.replace(b"\0", b"").decode("utf-8", "surrogateescape"))


@given(st.sets(NAMES, max_size=40))
def test_many_names_hash_as_one_does(names: set[str]) -> None:
    elf_names._known.clear()    # noqa: SLF001 - what is known is not worked out
    assert gnu_hashes(names) == [hash_bytes(encode(name)) for name in names]


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33, 4096, 16384, 16385, 65535])
def test_names_of_any_length(length: int) -> None:
    names = [f"{place}{'~ÿ' * length}"[-length:] if length else "" for place in range(3 if length else 1)]
    assert gnu_hashes(names) == [hash_bytes(encode(name)) for name in names]


def test_what_is_known_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf_names, "MOST_KNOWN", 10)
    for start in range(0, 100, 7):
        names = [f"name{place}" for place in range(start, start + 7)]
        assert gnu_hashes(names) == [hash_bytes(encode(name)) for name in names]
        assert len(elf_names._known) <= 10      # noqa: SLF001


def test_names_of_one_hash_are_both_found_and_dropped() -> None:
    assert gnu_hash(TWINS[0]) == gnu_hash(TWINS[1])
    assert gnu_hash(NEIGHBOURS[0]) ^ gnu_hash(NEIGHBOURS[1]) == 1
    for first, second in (TWINS, TWINS[::-1], NEIGHBOURS, NEIGHBOURS[::-1]):
        names = SymbolNames({first, second, "other"})
        value = gnu_hash(first)
        assert len(names) == 3
        assert set(names) == {first, second, "other"}
        assert {first, second} <= names.behind({value, value ^ 1}).keys()
        assert all(each in names for each in (first, second, "other"))
        names.drop([first])
        assert set(names) == {second, "other"}
        assert second in names
        assert first not in names
        assert second in names.behind(names.either & {value, value ^ 1})
        names.drop([second])
        assert list(names) == ["other"]
        assert not names.either & {value, value ^ 1}


@pytest.mark.parametrize("gnu", [True, False])
def test_objects_tell_names_of_one_hash_apart(*, gnu: bool) -> None:
    both, one = ((*TWINS, *NEIGHBOURS), (TWINS[0], NEIGHBOURS[0]))
    for defined in (both, one):
        library = Library(path="x", gnu_hash=gnu, defines=tuple(Definition(name=name) for name in defined))
        symbols = MappedSymbols(write(library), "x")
        assert set(symbols.offered(SymbolNames({*both, "none"}))) == set(defined)
        assert all(len(offers) == 1 for offers in symbols.offered(SymbolNames(both)).values())
        for name in both:
            assert list(symbols.offered(SymbolNames([name]))) == [name] * (name in defined)
