"""A package of conda in place of another, as one transaction; it is linked by rattler, from a channel on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.apply.errors import Drifted, NothingToUndo, ReplacedSince
from stackfix.apply.pending import pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import forget, undo, undo_all
from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.plan.records import InstallConda, InstallWheel, Plan
from tests.apply_faults.kills import calls_of, run_killed_before
from tests.apply_faults.world import action, tree_of
from tests.conda_packages import Package
from tests.conda_world import install, served

NAME, FILE, OTHER = "libnvjitlink", "lib/libnvJitLink.so.12", "share/doc/notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A prefix, its channel, and what the steps would bring."""

    prefix: Path
    channel: str
    cache: Path

    def step(self, version: str = "12.4", **changes: Any) -> InstallConda:
        step = InstallConda(
            project=NAME, version=version, build="0", url=f"{self.channel}/linux-64/{NAME}-{version}-0.tar.bz2",
            sha256="0" * 64, program=("conda",), replaces=(f"{NAME} 12.0",),
            records=(f"conda-meta/{NAME}-12.0-0.json",))
        return replace(step, **changes)

    def link(self, step: InstallConda, into: Path) -> None:
        """The package in the folder, as an installer of conda's packages links it."""
        install(into, self.channel, [f"{step.project} =={step.version}"], self.cache)
        [record] = (into / "conda-meta").glob("*.json")
        stated = json.loads(record.read_text())
        record.write_text(json.dumps({**stated, "sha256": step.sha256, "requested_spec": "what the command said"}))
        (into / "conda-meta" / "history").write_text("==> now <==\n")
        (into / "unknown").write_text("of no package\n")

    def apply(self, step: InstallConda, *, link: Callable[[InstallConda, Path], None] | None = None) -> object:
        plan = Plan(prefix=str(self.prefix), actions=(action("install-1", "install", step),), left=())
        return apply_plan(plan, self.prefix, installer=no_wheels, linker=link or self.link)

    def text(self, path: str) -> str:
        return (self.prefix / path).read_text()


def no_wheels(step: InstallWheel, _: Path, /) -> None:
    raise AssertionError(step)


def release(version: str, name: str = NAME, **more: bytes) -> Package:
    own = {path.replace("__", "/"): body for path, body in more.items()}
    files = {FILE: version.encode(), OTHER: b"the same", **own}
    return Package(name=name, version=version, files=files, links={"lib/libnvJitLink.so": "libnvJitLink.so.12"})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    packages = [release("12.0", only__old=b"1"), release("12.4", only__new=b"2"),
                release("13.0", bin__placeholder=b""), Package(name="beside", version="1", files={"lib/beside": b"1"}),
                Package(name=NAME, version="14.0", files={"lib/x": b"1"}, links={"lib/out": "../../outside"}),
                Package(name=NAME, version="15.0", files={f"bin/.{NAME}-post-link.sh": b"exit 0\n", FILE: b"15"})]
    with served(tmp_path / "channel", packages) as channel:
        prefix = install(tmp_path / "env", channel, (f"{NAME} ==12.0", "beside"), tmp_path / "cache")
        record = prefix / "conda-meta" / f"{NAME}-12.0-0.json"
        stated = json.loads(record.read_text())
        record.unlink()
        record.write_text(json.dumps({**stated, "requested_spec": "libnvjitlink<13"}))
        yield Place(prefix=prefix, channel=channel, cache=tmp_path / "cache")


def test_another_release_comes_and_goes_again(place: Place) -> None:
    before = tree_of(place.prefix)
    place.apply(place.step())
    assert (place.text(FILE), place.text("only/new"), place.text("lib/beside")) == ("12.4", "2", "1")
    assert (place.prefix / "lib/libnvJitLink.so").readlink() == Path("libnvJitLink.so.12")
    assert not any((place.prefix / each).exists() for each in ("only/old", "unknown"))
    names = {each.name for each in (place.prefix / "conda-meta").iterdir()}
    assert {each for each in names if each.startswith(NAME)} == {f"{NAME}-12.4-0.json"}
    stated = json.loads(place.text(f"conda-meta/{NAME}-12.4-0.json"))
    assert (stated["version"], stated["requested_spec"]) == ("12.4", "libnvjitlink<13")     # the user's, and not ours
    assert "==> now <==" not in "".join(place.text(f"conda-meta/{each}") for each in names if each == "history")
    undo(place.prefix)
    assert tree_of(place.prefix) == before


