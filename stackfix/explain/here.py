"""Whether an error is one of this environment: its findings, or what there is in place of the cause."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from stackfix.abi.mangled import demangle
from stackfix.abi.names import is_torch_symbol
from stackfix.diagnose.finding_records import Finding
from stackfix.explain.here_records import Here, Place
from stackfix.explain.records import Fields, Message, Rule

LIBRARY = re.compile(r"(?<![\w.+-])lib[\w+-]{1,80}\.so(?:\.\d{1,8}){0,4}(?![\w.])")
MODULE = re.compile(r"(?<![\w.+-])[\w-]{1,100}\.(?:cpython-[\w-]{1,60}|abi3)\.so(?![\w.])")
PACKAGE = re.compile(r"(?<![\w./-])nvidia-[a-z0-9-]{1,60}(?<!-)(?![\w.])")
TORCH = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so")
WORDS = ("cudnn", "cublas", "cusparse", "cusolver", "cufft", "curand", "nccl", "nvjitlink", "cupti", "cudart", "nvrtc",
         "torchvision", "torchaudio", "xformers", "flash", "vllm")
PACKAGE_FIELDS = ("package", "project", "subject", "companion", "distribution")
SONAME_FIELDS = ("file", "library", "soname", "provider")
DRIVER_KINDS = re.compile(r"driver|gpu|device|compat|kernel-image|arch")
NO_DRIVER = "no-driver"
MOST_FINDINGS = 3


def here_of(message: Message, rule: Rule, place: Place, command: str) -> Here:
    """What is true of a message here. `command` shows how a finding would be repaired."""
    found = [each for each in place.findings if is_same(message, rule, each)]
    if found:
        shown = tuple(found[:MOST_FINDINGS])
        repairable = any(each.repairable for each in shown)
        return Here(verdict="so here", text=told(shown[0]), findings=shown, command=command if repairable else None)
    verdict, text = instead(message, place)
    others = findings_named({"libraries": " ".join(sorted(libraries_of(message)))}, place.findings)
    if verdict != "so here" and others:     # a cut file, say, where the message speaks of an old one
        verdict, text = "not so here", f"another fault of the same library: {told(others[0])}"
        repairable = any(each.repairable for each in others)
        return Here(verdict=verdict, text=text, findings=others, command=command if repairable else None)
    return Here(verdict=verdict, text=text, findings=(), command=None)


def findings_named(fields: Fields, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that name a symbol or a file which an unknown error names: what `read_unknown` read of it."""
    named = {each for name in ("symbols", "libraries", "paths") for each in re.split(r"[\s,()]+", fields.get(name, ""))}
    files = {posixpath.basename(each) for each in named if ".so" in each}
    return tuple(each for each in findings if each.severity != "note"
                 and (named.intersection(each.symbols) or files.intersection(libraries_in(each))))[:MOST_FINDINGS]


def told(finding: Finding) -> str:
    """The finding in a line, with its place."""
    where = finding.culprit.path
    return f"{finding.summary}" if where is None or where in finding.summary else f"{finding.summary} ({where})"


def is_same(message: Message, rule: Rule, finding: Finding) -> bool:
    """Whether a finding is what a message tells of: its kind, and the symbol, else a library, else a package.

    A finding of no such kind is the same only by its symbol. Where a message names nothing, the kind decides.
    """
    symbol = message.fields.get("symbol")
    if symbol:
        return symbol in finding.symbols
    if finding.severity == "note" or (finding.code not in rule.findings and finding.kind != rule.kind):
        return False
    libraries, packages = libraries_of(message), packages_of(message)
    if libraries:
        return bool({stem(each) for each in libraries} & {stem(each) for each in libraries_in(finding)})
    if packages:
        return bool(packages & packages_in(finding))
    words = words_of(message)
    named = " ".join((*libraries_in(finding), *packages_in(finding))).lower()
    return not words or any(word in named for word in words)


def libraries_of(message: Message) -> frozenset[str]:
    """File names of libraries and modules that a message names."""
    fields = (value for name, value in message.fields.items() if name in {*SONAME_FIELDS, "requester", "module"})
    texts = (message.quoted, *map(posixpath.basename, fields))
    return frozenset(each for text in texts for pattern in (LIBRARY, MODULE) for each in pattern.findall(text))


def packages_of(message: Message) -> frozenset[str]:
    """Packages that a message names, or is about by what the matrix knows."""
    named = {message.fields[name] for name in PACKAGE_FIELDS if message.fields.get(name)}
    return frozenset(normal(each) for each in (*named, *PACKAGE.findall(message.quoted)))


