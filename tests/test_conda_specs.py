"""What PEP 440 admits is what conda matches, by the reading of the solver itself, but for the differences listed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from rattler import BuildString, MatchSpec, PackageRecord

from stackfix.conda.names import GUESS, Package
from stackfix.conda.specs import Translated, Untranslated, not_a_version, spec_of, translate
from stackfix.resolve.records import Requirement, Target
from stackfix.resolve.target import TargetView

RELEASES = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
EPOCHS = st.sampled_from(["", "", "", "1!"])
SUFFIXES = st.sampled_from(["", "", "", "a1", "b2", "rc1", "rc2", ".post1", ".post2", "rc1.post1"])
VERSIONS = st.tuples(EPOCHS, RELEASES, SUFFIXES).map("".join)
OPERATORS = st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~="])


def conda_admits(text: str, version: str) -> bool:
    candidate = PackageRecord(name="x", version=version, build=BuildString("0"), build_number=0, subdir="noarch")
    return bool(MatchSpec(text, strict=True).matches(candidate))


def pip_admits(specifier: str, version: str) -> bool:
    return SpecifierSet(specifier).contains(Version(version), prereleases=True)


def differs(clause: str, version: str) -> bool:
    """Whether the two are known to differ: a suffix after fewer parts, where the other has a zero in their place."""
    one, other = sorted((Version(clause), Version(version)), key=lambda each: len(each.release))
    longer = other.release[len(one.release):]
    suffixed = one.is_prerelease or one.is_postrelease or other.is_prerelease or other.is_postrelease
    return suffixed and longer[:1] == (0,) and one.release == other.release[: len(one.release)]


@st.composite
def clauses(draw: st.DrawFn) -> str:
    operator, version = draw(OPERATORS), draw(VERSIONS)
    if operator in {"==", "!="} and draw(st.booleans()):
        version = f"{Version(version).epoch}!{'.'.join(map(str, Version(version).release))}.*".removeprefix("0!")
    try:
        SpecifierSet(operator + version)
    except InvalidSpecifier:        # `~=2`
        operator = ">="
    return operator + version


@given(clause=clauses(), near=st.booleans(), other=VERSIONS, suffix=SUFFIXES)
def test_conda_matches_what_pep_440_admits(clause: str, other: str, suffix: str, *, near: bool) -> None:
    bound = re.sub(r"^[=!<>~]+|\.\*$", "", clause)
    version = f"{Version(bound).base_version}{suffix}" if near else other       # near the bound is where it is hard
    text = spec_of("x", SpecifierSet(clause))
    if differs(bound, version):
        return
    assert conda_admits(text, version) is pip_admits(clause, version), text


@given(first=clauses(), second=clauses(), version=VERSIONS)
def test_clauses_are_all_asked_for(first: str, second: str, version: str) -> None:
    both = f"{first},{second}"
    if any(differs(re.sub(r"^[=!<>~]+|\.\*$", "", clause), version) for clause in (first, second)):
        return
    assert conda_admits(spec_of("x", SpecifierSet(both)), version) is pip_admits(both, version)


@pytest.mark.parametrize(("clause", "version", "pip", "conda"), [
    ("==1.0", "1.0+cu121", True, False), (">=1.0", "1.0+cu121", True, False),   # local versions
    (">=1.0rc1", "1.0.dev1", False, True),                                      # development releases
    ("==1.0rc1", "1.0.0rc1", True, False), (">1.0", "1.0.0.post1", False, True),    # zeros before a suffix
    ("<=7.0.1", "7.post1", True, False),
    ("===1.0", "1.0.0", False, True),
])
def test_the_listed_differences_are_true_ones(clause: str, version: str, *, pip: bool, conda: bool) -> None:
    """The day that one of them is gone, the list in the documentation is too long."""
    assert pip_admits(clause, version) is pip
    assert conda_admits(spec_of("x", SpecifierSet(clause)), version) is conda


@pytest.mark.parametrize(("specifier", "text"), [
    ("<2,>=1.26,!=1.26.3", "numpy >=1.26,<2a0,!=1.26.3"), ("", "numpy"), ("==1.26.*", "numpy 1.26.*"),
    ("~=1.4.2", "numpy >=1.4.2,1.4.*"), ("==1.26.4", "numpy ==1.26.4"), ("<2.0.0", "numpy <2a0"),
    ("<2.0rc1", "numpy <2.0rc1"), (">1!2", "numpy >1!2,!=1!2.post*"), ("==2.3.1+cu121", "numpy ==2.3.1+cu121"),
    (">=1.0alpha1", "numpy >=1.0a1"),
])
def test_texts(specifier: str, text: str) -> None:
    assert spec_of("numpy", SpecifierSet(specifier)) == text


VIEW = TargetView(Target(python="3.11", platform="linux-64", glibc="2.28"))
EXTRAS = {
    ("transformers", "torch"): ("torch>=2.1; extra == 'torch'", "accelerate>=0.21; extra == 'torch'", "numpy>=1.17"),
    ("transformers", "all"): ("transformers[torch]; extra == 'all'", "pandas; extra == 'all'"),
    ("round", "about"): ("round[about]; extra == 'about'",),
}


def package_of(project: str) -> Package | None:
    name = {"torch": "pytorch"}.get(project, project)
    return None if project == "absent" else Package(name=name, sure=True, source=GUESS)


def translated(text: str, *, constraint: bool = False, hashes: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    asked = Requirement(text=text, origin="--with", constraint=constraint, hashes=hashes)
    found = translate(asked, VIEW, package_of, lambda project, extra: EXTRAS.get((project, extra)))
    return [(one.spec.text, one.spec.origin) if isinstance(one, Translated) else (one.project, one.reason)
            for one in found]


def test_a_requirement_becomes_a_spec() -> None:
    assert translated("torch>=2.3,<2.4") == [("pytorch >=2.3,<2.4a0", "--with")]
    assert translated("numpy; python_version < '3.10'") == []
    assert translated("numpy; python_version >= '3.10'") == [("numpy", "--with")]


def test_extras_are_asked_for_by_what_they_need() -> None:
    place = "transformers[all] of --with"
    assert translated("transformers[all]>=4.40") == [
        ("transformers >=4.40", "--with"), ("pytorch >=2.1", place), ("accelerate >=0.21", place), ("pandas", place),
    ]
    assert translated("transformers[all]", constraint=True) == [("transformers", "--with")]
    assert translated("round[about]") == [("round", "--with")]
    assert translated("some[gone]")[1] == ("some", "what its extra 'gone' needs is not known")


@pytest.mark.parametrize(("text", "reason"), [
    ("some @ https://example.invalid/some-1.0-py3-none-any.whl#sha256=00", "asked for at an address"),
    ("absent>=1", "no channel has a package"), ("some===1.0-custom.x", "names no version"),
    ("some>>1", "no requirement"),
])
def test_what_cannot_be_asked_of_a_channel_says_why(text: str, reason: str) -> None:
    ((_, told),) = translated(text)
    assert reason in told


def test_hashes_of_wheels_cannot_be_asked_of_a_channel() -> None:
    ((_, told),) = translated("some", hashes=("0" * 64,))
    assert "hashes of wheels" in told
    (one,) = translate(Requirement(text="absent", origin="x"), VIEW, package_of, lambda *_: None)
    assert isinstance(one, Untranslated)
    assert not_a_version(SpecifierSet("==1.*,<2")) is None
