"""What the name and the metadata of a package say of it, held against what its symbols say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from stackfix.abi.fit_minors import releases, spans
from stackfix.abi.host import OF_NO_RELEASE, Claim
from stackfix.abi.records import AbiFacts, TorchBook, TorchRange
from stackfix.abi.torch_range import minor_of
from stackfix.abi.torch_required import torch_required

TORCH = re.compile(r"torch(\d{1,3}\.\d{1,3})")                      # flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE
SHORT = re.compile(r"(?:^|[^a-z])pt(\d)(\d{1,2})(?!\d)")            # torch_scatter-2.1.2+pt23cu121
STRING = re.compile(r"cxx11abi(TRUE|FALSE)", re.IGNORECASE)
CUDA = re.compile(r"(?:^|[^a-z])cu(1\d)(\d?)(?!\d)")                # +cu121, .cu12torch2.6
MANYLINUX = re.compile(r"manylinux_(\d{1,2})_(\d{1,3})_(\w+)")
OLD_MANYLINUX = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
PLATFORM = re.compile(r"(?:manylinux\w*?|linux)_(x86_64|aarch64|ppc64le|s390x|i686|armv7l|riscv64)$")

ELF_NAMES = {"i686": "i386", "armv7l": "arm", "ppc64le": "ppc64", "riscv64": "riscv"}

Admits = Callable[[str, str], bool]     # specifier, version


def claims(facts: AbiFacts, book: TorchBook, admits: Admits) -> tuple[Claim, ...]:
    """All statements that symbols can judge, those that do not hold first."""
    found = [*named_claims(facts), *required_claims(facts, book, admits), *tag_claims(facts)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: each.holds))


def named_claims(facts: AbiFacts) -> Iterator[Claim]:
    """By the local version and the file's name. The name in full says what the version says: once is enough."""
    local = (facts.subject.version or "").partition("+")[2]
    seen = set[str]()
    for source, text in (("version", local), ("file name", local_of(facts.subject.file_name))):
        for each in claims_of_text(source, text, facts):
            if each.says not in seen:
                seen.add(each.says)
                yield each


def local_of(file_name: str | None) -> str:
    """The local version in the name of a wheel, which may not be the one in its metadata."""
    return (file_name or "").partition("+")[2].partition("-")[0]


def claims_of_text(source: str, text: str, facts: AbiFacts) -> Iterator[Claim]:
    """What a local version states."""
    torch = facts.torch
    if torch is not None and torch.asked:
        match = TORCH.search(text)
        short = SHORT.search(text)
        minor = match[1] if match else f"{short[1]}.{short[2]}" if short else None
        if minor is not None:
            yield Claim(source=source, text=match[0] if match else f"pt{minor.replace('.', '')}", says=f"torch {minor}",
                        found=found_torch(torch), holds=minor in {*torch.minors, *map(minor_of, torch.patches)})
        if (string := STRING.search(text)) and torch.string_abi is not None:
            says = "new" if string[1].upper() == "TRUE" else "old"
            found = "both std::strings" if torch.string_abi == "both" else f"the {torch.string_abi} std::string"
            yield Claim(source=source, text=string[0], says=f"the {says} std::string", found=found,
                        holds=says == torch.string_abi)
    if (cuda := CUDA.search(text)) and facts.cuda:
        yield Claim(source=source, text=f"cu{cuda[1]}{cuda[2]}", says=f"CUDA {cuda[1]}",
                    found=" and ".join(f"CUDA {each}" for each in facts.cuda), holds=(int(cuda[1]),) == facts.cuda)


def found_torch(torch: TorchRange) -> str:
    """What its symbols say of torch."""
    if torch.unknown:
        return OF_NO_RELEASE
    found = releases(torch)
    return f"torch {found}" if found else "no release of torch that is known"


def required_claims(facts: AbiFacts, book: TorchBook, admits: Admits) -> Iterator[Claim]:
    """By its metadata: of each minor that is admitted one admitted release should be able to load it."""
    torch = facts.torch
    if torch is None or not torch.asked:
        return
    specifier = torch_required(facts.subject.requires, facts.python, facts.python_floor, facts.machine)
    if not specifier:
        return
    admitted = {release.minor: [version for version in (release.version, *release.patches)
                                if admits(specifier, version)] for release in book.releases}
    admitted = {minor: versions for minor, versions in admitted.items() if versions}
    lost = tuple(minor for minor, versions in admitted.items() if not any(map(torch.loads, versions)))
    whole = [minor for minor in lost if minor not in torch.minors]      # not only the patches that are admitted
    single = [version for minor in lost if minor not in whole for version in admitted[minor]]
    if admitted:
        yield Claim(source="metadata", text=f"torch{specifier}", says=f"torch {spans(list(admitted))}",
                    found=found_torch(torch), holds=not lost, minors=lost,
                    lost=", ".join(filter(None, (spans(whole), *single))))


def tag_claims(facts: AbiFacts) -> Iterator[Claim]:
    """By its wheel tags: the oldest glibc, and the processor."""
    platforms = [part for tag in facts.subject.tags for part in tag.rpartition("-")[2].split(".")]
    stated = [glibc for each in platforms if (glibc := glibc_of(each))]
    if stated and facts.glibc is not None:
        oldest = min(stated, key=numbers)       # installers take it where one of its tags fits
        yield Claim(source="wheel tag", text=next(each for each in platforms if glibc_of(each) == oldest),
                    says=f"glibc {oldest}", found=f"glibc {facts.glibc}", holds=numbers(facts.glibc) <= numbers(oldest))
    named = [match[1] for each in platforms if (match := PLATFORM.search(each))]
    machines = dict.fromkeys(ELF_NAMES.get(each, each) for each in named)
    if machines and facts.machine and not any(each.startswith("EM_") for each in facts.machine):
        yield Claim(source="wheel tag", text=platforms[0], says=" or ".join(machines),
                    found=" and ".join(facts.machine), holds=set(facts.machine) <= set(machines))


def glibc_of(platform: str) -> str | None:
    """2.17 of manylinux2014_x86_64."""
    match = MANYLINUX.fullmatch(platform)
    return f"{match[1]}.{match[2]}" if match else OLD_MANYLINUX.get(platform.partition("_")[0])


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


__all__ = ["claims"]
