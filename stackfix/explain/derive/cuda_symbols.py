"""Functions of NVIDIA's libraries: whose they are, which releases have them, and who asks for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from stackfix.abi.records import NvidiaBook, Since
from stackfix.explain.derive.callers import callers
from stackfix.explain.derive.pins import builds_named
from stackfix.explain.derive.words import joined, key_of, minor_of
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.library_records import LibraryFamily

SONAME = re.compile(r"(?P<stem>lib[A-Za-z0-9_+-]+?)(?:-[0-9a-f]{8})?\.so(?:\.\d+)*$")
CUDA_SUFFIX = re.compile(r"-cu(\d\d)$")
OF_CUDA = re.compile(r"_(\d{2})_(\d)$")
MAJORS = ("12", "13", "11")             # of several packages, whose family is meant where nothing tells


def cuda_symbol(fields: Fields, facts: Facts) -> Fields:
    """`library`, and of the almanac `function`, `package`, `since`, `lacks`, `until`, `gone`, `history`; {}: no one's.

    `function` is the symbol as the library spells it; `since` is the oldest read version that has it and `lacks` the
    one before, `until` the newest and `gone` the one behind; `history` tells it of every package. `soname`, `stem`,
    `conda` are the library's, `unread` where the almanac has no release of it; `symbol_cuda` is the release that its
    name ends in, `toolkit` the one with `since`.
    """
    family = family_of(fields["symbol"], fields.get("file"), facts.libraries.families)
    if family is None:
        return {}
    book = facts.books.nvidia
    function, runs = located(fields["symbol"], sonames_of(family, fields.get("file"), book), book)
    if not runs:
        unread = sonames_of(family, None, book) == () or fields.get("file", book.sonames[0]) not in book.sonames
        return {**told_of(family, fields["symbol"]), "projects": joined(wheels_of(family), "or"),
                **({"unread": "yes"} if unread else {})}
    chosen = chosen_run(runs, major_of(fields, facts))
    found = {"function": function, "soname": chosen.soname, "package": chosen.package, "history": history(runs),
             "since": chosen.first, "lacks": chosen.absent_before, "until": chosen.last, "gone": chosen.absent_after,
             "toolkit": toolkit_of(chosen.package, chosen.first, facts), "only_major": only_major(runs),
             "siblings": siblings(runs)}
    return {**told_of(family, fields["symbol"]), **{name: value for name, value in found.items() if value},
            **callers(fields, chosen.soname, function, facts)}


def told_of(family: LibraryFamily, symbol: str) -> dict[str, str]:
    """A library in words, and what the name of a symbol tells of its CUDA release."""
    stem = family.stems[0]
    found = {"library": f"the {family.name}" if " " in family.name else family.name, "stem": stem,
             "grep": stem.removeprefix("lib").lower().replace("cudart", "cuda-runtime")}
    if family.conda:
        found["conda"] = family.conda[0]
    if (version := OF_CUDA.search(symbol)) is not None:
        found["symbol_cuda"] = f"{version[1]}.{version[2]}"
    return found


def family_of(symbol: str, file: str | None, families: Iterable[LibraryFamily]) -> LibraryFamily | None:
    """The library that a version node names, else that the longest prefix tells."""
    every = tuple(families)
    named = SONAME.fullmatch(file or "")
    for each in every:
        if named is not None and named["stem"] in each.stems:
            return each
    bare = symbol.lstrip("_")
    prefixes = sorted(((prefix, each) for each in every for prefix in each.symbols),
                      key=lambda pair: -len(pair[0].lstrip("_")))
    return next((each for prefix, each in prefixes if bare.startswith(prefix.lstrip("_")) and each.level in
                 {"cuda", "cudnn"}), None)


def sonames_of(family: LibraryFamily, file: str | None, book: NvidiaBook) -> tuple[str, ...]:
    """The library that is named, where the almanac knows it; else all of the family."""
    if file is not None and file in book.sonames:
        return (file,)
    return tuple(each for each in book.sonames if (match := SONAME.fullmatch(each)) and match["stem"] in family.stems)


def located(symbol: str, sonames: Iterable[str], book: NvidiaBook) -> tuple[str, tuple[Since, ...]]:
    """The function under the name that a library has it by (some texts lose an underscore), and where it is."""
    bare = symbol.lstrip("_")
    every = tuple(sonames)
    for name in dict.fromkeys((symbol, bare, f"__{bare}")):
        if runs := tuple(run for soname in every for run in book.since(soname, name)):
            return name, runs
    return symbol, ()


def major_of(fields: Fields, facts: Facts) -> str | None:
    """The CUDA major of the torch that the text names; else that the requester's package says."""
    version = OF_CUDA.search(fields["symbol"])
    cuda = next((each.cuda for each in builds_named(fields, facts)), fields.get("cuda"))
    if version or cuda in {None, "cpu"}:
        return version[1] if version else None
    return str(cuda).partition(".")[0]


def chosen_run(runs: Sequence[Since], major: str | None) -> Since:
    """The run that matters: of the CUDA major that is known, of a package that has releases without the function."""
    def rank(run: Since) -> tuple[bool, bool, int]:
        suffix = CUDA_SUFFIX.search(run.package)
        own = suffix[1] if suffix else "13"
        return own != major, not run.first and not run.last, MAJORS.index(own) if own in MAJORS else len(MAJORS)

    return min(runs, key=rank)


def wheels_of(family: LibraryFamily) -> list[str]:
    """The names of its wheels, newest CUDA first."""
    return [name for each in family.projects for name in (each, f"{each}-cu13", f"{each}-cu12", f"{each}-cu11")]


def history(runs: Iterable[Since]) -> str:
    """"nvidia-nccl-cu11 and nvidia-nccl-cu12 from 2.19.3 on, not in 2.18.3, and in every nvidia-nccl-cu13"."""
    told: dict[str, dict[str, None]] = {}
    for run in runs:
        told.setdefault(span_of(run), {})[run.package] = None
    parts = [f"{joined([*packages])} {when}" if when else f"every {joined([*packages])} that was read"
             for when, packages in told.items()]
    return "; ".join(parts)


def span_of(run: Since) -> str:
    """In which versions a function is; "" for all."""
    begin = f"from {run.first} on (not in {run.absent_before})" if run.first else ""
    end = f"up to {run.last} (not in {run.absent_after})" if run.last else ""
    return " ".join(filter(None, (begin, end)))


def siblings(runs: Iterable[Since]) -> str | None:
    """The packages that have it, where there are several: they write files of one name into one folder."""
    packages = sorted({run.package for run in runs})
    return joined(packages) if len(packages) > 1 else None


def only_major(runs: Iterable[Since]) -> str | None:
    """The one major of the library that has a function, where its sonames are of several: "8"; else None."""
    majors = {run.soname.rpartition(".so.")[2] for run in runs}
    return majors.pop() if len(majors) == 1 else None


def toolkit_of(package: str, version: str | None, facts: Facts) -> str | None:
    """The oldest CUDA release that holds a version of a library, or a newer one: "12.4"."""
    if version is None:
        return None
    found = [each for each in facts.matrix.components
             if each.package == package and key_of(each.version) >= key_of(version)]
    return minor_of(min(found, key=lambda each: key_of(each.toolkit)).toolkit) if found else None


DERIVE: Mapping[str, Derivation] = {"cuda-symbol": cuda_symbol}
