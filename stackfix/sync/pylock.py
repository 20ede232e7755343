"""pylock.toml (PEP 751) as pins: strictly, every file hashed, and only what fits the environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidName, canonicalize_name

from stackfix.errors import BadInput
from stackfix.platforms import CPU
from stackfix.sync.bounds import check_markers
from stackfix.sync.errors import LockDoesNotFit, NoFileFits
from stackfix.sync.fits import marker_holds, python_fits
from stackfix.sync.parse import FILLED_IN, SECOND_STEP, SHA256, URL, VARIABLE, VERSION
from stackfix.sync.records import Interpreter
from stackfix.sync.targets import could_fit, told_environments
from stackfix.write.records import Entry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_PACKAGES, MOST_ENVIRONMENTS = 20_000, 500     # each is looked at for each target that is known
NO_HASH = ("vcs", "directory")          # sources that no hash covers


def parse_pylock(text: str, name: str, interpreter: Interpreter) -> tuple[tuple[Entry, ...], str | None]:
    """The pins for `interpreter`, and the bare name of the second step's file.

    Raises BadInput naming the file and the key, LockDoesNotFit where the lock is for other environments.
    """
    return pins_of(read_document(text, name), name, interpreter)


def read_document(text: str, name: str) -> dict[str, Any]:
    """The parsed file. Raises BadInput where it is no lock of a version that is known here, or larger than any."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:       # TOMLDecodeError, or a number that int() refuses
        raise BadInput(name, f"is not TOML: {error}") from error
    if not str(document.get("lock-version", "")).startswith("1."):
        raise BadInput(name, f"lock-version {document.get('lock-version')!r} is not 1.x",
                       "only pylock.toml of PEP 751 is read")
    check_markers(document, name)
    return document


def pins_of(document: Mapping[str, Any], name: str, interpreter: Interpreter) -> tuple[tuple[Entry, ...], str | None]:
    """The pins of a parsed file for `interpreter`, and its second step. Raises as parse_pylock does."""
    check_environment(document, name, interpreter)
    entries: dict[str, Entry] = {}
    packages = expect(document.get("packages"), list, f"{name} packages")
    if len(packages) > MOST_PACKAGES:
        raise BadInput(f"{name} packages", f"are {len(packages)}: no lock has more than {MOST_PACKAGES}")
    for index, package in enumerate(packages):
        where = f"{name} packages[{index}]"
        entry = parse_package(expect(package, dict, where), where, interpreter)
        if entry is not None and entries.setdefault(entry.name, entry) is not entry:
            raise BadInput(where, f"{entry.name} is locked twice for this environment")
    return tuple(entries.values()), second_step(document, name, interpreter)


def check_environment(document: Mapping[str, Any], name: str, interpreter: Interpreter) -> None:
    """Raises LockDoesNotFit unless `requires-python` and one of `environments` hold."""
    environment = f"Python {dict(interpreter.markers)['python_full_version']} on {interpreter.platform}"
    requires = document.get("requires-python")
    if requires is not None and not python_fits(expect(requires, str, f"{name} requires-python"), name, interpreter):
        raise LockDoesNotFit(lock=name, locked_for=f"Python {requires}", environment=environment)
    markers = document.get("environments")
    if markers is None:
        return
    texts = [expect(marker, str, f"{name} environments") for marker in expect(markers, list, f"{name} environments")]
    if len(texts) > MOST_ENVIRONMENTS:
        raise BadInput(f"{name} environments", f"are {len(texts)}: no lock has more than {MOST_ENVIRONMENTS}")
    distinct = tuple(dict.fromkeys(texts))
    if not any(marker_holds(text, f"{name} environments", interpreter) for text in distinct):
        raise LockDoesNotFit(lock=name, locked_for=told_once(distinct, name), environment=environment)


@lru_cache(maxsize=8)
def told_once(texts: tuple[str, ...], name: str) -> str:
    """What a file's environments are called: `diff` asks for each target that is none of them."""
    return told_environments(texts, lambda text, other: marker_holds(text, f"{name} environments", other))


