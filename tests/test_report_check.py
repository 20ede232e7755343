"""What `stackfix check` prints, and its JSON document, from records alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from stackfix.diagnose.finding_records import (
    LEVELS,
    BuiltFor,
    Culprit,
    Diagnosis,
    Finding,
    Install,
    Level,
    Requester,
)
from stackfix.inspect.environment_records import Note
from stackfix.inspect.machine_records import Undecided
from stackfix.report.check import at_or_above, check_lines
from stackfix.report.check_json import finding_document
from stackfix.report.json import render_json
from stackfix.report.lines import Manner
from stackfix.report.printable import printable, printable_json
from stackfix.report.style import plain

SHADOW = Finding(
    code="SF101", kind="shadowed-library", severity="error", level="cuda",
    summary="/opt/cuda/lib64/libnvJitLink.so.12 wins and lacks 5 symbols that libcusparse.so.12 needs",
    why="LD_LIBRARY_PATH is searched before the RUNPATH of libcusparse.so.12.",
    culprit=Culprit(path="/opt/cuda/lib64/libnvJitLink.so.12", variable="LD_LIBRARY_PATH"),
    requester=Requester(path="/venv/lib/libcusparse.so.12", package="nvidia-cusparse-cu12 12.1.0.106"),
    symbols=tuple(f"__nvJitLink{number}_12_1" for number in range(5)), evidence=("one", "two", "three", "four"),
    error="/venv/lib/libcusparse.so.12: undefined symbol: __nvJitLink0_12_1, version libnvJitLink.so.12",
    winner="/opt/cuda/lib64/libnvJitLink.so.12", loser="/venv/lib/libnvJitLink.so.12",
    cure=("unset LD_LIBRARY_PATH",), repairable=True,
)
NOTE = Finding(code="SF1103", kind="current-folder-on-path", severity="note", level="environment",
               summary="an empty element of LD_LIBRARY_PATH is the current folder", why="",
               culprit=Culprit(variable="LD_LIBRARY_PATH"), why_not="the shell sets it")
PYRAMID = tuple(Level(name=name, verdict="error" if name == "cuda" else "ok", text=f"{name} of this machine")
                for name in LEVELS)
CLEAN = Diagnosis(levels=PYRAMID, findings=(), undecided=())
SICK = replace(CLEAN, findings=(SHADOW, NOTE), undecided=(Undecided(subject="driver", reason="no NVIDIA card"),))
PLAIN = Manner(style=plain)


def lines(diagnosis: Diagnosis, manner: Manner = PLAIN, notes: tuple[Note, ...] = ()) -> list[str]:
    return list(check_lines(diagnosis, notes, "/venv", manner))


def test_the_first_line_is_the_worst() -> None:
    assert lines(SICK)[:4] == ["1 error in /venv", f"  {SHADOW.summary}", "  cure: unset LD_LIBRARY_PATH", ""]
    assert lines(CLEAN)[0] == "nothing wrong found in /venv"
    assert lines(replace(SICK, findings=(NOTE,)))[0] == "nothing wrong found in /venv"
    warning = replace(SHADOW, severity="warning")
    assert lines(replace(SICK, findings=(SHADOW, warning, warning)))[0] == "1 error, 2 warnings in /venv"


def test_the_pyramid_has_a_verdict_for_each_level() -> None:
    said = [re.split(r"\s{2,}", line.strip()) for line in lines(SICK)[4:10]]
    assert said == [
        [{"cuda": "CUDA", "cudnn": "cuDNN"}.get(each.name, each.name), each.verdict, each.text] for each in PYRAMID]


def test_a_finding_says_what_why_evidence_and_cure() -> None:
    text = "\n".join(lines(SICK))
    assert f"""
error SF101 shadowed-library
  what      {SHADOW.summary}
  why       {SHADOW.why}
  message   {SHADOW.error}
  taken     /opt/cuda/lib64/libnvJitLink.so.12
  wanted    /venv/lib/libnvJitLink.so.12
  culprit   LD_LIBRARY_PATH
  needed by /venv/lib/libcusparse.so.12 (nvidia-cusparse-cu12 12.1.0.106)
  lacks     __nvJitLink0_12_1
            __nvJitLink1_12_1
            __nvJitLink2_12_1
            … 2 more (-v)
  evidence  one
            two
            three
            four
  cure      unset LD_LIBRARY_PATH
  more      docs/findings.md, SF101

note SF1103 {NOTE.summary}

cannot be told here:
  driver: no NVIDIA card

