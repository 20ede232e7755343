"""What `stackfix abi` prints: the headline for each kind of answer, and how much is said with -v and -q."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stackfix.abi.host import (
    CANNOT_TELL,
    DOES_NOT_FIT,
    FITS,
    OF_NO_RELEASE,
    Answer,
    Axis,
    Claim,
    Host,
    HostTorch,
    Lacking,
    Suggestion,
)
from stackfix.abi.records import AbiFacts, Bounds, Call, Compiled, Deciding, Nearest, PatchException, Since, TorchRange
from stackfix.inspect.fatbin_records import CodeSet, GpuArchs
from stackfix.report.abi import abi_lines, headline
from stackfix.report.abi_json import abi_document
from stackfix.report.lines import Manner
from stackfix.report.style import plain
from tests.abi_small import compiled

LONG = Deciding(name="_ZLong", demangled="torch::" + "x" * 300, file="a.so", minors=("2.3",))
SHORT = Deciding(name="_ZShort", demangled="c10::short()", file="a.so", minors=("2.3", "2.4"))
TORCH = TorchRange(asked=9, minors=("2.3", "2.4"), string_abi="old", index_minors=("2.3", "2.4"), floor=(LONG, SHORT),
                   ceiling=(), unknown=(), exceptions=(), cuda_torch=True, known=("2.3", "2.4"))
FACTS = AbiFacts(
    subject=Compiled(name="ext", version="1.0", origin="wheel", source="ext.whl", tags=(), requires=(), file_name=None,
                     files=(compiled(path="ext/_C.so"),), unreadable=()),
    torch=TORCH, cuda=(12,), cudnn=(), python=("abi3",), python_floor="3.9", machine=("x86_64",), glibc="2.27",
    libstdcxx=("GLIBCXX_3.4.21",), gpu=None, calls=(), library_bounds=(), standard=())
HOST = Host(prefix="/venv", torch=HostTorch(version="2.5.1", installed=True, string_abi="old", cuda="12.4", folders=()),
            cudnn=None, nvidia=(), python="3.11", python_abi="cp311", glibc="2.36", libstdcxx=None, standard=(),
            machine="x86_64", capabilities=())


def answer(facts: AbiFacts = FACTS, **more: Any) -> Answer:
    fields: dict[str, Any] = {"claims": (), "host": None, "axes": (), "verdict": None, "suggestions": (), "notes": (),
                              "symbols": None}
    return Answer(facts=facts, **{**fields, **more})


def lines(shown: Answer, **manner: Any) -> list[str]:
    return list(abi_lines(shown, Manner(style=plain, **manner)))


def torch(**changes: Any) -> AbiFacts:
    return replace(FACTS, torch=replace(TORCH, **changes))


@pytest.mark.parametrize(("facts", "text"), [
    (FACTS, "ext 1.0 can load with torch 2.3 to 2.4 (the index's wheels: 2.3 to 2.4)"),
    (torch(index_minors=("2.4",)), "ext 1.0 can load with torch 2.3 to 2.4 (the index's wheels: 2.4)"),
    (torch(index_minors=()),
     "ext 1.0 can load with torch 2.3 to 2.4 (the index's wheels: none, they have the other std::string)"),
    (replace(FACTS, machine=("aarch64",)), "ext 1.0 can load with torch 2.3 to 2.4 (judged by wheels for x86_64)"),
    (torch(minors=(), index_minors=(), unknown=(SHORT,), known=("2.3",)),
     ("ext 1.0 cannot load with any torch that is known: no release has 1 of the 9 symbols that it asks for; "
      "the others are those of torch 2.3")),
    (torch(minors=(), index_minors=()), "ext 1.0 cannot load with any torch that is known: none has all 9 symbols"),
    (torch(minors=(), index_minors=(), patches=("2.4.0",), index_patches=("2.4.0",)),
     "ext 1.0 can load with torch 2.4.0 alone (the index's wheels: 2.4.0)"),
    (torch(minors=(), index_minors=(), patches=("2.4.0",)),
     "ext 1.0 can load with torch 2.4.0 alone (the index's wheels: none, they have the other std::string)"),
    (torch(asked=0), "ext 1.0 is linked against torch, and asks for no symbol that could tell which"),
    (replace(FACTS, torch=None), "ext 1.0 asks nothing of torch"),
    (replace(FACTS, subject=replace(FACTS.subject, files=())),
     "ext 1.0 has no compiled file: there is nothing that a symbol could tell"),
])
def test_the_first_line_is_the_answer(facts: AbiFacts, text: str) -> None:
    assert headline(facts) == text
    assert lines(answer(facts))[0] == text


def test_never_is_a_binary_called_compatible() -> None:
    assert "compatib" not in "\n".join(lines(answer(), verbose=True)).lower()


def test_short_names_come_first_and_long_ones_are_cut_unless_all_is_wanted() -> None:
    said = lines(answer())
    short, long = (next(n for n, line in enumerate(said) if each in line) for each in ("c10::short()", "torch::xxx"))
    assert short < long
    assert max(map(len, said)) < 200
    whole = "\n".join(lines(answer(), verbose=True))
    assert "x" * 300 in whole
    assert "_ZLong, in a.so" in whole


def test_the_name_that_one_patch_alone_has_is_shown() -> None:
    alone = replace(SHORT, minors=())
    found = lines(answer(torch(minors=(), index_minors=(), patches=("2.4.0",), floor=(alone,))))
    [place] = [place for place, each in enumerate(found) if "in single patches alone:" in each]
    assert (alone.demangled or alone.name) in found[place + 1]


def test_a_patch_that_lacks_a_name_is_named() -> None:
    lacking = PatchException(version="2.4.0", key="_Zkey", exported=False)
    assert any("torch 2.4.0, which lacks _Zkey" in line for line in lines(answer(torch(exceptions=(lacking,)))))


def test_gpu_code_for_one_gpu_alone_is_told_so() -> None:
    gpu = GpuArchs(path="x", cubins=("sm_80", "sm_90a"), ptx=("compute_90",), others=(), empty=0,
                   sets=(CodeSet(archs=("sm_80",), fatbins=1),))
    assert any("sm_80 sm_90a, PTX for compute_90 (sm_90a: that GPU alone)" in line
               for line in lines(answer(replace(FACTS, gpu=gpu))))


def test_functions_are_grouped_and_limits_are_told() -> None:
    since = Since(package="nvidia-cublas-cu12", soname="libcublas.so.12", name="cublasNew", first="12.9.0.13",
                  last=None, absent_before="12.8.5.5", absent_after=None)
    bounds = Bounds(package="nvidia-cublas-cu12", soname="libcublas.so.12", versions=("12.9.0.13",), floor="12.9.0.13",
                    not_enough="12.8.5.5", ceiling=None, gone_in=None, low=("cublasNew",), high=(), unknown=())
    calls = (Call(soname="libcublas.so.12", name="cublasNew", since=(since,)),
             Call(soname="libcublas.so.12", name="cublasLost", since=()))
    facts = replace(FACTS, calls=calls, library_bounds=(bounds,))
    said = lines(answer(facts))
    assert "libcublas.so.12: 2 functions; nvidia-cublas-cu12 from 12.9.0.13 on (cublasNew)" in "\n".join(said)
    assert not any("cublasLost" in line for line in said)
    whole = lines(answer(facts), verbose=True)
    assert any("cublasNew  nvidia-cublas-cu12 since 12.9.0.13" in line for line in whole)
    assert any("cublasLost  (in no version that was read)" in line for line in whole)


def test_a_library_that_is_not_in_the_almanac_is_in_no_version_for_no_fault_of_its_own() -> None:
    facts = replace(FACTS, calls=(Call(soname="libcufft.so.11", name="cufftPlan1d", since=None),))
    said, whole = (lines(answer(facts), verbose=verbose) for verbose in (False, True))
    assert "  calls         libcufft.so.11: 1 function" in said
    assert "  calls         libcufft.so.11: 1 function (its versions are not in the almanac)" in whole
    assert [line.strip() for line in whole if "cufftPlan1d" in line] == ["cufftPlan1d"]
    assert abi_document(answer(facts))["calls"] == [{"soname": "libcufft.so.11", "name": "cufftPlan1d", "since": None}]


def test_what_asks_nothing_of_torch_is_not_said_to_fit_torch() -> None:
    facts, axis = replace(FACTS, torch=None), Axis(name="machine", verdict=FITS, needs="x", has="x", reason="the same")
    assert "fits what is in /venv" in lines(answer(facts, host=HOST, axes=(axis,), verdict=FITS))
    alone = replace(HOST, prefix=None)
    assert "fits the libraries that torch 2.5.1 pins" in lines(answer(facts, host=alone, axes=(axis,), verdict=FITS))
    assert "fits torch 2.5.1 in /venv" in lines(answer(host=HOST, axes=(axis,), verdict=FITS))
    own = replace(facts, subject=replace(FACTS.subject, name="torch", version="2.5.1"))
    assert headline(own) == "torch 2.5.1 is torch itself"


def test_many_libraries_that_are_nowhere_are_cut_short() -> None:
    axis = Axis(name="needs", verdict=CANNOT_TELL, needs="a.so, b.so, c.so, d.so, e.so", has=None, reason="not found")
    shown = answer(host=HOST, axes=(axis,), verdict=CANNOT_TELL)
    assert any("a.so, b.so, c.so and 2 more (-v): not found" in line for line in lines(shown))
    assert any("a.so, b.so, c.so, d.so, e.so: not found" in line for line in lines(shown, verbose=True))
    three = answer(host=HOST, axes=(replace(axis, needs="a.so, b.so, c.so"),), verdict=CANNOT_TELL)
    assert any("a.so, b.so, c.so: not found" in line for line in lines(three))


def test_names_of_no_release_are_told_once() -> None:
    unknown = replace(LONG, name="_ZFork", demangled="c10::fork()", minors=())
    facts = torch(minors=(), index_minors=(), unknown=(unknown,), known=("2.3",), floor=(SHORT,), ceiling=(SHORT,))
    said = lines(answer(facts, claims=(Claim(source="version", text="torch2.3", says="torch 2.3", found=OF_NO_RELEASE,
                                             holds=False),)))
    assert "but its version says torch 2.3 (torch2.3), its symbols are of no release" in said
    assert any("no release has:" in line for line in said)
    assert not any(word in line for line in said for word in ("begins last", "ends first", "c10::short()"))
    none = lines(answer(torch(minors=(), index_minors=(), known=(), floor=(SHORT,), ceiling=(LONG,))))
    assert any("begins last" in line for line in none)


def compared() -> Answer:
    missing = tuple(Lacking(name=f"_Z{number}", demangled=f"c10::f{number}()", file="a.so") for number in range(9))
    return answer(host=HOST, verdict=DOES_NOT_FIT, axes=(
        Axis(name="torch", verdict=DOES_NOT_FIT, needs="2.3 to 2.4", has="2.5.1", reason="torch lacks 9 of 9 symbols",
             missing=missing),
        Axis(name="Python", verdict=FITS, needs="abi3", has="cp311", reason="the stable ABI"),
        Axis(name="libcublas.so.12", verdict=FITS, needs="2 functions", has="x", reason="it has them all"),
        Axis(name="libcudnn.so.9", verdict=CANNOT_TELL, needs="1 function", has=None, reason="no such library")),
        claims=(Claim(source="file name", text="torch2.6", says="torch 2.6", found="torch 2.3 to 2.4", holds=False),
                Claim(source="wheel tag", text="linux_x86_64", says="x86_64", found="x86_64", holds=True)),
        suggestions=(Suggestion(nearest=Nearest(package="torch", version="2.4.1", build="cu121", basis="symbols"),
                                command="stackfix lock --torch 2.4.1"),),
        notes=(("x\x1b[31m.so", "is no ELF file"),))


def test_what_does_not_fit_is_told_with_its_reason_and_what_would() -> None:
    said = "\n".join(lines(compared()))
    assert "does not fit torch 2.5.1 in /venv" in said
    assert "but its file name says torch 2.6 (torch2.6), its symbols say torch 2.3 to 2.4" in said
    assert "c10::f0()" in said
    assert "c10::f3()" not in said
    assert "… 6 more (-v)" in said
    assert "torch 2.4.1 (cu121), as its symbols say" in said
    assert "stackfix lock --torch 2.4.1" in said
    assert "libcublas" not in said
    assert "1 of NVIDIA's have all functions" in said
    assert "libcudnn.so.9  cannot tell" in said
    assert "\x1b" not in said
    assert "c10::f8()" in "\n".join(lines(compared(), verbose=True))


def test_quiet_tells_only_what_is_wrong() -> None:
    said = "\n".join(lines(compared(), quiet=True))
    assert "torch lacks 9" in said
    assert "file name says torch 2.6" in said
    for each in ("Python", "libcudnn", "nearest", "can load"):
        assert each not in said
    assert lines(answer(), quiet=True) == []


def test_lines_are_as_wide_as_the_terminal() -> None:
    said = [line for line in lines(compared(), width=80) if "::" not in line]
    assert max(map(len, said)) <= 80


def test_the_document_is_json_with_every_key() -> None:
    documents = [json.loads(json.dumps(abi_document(each))) for each in (answer(), compared(), answer(replace(
        FACTS, torch=None)), answer(symbols=(SHORT,)))]
    assert len({tuple(each) for each in documents}) == 1
    assert (documents[0]["fit"], documents[2]["torch"]) == (None, None)
    assert documents[1]["fit"]["axes"][0]["missing"][0] == {"name": "_Z0", "demangled": "c10::f0()", "file": "a.so"}
    assert documents[3]["symbols"][0]["minors"] == ["2.3", "2.4"]
