"""Activation in fish, whose variables that end in PATH are lists: they are taken and given joined by colons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.plan.shell_posix import indented
from stackfix.plan.shell_words import Change, Word

SUFFIX = ".fish"


def quoted(word: Word, home: str) -> str:
    literal = "'" + word.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f'"${home}"{literal}' if word.in_prefix else literal


def words(each: Sequence[Word], home: str) -> str:
    return " ".join(quoted(word, home) for word in each)


def joined(each: Sequence[Word], home: str) -> str:
    return "':'".join(quoted(word, home) for word in each) or "''"


def set_lines(changes: Sequence[Change], home: str) -> list[str]:
    """Lines that keep what was there, and set the variables. Once more, they do nothing."""
    return [f'if test -n "${home}"', *indented(line for each in changes for line in set_one(each, home)), "end"]


def set_one(change: Change, home: str) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield f'set -l _stackfix_now "${name}"'
    yield f'if not set -q {kept}_NEW; or test "$_stackfix_now" != "${kept}_NEW"'
    yield f"    set -eg {kept}_OLD"
    yield f'    set -q {name}; and set -gx {kept}_OLD "$_stackfix_now"'
    if change.value is not None:
        yield f"    set -l _stackfix_new {quoted(change.value, home)}"
    else:
        yield f"    set -l _stackfix_drop {words(change.drop, home)}"
        yield f"    set -l _stackfix_list {words(change.first, home)}"
        yield from indented(rest_lines(change))
        yield f"    set -gx {kept}_OWN {joined(change.own, home)}"
    yield f'    set -gx {kept}_NEW "$_stackfix_new"'
    yield from indented(assign_lines(name))
    yield "end"


def restore_lines(changes: Sequence[Change]) -> list[str]:
    """Lines that put back what was there. What was changed meanwhile only loses what activation put there."""
    return [line for each in changes for line in restore_one(each)]


def restore_one(change: Change) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield f"if set -q {kept}_NEW"
    yield f'    set -l _stackfix_now "${name}"'
    yield f'    if test "$_stackfix_now" = "${kept}_NEW"'
    yield f"        set -eg {name}"
    yield f'        set -q {kept}_OLD; and set -gx {name} "${kept}_OLD"'
    if change.value is None:
        yield '    else if test -n "$_stackfix_now"'
        yield f'        set -l _stackfix_drop (string split -n : -- "${kept}_OWN")'
        yield "        set -l _stackfix_list"
        yield from indented(indented([*rest_lines(change), *assign_lines(name)]))
    yield "    end"
    yield from (f"    set -eg {kept}_{each}" for each in ("NEW", "OLD", "OWN"))
    yield "end"


def rest_lines(change: Change) -> Iterator[str]:
    """_stackfix_new: _stackfix_list, then the elements of _stackfix_now without those of _stackfix_drop."""
    split = "".join(f" | string split '{each}'" for each in change.separators[1:])
    yield 'if test -n "$_stackfix_now"'
    yield f'    for _stackfix_each in (string split : -- "$_stackfix_now"{split})'
    yield '        contains -- "$_stackfix_each" $_stackfix_drop'
    yield '        or set -a _stackfix_list "$_stackfix_each"'
    yield "    end"
    yield "end"
    # Without a text to join, `string` would wait for the shell's input
    yield "set -l _stackfix_new"
    yield "set -q _stackfix_list[1]; and set _stackfix_new (string join : -- $_stackfix_list)"


def assign_lines(name: str) -> Iterator[str]:
    # Never a universal variable: that would change all shells of the user, for good
    yield 'if test -n "$_stackfix_new"'
    yield f'    set -gx {name} "$_stackfix_new"'
    yield "else"
    yield f"    set -eg {name}"
    yield f'    set -q {name}; and set -gx {name} ""'
    yield "end"
