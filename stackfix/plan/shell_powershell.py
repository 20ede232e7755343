"""Activation in PowerShell. A variable that is empty is one that is not set, so what is remembered begins with "="."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stackfix.plan.shell_posix import indented
from stackfix.plan.shell_words import Change, Word

SUFFIX = ".ps1"
QUOTES = re.compile("(['\u2018\u2019\u201a\u201b])")   # all of them end a text in single quotes


def quoted(word: Word, home: str) -> str:
    literal = "'" + QUOTES.sub(r"\1\1", word.text) + "'"
    return f"(${{Env:{home}}} + {literal})" if word.in_prefix else literal


def listed(words: Sequence[Word], home: str) -> str:
    return "@(" + ", ".join(quoted(each, home) for each in words) + ")"


def set_lines(changes: Sequence[Change], home: str) -> list[str]:
    """Lines that keep what was there, and set the variables. Once more, they do nothing."""
    return [f"if (${{Env:{home}}}) {{", *indented(line for each in changes for line in set_one(each, home)), "}"]


def set_one(change: Change, home: str) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield f"if (('=' + ${{Env:{name}}}) -cne ${{Env:{kept}_NEW}}) {{"
    yield f"    ${{Env:{kept}_OLD}} = ${{Env:{name}}}"
    if change.value is not None:
        yield f"    $StackfixNew = {quoted(change.value, home)}"
    else:
        yield f"    $StackfixDrop = {listed(change.drop, home)}"
        yield f"    $StackfixNew = {listed(change.first, home)}"
        yield from indented(rest_lines(change))
        yield f"    ${{Env:{kept}_OWN}} = {listed(change.own, home)} -join ':'"
    yield f"    ${{Env:{kept}_NEW}} = '=' + $StackfixNew"
    yield f"    ${{Env:{name}}} = $StackfixNew"
    yield "    Remove-Variable -Name StackfixNew"
    yield "}"


def restore_lines(changes: Sequence[Change]) -> list[str]:
    """Lines that put back what was there. What was changed meanwhile only loses what activation put there."""
    return [line for each in changes for line in restore_one(each)]


def restore_one(change: Change) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield f"if (${{Env:{kept}_NEW}}) {{"
    yield f"    if (('=' + ${{Env:{name}}}) -ceq ${{Env:{kept}_NEW}}) {{"
    yield f"        ${{Env:{name}}} = ${{Env:{kept}_OLD}}"
    yield "    }"
    if change.value is None:
        yield f"    elseif (${{Env:{name}}}) {{"
        yield f"        $StackfixDrop = @(${{Env:{kept}_OWN}} -split ':' -ne '')"
        yield "        $StackfixNew = @()"
        yield from indented(indented(rest_lines(change)))
        yield f"        ${{Env:{name}}} = $StackfixNew"
        yield "        Remove-Variable -Name StackfixNew"
        yield "    }"
    yield from (f"    ${{Env:{kept}_{each}}} = $null" for each in ("NEW", "OLD", "OWN"))
    yield "}"


def rest_lines(change: Change) -> Iterator[str]:
    """$StackfixNew gets the elements of the variable, without those of $StackfixDrop, and is joined."""
    yield f"if (${{Env:{change.name}}}) {{"
    yield f"    $StackfixNew += @(${{Env:{change.name}}} -split '[{change.separators}]' |"
    yield "        Where-Object { $StackfixDrop -cnotcontains $_ })"
    yield "}"
    yield "$StackfixNew = $StackfixNew -join ':'"
    yield "Remove-Variable -Name StackfixDrop"
