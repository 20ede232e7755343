"""Quick records behave as the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar

import pytest

from stackfix.quick import dataclass, field, filled, names_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What others build on."""

    name: str
    known: ClassVar[int] = 7
    size: int | None = None
    parts: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)
    noted: list[str] = field(default_factory=list, compare=False)

    @property
    def double(self) -> str:
        return self.name * 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Further(Base):
    more: str = "x"
    size: int | None = 3


@dataclass(frozen=True, slots=True)
class Place:
    x: int
    y: int = 2


@dataclass(slots=True)
class Loose:
    x: int
    y: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Same:
    x: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ordinary(Base):
    other: int = 5


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Ordered:
    x: int


def test_values_defaults_and_what_is_shown() -> None:
    base = Base(name="n", secret="hidden")
    assert (base.name, base.size, base.parts, base.noted, base.double, base.known) == ("n", None, (), [], "nn", 7)
    assert repr(base) == "Base(name='n', size=None, parts=(), noted=[])"
    assert repr(Further(name="n")) == "Further(name='n', size=3, parts=(), noted=[], more='x')"
    assert Base(name="n").noted is not Base(name="n").noted


def test_equality_and_hashes() -> None:
    assert Base(name="n", noted=["a"]) == Base(name="n")
    assert hash(Base(name="n", noted=["a"])) == hash(Base(name="n"))
    assert Base(name="n") != Base(name="m")
    assert Base(name="n") != Further(name="n")
    assert {Same(): 1, Same(): 2} != {}
    assert Same() != Same()
    assert Loose(1) == Loose(1, [])
    with pytest.raises(TypeError, match="unhashable"):
        hash(Loose(1))


@pytest.mark.parametrize("change", [lambda base: setattr(base, "name", "m"), lambda base: delattr(base, "name")])
def test_nothing_changes_what_is_frozen(change: Any) -> None:
    base = Base(name="n")
    with pytest.raises(FrozenInstanceError):
        change(base)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        base.unknown = 1        # type: ignore[attr-defined]
    assert not hasattr(base, "__dict__")
    loose = Loose(1)
    loose.x = 5
    assert loose == Loose(5)
    with pytest.raises(AttributeError):
        loose.z = 1             # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "plain", "named"), [
    (Base, (), {}), (Base, ("n",), {}), (Base, (), {"name": "n", "other": 1}), (Place, (), {}), (Place, (1, 2, 3), {}),
])
def test_wrong_arguments_are_refused(kind: Any, plain: tuple[Any, ...], named: dict[str, Any]) -> None:
    for _ in range(2):          # the first instance is made in another way
        with pytest.raises(TypeError):
            kind(*plain, **named)


def test_an_instance_is_filled_without_init() -> None:
    assert names_of(Further) == ("name", "size", "parts", "secret", "noted", "more")
    whole = Further(name="n", size=1, parts=("a",), secret="s", more="m")
    assert filled(Further, ["n", 1, ("a",), "s", [], "m"]) == whole
    assert names_of(int) == ()


def test_what_the_class_defines_itself_stays() -> None:
    assert Checked(x=1).x == 1
    with pytest.raises(ValueError, match="negative"):
        Checked(x=-1)
    assert Place(1) == Place(x=1, y=2)
    match Place(4, 5):
        case Place(x, y):
            assert (x, y) == (4, 5)


def test_the_standard_library_works_on_them() -> None:
    further = Further(name="n", parts=("a",))
    assert dataclasses.is_dataclass(further)
    assert [one.name for one in dataclasses.fields(Further)] == ["name", "size", "parts", "secret", "noted", "more"]
    assert dataclasses.replace(further, name="m") == Further(name="m", parts=("a",))
    assert dataclasses.asdict(Place(1)) == {"x": 1, "y": 2}
    assert dataclasses.astuple(Place(1)) == (1, 2)
    assert copy.deepcopy(further) == further
    assert copy.copy(further) == further
    assert pickle.loads(pickle.dumps(further)) == further   # noqa: S301 - our own bytes
    assert Ordinary(name="n").size is None
    assert Ordinary(name="n") == Ordinary(name="n", other=5)
    assert Ordered(x=1) < Ordered(x=2)


def test_it_says_the_same_as_the_standard_one() -> None:
    standard: Any = dataclasses.make_dataclass("Place", [("x", int), ("y", int, 2)], frozen=True, slots=True)
    assert repr(standard(1)) == repr(Place(1))
    assert [(one.name, one.default) for one in dataclasses.fields(standard)] == \
        [(one.name, one.default) for one in dataclasses.fields(Place)]
