"""Functions of torch: which releases export one, with which std::string, and what it is called in the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stackfix.abi.mangled import demangle, function_of
from stackfix.abi.names import is_of_another, is_torch_symbol
from stackfix.abi.records import TorchBook, TorchNames
from stackfix.explain.derive.pins import builds_named
from stackfix.explain.derive.torch_reading import NEW, OLD, Reading, read_symbol
from stackfix.explain.derive.words import minor_of, spans
from stackfix.explain.records import Derivation, Facts, Fields

MOST_LENGTH, MOST_OTHERS = 140, 4
OTHER_TORCH, OTHER_STRING, SHOULD_HAVE, NOWHERE = "other-torch", "other-string", "should-have", "nowhere"
CUT_SHORT = "cut-short"
FLAGS = {OLD: "FALSE", NEW: "TRUE"}


def torch_symbol(fields: Fields, facts: Facts) -> Fields:
    """`readable`, `exported` and `absent` (minors), `others`, `string_abi` with `string_fits`, and `verdict`.

    `meant` are the minors with the std::string of the name, else all that export it. The verdict is "other-torch",
    "other-string", "should-have" (the torch that is named has it, or each release has), "nowhere", or "cut-short" where
    too little of the name is told; {} for what is none of torch's names. `cuda_only`: no CPU build of torch has it.
    `asker` is what asks for it, in words.
    """
    book = facts.books.torch
    found = read_symbol(fields.get("symbol", ""), book, facts.books.names)
    if found is None or not is_torch_symbol(found.name) or is_of_another(found.name):
        return {}
    every = [each.minor for each in book.releases]
    libraries = book.libraries(found.name)
    told = {
        "readable": readable(found.name), "signature": shortened(demangle(found.name) or "") if found.whole else "",
        "exported": spans(found.minors, every), "for_minors": " ".join(found.minors),
        "meant": spans(found.minors, every),
        "absent": spans([each for each in every if each not in found.minors], every),
        "others": other_names(found, every, facts.books.names),
        "string_abi": found.string_abi or "", "flag": FLAGS.get(found.string_abi or "", ""),
        "oldest": every[0], "torch_named": "yes" if minor_of(fields.get("torch", "")) in every else "",
        "cuda_only": "yes" if libraries and all("cuda" in each for each in libraries) else "",
        "verdict": verdict(found, every, fields, facts), "asker": fields.get("who", "what asks for it"),
        **strings(found, book),
    }
    return {key: value for key, value in told.items() if value}


def verdict(found: Reading, every: Sequence[str], fields: Fields, facts: Facts) -> str:
    """What is wrong, for the torch that the text names, else for one that is not known."""
    all_have = len(found.minors) == len(every)
    if not found.whole and found.string_abi is None and (all_have or not found.minors):
        return CUT_SHORT
    if not found.minors:
        return NOWHERE
    torch = minor_of(fields.get("torch", ""))
    if torch in every:
        build = next(iter(builds_named(fields, facts)), None)
        new = build.cxx11_abi if build is not None else None
        other = found.string_abi in FLAGS and new is not None and new is not (found.string_abi == NEW)
        return OTHER_TORCH if torch not in found.minors else OTHER_STRING if other else SHOULD_HAVE
    if not all_have:
        return OTHER_TORCH
    return OTHER_STRING if found.string_abi in FLAGS else SHOULD_HAVE


def strings(found: Reading, book: TorchBook) -> dict[str, str]:
    """Of the minors that export it, those whose wheel on the default index has the std::string, and the other way."""
    if found.string_abi not in FLAGS:
        return {}
    every = [each.minor for each in book.releases]
    same = [each.minor for each in book.releases if each.string_abi == found.string_abi and each.minor in found.minors]
    other = [each.minor for each in book.releases if each.string_abi != found.string_abi]
    return {"string_fits": spans(same, every), "string_lacks": spans(other, every), "string_minors": " ".join(same),
            **({"meant": spans(same, every)} if same else {}),
            "other_flag": FLAGS[NEW if found.string_abi == OLD else OLD], "other_truth": str(found.string_abi == OLD)}


def other_names(found: Reading, every: Sequence[str], known: TorchNames | None) -> str:
    """Under which parameters other releases have the function: "torch 2.3 to 2.7 have c10::cuda::SetDevice(…)"."""
    beginning = function_beginning(found.name)
    if beginning is None or known is None:
        return ""
    told: list[str] = []
    for each, having in sorted(known.starting(beginning), key=lambda row: every.index(row[1][0]) if row[1] else 0):
        shown = demangle(each)
        if shown and not set(found.minors) & set(having):
            told.append(f"torch {spans(having, every)} {'has' if len(having) == 1 else 'have'} {shortened(shown)}")
    return "; ".join(told[:MOST_OTHERS])


def function_beginning(name: str) -> str | None:
    """A mangled name up to its parameters: "_ZN3c104cuda9SetDeviceE"; None where it has a template in it, or is cut."""
    at = 4 if name.startswith("_ZNK") else 3
    if not name.startswith("_ZN"):
        return None
    while (digits := re.compile(r"\d{1,3}").match(name, at)) is not None:
        at = digits.end() + int(digits[0])
    special = re.compile(r"[CD]\d").match(name, at)
    at = special.end() if special else at
    return name[:at + 1] if at < len(name) and name[at] == "E" else None


def readable(name: str) -> str:
    """A function as people write it; of a name that is cut short what there is of it."""
    whole = function_of(name)
    if whole is not None or not name.startswith("_ZN"):
        return whole or name
    parts: list[str] = []
    at = 4 if name.startswith("_ZNK") else 3
    while (digits := re.compile(r"\d{1,3}").match(name, at)) is not None:
        parts.append(name[digits.end():digits.end() + int(digits[0])])
        at = digits.end() + int(digits[0])
    if re.match(r"[CD]\d", name[at:]) and parts:
        parts.append(("~" if name[at] == "D" else "") + parts[-1])
    return "::".join(parts) if parts else name


def shortened(text: str) -> str:
    """A signature that a line can hold."""
    return text if len(text) <= MOST_LENGTH else f"{text[:MOST_LENGTH]}…"


DERIVE: Mapping[str, Derivation] = {"torch-symbol": torch_symbol}
