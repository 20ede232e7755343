"""The whole command: its document, its lines for people, its exit status, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.explain.rules import read_rules
from stackfix.explain.rules_wanted import read_rules_for
from stackfix.explain.text import read_text
from stackfix.report.explain import explanation_lines
from stackfix.report.lines import Manner
from stackfix.report.style import plain
from tests.cli_world import Say
from tests.test_project_imports import HEAVY, loaded_by

LINE = ("ImportError: /opt/x/lib/python3.10/site-packages/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol:"
        " __nvJitLinkComplete_12_4, version libnvJitLink.so.12")
CAUSE = {"summary", "because", "culprit", "confirm", "cure", "avoid", "here"}


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that runs the tests is not asked about."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)


def test_the_document(say: Say) -> None:
    said = say("explain", "--json", LINE)
    document = said.json
    assert (said.status, said.err) == (0, "")
    assert list(document) == ["schema_version", "kind", "causes", "messages", "read", "environment"]
    assert (document["schema_version"], document["kind"], document["environment"]) == (1, "undefined-symbol", None)
    for cause in document["causes"]:
        assert set(cause) == CAUSE
        assert isinstance(cause["because"], list)
        assert all(isinstance(cause[key], str) for key in ("summary", "cure"))
        assert all(cause[key] is None or isinstance(cause[key], str) for key in ("culprit", "confirm", "avoid"))
    message = document["messages"][0]
    assert (message["line"], message["text"], message["causes"]) == (1, LINE, len(document["causes"]))
    assert message["fields"]["symbol"] == "__nvJitLinkComplete_12_4"
    assert document["read"] == {"prefix": "/opt/x", "python": "3.10", "site": "/opt/x/lib/python3.10/site-packages"}


def test_an_unknown_error_is_said_to_be_unknown_with_what_was_read_from_it(say: Say) -> None:
    text = ('Traceback (most recent call last):\n  File "/srv/app/main.py", line 3, in <module>\n'
            "ImportError: libfoo.so.3: undefined symbol: _ZN3foo3barEi\nfoo==1.2.3")
    said = say("explain", text)
    assert (said.status, said.err) == (1, "")
    assert said.out.startswith("unknown: ")
    for told in ("ImportError", "libfoo.so.3", "foo::bar(int)", "foo==1.2.3", "/srv/app/main.py"):
        assert told in said.out
    document = say("explain", "--json", text)
    assert (document.status, document.json["kind"], document.json["causes"]) == (1, "unknown", [])
    assert document.json["read"]["exception"] == "ImportError"


def test_quiet_and_verbose(say: Say) -> None:
    usual, quiet, verbose = (say("explain", *words, LINE).out for words in ((), ("-q",), ("-v",)))
    assert len(quiet.splitlines()) == 2
    assert quiet.splitlines()[1].startswith("cure: ")
    assert "read from the text:" in verbose
    assert "read from the text:" not in usual
    assert say("explain", "-q", "what is this").out.count("\n") == 1


@pytest.mark.parametrize(("words", "coloured"), [
    (("--color", "always"), True), (("--color", "never"), False), ((), False),
])
def test_colour(words: tuple[str, ...], coloured: bool, say: Say) -> None:
    assert ("\x1b[" in say("explain", *words, LINE).out) is coloured


def test_what_steers_a_terminal_is_not_shown(say: Say) -> None:
    for words in ((), ("-v",), ("--json",)):
        out = say("explain", *words, f"\x1b]0;title\x07{LINE}\u202e /tmp/\x9b31m\n/opt/\u202ex/a.py").out
        assert not any((ord(each) < 32 and each != "\n") or each in "\u202e\x9b" for each in out)


def test_no_login_is_shown(say: Say) -> None:
    text = f"Looking in indexes: https://me:secret@packages.example/simple\n{LINE}"
    for words in ((), ("-v",), ("--json",)):
        assert "secret" not in say("explain", *words, text).out
    assert "secret" not in say("explain", "-v", "BarError: https://me:secret@packages.example/simple").out


def test_lines_fit_the_terminal_and_commands_stay_whole() -> None:
    from stackfix.cli.explain_facts import MatrixFacts
    from stackfix.explain.derive import DERIVE
    from stackfix.explain.explain import explain

    text = read_text(LINE.encode())
    explanation = explain(text, read_rules_for(text), MatrixFacts(None), DERIVE)
    lines = list(explanation_lines(explanation, None, Manner(style=plain, verbose=True, width=80)))
    commands = [each for cause in explanation.causes for each in (cause.confirm, cause.cure, cause.avoid) if each]
    assert all(any(command in line for line in lines) for command in commands)
    whole = ("  confirm ", "  culprit ", "  cure ", "  avoid ")
    assert [line for line in lines if len(line) > 80 and " " in line.strip() and not line.startswith(whole)] == []


def test_several_messages_are_explained_the_most_decisive_first(say: Say) -> None:
    text = f"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n{LINE}\n{LINE}\n"
    document = say("explain", "--json", text).json
    kinds = [each["kind"] for each in document["messages"]]
    assert kinds[0] == document["kind"]
    assert sorted(kinds) == sorted(set(kinds))
    assert {"undefined-symbol", "driver-too-old"} <= set(kinds)


def test_of_chained_tracebacks_the_first_is_explained_first(say: Say) -> None:
    first, second = (f"ImportError: libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_{minor}, version"
                     " libnvJitLink.so.12" for minor in (4, 6))
    begin = 'Traceback (most recent call last):\n  File "a.py", line 1\n'
    chained = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    for between, wanted in ((chained, "12_4"), ("\n\n", "12_6")):
        document = say("explain", "--json", f"{begin}{first}{between}{begin}{second}\n").json
        assert wanted in document["messages"][0]["fields"]["symbol"]


def test_a_message_that_repeats_is_one_where_it_stands_first(say: Say) -> None:
    text = "\n".join(["starting", *(f"[rank{rank}]: {LINE}" for rank in range(8)), "bye"])
    messages = say("explain", "--json", text).json["messages"]
    assert [(each["line"], each["text"]) for each in messages] == [(2, LINE)]


def test_nothing_heavy_is_loaded_for_a_line() -> None:
    """Nor anything that could send a word of it anywhere."""
    loaded = loaded_by("import runpy", f"sys.argv = ['stackfix', 'explain', '--no-inspect', {LINE!r}]",
                       "runpy.run_module('stackfix', run_name='__main__')")
    assert "stackfix" in loaded
    assert loaded & ({*HEAVY, "asyncio", "concurrent", "http", "socket", "ssl"} - {"packaging"}) == set()


def test_no_rule_sends_anything_anywhere(tmp_path: Path) -> None:
    """An example of every rule, with no socket to be had."""
    texts = [each.text for rule in read_rules() for each in rule.examples[:1]]
    (tmp_path / "texts").write_text(json.dumps(texts))
    code = ("import json, sys, socket\n"
            "def refuse(*_, **__): raise SystemExit('a socket was asked for')\n"
            "socket.socket = socket.create_connection = refuse\n"
            "from stackfix.cli.app import run\n"
            "for text in json.load(open(sys.argv[1])):\n"
            "    assert run(['explain', '--no-inspect', '--', text]) == 0, text\n")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "texts")], capture_output=True, text=True,
                          check=False, timeout=300, env={**os.environ, "NO_COLOR": "1"})
    assert (done.returncode, done.stderr) == (0, "")


def test_another_matrix_without_rules_is_said(tmp_path: Path, say: Say) -> None:
    said = say("explain", "--matrix", tmp_path, LINE)
    assert said.status == 2
    assert "errors: cannot be read" in said.err
