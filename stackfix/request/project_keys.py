"""Keys of a project file's stack, and how each value is checked. All faults are gathered."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from stackfix.errors import BadInput
from stackfix.request.builds import check_allow_builds
from stackfix.request.values import (
    check_cuda,
    check_driver,
    check_glibc,
    check_gpu_arch,
    check_layout,
    check_macos,
    check_platform,
    check_python,
)
from stackfix.request.versions import torch_specifier, version_specifier

Check = Callable[[str, str], object]
STACK_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")


@dataclass(slots=True)
class Faults:
    """What is wrong with one file: each with its table and key, and the hints to right it."""

    found: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(self, table: str, key: str, reason: str, hint: str | None = None) -> None:
        """Notes one fault."""
        self.found.append(f"{table} {key}: {reason}")
        if hint:
            self.hints.append(f"{key}: {hint}")

    def check_name(self, table: str, name: str) -> None:
        """Notes a stack name that cannot be part of file names."""
        if STACK_NAME.fullmatch(name) is None:
            self.add(table, name, "a stack's name is made of letters, digits, '-' and '_' (at most 64)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. `kind`: "text", "texts" (one or a list), "switch", "date" or "text-or-off"."""

    field: str                      # of ProjectStack
    kind: str = "text"
    check: Check | None = None


KEYS: Mapping[str, Key] = {
    "torch": Key(field="torch", check=torch_specifier),
    "cuda": Key(field="cuda", check=check_cuda),
    "python": Key(field="pythons", kind="texts", check=check_python),
    "platform": Key(field="platforms", kind="texts", check=check_platform),
    "glibc": Key(field="glibc", check=check_glibc),
    "macos": Key(field="macos", check=check_macos),
    "flash-attn": Key(field="flash_attn", kind="text-or-off", check=version_specifier),
    "no-flash-attn": Key(field="no_flash_attn", kind="switch"),
    "with": Key(field="with_", kind="texts"),
    "constraint": Key(field="constraints", kind="texts"),
    "requirements": Key(field="requirement_files", kind="texts"),
    "driver": Key(field="driver", check=check_driver),
    "cuda-compat": Key(field="cuda_compat", kind="switch"),
    "gpu-arch": Key(field="gpu_archs", kind="texts", check=check_gpu_arch),
    "exclude-newer": Key(field="exclude_newer", kind="date"),
    "format": Key(field="formats", kind="texts"),
    "output": Key(field="directory"),
    "index-url": Key(field="index_url"),
    "extra-index-url": Key(field="extra_index_urls", kind="texts"),
    "torch-index": Key(field="torch_index"),
    "flash-attn-source": Key(field="flash_attn_source"),
    "channel": Key(field="channels", kind="texts"),
    "layout": Key(field="layout", check=check_layout),
    "allow-builds": Key(field="allow_builds", kind="texts", check=check_allow_builds),
}
OTHER_NAMES = {                     # what people write for a key
    "pythons": "python", "platforms": "platform", "formats": "format", "requires-python": "python",
    "requirement": "requirements", "dependencies": "with", "gpu-archs": "gpu-arch", "constraints": "constraint",
    "extra-index-urls": "extra-index-url", "channels": "channel", "flash_attn": "flash-attn", "dir": "output",
    "allow-build": "allow-builds",
}


def read_table(values: Mapping[str, Any], table: str, faults: Faults) -> dict[str, Any]:
    """Field -> value of the keys that are right; the others are noted in `faults`."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        key = KEYS.get(name)
        if key is None:
            faults.add(table, name, "no such key", suggestion(name))
            continue
        try:
            fields.update(read_value(key, name, value))
        except BadInput as fault:
            faults.add(table, name, fault.reason, fault.hint)
    if fields.get("flash_attn") and fields.get("no_flash_attn"):
        faults.add(table, "no-flash-attn", "excludes flash-attn", "keep one of them")
    return fields


def read_value(key: Key, name: str, value: Any) -> dict[str, Any]:
    """The field or fields that the value sets. Raises BadInput with the reason."""
    if key.kind == "switch":
        return {key.field: expect(value, bool, name, "true or false")}
    if key.kind == "text-or-off" and isinstance(value, bool):
        if value:
            raise BadInput(name, "true is no version", f'write {name} = "VERSION", or leave the key out')
        return {f"no_{key.field}": True}
    if key.kind == "date" and isinstance(value, (dt.datetime, dt.date)):
        return {key.field: value.isoformat()}
    if key.kind == "texts":
        texts = value if isinstance(value, list) else [value]
        return {key.field: tuple(checked(key, name, text) for text in texts)}
    return {key.field: checked(key, name, value)}


def checked(key: Key, name: str, value: Any) -> str:
    """The text as given, once its check has passed."""
    text: str = expect(value, str, name, "a text in quotes")
    if not text.strip():
        raise BadInput(name, "is empty", "leave the key out, or give it a value")
    if key.check is not None:
        try:
            key.check(text, name)
        except BadInput as fault:
            raise BadInput(name, f"{text!r} {fault.reason}", fault.hint) from fault
    return text


def expect(value: Any, kind: type, name: str, word: str) -> Any:
    """`value` where it is of `kind`. A version without quotes is a number, and 2.10 would be read as 2.1."""
    if isinstance(value, kind):
        return value
    hint = None
    if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        hint = "put it in quotes: as a number, 2.10 is 2.1"
    raise BadInput(name, f"is {type(value).__name__}, not {word}", hint)


def suggestion(name: str) -> str | None:
    """The key that was meant, where one is near."""
    near = OTHER_NAMES.get(name) or next(iter(get_close_matches(name.replace("_", "-").lower(), KEYS, n=1)), None)
    return f"did you mean `{near}`?" if near else None
