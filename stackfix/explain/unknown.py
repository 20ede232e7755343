"""What can be read from an error that no rule knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.explain.records import Fields
from stackfix.explain.text_words import Words

MOST = 5                # of one kind of thing

EXCEPTION = re.compile(
    r"^(?:[A-Za-z_][\w.]{0,100}\.)?(?P<exception>[A-Z]\w{0,60}(?:Error|Exception|Warning|Exit|Interrupt|Stop\w+))"
    r"(?:: |$)(?P<said>.{0,300})",
)
THINGS = {              # field -> (words of the line, pattern of one thing)
    "libraries": ((".so",), re.compile(
        r"(?<![\w.+-])(?:lib)?[\w+-]{1,80}(?:\.cpython-[\w-]{1,60}|\.abi3)?\.so(?:\.\d{1,8}){0,4}(?![\w.])")),
    "symbols": (("_z", "symbol", "undefined reference"), re.compile(
        r"(?<!\w)_Z\w{2,4000}|(?<=undefined symbol: )\w{1,4000}|(?<=undefined reference to `)\w{1,4000}")),
    "packages": (("==",), re.compile(r"(?<![\w.-])[A-Za-z][\w.-]{0,60}(?:\[[\w,-]{1,60}\])?==[\w.+]{1,40}(?<!\.)")),
    "paths": (("/",), re.compile(r"(?<![^\s'\"(\[=<])/(?:[\w.+@~-]{1,100}/){1,40}[\w.+@~-]{1,150}")),
}


def read_unknown(words: Words) -> Fields:
    """`exception` and what it said (the last one that is not indented decides), and what the text names.

    `libraries`, `symbols` (with what mangled ones mean), `packages` and `paths`, each as one text.
    """
    fields: dict[str, str] = {}
    for place in words.places(("error", "exception", "warning", "exit", "interrupt", "stop")):
        if found := EXCEPTION.match(words.look(place)):
            fields.update({name: value for name, value in found.groupdict().items() if value})
    for name, (needed, pattern) in THINGS.items():
        if things := list(dict.fromkeys(found_of(words, needed, pattern)))[:MOST]:
            fields[name] = ", ".join(map(readable, things))
    return fields


def found_of(words: Words, needed: tuple[str, ...], pattern: re.Pattern[str]) -> Iterator[str]:
    """Every such thing; those of the last lines first, as an error stands at the end."""
    for place in reversed(words.places(needed)):
        yield from pattern.findall(words.look(place))


def readable(thing: str) -> str:
    """A mangled name with what it means."""
    from stackfix.abi.mangled import demangle

    meaning = demangle(thing)
    return f"{thing} ({meaning})" if meaning else thing