def words_of(message: Message) -> frozenset[str]:
    """Libraries that a message speaks of without a file's name."""
    low = message.quoted.lower()
    return frozenset(each for each in WORDS if each in low)


def libraries_in(finding: Finding) -> Iterable[str]:
    """File names in a finding."""
    requester = finding.requester.path if finding.requester else None
    paths = (finding.culprit.path, finding.winner, finding.loser, requester, *LIBRARY.findall(finding.error or ""))
    return [posixpath.basename(each) for each in paths if each]


def packages_in(finding: Finding) -> frozenset[str]:
    """Names of packages in a finding."""
    requester = finding.requester.package if finding.requester else None
    named = [each.split(" ")[0] for each in (finding.culprit.package, requester) if each]
    return frozenset(normal(each) for each in (*named, *(each.package for each in finding.installs)))


def stem(name: str) -> str:
    """What files of one library have in common: "libcudnn" of libcudnn_ops.so.9 and libcudnn.so.9.1.0."""
    return re.split(r"\.|_(?:ops|cnn|adv|graph|engines|heuristic|ext)", name)[0]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def instead(message: Message, place: Place) -> tuple[str, str]:
    """Verdict and sentence where no finding is this: what the environment has in place of the cause."""
    fields = message.fields
    soname = next((posixpath.basename(fields[name]) for name in SONAME_FIELDS if fields.get(name)), None)
    if soname is None or not LIBRARY.fullmatch(soname):
        named = sorted(LIBRARY.findall(message.quoted))
        soname = named[0] if len(named) == 1 and not fields.get("symbol") else None
    if soname is not None:
        return of_library(soname, fields.get("symbol"), place)
    if is_torch_symbol(fields.get("symbol", "")) and (torch := of_torch(fields["symbol"], place)):
        return torch
    if DRIVER_KINDS.search(message.kind):
        return of_driver(message.kind, place)
    for package in sorted(packages_of(message)):
        if version := place.version(package):
            return "not so here", f"nothing of this kind is found here; {package} here is {version}"
    return "not so here", f"nothing of this kind is found in {place.prefix}"


def of_library(soname: str, symbol: str | None, place: Place) -> tuple[str, str]:
    """What there is of a library."""
    found = place.library(soname, symbol)
    if found is None:
        return of_nothing(soname, symbol, place)
    what = f"{found.path}" + (f" ({found.package})" if found.package else "")
    if found.via is None:
        return "cannot tell", f"{what} lies here, and no import here loads it; who opens it by name does not find it"
    how = f"the {soname} that is loaded here is {what}, found by {found.via}"
    if symbol is None:
        return "not so here", how
    if found.has is None:
        return "cannot tell", f"{how}; whether it has {symbol} cannot be read"
    return ("not so here", f"{how}, and has {symbol}") if found.has else ("so here", f"{how}, and lacks {symbol}")


def of_torch(symbol: str, place: Place) -> tuple[str, str] | None:
    """Whether the torch that is here has one of its functions; None where no torch is loaded."""
    found = [each for each in (place.library(name, symbol) for name in TORCH) if each is not None and each.via]
    if not found or any(each.has is None for each in found):
        return None
    torch = found[0].package or found[0].path
    having = next((each for each in found if each.has), None)
    readable = demangle(symbol) or symbol
    if having is not None:
        return "not so here", f"{torch} here has {readable}, in {having.path}"
    return "so here", f"{torch} here has no {readable}: whatever asks for it does not load"


def of_nothing(soname: str, symbol: str | None, place: Place) -> tuple[str, str]:
    """What is said of a library that is not there: a symbol of it cannot be missing, it itself can."""
    nowhere = f"{soname} is not loaded by any import here, and lies nowhere in {place.prefix}"
    if symbol is not None:
        return "not so here", nowhere
    other = place.other(soname)
    instead = f" ({other} does)" if other else ""
    return "cannot tell", f"{nowhere}{instead}: whatever asks for it will not find it, and none that was looked at does"


def of_driver(kind: str, place: Place) -> tuple[str, str]:
    """What there is of a driver and GPUs."""
    if place.driver is None:
        return "so here" if kind == NO_DRIVER else "cannot tell", "there is no NVIDIA driver on this machine"
    gpus = f", with {', '.join(place.gpus)}" if place.gpus else ""
    return "not so here", f"nothing of this kind is found here; the driver here is {place.driver}{gpus}"
