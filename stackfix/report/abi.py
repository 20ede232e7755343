"""What `stackfix abi` prints: with what a binary can load, why, and whether it fits what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.abi.fit_minors import releases, spans
from stackfix.abi.host import DOES_NOT_FIT, OF_NO_RELEASE, Answer, Claim
from stackfix.abi.records import AbiFacts, Compiled, Deciding, TorchRange
from stackfix.report.abi_calls import call_lines
from stackfix.report.abi_fit import WIDE, axis_lines, fit_lines, named, row
from stackfix.report.lines import Manner, led
from stackfix.report.printable import printable
from stackfix.report.redact import redacted

READ_MACHINE = "x86_64"     # the almanac is made of wheels for it


def abi_lines(answer: Answer, manner: Manner) -> Iterator[str]:
    """All lines; with -q only what does not hold."""
    yield from map(redacted, quiet_lines(answer, manner) if manner.quiet else whole_lines(answer, manner))


def quiet_lines(answer: Answer, manner: Manner) -> Iterator[str]:
    """What does not fit, and what its name says wrongly."""
    for axis in answer.axes:
        if axis.verdict == DOES_NOT_FIT:
            yield from axis_lines(axis, manner)
    for claim in answer.claims:
        if not claim.holds:
            yield from claim_lines(claim, manner)


def whole_lines(answer: Answer, manner: Manner) -> Iterator[str]:
    facts = answer.facts
    yield manner.style(printable(headline(facts)), "bold")
    for claim in answer.claims:
        if not claim.holds:
            yield from claim_lines(claim, manner)
    yield ""
    yield from fact_lines(answer, manner)
    if answer.symbols is not None:
        yield from symbol_lines(answer.symbols, manner)
    yield from fit_lines(answer, manner)
    if answer.notes:
        yield from ("", manner.style("not read, or to be known:", "bold"))
        for path, reason in answer.notes:
            yield from led([("  ", "")], f"{printable(path)}: {printable(reason)}", "    ", manner)


def label_of(subject: Compiled) -> str:
    """`flash-attn 2.5.8`."""
    return f"{subject.name} {subject.version}" if subject.version else subject.name


def headline(facts: AbiFacts) -> str:
    """The one line for those who read no further."""
    name, torch = label_of(facts.subject), facts.torch
    if not facts.subject.files:
        return f"{name} has no compiled file: there is nothing that a symbol could tell"
    if torch is None:
        return f"{name} is torch itself" if facts.subject.name == "torch" else f"{name} asks nothing of torch"
    if torch.unknown:
        known = f"; the others are those of torch {spans(torch.known)}" if torch.known else ""
        return (f"{name} cannot load with any torch that is known: no release has {len(torch.unknown)} of the "
                f"{torch.asked} symbols that it asks for{known}")
    if not torch.asked:
        return f"{name} is linked against torch, and asks for no symbol that could tell which"
    if not torch.minors and not torch.patches:
        return f"{name} cannot load with any torch that is known: none has all {torch.asked} symbols"
    return f"{name} can load with torch {releases(torch)}{index_part(facts, torch)}"


def index_part(facts: AbiFacts, torch: TorchRange) -> str:
    """Which of the index's wheels, where their std::string decides too."""
    if facts.machine != (READ_MACHINE,):
        return f" (judged by wheels for {READ_MACHINE})"
    own = ", ".join(filter(None, (spans(torch.index_minors), *torch.index_patches)))
    return f" (the index's wheels: {own or 'none, they have the other std::string'})"


def fact_lines(answer: Answer, manner: Manner) -> Iterator[str]:
    """What it was built for, a line each."""
    facts = answer.facts
    for label, text in facts_of(facts):
        if text:
            yield from row(label, text, manner)
    for file in facts.subject.files if manner.verbose else ():
        own = f", {file.supplied} symbols from its own package" if file.supplied else ""
        yield " " * (WIDE + 4) + manner.style(printable(f"{file.path}{own}"), "dim")
    if facts.torch is not None:
        yield from reason_lines(facts.torch, manner)
    yield from call_lines(facts, manner)
    for claim in answer.claims:
        if claim.holds and manner.verbose:
            text = f"its {claim.source} says {claim.says} ({claim.text}), and so do its symbols"
            yield from row("also", text, manner)


