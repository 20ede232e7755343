"""Rules of the matrix about NVIDIA's libraries, written by hand, beside what the bundled book says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from stackfix.abi.nvidia_book import AlmanacOfNvidia, open_nvidia_book
from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import Rule


@cache
def bundled() -> AlmanacOfNvidia:
    return open_nvidia_book()


def rules() -> tuple[Rule, ...]:
    """Those that set bounds on a package of the book, for a consumer of which it is known what it wants."""
    book = bundled()
    return tuple(rule for rule in load_matrix().rules
                 if rule.package in book.consumers() and book.versions(Requirement(rule.needs).name)
                 and "<0" not in rule.needs)


def verdicts(rule: Rule) -> Iterator[tuple[str, str, bool, tuple[str, ...]]]:
    """(consumer version, provider version, whether the rule admits it, what it lacks) of all pairs that were read."""
    book, needs = bundled(), Requirement(rule.needs)
    for consumer in SpecifierSet(rule.versions).filter(book.consumer_versions(rule.package), prereleases=True):
        wanted = [(soname, names) for _, soname, names in book.wants(rule.package, consumer)
                  if needs.name in book.packages(soname)]
        for provider in book.versions(needs.name):
            missing = tuple(name for soname, names in wanted
                            for name in book.provides(needs.name, provider, soname, names).missing)
            yield consumer, provider, needs.specifier.contains(provider, prereleases=True), missing


def title(rule: Rule) -> str:
    return f"{rule.package}{rule.versions} needs {rule.needs}"


@pytest.mark.parametrize("rule", rules(), ids=title)
def test_a_rule_admits_no_version_that_lacks_a_function_and_refuses_none_that_has_all(rule: Rule) -> None:
    wrong = [f"{consumer} with {provider}: the rule {'admits' if admitted else 'refuses'} it, and it lacks "
             f"{missing[:1] or 'nothing'}"
             for consumer, provider, admitted, missing in verdicts(rule) if admitted == bool(missing)]
    assert wrong == []


def test_rules_are_compared_with_pairs_that_were_read() -> None:
    compared = [sum(1 for _ in verdicts(rule)) for rule in rules()]
    assert len(compared) > 20
    assert sum(compared) > 500
