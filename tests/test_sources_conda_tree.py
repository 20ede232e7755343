"""The tree in which py-rattler says why there is no answer: known shapes, and all others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackfix.conda.records import CondaAsk, Spec
from stackfix.sources.conda_conflict import ChannelFacts, conflict_of
from stackfix.sources.conda_tree import CONFLICTS, EXCLUDED, MISSING, NONE, OTHER, REQUIRES, SOME, Node, parse_tree

ASK = CondaAsk(platform="linux-64", channels=(), specs=(Spec(text="app", origin="--with app"),))
NO_FACTS = ChannelFacts((), lambda _place, _name: ())
# In the form in which py-rattler 0.28 writes it
TWO_PARTS = """\
Cannot solve the request because of: app * cannot be installed because there are no viable options:
└─ app 2.0 would require
   └─ lib >=3, for which no candidates were found.
The following packages are incompatible
├─ lib * can be installed with any of the following options:
│  └─ lib 1.0
└─ app * cannot be installed because there are no viable options:
   └─ app 1.0 | 1.1 would require
      └─ lib >=2, which cannot be installed because there are no viable options:
         ├─ lib 2.0 is excluded because due to strict channel priority not using this option from: 'https://h.test/c/'
         └─ lib 2.1, which conflicts with the versions reported above.
"""


def shape(node: Node) -> tuple[object, ...]:
    return (node.kind, node.what, *map(shape, node.below))


def test_both_parts_are_read() -> None:
    first, second, third = parse_tree(TWO_PARTS)
    assert shape(first) == (NONE, "app *", (REQUIRES, "app 2.0", (MISSING, "lib >=3")))
    assert shape(second) == (SOME, "lib *", (OTHER, "lib 1.0"))
    assert shape(third) == (NONE, "app *", (REQUIRES, "app 1.0 | 1.1", (
        NONE, "lib >=2", (EXCLUDED, "lib 2.0"), (CONFLICTS, "lib 2.1"))))
    assert third.below[0].below[0].below[0].why.startswith("due to strict channel priority")


def test_the_longer_way_is_told_where_the_short_one_was_never_meant() -> None:
    both = replace(ASK, specs=(*ASK.specs, Spec(text="lib <3", origin="--with lib<3")))
    conflict = conflict_of(TWO_PARTS, both, NO_FACTS)
    assert [cause.text for cause in conflict.causes] == [
        "app is asked for", "app 1.0 | 1.1 needs lib >=2",
        "a channel has lib 2.0, but strict channel priority takes the other channel's"]
    assert "h.test" not in conflict.raw


@pytest.mark.parametrize("raw", [
    "", "\n", "the solver is out of ideas", "Cannot solve the request because of: ",
    "Cannot solve the request because of: something new\n└─ in a shape that is not known",
    "Cannot solve the request because of: timeout",
])
def test_a_text_of_another_shape_is_kept(raw: str) -> None:
    conflict = conflict_of(raw, ASK, NO_FACTS)
    assert conflict.raw == raw
    words = raw.removeprefix("Cannot solve the request because of: ").split()
    assert all(any(word in cause.text for cause in conflict.causes) for word in words if word != "└─")


LINES = st.sampled_from([
    "lib >=2, which cannot be installed because there are no viable options:", "lib 1 would require",
    "app 1, which conflicts with the versions reported above.", "app 3 is excluded because of the weather",
    "lib * can be installed with any of the following options:", "the constraint app cannot be fulfilled",
    "No candidates were found for app *.", "app 2 would constrain", "app 2 is locked, but another version is required",
    "__cuda >=13, for which no candidates were found.", "The following packages are incompatible", "", "?", "a b c",
])
RAW = st.lists(st.tuples(st.integers(0, 200), LINES), max_size=40).map(
    lambda rows: "Cannot solve the request because of: " + "\n".join(
        line if depth == 0 else "│  " * (depth - 1) + "└─ " + line for depth, line in rows))


@settings(max_examples=50)
@given(RAW)
def test_any_tree_is_told(raw: str) -> None:
    conflict = conflict_of(raw, ASK, NO_FACTS)
    assert len(conflict.causes) == len(set(conflict.causes))
    assert all(cause.text for cause in conflict.causes)


def test_a_tree_without_end_is_no_crash() -> None:
    deep = "\n".join("│  " * depth + f"└─ lib {depth} would require" for depth in range(1_500))
    conflict = conflict_of(f"Cannot solve the request because of: app * cannot be installed because there are no"
                           f" viable options:\n{deep}", ASK, NO_FACTS)
    assert conflict.causes[0].text == "app is asked for"
