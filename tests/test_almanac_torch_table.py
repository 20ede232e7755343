"""The table of minors and its text: laws, and texts that nobody has written."""

from __future__ import annotations

import lzma
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.abi.book_patches import parse_patches, render_patches
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.torch_exports import Exports
from stackfix.almanac.torch_files import pack_table, pack_text, unpack_text
from stackfix.almanac.torch_patches import contradictions, differences, in_order, parse_rows
from stackfix.almanac.torch_table import Table, parse_full, render_core, render_full, with_column
from stackfix.errors import BadInput

EMPTY = Table(releases=(), rows={})
VERSIONS = ("1.13.1", "2.0.1", "2.9.0", "2.10.0", "2.11.1")
LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")
Names = Mapping[str, frozenset[str]]
NAMES = st.dictionaries(st.sampled_from(["_Za", "_Zb", "aoti_torch_c", "_Zd", "_Ze"]),
                        st.frozensets(st.sampled_from(LIBRARIES), min_size=1))


def exports(version: str, names: Names, string_abi: str = "old") -> Exports:
    file = f"torch-{version}-cp311-cp311-manylinux1_x86_64.whl"
    row = ManifestWheel(package="torch", version=version, file=file, sha256=version[-1] * 64)
    return Exports(wheel=row, string_abi=string_abi, names=names)


def table_of(columns: Mapping[str, Names]) -> Table:
    table = EMPTY
    for version, names in columns.items():
        table = with_column(table, exports(version, names), ())
    return table


COLUMNS = st.permutations(VERSIONS).flatmap(lambda order: st.fixed_dictionaries(dict.fromkeys(order, NAMES)))
TABLE = table_of({"2.0.1": {"_Za": frozenset({"libc10.so"}), "_Zb": frozenset({"libtorch_cpu.so"})},
                  "2.1.0": {"_Zb": frozenset({"libc10.so", "libtorch_cpu.so"})}})
TEXT = render_full(TABLE)


@given(COLUMNS)
def test_the_order_of_columns_does_not_matter(columns: dict[str, Names]) -> None:
    in_time = table_of({version: columns[version] for version in VERSIONS})
    assert [each.minor for each in in_time.releases] == ["1.13", "2.0", "2.9", "2.10", "2.11"]
    assert table_of(columns) == in_time
    assert parse_full(render_full(in_time), "full.tsv") == in_time


@given(COLUMNS, NAMES)
def test_a_column_is_replaced_whole(columns: dict[str, Names], names: Names) -> None:
    """As where a newer patch comes: nothing of the old column stays."""
    replaced = with_column(table_of(columns), exports("2.9.3", names), ("2.9.0",))
    others = {version: each for version, each in columns.items() if version != "2.9.0"}
    assert replaced == with_column(table_of(others), exports("2.9.3", names), ("2.9.0",))


@given(COLUMNS)
def test_the_core_is_lines_of_the_whole(columns: dict[str, Names]) -> None:
    table = table_of(columns)
    core = render_core(table).splitlines()[1:]
    assert set(core) <= set(render_full(table).splitlines())
    assert {line.split("\t")[0] for line in core} == {
        key for key, row in table.rows.items() if "libc10.so" in row or not key.startswith("_Z")}


@given(NAMES, NAMES)
def test_differences_lead_from_one_patch_to_the_other(newest: Names, other: Names) -> None:
    rows = differences(exports("2.0.1", newest), exports("2.0.0", other))
    plus, minus = ({key for _, sign, key, _ in rows if sign == each} for each in "+-")
    assert newest.keys() - minus | plus == other.keys()
    assert not plus & newest.keys()
    table = with_column(EMPTY, exports("2.0.1", newest), ("2.0.0",))
    assert contradictions(in_order(rows), table) == []
    text = render_patches(in_order(rows))
    assert parse_rows(text, "patches.tsv") == in_order(rows)
    assert sum(map(len, parse_patches(text.encode(), "patches.tsv").values())) == len(rows)


def test_a_patch_of_another_string_is_no_exception_but_an_error() -> None:
    with pytest.raises(BadInput, match=r"torch-2\.0\.0-.* speaks of the new std::string"):
        differences(exports("2.0.1", {}), exports("2.0.0", {}, "new"))