def facts_of(facts: AbiFacts) -> Iterator[tuple[str, str]]:
    """(label, text) of each fact; an empty text is left out."""
    subject, torch = facts.subject, facts.torch
    count, left = len(subject.files), len(subject.unreadable)
    unread = f", {left} more could not be read" if left else ""
    yield "files", f"{count} compiled file{'s' * (count != 1)}{unread} ({', '.join(facts.machine)})" if count else ""
    if torch is not None and torch.asked:
        build = ", a CUDA build" if torch.cuda_torch else ""
        stable = ", all of the stable ABI" if torch.stable else ""
        yield "torch", f"{releases(torch) or 'none'}{build}, by {torch.asked} symbols{stable}"
        for each in torch.exceptions:
            yield "but not", f"torch {each.version}, which lacks {each.key}"
    strings = {"old": "the old std::string", "new": "the new std::string (__cxx11)", "both": "both std::strings"}
    yield "C++ ABI", strings.get((torch.string_abi if torch else None) or "", "")
    yield "CUDA", " and ".join(map(str, facts.cuda))
    yield "cuDNN", " and ".join(map(str, facts.cudnn))
    floor = f", from Python {facts.python_floor} on" if facts.python_floor else ""
    yield "Python", " or ".join(facts.python) + floor if facts.python else ""
    yield "glibc", f"{facts.glibc} or newer" if facts.glibc else ""
    yield "libstdc++", ", ".join(facts.libstdcxx)
    yield "GPU", gpu_text(facts)


def gpu_text(facts: AbiFacts) -> str:
    """`sm_80 sm_90a, PTX for compute_90`."""
    gpu = facts.gpu
    if gpu is None:
        return ""
    parts = [" ".join(gpu.cubins), f"PTX for {' '.join(gpu.ptx)}" if gpu.ptx else "", " ".join(gpu.others)]
    exact = [arch for arch in (*gpu.cubins, *gpu.ptx) if arch.endswith("a")]
    told = f" ({', '.join(exact)}: that GPU alone)" if exact else ""
    return (", ".join(filter(None, parts)) or "no kernels in its GPU code") + told


def reason_lines(torch: TorchRange, manner: Manner) -> Iterator[str]:
    """Which symbols bound the range."""
    alone = any(not each.minors for each in torch.floor)        # no minor's newest patch has it
    others = bool(torch.unknown and torch.known)                # of these the headline tells
    for text, symbols in (
            ("no release has:", torch.unknown),
            (f"not older than {torch.minors[0]}:" if torch.minors else "in single patches alone:" if alone
             else "begins last:", () if others else torch.floor),
            (f"not newer than {torch.minors[-1]}:" if torch.minors else "ends first:",
             () if others else torch.ceiling)):
        if symbols:
            yield from row("", text, manner)
            yield from named(sorted(symbols, key=lambda each: len(each.demangled or each.name)), manner)


def claim_lines(claim: Claim, manner: Manner) -> Iterator[str]:
    """`its file name says torch 2.4 (torch2.4), its symbols say torch 2.2`."""
    found = "its symbols are of no release" if claim.found == OF_NO_RELEASE else f"its symbols say {claim.found}"
    text = f"its {claim.source} says {claim.says} ({claim.text}), {found}"
    if claim.minors:
        text = (f"its {claim.source} ({claim.text}) admits torch {claim.lost}, which cannot load it: "
                f"{found}")
    yield from led([("but ", "yellow")], printable(text), "    ", manner)


def symbol_lines(symbols: Sequence[Deciding], manner: Manner) -> Iterator[str]:
    """Each symbol that it asks of torch, with the releases that have it."""
    yield ""
    yield manner.style(f"asked of torch ({len(symbols)}):", "bold")
    for each in symbols:
        yield f"  {spans(each.minors) or 'none':<14}  {printable(each.demangled or each.name)}"
        if each.demangled and manner.verbose:
            yield " " * 18 + manner.style(printable(f"{each.name} in {each.file}"), "dim")


__all__ = ["abi_lines"]
