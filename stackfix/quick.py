"""`dataclass`, `field` and `replace` of the standard library, made in a tenth of the time.

The standard decorator compiles six methods of each class as it is made: 0.6 ms, and the 142 records of a lock took
85 ms of its processor time. Here `__init__` is compiled when the first instance is made and the other methods are
shared. Everything of `dataclasses` works on such a class (`fields`, `replace`, `asdict`), and type checkers see the
standard one. What is asked for beyond frozen, slots, kw_only and eq is left to the standard decorator.
"""

from __future__ import annotations

from operator import attrgetter

__all__ = ["dataclass", "field", "filled", "names_of", "replace"]
TYPE_CHECKING = False               # typing itself takes 6 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass, field, replace
    from typing import Any
else:
    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True, **rest):  # noqa: ANN001, ANN003, ANN201
        """The class as a record."""
        if not slots or rest:
            from dataclasses import dataclass as standard

            return standard(cls, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, **rest)
        if cls is None:
            return lambda cls: _made(cls, frozen=frozen, kw_only=kw_only, eq=eq)
        return _made(cls, frozen=frozen, kw_only=kw_only, eq=eq)

    def field(**how):  # noqa: ANN003, ANN201
        """What is said of one field: default, default_factory, repr, compare."""
        return _Field(**how)

    def replace(record, /, **changes):  # noqa: ANN001, ANN003, ANN201
        """A record like this one with other values in some fields; `__init__` and `__post_init__` are run."""
        names = names_of(record.__class__)
        if not names:
            from dataclasses import replace as standard

            return standard(record, **changes)
        return record.__class__(**{name: getattr(record, name) for name in names if name not in changes}, **changes)

_NONE: Any = object()


def names_of(kind: type) -> tuple[str, ...]:
    """The names of a record's fields, () for another class; `dataclasses.fields` makes more of it."""
    return tuple(kind.__dict__.get("__quick__", ()))


def filled(kind: Any, values: Iterable[Any]) -> Any:
    """An instance with the values of all its fields in their order; `__init__` and `__post_init__` are not run."""
    setters = kind.__dict__.get("__setters__")
    if setters is None:
        kind.__setters__ = setters = [getattr(kind, name).__set__ for name in names_of(kind)]
    made = kind.__new__(kind)
    for put, value in zip(setters, values):     # noqa: B905 - this is the quick way
        put(made, value)
    return made


class _Field:
    """One field. `kw_only` is that of the class that declares it."""

    __slots__ = ("compare", "default", "default_factory", "kw_only", "repr", "type")

    def __init__(self, *, default: Any = _NONE, default_factory: Any = _NONE, repr: bool = True,  # noqa: A002
                 compare: bool = True) -> None:
        self.default, self.default_factory, self.repr, self.compare = default, default_factory, repr, compare
        self.kw_only, self.type = False, ""


