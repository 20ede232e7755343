"""Sentences about faults that several checks say: who needs what, what a copy offers, which line is seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from stackfix.diagnose.families_parts import plain
from stackfix.diagnose.faults_hidden import offered
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_verdict import Copy, Verdict
from stackfix.diagnose.finding_records import Requester
from stackfix.diagnose.provenance import Provenance, describe, folder_of, named, owner_of
from stackfix.diagnose.records import BadLibrary, Failure, FoundVia, LoadedObject
from stackfix.diagnose.situation import View

SUFFIX = re.compile(r"(.+?)_(\d{1,2})_(\d{1,2})$")     # __nvJitLinkAddData_12_4
OPENERS = frozenset({"a", "an", "it", "its", "no", "the", "this", "which"})     # words that are no name of anything
SIGNALS = frozenset({"Bus error", "Segmentation fault"})
NEWEST_MINOR = 20                                       # no CUDA major had more


def level_of(fault: Fault) -> str:
    """Of the pyramid."""
    if fault.family is not None:
        return fault.family.level
    return "extensions" if fault.opening.project is not None else "environment"


def requester_of(view: View, fault: Fault) -> Requester | None:
    """Who needs it; where the import itself asks, the package that is imported."""
    object_ = fault.requester
    if object_ is None:
        known = view.distributions.get(fault.opening.project or "")
        return Requester(package=f"{known.name} {known.version}") if known else None
    return requester_from(view, object_)


def requester_from(view: View, object_: LoadedObject) -> Requester:
    """An object with its package; its path as people write it, while the loader's own lines keep its `..`."""
    return Requester(path=plain(view, object_.path), package=named(owner_of(view, object_.path, object_.real_path)))


def seen_error(failure: Failure) -> str | None:
    """The line that the loader says; None where it says none: of a file cut short it maps what is there, and dies."""
    if isinstance(failure, BadLibrary) and failure.crash:
        return None
    return failure.message()


def why_unusable(failure: BadLibrary) -> str:
    """Why a file cannot be loaded, and what is seen where the loader says nothing of it."""
    if failure.crash in SIGNALS:
        return f"{failure.why}; the process that opens it dies with a {failure.crash}"
    return f"{failure.why}; seen when it is opened: {failure.crash}" if failure.crash else failure.why


def told(failure: Failure) -> str:
    """A failure as a sentence's part: the loader's line, or what is wrong where it says none."""
    error = seen_error(failure)
    if error is None and isinstance(failure, BadLibrary):
        return f"{failure.path}: {why_unusable(failure)}"
    return error or failure.message()


def who_needs(fault: Fault) -> str:
    """The first requester's file name, or what was opened."""
    return file_name(fault.requester.path) if fault.requester else fault.opening.what


def file_name(path: str) -> str:
    return path.rpartition("/")[2]


def capital(sentence: str) -> str:
    """As a sentence begins; names of files, packages and symbols stay as they are."""
    return sentence[0].upper() + sentence[1:] if sentence.partition(" ")[0] in OPENERS else sentence


def counted(symbols: Sequence[str]) -> str:
    """How many symbols, and the first: "13 symbols (x, …)"."""
    return f"the symbol {symbols[0]}" if len(symbols) == 1 else f"{len(symbols)} symbols ({symbols[0]}, …)"


def lacks(fault: Fault, who: str | None = None) -> str:
    """What is not there, in words: "lacks 8 symbols that libcusparse.so.12 needs (__nvJitLinkAddData_12_1, …)"."""
    needs = f" that {who} needs" if who else ""
    if fault.category == "bad":
        return "cannot be loaded"
    if fault.versions:
        return f"has no version {', '.join(fault.versions)}{needs}"
    if len(fault.symbols) == 1:
        return f"lacks the symbol {fault.symbols[0]}{needs}"
    return f"lacks {len(fault.symbols)} symbols{needs} ({fault.symbols[0]}, …)"


def placed(view: View, path: str, how: str | None = None) -> str:
    """A file in a headline: "libnvJitLink.so.12 of /usr/local/cuda-12.0/lib64 (LD_LIBRARY_PATH)"."""
    sites = [each.path for each in view.environment.sites if path.startswith(f"{each.path}/")]
    folder = folder_of(path).removeprefix(f"{max(sites, key=len, default='')}/") if sites else folder_of(path)
    return f"{file_name(path)} of {folder}" + (f" ({how})" if how else "")


def shown_way(cause: Provenance, via: FoundVia | None) -> str | None:
    """What puts a file into the loader's way, in a word or two."""
    return cause.variable or (via.step if via is not None else None)


def needs_lines(view: View, fault: Fault) -> Iterator[str]:
    """Who needs the library, and how that one looks for it."""
    for each in fault.requesters:
        yield f"{describe(view, each.path, each.real_path)} needs {fault.name}{own_way(each)}"
    openings = dict.fromkeys(each.opening.what for each in fault.sightings)
    yield f"seen at: {limited(list(openings))}"


def own_way(object_: LoadedObject) -> str:
    """The RPATH or RUNPATH of an object, in words."""
    if object_.elf.runpath is not None:
        return f"; its RUNPATH is {object_.elf.runpath}"
    return f"; its RPATH is {object_.elf.rpath}" if object_.elf.rpath else "; it has no RPATH and no RUNPATH"


def limited(words: Sequence[str], most: int = 4) -> str:
    rest = len(words) - most
    return ", ".join(words[:most]) + (f" and {rest} more" if rest > 0 else "")


def found_line(view: View, copy: Copy, what: str) -> str:
    """A copy: "taken: /opt/cuda/lib64/libx.so.1 (the CUDA toolkit …) via LD_LIBRARY_PATH (/opt/cuda/lib64)"."""
    return f"{what}: {describe(view, copy.path, copy.real_path)}" + (f" via {via_text(copy.via)}" if copy.via else "")


def via_text(via: FoundVia) -> str:
    """A step of the search with its element."""
    element = via.element if via.element != "" else "the current folder"
    return via.step + (f" ({element})" if element is not None and via.step != "ld.so.cache" else "")


def offer_text(view: View, verdict: Verdict) -> str | None:
    """Where symbols end in a version: "it offers these functions up to _12_2, and _12_4 is needed"; else None."""
    wanted = newest_suffix(verdict.fault.symbols)
    if wanted is None or verdict.fault.category == "bad" or verdict.is_requester:
        return None
    has = newest_offer(view, verdict.winner.path, verdict.fault.symbols)
    need = f"_{wanted[0]}_{wanted[1]}"
    if has is None:
        return f"it offers none of these functions under a version of CUDA {wanted[0]}, and {need} is needed"
    return f"it offers these functions up to _{has[0]}_{has[1]}, and {need} is needed"


def newest_suffix(symbols: Iterable[str]) -> tuple[int, int] | None:
    """The newest version that symbols end in: (12, 4) of `__nvJitLinkAddData_12_4`."""
    found = [(int(match[2]), int(match[3])) for match in map(SUFFIX.match, symbols) if match]
    return max(found, default=None)


def newest_offer(view: View, path: str, symbols: Sequence[str]) -> tuple[int, int] | None:
    """The newest version of the same functions that a file offers, in the same major."""
    stems = {(match[1], int(match[2])) for match in map(SUFFIX.match, symbols) if match}
    names = [f"{stem}_{major}_{minor}" for stem, major in stems for minor in range(NEWEST_MINOR)]
    return newest_suffix(offered(view, path, names))
