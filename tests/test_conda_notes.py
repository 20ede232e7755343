"""What is told of a conda side, and of how it failed."""

from __future__ import annotations

from stackfix.conda.builds import torch_builds
from stackfix.conda.candidates import Choice
from stackfix.conda.layouts_records import Lacking, Plan, Wish
from stackfix.conda.notes import conda_notes
from stackfix.conda.partner_reasons import Unlike, reason_of
from stackfix.conda.partner_solve import Missed
from stackfix.conda.records import (
    Channel,
    CondaCause,
    CondaConflict,
    CondaRecord,
    CondaTarget,
    Departure,
    Snapshot,
    Spec,
    VirtualPackage,
)
from stackfix.resolve.question import parse_request
from stackfix.resolve.records import Requirement, StackRequest, Target

HERE = Target(python="3.11", platform="linux-64", glibc="2.28")
FORGE = Channel(name="forge", url="https://forge.invalid/forge")


def target(**changes: object) -> CondaTarget:
    values: dict[str, object] = {
        "target": HERE, "layout": "native", "channels": (FORGE,), "priority": "strict", "virtual": (), "specs": (),
        "torch": None, "records": (), "pip": (), "departures": (), **changes}
    return CondaTarget(**values)  # type: ignore[arg-type]


def departure(about: str) -> Departure:
    return Departure(about=about, pip="1", conda="2", reason=f"why {about}", source="a.conda", breaks=False)


def test_layout_priority_cuda_and_snapshot_are_told() -> None:
    found = conda_notes([target(
        priority="disabled", virtual=(VirtualPackage(name="__cuda", version="12.1", origin="--driver 535"),),
        snapshot=Snapshot(date="2026-01-01", digest="abc", holes=(), reason="--offline"),
    )], beside=True)
    assert [note.partition(":")[0] for note in found] == [
        "conda layout", found[1], "__cuda is 12.1",
        "conda records are stackfix's own of 2026-01-01 (abc), which have holes"]
    assert found[1].startswith("channel priority is disabled")


def test_differences_of_the_stack_are_told_one_by_one_and_those_of_libraries_in_one() -> None:
    found = conda_notes([target(departures=(departure("cuda"), departure("libcublas"), departure("nccl")))],
                        beside=True)
    assert found[1:] == (
        "cuda is 2 for conda and 1 for pip: why cuda",
        "of other versions than in the pip lock: libcublas, nccl; each has its reason in the files and in --json")


def test_without_a_pip_lock_nothing_is_said_of_it() -> None:
    found = conda_notes([target(departures=(departure("cuda"),))], beside=False)
    assert found[1:] == ("cuda is 2 for conda: why cuda",)


def test_names_that_were_guessed_are_told() -> None:
    assert any("odd-package" in note for note in conda_notes([target(guesses=(("odd-package", "odd-package"),))],
                                                             beside=True))


def choice() -> Choice:
    record = CondaRecord(
        name="pytorch", version="2.3.1", build="cuda120_py311h1234567_300", build_number=300, subdir="linux-64",
        channel=FORGE.url, file_name="pytorch-2.3.1.conda", url=f"{FORGE.url}/linux-64/pytorch-2.3.1.conda", md5="0",
        sha256="0", depends=("cuda-version >=12.0,<13", "__cuda"), constrains=())
    return Choice(torch=torch_builds([record])[0], channels=(FORGE,))


QUESTION = parse_request(StackRequest(
    layout="native", glibc="2.17", driver="535.104",
    requirements=(Requirement(text="numpy<1", origin="--with numpy<1"),)))
NUMPY = Wish(spec=Spec(text="numpy <1a0", origin="--with numpy<1"), asks=QUESTION.ask("requirement"), project="numpy")
PYTHON = Wish(spec=Spec(text="python 3.11.*", origin="Python 3.11 of the stack"))


def missed(*causes: CondaCause, layout: str = "native") -> Missed:
    plan = Plan(layout=layout, target=HERE, choice=choice(), channels=(FORGE,), wishes=(PYTHON, NUMPY), limits=(),
                loose=(), pip=())
    return Missed(plan=plan, wishes=plan.wishes, conflict=CondaConflict(causes=causes, raw=""))


def test_a_conflict_rests_on_what_it_names_and_on_the_layout() -> None:
    reason = reason_of(QUESTION, [missed(
        CondaCause(text="numpy <1a0 is asked for", spec=NUMPY.spec),
        CondaCause(text="numpy 0.9 needs python <3.9", source="numpy-0.9.conda"),
        CondaCause(text="python 3.11.* is asked for", spec=PYTHON.spec, source=PYTHON.spec.origin),
    )])
    assert {asked.kind for asked in reason.asks} == {"requirement", "layout"}
    assert [(cause.text, cause.source) for cause in reason.chain] == [
        ("numpy 0.9 needs python <3.9", "numpy-0.9.conda"), ("the stack has python 3.11.*", PYTHON.spec.origin)]


def test_a_conflict_with_the_machine_rests_on_what_was_said_of_it() -> None:
    reason = reason_of(QUESTION, [missed(CondaCause(text="pytorch needs __glibc >=2.28", spec=PYTHON.spec))])
    assert {asked.kind for asked in reason.asks} == {"layout", "glibc"}
    driver = reason_of(QUESTION, [missed(CondaCause(text="pytorch needs __cuda", spec=PYTHON.spec))])
    assert {asked.kind for asked in driver.asks} == {"layout", "driver"}


def test_each_layout_is_named_where_they_failed_differently() -> None:
    lacking = Lacking(layout="native", kind="flash-attn", text="no flash-attn", source="records", asks=())
    unlike = Unlike(plan=missed(layout="mixed").plan, departures=(departure("nvjitlink"),))
    nothing = Lacking(layout="mixed", kind="nothing", text="it is native", source="layout mixed", asks=())
    reason = reason_of(QUESTION, [lacking, unlike, nothing])
    assert [cause.text for cause in reason.chain] == [
        "layout native: no flash-attn", "layout mixed: nvjitlink is 1 for pip and 2 for conda: why nvjitlink"]
    same = reason_of(QUESTION, [lacking, Lacking(layout="mixed", kind="flash-attn", text="no flash-attn",
                                                 source="records", asks=())])
    assert [cause.text for cause in same.chain] == ["no flash-attn"]