def parse_package(package: Mapping[str, Any], where: str, interpreter: Interpreter) -> Entry | None:
    """The pin of one `[[packages]]`; None where its marker does not hold here."""
    raw = expect(package.get("name"), str, f"{where} name")
    try:
        project = canonicalize_name(raw, validate=True)
    except InvalidName as error:
        raise BadInput(f"{where} name", f"is not a project name: {raw[:60]!r}") from error
    where = f"{where} ({project})"
    marker = package.get("marker")
    if marker is not None and not marker_holds(expect(marker, str, f"{where} marker"), where, interpreter):
        return None
    for source in NO_HASH:
        if source in package:
            raise BadInput(where, f"comes from `{source}`, which no hash covers", "lock it from an index")
    if "archive" in package:
        archive = expect(package["archive"], dict, f"{where} archive")
        return Entry(name=project, version=None, url=url_of(archive, f"{where} archive"),
                     sha256=(sha256_of(archive, f"{where} archive"),))
    version = expect(package.get("version"), str, f"{where} version")
    if VERSION.fullmatch(version) is None:
        raise BadInput(f"{where} version", f"is not a version: {version[:60]!r}")
    digests = {(sha256_of(file, place), file_name_of(file)) for file, place in files_of(package, where)}
    if not digests:
        raise BadInput(where, "has no file", "lock again")
    # an entry has the files of all its targets
    own = tuple(sorted({digest for digest, file in digests if could_fit(file, interpreter)}))
    if not own:
        raise NoFileFits(where, project=project, environment=f"CPython {interpreter.python} on {interpreter.platform}")
    return Entry(name=project, version=version, url=None, sha256=own)


def file_name_of(file: Mapping[str, Any]) -> str:
    """The file's name: stated, else the end of its address; "" where neither is text."""
    name, url = file.get("name"), file.get("url")
    if isinstance(name, str):
        return name
    return unquote(urlsplit(url).path.rpartition("/")[2]) if isinstance(url, str) and URL.fullmatch(url) else ""


def files_of(package: Mapping[str, Any], where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """(file, the way to it) of each wheel and of the sdist."""
    for index, wheel in enumerate(expect(package.get("wheels", []), list, f"{where} wheels")):
        place = f"{where} wheels[{index}]"
        yield expect(wheel, dict, place), place
    if "sdist" in package:
        yield expect(package["sdist"], dict, f"{where} sdist"), f"{where} sdist"


def sha256_of(file: Mapping[str, Any], where: str) -> str:
    """The file's sha256. Raises BadInput where it has none: an unhashed file is never installed."""
    digest = expect(file.get("hashes"), dict, f"{where} hashes").get("sha256")
    if not isinstance(digest, str) or SHA256.fullmatch(digest) is None:
        raise BadInput(f"{where} hashes", "has no sha256", "lock again: an unhashed file is never installed")
    return digest


def url_of(file: Mapping[str, Any], where: str) -> str:
    """The file's address."""
    url: str = expect(file.get("url"), str, f"{where} url")
    if URL.fullmatch(url) is None:
        raise BadInput(f"{where} url", f"is not an address: {url[:80]!r}")
    if VARIABLE in url:
        raise BadInput(f"{where} url", f"asks for a variable of the environment with {VARIABLE!r}", FILLED_IN)
    return url


def second_step(document: Mapping[str, Any], name: str, interpreter: Interpreter) -> str | None:
    """What `[tool.stackfix]` names: a file beside this one, never one elsewhere; for one target, or for each."""
    ours, key = own_table(document), "second-step"
    file = ours.get(key)
    if file is None and isinstance(each := ours.get("second-steps"), dict):
        tag = f"cp{interpreter.python.replace('.', '')}-{interpreter.platform}"
        file, key = next(((each[one], f"second-steps.{one}") for one in (tag, f"{tag}-{CPU}") if one in each),
                         (None, key))
    if file is not None and (not isinstance(file, str) or SECOND_STEP.fullmatch(file) is None):
        raise BadInput(f"{name} tool.stackfix.{key}", f"is not the name of a second step: {str(file)[:80]!r}")
    return file


def own_table(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """`[tool.stackfix]`; empty where there is none."""
    tool = document.get("tool", {})
    ours = tool.get("stackfix", {}) if isinstance(tool, dict) else {}
    return ours if isinstance(ours, dict) else {}


def expect(value: Any, kind: type, where: str) -> Any:
    """`value` where it is of `kind`. Raises BadInput naming the way to it."""
    if isinstance(value, kind):
        return value
    found = "missing" if value is None else f"{type(value).__name__}"
    raise BadInput(where, f"is {found}, not {kind.__name__}", "lock again")
