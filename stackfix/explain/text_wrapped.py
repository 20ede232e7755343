"""Lines that a terminal or a console broke at its width, made whole again: a broken symbol would be another symbol."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

NARROWEST, WIDEST = 40, 512     # columns of a terminal
MOST_PIECES = 12                # of one line
MOST_LINES = 20_000             # of a text: a log of a service has no width

STARTS = re.compile(
    r"\s|Traceback |During handling|The above exception|\w*(?:Error|Exception|Warning)\b|[A-Z]\w*: |[$#>%*|+(\[{<]"
    r"|\d{4}-\d\d-\d\d|\d\d:\d\d|[DIWEF]\d{4} |(?:INFO|WARN|ERROR|DEBUG)|-{3}|={3}|\w+@[\w.-]+:"
    r"|make|ninja|note:|hint:",
)
TAIL = re.compile(
    r"\w*(?:'? not found| not defined in file|, version \S|\)|: (?:cannot open|undefined symbol|symbol |version `))",
)
FILE_END = re.compile(r"\.(?:so(?:\.\d+)*|py|pyx|whl|cpp|cu|h|cuh|toml|txt|log)$")
LIBRARY = re.compile(r"lib[\w+-]+\.so(?:\.\d+)*")
CUT_AT_SPACE = re.compile(r" [a-z0-9`'\"(/_<]|<?\w*>$")     # so may a piece begin, of lines with a known width
DIGITS = re.compile(r"\.?\d+(?:\.\d+)*")
LAST_WORD = re.compile(r"[^\s'\"`(),;]*")         # of a text read backwards
FIRST_WORD = re.compile(r"[^\s'\"`(),;:]*")


def unwrapped(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines (number, text), pieces of one line joined under the number of the first."""
    width = width_of([text for _, text in lines])
    held: tuple[int, str] | None = None
    before, pieces = "", 0
    for number, text in lines:
        if held is not None and pieces < MOST_PIECES and goes_on(before, held[1], text, width):
            gap = " " if width is not None and len(before) == width - 1 else ""     # copied without its last space
            held, pieces = (held[0], held[1] + gap + text), pieces + 1
        else:
            if held is not None:
                yield held
            held, pieces = (number, text), 1
        before = text
    if held is not None:
        yield held


def width_of(texts: Sequence[str]) -> int | None:
    """The width at which lines break: no line is longer, and more than one line that goes on has just this length."""
    lengths = Counter(map(len, texts))
    widest = max(lengths, default=0)
    if len(texts) > MOST_LINES or not NARROWEST <= widest <= WIDEST:
        return None
    full = [place for place, text in enumerate(texts[:-1]) if len(text) == widest]
    following = [texts[place + 1] for place in full]
    going = [each for each in following if each and (not STARTS.match(each) or CUT_AT_SPACE.match(each))]
    return widest if len(going) > 1 and 2 * len(going) >= len(full) else None


def goes_on(piece: str, whole: str, following: str, width: int | None) -> bool:
    """Whether `following` is the rest of a line of which `piece` is the last one read and `whole` all of it."""
    if not following.strip() or len(piece) < NARROWEST:
        return False
    starts = STARTS.match(following) is not None
    if width is not None and width - 1 <= len(piece) <= width and (not starts or CUT_AT_SPACE.match(following)):
        return True
    return not starts and is_torn(LAST_WORD.match(whole[::-1])[0][::-1], FIRST_WORD.match(following)[0], following)      # type: ignore[index]


def is_torn(word: str, rest: str, following: str) -> bool:
    """Whether one word was broken into these two, by what it is: a mangled name, a path, what loaders say."""
    if not word or not rest:
        return False
    if word.startswith("_Z"):
        return is_torn_name(word, word + rest, alone=rest == following)
    if FILE_END.search(word):
        return DIGITS.fullmatch(following) is not None and ".so" in word
    if "/" in word or LIBRARY.fullmatch(word + rest):
        return FILE_END.search(word + rest) is not None
    return TAIL.match(following[len(rest):]) is not None and "." not in rest


def is_torn_name(word: str, whole: str, *, alone: bool) -> bool:
    """Whether `word` is no mangled name and `whole` is; or it lacks only parameters, which stand alone in a line."""
    from stackfix.abi.mangled import demangle

    readable = demangle(word)
    if readable is not None and ("(" in readable or not alone):
        return False
    return demangle(whole) is not None
