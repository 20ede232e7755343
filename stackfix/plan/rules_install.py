"""Installations: which packages, in which releases, would cure a finding. torch stays, unless it is the culprit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.imports_projects import SEPARATORS
from stackfix.diagnose.situation import View
from stackfix.plan.install_choice import Wanted

REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*?)(?:\[[^\]]*\])?\s*((?:[=<>~!]=?|===).*)?")
LOCK_TORCH = re.compile(r"stackfix lock --torch (\S+) --cuda (\d+\.\d+)")
TORCH = "torch"


def wants(view: View, finding: Finding) -> Iterator[tuple[Wanted, ...]]:
    """Sets of packages, each of which would do by itself, best first: the records of the finding, then its commands.

    Any release of a range comes after the one that is named: an index may not have that one.
    """
    found = dict[tuple[Wanted, ...], None]()
    records = [each for each in finding.installs if each.manager == "pip"]
    for each in records:
        named = f"=={each.version}" if each.version else each.specifier
        found.setdefault((wanted(view, each.package, named, within=each.specifier),))
    for line in finding.cure:
        found.setdefault(tuple(asked_by(view, line)))
    for each in records:
        found.setdefault((wanted(view, each.package, each.specifier),))
    about_torch = package_name(finding.culprit.package) == TORCH
    for option in found:
        if option and (about_torch or all(each.project != TORCH for each in option)) and not of_conda(view, option):
            yield option


def asked_by(view: View, line: str) -> Iterator[Wanted]:
    """What a command line of a cure installs from wheels; nothing where it does something else."""
    if lock := LOCK_TORCH.match(line):
        yield wanted(view, TORCH, f"=={lock[1]}", cuda=lock[2])
        return
    for name, specifier in installed_by(line):
        yield wanted(view, name, specifier)


def installed_by(line: str) -> Iterator[tuple[str, str]]:
    """(project, range) of the requirements of a pip or uv command, which may stand behind another one."""
    try:
        words = shlex.split(line.rpartition(" && ")[2], comments=True)
    except ValueError:                  # prose with an apostrophe
        return
    if "install" not in words or "pip" not in words or "--no-binary" in words:
        return
    skip = False
    for word in words[words.index("install") + 1:]:
        match = REQUIREMENT.fullmatch(word)
        if match and not skip:
            yield match[1], match[2] or ""
        skip = word == "--python"


def wanted(view: View, package: str, specifier: str, *, within: str | None = None, cuda: str | None = None) -> Wanted:
    """The record, with what is installed of it. A release that is named is known to do; others may do as well."""
    name = SEPARATORS.sub("-", package).lower()
    known = view.distributions.get(name)
    within = specifier if within is None else within
    again = known is not None and specifier in {f"=={known.version}", f"=={known.version.partition('+')[0]}"}
    return Wanted(project=name, specifier=specifier, near=known.version if known else None, cuda=cuda,
                  within=None if again or name == TORCH else "" if within.startswith("==") else within)


def of_conda(view: View, option: tuple[Wanted, ...]) -> bool:
    """Whether conda installed one of them: a wheel over it would be two installations."""
    known = (view.distributions.get(each.project) for each in option)
    return any(each is not None and each.manager != "pip" for each in known)


def package_name(package: str | None) -> str | None:
    """"torch" of "torch 2.3.1"."""
    return package.partition(" ")[0] if package else None
