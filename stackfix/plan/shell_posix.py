"""Activation in bash, zsh, ksh, dash: nothing but POSIX, and safe below `set -eu`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from stackfix.plan.shell_words import Change, Word

SUFFIX = ".sh"
ESCAPED = re.compile(r'["$`\\]')      # what counts in double quotes


def quoted(word: Word, home: str) -> str:
    literal = "'" + word.text.replace("'", "'\\''") + "'"
    return f'"${home}"{literal}' if word.in_prefix else literal


def joined(words: Iterable[Word], home: str) -> str:
    """Each with a colon before it."""
    return "".join(f":{quoted(each, home)}" for each in words)


def set_lines(changes: Sequence[Change], home: str) -> list[str]:
    """Lines that keep what was there, and set the variables. Once more, they do nothing."""
    lines = indented(line for each in changes for line in set_one(each, home))
    return [f'if [ -n "${{{home}-}}" ]; then', *lines, "fi"]


def set_one(change: Change, home: str) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield f'if [ -z "${{{kept}_NEW+x}}" ] || [ "${{{name}-}}" != "${kept}_NEW" ]; then'
    yield f"    unset {kept}_OLD"
    yield f'    if [ -n "${{{name}+x}}" ]; then export {kept}_OLD="${name}"; fi'
    if change.value is not None:
        yield f"    export {name}={quoted(change.value, home)}"
    else:
        yield f"    _stackfix_drop={joined(change.drop, home)}:"
        yield from indented(rest_lines(change))
        yield from indented([in_front(change, home)] if change.first else assign_lines(name))
        yield "    unset _stackfix_rest"
        yield f"    export {kept}_OWN={joined(change.own, home)}:"
    yield f'    export {kept}_NEW="${{{name}-}}"'
    yield "fi"


def in_front(change: Change, home: str) -> str:
    """The assignment as people write it, and as `stackfix check` reads it in a script."""
    folders = ":".join(("$" + home) * each.in_prefix + ESCAPED.sub(r"\\\g<0>", each.text) for each in change.first)
    return f'export {change.name}="{folders}$_stackfix_rest"'


def restore_lines(changes: Sequence[Change]) -> list[str]:
    """Lines that put back what was there. What was changed meanwhile only loses what activation put there."""
    return [line for each in changes for line in restore_one(each)]


def restore_one(change: Change) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield f'if [ -n "${{{kept}_NEW+x}}" ]; then'
    yield f'    if [ "${{{name}-}}" = "${kept}_NEW" ]; then'
    yield f'        if [ -n "${{{kept}_OLD+x}}" ]; then export {name}="${kept}_OLD"; else unset {name}; fi'
    if change.value is None:
        yield f'    elif [ -n "${{{name}-}}" ]; then'
        yield f'        _stackfix_drop="${{{kept}_OWN-}}"'
        yield from indented(indented([*rest_lines(change), *assign_lines(name), "unset _stackfix_rest"]))
    yield "    fi"
    yield f"    unset {kept}_NEW {kept}_OLD {kept}_OWN"
    yield "fi"


def rest_lines(change: Change) -> Iterator[str]:
    """_stackfix_rest: the elements of the variable without those of _stackfix_drop, each with a colon before it."""
    yield f'_stackfix_rest="${{{change.name}:+:${change.name}}}"'
    yield "_stackfix_left="
    yield 'while [ -n "$_stackfix_rest" ]; do'
    yield '    _stackfix_rest="${_stackfix_rest#?}"'
    yield f'    _stackfix_each="${{_stackfix_rest%%[{change.separators}]*}}"'
    yield '    _stackfix_rest="${_stackfix_rest#"$_stackfix_each"}"'
    yield '    case "$_stackfix_drop" in'
    yield '        *":$_stackfix_each:"*) ;;'
    yield '        *) _stackfix_left="$_stackfix_left:$_stackfix_each" ;;'
    yield "    esac"
    yield "done"
    yield '_stackfix_rest="$_stackfix_left"'
    yield "unset _stackfix_drop _stackfix_left _stackfix_each"


def assign_lines(name: str) -> Iterator[str]:
    rest = "${_stackfix_rest#:}"
    yield f'if [ -n "{rest}" ]; then export {name}="{rest}"; else unset {name}; fi'


def indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
