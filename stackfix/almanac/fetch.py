"""Wheels as pip gets them, by pip's own settings; what does not bear the manifest's name and hash is not kept."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from stackfix.almanac.manifest import name_fault
from stackfix.almanac.records import ManifestWheel
from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.places import MIB, reason_of
from stackfix.inspect.wheels import without_credentials

PYTHON = "3.11"                 # of wheels that any Python 3 takes
NEWEST_GLIBC = 42               # manylinux_2_42; a wheel for a newer one is not found
NO_HASH = "pip's report names no single file with a sha256"
QUIET = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar", "off")
GOT = re.compile(r"\bGot\s+(?P<hash>[0-9a-f]{64})\b")
FULL = re.compile(r"No space left on device|Disk quota exceeded")


class WrongWheel(BadInput):
    """What came is not the file that the manifest names. Nothing is read of it."""

    reference = "wrong-wheel"


def download(wheel: ManifestWheel, folder: Path) -> Path:
    """The wheel in `folder`, of the manifest's name and hash.

    Raises WrongWheel for any other file, Unreachable where pip gets none; nothing is left in `folder` then.
    """
    # a hash makes pip choose that file where a release has several (build tags, 2.10.0-3), whatever it prefers
    line = f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n"
    with tempfile.TemporaryDirectory(prefix=".pip-", dir=folder) as scratch:
        asked, got = Path(scratch, "asked.txt"), Path(scratch, "got")
        asked.write_text(line, encoding="utf-8")
        words = ["download", *QUIET, "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--require-hashes",
                 "--ignore-requires-python", *tag_options(wheel.file), "--dest", str(got), "-r", str(asked)]
        # pip unpacks into TMPDIR first: there it may find less room, and would leave its part when it is killed
        status, _, told = run_pip(words, {"TMPDIR": scratch})
        if status:
            raise refusal(wheel, told)
        found = sorted(each.name for each in got.iterdir())
        if found != [wheel.file]:
            raise WrongWheel(wheel.file, f"pip gives {', '.join(found) or 'nothing'} for it",
                             "name that file in the manifest if it is the right one")
        compare_hash(wheel, got / wheel.file)
        return (got / wheel.file).replace(folder / wheel.file)


def compare_hash(wheel: ManifestWheel, path: Path) -> None:
    """Raises WrongWheel where the file has not the manifest's hash."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while part := stream.read(MIB):
            digest.update(part)
    if digest.hexdigest() != wheel.sha256:
        raise wrong_hash(wheel, digest.hexdigest())


def wrong_hash(wheel: ManifestWheel, found: str) -> WrongWheel:
    return WrongWheel(wheel.file, f"its sha256 is {found}, not {wheel.sha256} as the manifest says",
                      "find out which of the two is right before anything else; nothing was read of the file")


def refusal(wheel: ManifestWheel, told: str) -> BadInput | Unreachable:
    """What to raise where pip ended with an error and these words."""
    other = GOT.search(told)
    if other is not None:
        return wrong_hash(wheel, other["hash"])
    return no_answer(wheel.file, told)


def no_answer(thing: str, told: str) -> Unreachable:
    """What to raise where pip told this and gave nothing."""
    if FULL.search(told):
        return Unreachable(thing, "no space left for it", "free some, or name another folder with --store DIR")
    lines = [line.removeprefix("ERROR: ") for line in told.splitlines() if line.startswith("ERROR: ")]
    reason = without_credentials(" ".join((lines or told.split("\n") or [""])[-1].split()))[:300]
    return Unreachable(thing, f"pip does not get it: {reason or 'it says nothing'}",
                       "pip's own settings say where it looks: `python -m pip config list`")


def tag_options(file: str) -> list[str]:
    """What makes pip take the wheel of this name, whatever it runs on. Raises BadInput for no wheel's name."""
    parts = file.removesuffix(".whl").split("-")
    if not file.endswith(".whl") or len(parts) not in {5, 6}:
        raise BadInput(file, "is no name of a wheel")
    pythons, abis, platforms = (part.split(".") for part in parts[-3:])
    exact = next((match for match in (re.fullmatch(r"cp(\d)(\d+)", each) for each in pythons) if match), None)
    version = f"{exact[1]}.{exact[2]}" if exact and "abi3" not in abis else PYTHON
    return options(version, abis, [each for each in platforms if each != "any"])


def options(python: str, abis: Sequence[str], platforms: Sequence[str]) -> list[str]:
    found = ["--implementation", "cp", "--python-version", python]
    for name, values in (("--abi", abis), ("--platform", platforms)):
        for value in values:
            found += [name, value]
    return found


def resolve(requirement: str, python: str = PYTHON, machine: str = "x86_64") -> ManifestWheel:
    """The wheel that pip would install for a requirement, as a row of a manifest. Downloads metadata at most.

    Raises Unreachable where pip finds none, or where the index states no sha256.
    """
    return chosen(requirement, report_of(requirement, python, machine, "--no-deps"))


def closure(requirement: str, python: str = PYTHON, machine: str = "x86_64") -> tuple[ManifestWheel, ...]:
    """The wheels that pip would install for a requirement and for all that it requires. Raises Unreachable."""
    return tuple(every_chosen(requirement, report_of(requirement, python, machine)))


def report_of(requirement: str, python: str, machine: str, *more: str) -> Mapping[str, Any]:
    """pip's report of an installation that it would make."""
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(NEWEST_GLIBC, 4, -1)]
    platforms += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    with tempfile.TemporaryDirectory(prefix="stackfix-resolve-") as scratch:
        report = Path(scratch, "report.json")
        words = ["install", *QUIET, "--no-cache-dir", *more, "--only-binary", ":all:", "--dry-run",
                 "--ignore-installed", "--target", str(Path(scratch, "nowhere")), "--report", str(report),
                 *options(python, [f"cp{python.replace('.', '')}", "abi3", "none"], platforms), "--", requirement]
        status, _, told = run_pip(words, {"TMPDIR": scratch})
        if status:
            raise no_answer(requirement, told)
        found: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return found


def chosen(requirement: str, report: Mapping[str, Any]) -> ManifestWheel:
    """The one wheel of an installation report. Raises Unreachable."""
    found = tuple(every_chosen(requirement, report))
    if len(found) != 1:
        raise Unreachable(requirement, NO_HASH)
    return found[0]


def every_chosen(requirement: str, report: Mapping[str, Any]) -> Iterator[ManifestWheel]:
    """The wheels of an installation report (pip's format, version 1). Raises Unreachable."""
    from packaging.utils import canonicalize_name

    try:
        for item in report["install"]:
            file = unquote(urlsplit(item["download_info"]["url"]).path.rpartition("/")[2])
            wheel = ManifestWheel(
                package=canonicalize_name(item["metadata"]["name"]), version=item["metadata"]["version"], file=file,
                sha256=item["download_info"]["archive_info"]["hashes"]["sha256"])
            fault = name_fault(wheel)
            if fault:
                raise Unreachable(requirement, f"the index gives {file}: {fault}")
            yield wheel
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable(requirement, NO_HASH) from error


def run_pip(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of pip, with this addition to our environment."""
    try:
        done = subprocess.run([sys.executable, "-m", "pip", *words], check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", env={**os.environ, **environment})
    except OSError as error:
        raise Unreachable(sys.executable, f"pip cannot be started: {reason_of(error)}") from error
    return done.returncode, done.stdout, done.stderr


__all__ = ["WrongWheel", "closure", "download", "resolve"]
