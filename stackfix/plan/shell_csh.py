"""Activation in tcsh and csh. Neither can part a text at colons: /bin/sh does, with all that it needs in variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.plan.shell_posix import indented
from stackfix.plan.shell_words import Change, Word

SUFFIX = ".csh"
# Neither a quote nor an exclamation mark may be in it
PART = ('p=$_STACKFIX_FIRST; r=${_STACKFIX_NOW:+$_STACKFIX_NOW:}; while [ -n "$r" ]; do e=${r%%[SEPARATORS]*}; '
        'r=${r#*[SEPARATORS]}; case $_STACKFIX_DROP in *":$e:"*) ;; *) p=$p:$e;; esac; done; printf %s "${p#:}"')


def literal(text: str) -> str:
    """In single quotes, in which only the history's exclamation mark still counts."""
    return "'" + text.replace("'", "'\\''").replace("!", "\\!") + "'"


def quoted(word: Word) -> str:
    return f'"$_stackfix_home:q"{literal(word.text)}' if word.in_prefix else literal(word.text)


def joined(words: Sequence[Word]) -> str:
    return "".join(f"':'{quoted(each)}" for each in words) or "''"


def set_lines(changes: Sequence[Change], home: str) -> list[str]:
    """Lines that keep what was there, and set the variables. Once more, they do nothing."""
    return [*home_lines(home), *(line for each in changes for line in set_one(each)), "unset _stackfix_home"]


def home_lines(home: str) -> Iterator[str]:
    # A variable that is not set is an error also in an `if` on one line, or behind `&&`
    yield "set _stackfix_home = ''"
    yield f"if ($?{home}) then"
    yield f'    set _stackfix_home = "${home}:q"'
    yield "endif"


def now_lines(change: Change) -> Iterator[str]:
    yield "set _stackfix_now = ''"
    yield f"if ($?{change.name}) then"
    yield f'    set _stackfix_now = "${change.name}:q"'
    yield "endif"
    yield "set _stackfix_kept = '-'"
    yield f"if ($?{change.kept}_NEW) then"
    yield f'    set _stackfix_kept = "=${change.kept}_NEW:q"'
    yield "endif"


def set_one(change: Change) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield from now_lines(change)
    if change.value is not None:
        yield f"set _stackfix_new = {quoted(change.value)}"
    else:
        yield f"setenv _STACKFIX_FIRST {joined(change.first)}"
        yield f"setenv _STACKFIX_DROP {joined(change.drop)}':'"
        yield from rest_lines(change)
        yield f"set _stackfix_own = {joined(change.own)}':'"
    yield 'if ("$_stackfix_home:q" != "" && "=$_stackfix_now:q" != "$_stackfix_kept:q") then'
    yield f"    unsetenv {kept}_OLD"
    yield f'    if ($?{name}) setenv {kept}_OLD "$_stackfix_now:q"'
    yield f'    setenv {kept}_NEW "$_stackfix_new:q"'
    if change.value is None:
        yield f'    setenv {kept}_OWN "$_stackfix_own:q"'
    yield from indented(assign_lines(name))
    yield "endif"
    yield "unset _stackfix_now _stackfix_kept _stackfix_new _stackfix_own"


def restore_lines(changes: Sequence[Change]) -> list[str]:
    """Lines that put back what was there. What was changed meanwhile only loses what activation put there."""
    return [line for each in changes for line in restore_one(each)]


def restore_one(change: Change) -> Iterator[str]:
    name, kept = change.name, change.kept
    yield from now_lines(change)
    if change.value is None:
        yield "setenv _STACKFIX_FIRST ''"
        yield "setenv _STACKFIX_DROP ''"
        yield f"if ($?{kept}_OWN) then"
        yield f'    setenv _STACKFIX_DROP "${kept}_OWN:q"'
        yield "endif"
        yield from rest_lines(change)
    yield 'if ("=$_stackfix_now:q" == "$_stackfix_kept:q") then'
    yield f"    if ($?{kept}_OLD) then"
    yield f'        setenv {name} "${kept}_OLD:q"'
    yield "    else"
    yield f"        unsetenv {name}"
    yield "    endif"
    if change.value is None:
        yield 'else if ("$_stackfix_now:q" != "" && "$_stackfix_kept:q" != "-") then'
        yield from indented(assign_lines(name))
    yield "endif"
    yield from (f"unsetenv {kept}_{each}" for each in ("NEW", "OLD", "OWN"))
    yield "unset _stackfix_now _stackfix_kept _stackfix_new"


def rest_lines(change: Change) -> Iterator[str]:
    """_stackfix_new: _STACKFIX_FIRST, then the elements of _stackfix_now without those of _STACKFIX_DROP."""
    yield 'setenv _STACKFIX_NOW "$_stackfix_now:q"'
    yield f"setenv _STACKFIX_PART '{PART.replace('SEPARATORS', change.separators)}'"
    yield 'set _stackfix_new = "`printenv _STACKFIX_PART | /bin/sh`"'
    yield from (f"unsetenv _STACKFIX_{each}" for each in ("FIRST", "DROP", "NOW", "PART"))


def assign_lines(name: str) -> Iterator[str]:
    yield 'if ("$_stackfix_new:q" != "") then'
    yield f'    setenv {name} "$_stackfix_new:q"'
    yield "else"
    yield f"    unsetenv {name}"
    yield "endif"