def test_the_text_is_as_documented() -> None:
    assert TEXT.splitlines() == [
        f"# release\t2.0\t2.0.1\ttorch-2.0.1-cp311-cp311-manylinux1_x86_64.whl\t{'1' * 64}\told\t",
        f"# release\t2.1\t2.1.0\ttorch-2.1.0-cp311-cp311-manylinux1_x86_64.whl\t{'0' * 64}\told\t",
        "key\tminors\tlibraries",
        "_Za\t2.0\tlibc10.so",
        "_Zb\t2.0-\tlibc10.so@2.1- libtorch_cpu.so",
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (TEXT, "", "is no table"),
        (TEXT, "\n", "is no table"),
        ("key\tminors\tlibraries\n", "", "is no table"),
        ("libtorch_cpu.so\n", "libtorch_cpu.so", "cut short"),
        ("# release\t2.0\t", "# release\ttwo\t", "^full.tsv:1: is no line about a release"),
        ("# release\t2.1\t", "release\t2.1\t", "^full.tsv:2: is no line about a release"),
        ("\told\t\nkey", "\tboth\t\nkey", "^full.tsv:2: is no line about a release"),
        ("_Za\t2.0\t", "_Za\t2.0 ", "^full.tsv:4: "),
        ("_Za\t2.0\t", "_Za\t3.0\t", "^full.tsv:4: '3.0' is no interval"),
        ("_Za\t2.0\t", "_Za\t2.1\t", "^full.tsv:4: '2.1' is not how"),
        ("_Zb\t2.0-\t", "_Zb\t2.1-\t", "^full.tsv: is not written as"),
        ("_Za\t2.0\tlibc10.so\n", "_Za\t2.0\tlibc10.so\n_Za\t2.0\tlibc10.so\n", "^full.tsv: is not written as"),
        ("libc10.so@2.1-", "libc10.so@", "^full.tsv:5: '' is no interval"),
        ("libc10.so@2.1- libtorch_cpu.so", "libc10.so@2.1-", "^full.tsv:5: the minors are not those of its libraries"),
    ],
)
def test_any_other_text_is_refused(old: str, new: str, reason: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInput, match=reason.replace(".", r"\.")) as caught:
        parse_full(TEXT.replace(old, new), "full.tsv")
    assert "\n" not in caught.value.what()


@pytest.mark.parametrize("row", ["2.0.0\t+\t_Za", "2.0.0\t*\t_Za\tlibc10.so", "2..0\t+\t_Za\tlibc10.so",
                                 "2.0\t+\t_Za\tlibc10.so", "\t+\t_Za\tlibc10.so", "", "2.0.0\t+\t_Za\tlibc10.so\t"])
def test_a_row_about_no_patch_is_named(row: str) -> None:
    with pytest.raises(BadInput, match=r"^patches\.tsv:2: "):
        parse_rows(f"version\tchange\tkey\tlibrary\n{row}\n", "patches.tsv")


def test_packed_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack_text(TEXT)
    assert unpack_text(packed, "full.tsv.xz") == TEXT
    assert pack_text(TEXT) == packed
    monkeypatch.setattr("stackfix.almanac.torch_files.MOST_TEXT", len(TEXT) - 1)
    for content in (packed, packed[:-1], packed + b"x", b"", b"\xfd7zXZ\x00", TEXT.encode(),
                    lzma.compress(b"x", lzma.FORMAT_ALONE)):
        with pytest.raises(BadInput, match=r"^full\.tsv\.xz: (?:cannot be unpacked|is cut short)"):
            unpack_text(content, "full.tsv.xz")


def test_more_libraries_than_the_form_has_room_for() -> None:
    names = {f"_Z{number}": frozenset({f"libtorch_{number}.so"}) for number in range(17)}
    with pytest.raises(BadInput, match="more pairs, releases or libraries"):
        pack_table(with_column(EMPTY, exports("2.0.1", names), ()))


def test_two_names_with_one_hash_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stackfix.abi.book_format.key_hash", lambda _: 1)
    with pytest.raises(BadInput, match="two names with one 64-bit hash"):
        pack_table(TABLE)
