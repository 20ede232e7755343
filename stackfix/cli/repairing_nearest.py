"""Which releases of a range are nearest to the one that is there: where no lock decides, the smallest change."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from stackfix.plan.install_choice import Wanted


def nearest(versions: tuple[str, ...], wanted: Wanted) -> list[str]:
    """Versions in the range, the nearest above what is there first, then the nearest below; else the newest first."""
    try:
        allowed = SpecifierSet(wanted.specifier)
    except InvalidSpecifier:
        return []
    there = Version(wanted.near) if wanted.near else None
    early = bool(allowed.prereleases) or (there is not None and there.is_prerelease)
    known = dict[Version, str]()
    for text in versions:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if (early or not version.is_prerelease) and allowed.contains(version, prereleases=True):
            known.setdefault(version, text)
    above = sorted(each for each in known if there is not None and each >= there)
    below = sorted((each for each in known if each not in above), reverse=True)
    return [known[each] for each in (*above, *below)]
