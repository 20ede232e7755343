"""Reading one TOML table: typed, checked values out of it, and every fault noted with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackfix.matrix.faults import Faults
from stackfix.platforms import PLATFORMS as KNOWN

CONFIDENCES = ("certain", "high", "medium", "low")
PLATFORMS = tuple(KNOWN)


class Row:
    """One table. What was not asked for by the time of `done` is an unknown key."""

    __slots__ = ("_faults", "_seen", "_table", "where")

    def __init__(self, table: object, where: str, faults: Faults) -> None:
        self.where, self._faults = where, faults
        self._seen: set[str] = set()
        self._table: Mapping[str, Any] = {}
        if isinstance(table, dict):
            self._table = table
        else:
            faults.add(where, "not a table")

    def has(self, key: str) -> bool:
        return key in self._table

    def names(self) -> tuple[str, ...]:
        return tuple(self._table)

    def fault(self, reason: str) -> None:
        self._faults.add(self.where, reason)

    def _get(self, key: str, *, needed: bool = True) -> Any:
        self._seen.add(key)
        if needed and key not in self._table:
            self._faults.add(self.where, f"no {key}")
        return self._table.get(key)

    def text(self, key: str, kind: str = "text") -> str:
        """The value of a key that must be there; "" after a fault."""
        value = self._get(key)
        return "" if value is None else self._faults.check(value, kind, f"{self.where}, {key}")

    def optional(self, key: str, kind: str = "text") -> str | None:
        value = self._get(key, needed=False)
        return None if value is None else self._faults.check(value, kind, f"{self.where}, {key}") or None

    def chosen(self, key: str, among: tuple[str, ...], default: str | None = None) -> str:
        """One of `among`."""
        value = self._get(key, needed=default is None)
        if value is None:
            return default or ""
        if value in among:
            return str(value)
        self._faults.add(f"{self.where}, {key}", f"{value!r} is none of {', '.join(among)}")
        return ""

    def words(self, key: str, kind: str, *, needed: bool = True) -> tuple[str, ...]:
        """The words of one text, no word twice."""
        value = self._get(key, needed=needed)
        if value is None:
            return ()
        where = f"{self.where}, {key}"
        if not isinstance(value, str):
            self._faults.add(where, f"{value!r} is not text with words in it")
            return ()
        return self._distinct(value.split(), kind, where)

    def several(self, key: str, kind: str) -> tuple[str, ...]:
        """The texts of an array, none twice."""
        value = self._get(key)
        where = f"{self.where}, {key}"
        if not isinstance(value, list):
            if value is not None:
                self._faults.add(where, "not an array")
            return ()
        return self._distinct(value, kind, where)

    def _distinct(self, values: list[Any], kind: str, where: str) -> tuple[str, ...]:
        if not values:
            self._faults.add(where, "empty")
        found = tuple(self._faults.check(value, kind, where) for value in values)
        if len(set(found)) != len(found) and "" not in found:
            self._faults.add(where, "names one thing twice")
        return found

    def lines(self, key: str, kind: str, *, needed: bool = True) -> tuple[str, ...]:
        """The texts of an array."""
        value = self._get(key, needed=needed)
        if value is None:
            return ()
        where = f"{self.where}, {key}"
        if not isinstance(value, list):
            self._faults.add(where, "not an array")
            return ()
        return tuple(self._faults.check(item, kind, where) for item in value)

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if value is not None and not isinstance(value, bool):
            self._faults.add(f"{self.where}, {key}", f"{value!r} is neither true nor false")
        return value is True

    def optional_flag(self, key: str, *, default: bool = False) -> bool:
        return self.flag(key) if self.has(key) else default

    def whole(self, key: str) -> int:
        value = self._get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if value is not None:
            self._faults.add(f"{self.where}, {key}", f"{value!r} is not a whole number")
        return 0

    def table(self, key: str, *, needed: bool = True) -> Row:
        value = self._get(key, needed=needed)
        return Row({} if value is None else value, f"{self.where}, {key}" if self.where else key, self._faults)

    def rows(self, key: str, name_by: str | None = None, *, needed: bool = True) -> tuple[Row, ...]:
        """The tables of an array; a message names them by the value of `name_by`, else by their number."""
        value = self._get(key, needed=needed)
        if value is None:
            return ()
        if not isinstance(value, list):
            self._faults.add(f"{self.where}, {key}" if self.where else key, "not an array of tables")
            return ()
        prefix = f"{self.where}, {key}" if self.where else key
        return tuple(
            Row(item, f"{prefix} {_label(item, name_by, number)}", self._faults) for number, item in enumerate(value, 1)
        )

    def done(self) -> None:
        for key in self._table:
            if key not in self._seen:
                self._faults.add(self.where, f"unknown key {key!r}")


def _label(item: object, name_by: str | None, number: int) -> str:
    name = item.get(name_by) if name_by and isinstance(item, dict) else None
    return name if isinstance(name, str) else str(number)


class Origins:
    """`[sources]` and `[defaults]` of a file: a row's `source` is a name in `[sources]`."""

    def __init__(self, document: Row, faults: Faults) -> None:
        self._faults = faults
        sources = document.table("sources")
        self.texts = {name: sources.text(name) for name in sources.names()}
        self.source, self.confidence = "", ""
        if document.has("defaults"):
            defaults = document.table("defaults")
            self.source, self.confidence = self.of(defaults)
            defaults.done()

    def of(self, row: Row, source: str | None = None, confidence: str | None = None) -> tuple[str, str]:
        """Source text and confidence of a row; what it does not give comes from the arguments, else the defaults."""
        name = row.optional("source")
        text = self.texts.get(name, "") if name else (source or self.source)
        if name and name not in self.texts:
            row.fault(f"source {name!r} is not in [sources]")
        elif not text:
            row.fault("no source")
        return text, row.chosen("confidence", CONFIDENCES, confidence or self.confidence or None)