def test_the_same_release_comes_again(place: Place) -> None:
    (place.prefix / FILE).unlink()
    before = tree_of(place.prefix)
    place.apply(place.step("12.0"))
    assert place.text(FILE) == "12.0"
    undo(place.prefix)
    assert tree_of(place.prefix) == before


def test_what_another_record_lists_too_stays(place: Place) -> None:
    record = place.prefix / "conda-meta" / "beside-1-0.json"
    stated = json.loads(record.read_text())
    record.unlink()
    record.write_text(json.dumps({**stated, "files": [*stated["files"], "only/old"]}))
    place.apply(place.step())
    assert place.text("only/old") == "1"


@pytest.mark.parametrize("forced", [False, True])
def test_a_package_that_conda_put_over_ours_stays(forced: bool, place: Place) -> None:
    """Files moved aside would leave conda's record of the newer one, or two of them."""
    place.apply(place.step())
    install(place.prefix, place.channel, (f"{NAME} ==13.0", "beside"), place.cache)
    before = tree_of(place.prefix)
    with pytest.raises(ReplacedSince, match=r"13\.0 was installed after the repair, over its 12\.4") as caught:
        undo(place.prefix, forced=forced)
    assert "--force" not in caught.value.next_step()
    assert tree_of(place.prefix) == before
    forget(place.prefix)
    assert not (place.prefix / ".stackfix").exists()
    assert place.text(FILE) == "13.0"
    assert [each.name for each in (place.prefix / "conda-meta").glob(f"{NAME}*")] == [f"{NAME}-13.0-0.json"]


@pytest.mark.parametrize(("step", "fault", "says"), [
    ({"version": "14.0"}, BadInput, "out of the environment"), ({"version": "15.0"}, BadInput, "post-link.sh"),
    ({"version": "12.4", "build": "1"}, Unreachable, "brought conda-meta/libnvjitlink-12.4-0.json"),
    ({"version": "12.4", "replaces": ("libnvjitlink 11",)}, Drifted, ""),
    ({"version": "12.4", "records": ("conda-meta/none.json",)}, Drifted, ""),
    ({"version": "12.4", "records": ("lib/libnvJitLink.so.12",)}, BadInput, "conda-meta"),
    ({"version": "12.4", "records": ("../conda-meta/x.json",)}, StackfixError, ""),
    ({"version": "../../12.4"}, StackfixError, ""), ({"project": "a b"}, BadInput, "has a blank"),
], ids=str)
def test_what_cannot_be_taken_back_or_is_another_is_refused(step: dict[str, Any], fault: type[StackfixError], says: str,
                                                            place: Place) -> None:
    before = tree_of(place.prefix)
    with pytest.raises(fault) as raised:
        place.apply(place.step(**step))
    assert says in raised.value.what()
    assert tree_of(place.prefix) == before


def test_a_failing_link_changes_nothing(place: Place) -> None:
    before = tree_of(place.prefix)

    def fails(step: InstallConda, into: Path) -> None:
        place.link(step, into)
        raise Unreachable(step.file, "conda does not link it")

    with pytest.raises(Unreachable, match="does not link"):
        place.apply(place.step(), link=fails)
    assert tree_of(place.prefix) == before


def test_a_kill_leaves_what_can_be_taken_back(place: Place, tmp_path: Path) -> None:
    """Before each tenth call that changes the disk."""
    made = install(tmp_path / "linked", place.channel, [f"{NAME} ==12.4"], place.cache)
    [record] = (made / "conda-meta").glob("*.json")
    stated = {**json.loads(record.read_text()), "sha256": "0" * 64}

    def link(step: InstallConda, into: Path) -> None:
        for path in (FILE, OTHER, "only/new"):
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_bytes((made / path).read_bytes())
        (into / "lib/libnvJitLink.so").symlink_to("libnvJitLink.so.12")
        (into / "conda-meta").mkdir()
        (into / step.record).write_text(json.dumps(stated))

    before = tree_of(place.prefix)
    calls = calls_of(lambda: place.apply(place.step(), link=link)).total()
    undo(place.prefix)
    assert tree_of(place.prefix) == before
    assert calls > 40
    for call in range(1, calls + 1, 10):
        ended = run_killed_before(call, lambda: place.apply(place.step(), link=link))
        assert ended.killed
        found = pending(place.prefix)
        if found is not None and found.number is not None:
            take_back(place.prefix, forced=True)
        else:
            with suppress(NothingToUndo):
                undo_all(place.prefix)
        now = {path: facts for path, facts in tree_of(place.prefix).items() if not path.startswith(".stackfix")}
        assert now == before, call

