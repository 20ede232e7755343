"""Whether a package can load with one torch: by what its libraries really export, else by the almanac."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from stackfix.abi.can_load import CAN, CANNOT, can_load
from stackfix.abi.fit_libraries import left_to_others, libraries_of_others
from stackfix.abi.fit_minors import releases
from stackfix.abi.host import CANNOT_TELL, CPU, DOES_NOT_FIT, FITS, Axis, HostSymbols, HostTorch, Lacking
from stackfix.abi.mangled import demangle
from stackfix.abi.names import is_torch_library
from stackfix.abi.records import AbiFacts, CompiledFile, LoadVerdict, TorchBook, TorchRange
from stackfix.abi.torch_asked import names_asked, names_of_others
from stackfix.errors import BadInput

WHY = {
    "newer": "the almanac has no release as new: of the newest that it has, {read}, {lacks}",
    "older": "the almanac begins with {read}",
    "unread": "the almanac has not read this release: of its neighbour {read}, {lacks}",
    "string-abi": "which std::string that build has cannot be told; of torch {read}, {lacks}",
    "machine": "the almanac is made of wheels for x86_64; of torch {read}, {lacks}",
}


def torch_axes(facts: AbiFacts, torch: HostTorch, offers: HostSymbols | None, book: TorchBook) -> Iterator[Axis]:
    """torch itself, its std::string and its CUDA."""
    others = tuple(names_of_others(facts.subject.files, book))
    if facts.torch is not None:
        yield torch_axis(facts, facts.torch, torch, offers, book)
        if facts.torch.string_abi is not None:
            yield string_axis(facts.torch.string_abi, torch)
    lost = others if offers is None else offers.torch_lacks(others)
    if others and (lost is None or lost):
        yield others_axis(facts.subject.files, lost or others)


def torch_axis(facts: AbiFacts, found: TorchRange, torch: HostTorch, offers: HostSymbols | None,
               book: TorchBook) -> Axis:
    """Its symbols."""
    files = in_load_order(facts.subject.files)
    foreign = frozenset(names_of_others(files, book))
    wanted = {name: file for name, file in names_asked(files).items() if name not in foreign}
    needs = needs_of(found)
    gone = [soname for soname in torch_sonames(files) if offers is not None and offers.torch_has(soname) is False]
    lacks = offers.torch_lacks(list(wanted)) if offers is not None else None
    if lacks is None:
        return by_almanac(files, torch, book, needs)
    missing = lacking(wanted, lacks)
    if gone:
        reason = f"is linked against {', '.join(gone)}, which this torch does not have"
    elif missing:
        reason = f"torch lacks {len(missing)} of {counted(len(wanted))}"
    else:
        reason = f"torch has all that it asks for ({counted(len(wanted))})" if wanted else "asks for no symbol of torch"
    return Axis(name="torch", verdict=DOES_NOT_FIT if missing or gone else FITS, needs=needs, has=torch.version,
                reason=reason, missing=missing)


def others_axis(files: Sequence[CompiledFile], lost: Collection[str]) -> Axis:
    """Names that speak of torch's types in the namespace of another project, of which no release has them."""
    libraries, first = libraries_of_others(files), next(iter(lost))
    who = ", ".join(libraries) or "a library that it is not linked against"
    return Axis(name="other projects", verdict=CANNOT_TELL, needs=counted(len(lost)), has=None,
                reason=f"{who} should have {demangle(first) or first}, and is not read")


def by_almanac(files: Sequence[CompiledFile], torch: HostTorch, book: TorchBook, needs: str) -> Axis:
    """The answer of the almanac for the release."""
    try:
        found = can_load(files, book, torch.version, string_abi=torch.string_abi,
                         cuda=None if torch.cuda is None else torch.cuda != CPU)
    except BadInput as error:
        return Axis(name="torch", verdict=CANNOT_TELL, needs=needs, has=torch.version, reason=error.reason)
    verdict = {CAN: FITS, CANNOT: DOES_NOT_FIT}.get(found.verdict, CANNOT_TELL)
    missing = tuple(Lacking(name=each.name, demangled=each.demangled, file=each.file) for each in found.missing)
    return Axis(name="torch", verdict=verdict, needs=needs, has=torch.version, reason=reason_of(found, len(missing)),
                missing=missing if verdict == DOES_NOT_FIT else ())


def reason_of(found: LoadVerdict, missing: int) -> str:
    """Why the almanac says so."""
    lacks = f"{missing} of its symbols are missing" if missing else "none of its symbols is missing"
    if found.why:
        return WHY.get(found.why, found.why).format(read=found.read, lacks=lacks)
    if missing and len(found.other_string) == missing:
        return f"torch {found.read} has {'them' if missing > 1 else 'it'} with the other std::string"
    if missing and len(found.only_cuda) == missing:
        return "only a CUDA build of torch has what it asks for"
    return f"torch {found.read} lacks {counted(missing)}" if missing else f"torch {found.read} has all that it asks for"


def string_axis(mine: str, torch: HostTorch) -> Axis:
    """std::string, the second axis of C++ names."""
    needs = "both std::strings" if mine == "both" else f"the {mine} std::string"
    has = f"the {torch.string_abi} std::string" if torch.string_abi else None
    if mine == "both":
        verdict, reason = DOES_NOT_FIT, "asks torch for names with the old and with the new one: no torch has both"
    elif torch.string_abi is None:
        verdict, reason = CANNOT_TELL, "which one this torch has cannot be told"
    else:
        same = mine == torch.string_abi
        verdict, reason = (FITS, "the same") if same else (
            DOES_NOT_FIT, f"was compiled with the {mine} one, torch with the {torch.string_abi} one")
    return Axis(name="C++ ABI", verdict=verdict, needs=needs, has=has, reason=reason)


def needs_of(found: TorchRange) -> str:
    """`2.3 to 2.6`, `2.4.0 alone`."""
    if found.unknown:
        return "symbols that no release has"
    return releases(found) or "no release that is known"


def counted(number: int) -> str:
    return f"{number} symbol{'s' * (number != 1)}"


def lacking(wanted: dict[str, str], lacks: Collection[str]) -> tuple[Lacking, ...]:
    """The missing ones in the order in which the loader comes to them."""
    gone = frozenset(lacks)
    return tuple(Lacking(name=name, demangled=demangle(name), file=file) for name, file in wanted.items()
                 if name in gone)


def torch_sonames(files: Sequence[CompiledFile]) -> tuple[str, ...]:
    """torch's libraries in DT_NEEDED that are none of the package's own."""
    return tuple(filter(is_torch_library, left_to_others(files)))


def in_load_order(files: Sequence[CompiledFile]) -> tuple[CompiledFile, ...]:
    """Each file behind those of the package that it needs: the loader binds a library before what needs it."""
    named = {name: file for file in files for name in file.names}
    found: dict[str, CompiledFile] = {}
    for file in files:
        chain, seen = [file], {file.path}
        for each in chain:
            for soname in each.elf.needed:
                needed = named.get(soname)
                if needed is not None and needed.path not in seen:
                    seen.add(needed.path)
                    chain.append(needed)
        for each in reversed(chain):
            found.setdefault(each.path, each)
    return tuple(found.values())


__all__ = ["counted", "in_load_order", "torch_axes"]
