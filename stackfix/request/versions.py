"""Versions as users write them, as PEP 440 specifiers."""

from __future__ import annotations

from stackfix.errors import BadInput
from stackfix.request.values import (
    check_cuda,
    check_driver,
    check_glibc,
    check_gpu_arch,
    check_platform,
    check_python,
)

__all__ = [
    "check_cuda", "check_driver", "check_glibc", "check_gpu_arch", "check_platform", "check_python",
    "torch_specifier", "version_specifier",
]

LONGEST = 256
MINOR_PARTS = 2                 # `2.3` is a prefix, `2.3.1` a release
OPERATORS = ("<", ">", "=", "!", "~")


def version_specifier(text: str, thing: str = "--torch") -> str:
    """`==2.3.*` for `2.3` (the newest 2.3.x), `==2.3.1` for `2.3.1`; a specifier set as it is, without blanks.

    Three parts or more name one version: `2.3.1` is not `2.3.1.post1`. `thing` names the option in messages.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    value = text.strip()
    if not value or len(value) > LONGEST:
        raise BadInput(f"{thing} {text[:40]}".rstrip(), "is not a version",
                       "write `2.3` (the newest 2.3.x), `2.3.1`, or a specifier such as `>=2.2,<2.5`")
    specifier = value if value.startswith(OPERATORS) else specifier_of_version(value, thing)
    specifier = ",".join("".join(part.split()) for part in specifier.split(",") if part.strip())
    try:
        parsed = SpecifierSet(specifier)
    except InvalidSpecifier as error:
        raise BadInput(f"{thing} {text}", "is not a version or PEP 440 specifier",
                       "write `2.3` (the newest 2.3.x), `2.3.1`, or a specifier such as `>=2.2,<2.5`") from error
    if any("+" in clause.version for clause in parsed):
        raise BadInput(f"{thing} {text}", "a local version (`+cu121`) names a build, not a release",
                       f"write `{value.partition('+')[0]}`, and choose the build with --cuda")
    return specifier


def specifier_of_version(value: str, thing: str) -> str:
    """The specifier of a bare version or prefix."""
    from packaging.version import InvalidVersion, Version

    prefix = value.removesuffix(".*")
    try:
        version = Version(prefix)
    except InvalidVersion as error:
        raise BadInput(f"{thing} {value}", "is not a version",
                       "write `2.3` (the newest 2.3.x), `2.3.1`, or a specifier such as `>=2.2,<2.5`") from error
    names_one = version.is_prerelease or version.is_postrelease or version.local or len(version.release) > MINOR_PARTS
    return f"=={version}" if names_one and prefix == value else f"=={version}.*"


def torch_specifier(text: str, thing: str = "--torch") -> str:
    """As `version_specifier`; and a nightly by its day (`nightly-2025-10-15`) or as `2.10.0.dev20251015+cu128`.

    What asks for a nightly without its exact day is left as it is: who can ask the index refuses it, and names days.
    """
    from stackfix.nightly import asks_by_word, dated, nightly_of

    value = text.strip()
    if asks_by_word(value):
        nightly = dated(value)
        return f"nightly-{nightly.day}" if nightly is not None else value.lower()
    exact = nightly_of(value.removeprefix("==").strip())
    if exact is not None:
        return f"=={exact.version}{f'+{exact.path}' if exact.path is not None else ''}"
    return version_specifier(text, thing)