class _Standard:
    """The attributes that `dataclasses` looks for, made when it does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        made = owner.__dict__.get("__standard__")
        if made is None:
            made = _standard(owner)
            owner.__standard__ = made       # type: ignore[attr-defined]
        return getattr(made, self._name)


def _made(cls: type, *, frozen: bool, kw_only: bool, eq: bool) -> type:
    """The class anew, with slots."""
    fields: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update(_fields_of(base))
    own = {name: text for name, text in cls.__annotations__.items() if not _is_class_variable(text)}
    body = {name: value for name, value in cls.__dict__.items() if name not in {*own, "__dict__", "__weakref__"}}
    inherited = set(fields)
    for name, text in own.items():
        value = cls.__dict__.get(name, _NONE)
        fields[name] = made = value if isinstance(value, _Field) else _Field(default=value)
        made.kw_only, made.type = kw_only, text
    body |= _methods(fields, body, frozen=frozen, eq=eq)
    body |= {"__slots__": tuple(name for name in own if name not in inherited), "__qualname__": cls.__qualname__,
             "__quick__": fields, "__dataclass_fields__": _Standard("__dataclass_fields__"),
             "__dataclass_params__": _Standard("__dataclass_params__"), "__frozen__": frozen,
             "__match_args__": tuple(name for name, one in fields.items() if not one.kw_only)}
    made_class = type(cls)(cls.__name__, cls.__bases__, body)
    if "__init__" not in cls.__dict__:
        made_class.__init__ = _first_init(made_class)   # type: ignore[misc]
    return made_class


def _fields_of(base: type) -> dict[str, _Field]:
    """The fields of a base class, whichever decorator made it."""
    if "__quick__" in base.__dict__:
        return dict(base.__dict__["__quick__"])
    found: dict[str, _Field] = {}
    if "__dataclass_fields__" in base.__dict__:
        from dataclasses import MISSING

        for one in base.__dict__["__dataclass_fields__"].values():
            found[one.name] = made = _Field(repr=one.repr, compare=one.compare, **{
                key: value for key in ("default", "default_factory") if (value := getattr(one, key)) is not MISSING})
            made.kw_only, made.type = one.kw_only, one.type
    return found


def _is_class_variable(text: object) -> bool:
    return str(text).partition("[")[0].rpartition(".")[2] == "ClassVar"


def _methods(fields: dict[str, _Field], body: dict[str, Any], *, frozen: bool, eq: bool) -> dict[str, Any]:
    """What the class does not define itself."""
    made: dict[str, Any] = {"__repr__": _repr}
    if eq:
        compared = [name for name, one in fields.items() if one.compare]
        made["__eq__"], made["__hash__"] = _comparing(attrgetter(*compared) if compared else lambda _: ())
        if not frozen:
            made["__hash__"] = None
    if frozen:
        made |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete, "__getstate__": _get_state,
                 "__setstate__": _set_state}
    kept = {name: method for name, method in made.items() if name not in body}
    if eq and "__hash__" in body and body["__hash__"] is None:      # Python puts it there beside an own __eq__
        kept["__hash__"] = made["__hash__"]
    return kept


def _comparing(key: Callable[[Any], Any]) -> tuple[Callable[[Any, Any], Any], Callable[[Any], int]]:
    def equal(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return equal, lambda self: hash(key(self))


def _first_init(cls: Any) -> Callable[..., None]:
    """What makes the first instance: it compiles `__init__`, which then takes its place."""
    def __init__(self: Any, *args: Any, **values: Any) -> None:  # noqa: N807
        cls.__init__ = made = _compiled(cls)
        made(self, *args, **values)

    return __init__


def _compiled(cls: Any) -> Callable[..., None]:
    """`__init__` of the class. A slot's own __set__ is quicker than object.__setattr__."""
    known: dict[str, Any] = {"_NONE": _NONE}
    plain: list[str] = []
    keyword: list[str] = []
    lines: list[str] = []
    for name, one in cls.__quick__.items():
        known[f"_set_{name}"] = getattr(cls, name).__set__
        text, value = name, name
        if one.default is not _NONE:
            known[f"_default_{name}"], text = one.default, f"{name}=_default_{name}"
        elif one.default_factory is not _NONE:
            known[f"_make_{name}"], text = one.default_factory, f"{name}=_NONE"
            value = f"_make_{name}() if {name} is _NONE else {name}"
        (keyword if one.kw_only else plain).append(text)
        lines.append(f"    _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    parameters = ", ".join(["self", *plain, *(["*", *keyword] if keyword else [])])
    exec("\n".join([f"def __init__({parameters}):", *(lines or ["    pass"])]), known)  # noqa: S102
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _standard(cls: Any) -> type:
    """A class that the standard decorator made of the same fields, for what is known of them."""
    import dataclasses

    def told(one: _Field) -> Any:
        defaults = {key: value for key in ("default", "default_factory") if (value := getattr(one, key)) is not _NONE}
        return dataclasses.field(repr=one.repr, compare=one.compare, kw_only=one.kw_only, **defaults)

    fields = [(name, one.type, told(one)) for name, one in cls.__quick__.items()]
    return dataclasses.make_dataclass(cls.__name__, fields, init=False, repr=False, eq=False, frozen=cls.__frozen__)


def _repr(self: Any) -> str:
    said = (f"{name}={getattr(self, name)!r}" for name, one in self.__quick__.items() if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(said)})"


def _refuse_set(self: Any, name: str, value: object) -> None:  # noqa: ARG001
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:  # noqa: ARG001
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__quick__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__quick__, state):      # noqa: B905 - one is made of the other
        object.__setattr__(self, name, value)