1 error, 1 note; 1 question open""" in text


def test_verbose_says_all() -> None:
    text = "\n".join(lines(SICK, replace(PLAIN, verbose=True), (Note(path="/venv/x", reason="not a plain file"),)))
    assert "-v" not in text
    assert all(symbol in text for symbol in SHADOW.symbols)
    assert "by hand   the shell sets it" in text
    assert "  /venv/x: not a plain file" in text


def test_remarks_on_what_was_read_are_counted() -> None:
    notes = (Note(path="/venv/x", reason="not a plain file"),) * 2
    assert lines(CLEAN, notes=notes)[-1] == "no finding; 2 remarks on what was read (-v)"


@pytest.mark.parametrize(("fail_on", "said"), [("error", ["SF101"]), ("warning", ["SF101"]),
                                               ("note", ["SF101", "SF1103"]), ("never", [])])
def test_quiet_says_only_what_counts(fail_on: str, said: list[str]) -> None:
    manner = replace(PLAIN, quiet=True, fail_on=fail_on)
    text = "\n".join(lines(SICK, manner))
    assert re.findall(r"^(?:error|note) (SF\d+)", text, re.MULTILINE) == said
    assert "question" not in text
    assert lines(CLEAN, manner) == []


def test_severities_are_compared() -> None:
    severe = {severity: [at_or_above(replace(NOTE, severity=each), severity) for each in ("error", "warning", "note")]
              for severity in ("error", "warning", "note", "never")}
    assert severe == {"error": [True, False, False], "warning": [True, True, False], "note": [True] * 3,
                      "never": [False] * 3}


def test_many_findings_and_many_notes_are_folded() -> None:
    many = tuple(replace(SHADOW, summary=f"number {number}") for number in range(9))
    notes = tuple(replace(NOTE, summary=f"remark {number}") for number in range(9))
    said = lines(replace(SICK, findings=(*many, *notes)))
    assert sum("  why " in line for line in said) == 6
    assert "3 more of 9 (in full with -v)" in said
    assert [line for line in said if " number " in line and not line.startswith("  number")] == [
        *(f"  what      number {number}" for number in range(6)),
        *(f"error SF101 number {number}" for number in range(6, 9))]
    assert "… 3 more notes (-v)" in said
    assert said[-1] == "9 errors, 9 notes; 1 question open"


def test_a_path_that_is_longer_than_the_line_stays_whole() -> None:
    path = f"/opt/{'x' * 70}/libnvJitLink.so.12"
    long = replace(SHADOW, summary=path, kind=path, cure=(path,))
    said = lines(replace(SICK, findings=(long,)), replace(PLAIN, width=60))
    assert f"  {path}" in said
    assert [line.partition("/")[2] for line in said if line.endswith("libnvJitLink.so.12") and "xxx" in line] == [
        path[1:]] * 5


def test_on_a_narrow_terminal_lines_are_broken_at_words_and_commands_stay_whole() -> None:
    long = replace(SHADOW, why="word " * 40, cure=("export LD_LIBRARY_PATH=" + ":".join(["/a/b c"] * 20),))
    said = lines(replace(SICK, findings=(long,)), replace(PLAIN, width=72))
    whole = ("cure", "message", "needed by")
    assert [line for line in said if len(line) > 72 and not line.lstrip().startswith(whole)] == []
    assert f"  cure      {long.cure[0]}" in said
    assert max(len(line) for line in lines(replace(SICK, findings=(long,)))) > 200


def test_colours_take_no_part_in_the_breaking_of_lines() -> None:
    def style(text: str, style: str) -> str:
        return f"<{style}>{text}</{style}>"

    bare = lines(SICK, replace(PLAIN, width=70))
    coloured = lines(SICK, Manner(style=style, width=70))
    assert any("<red>error</red>" in line for line in coloured)
    assert [re.sub(r"</?[a-z]+>", "", line) for line in coloured] == bare


def test_nothing_that_is_read_steers_the_terminal() -> None:
    evil = "a\x1b[2J\x07\r\nb\x9b31m\u202ec\udcff"
    found = replace(SHADOW, summary=evil, why=evil, error=evil, symbols=(evil,), evidence=(evil,), cure=(evil,),
                    culprit=Culprit(path=evil, package=evil, variable=evil), winner=None, loser=None,
                    requester=Requester(path=evil, package=evil), repairable=False, why_not=evil)
    diagnosis = Diagnosis(levels=(Level(name="cuda", verdict="error", text=evil),), findings=(found,),
                          undecided=(Undecided(subject=evil, reason=evil),))
    said = list(check_lines(diagnosis, (Note(path=evil, reason=evil),), evil, replace(PLAIN, verbose=True)))
    assert [line for line in said if not line.isprintable() and line] == []
    assert "".join(said).encode()       # a lone surrogate could not be written
    assert sum(printable(evil) in line for line in said) >= 12
    assert printable(evil) == r"a\x1b[2J\x07\r\nb\x9b31m\u202ec\xff"


def test_logins_are_left_out() -> None:
    found = replace(SHADOW, evidence=("installed from https://me:secret@packages.example/simple",))
    assert "secret" not in "\n".join(lines(replace(SICK, findings=(found,))))
    assert "https://packages.example/simple" in "\n".join(lines(replace(SICK, findings=(found,))))


def test_the_document_of_a_finding_has_every_key() -> None:
    contract = {"code", "kind", "severity", "summary", "culprit", "requester", "symbols", "evidence", "repairable",
                "why_not"}
    for each in (SHADOW, NOTE):
        document = finding_document(each)
        assert set(document) == contract | {"level", "why", "error", "winner", "loser", "cure", "installs",
                                            "built_for"}
        assert set(document["culprit"]) == {"path", "package", "variable"}
        assert json.loads(json.dumps(document)) == document
    assert finding_document(NOTE)["requester"] is None
    assert finding_document(SHADOW)["symbols"] == list(SHADOW.symbols)
    told = replace(SHADOW, built_for=BuiltFor(torch=("2.1",), string_abi="old", index=("2.1",), unknown=()), installs=(
        Install(package="nvidia-nvjitlink-cu12", manager="pip", specifier=">=12.1.55", version=None),))
    assert finding_document(told)["built_for"] == {
        "torch": ["2.1"], "string_abi": "old", "index_torch": ["2.1"], "unknown": []}
    assert [each["specifier"] for each in finding_document(told)["installs"]] == [">=12.1.55"]


def test_a_document_survives_whatever_a_file_is_called() -> None:
    evil = {"path": "a\x1b\x9b\u202e\udcff\u2028é\n"}
    text = printable_json(render_json(evil))
    assert json.loads(text) == {"schema_version": 1, **evil}
    assert text.encode()
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "é" in text
