"""A proof as text: the same bytes for the same proof, read back as it was, and no hostile text believed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from stackfix.errors import BadInput
from stackfix.inspect.places import Root
from stackfix.prove.proof_records import Proof
from stackfix.prove.proof_text import parse_proof, proof_text
from stackfix.prove.prove import Prover, Subject
from stackfix.prove.records import PlannedWheel
from stackfix.prove.trouble import visible
from tests.diagnose_world import LIBRARIES, World
from tests.prove_world import TARGET, InstalledTables, knowledge
from tests.test_prove_simulate import stack_world


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Proof:
    """The proof of a small stack that fails, so that every kind of record is in it."""
    world = stack_world(World(tmp_path_factory.mktemp("world")), "__nvJitLinkAddData_12_0")
    source = InstalledTables(world.site, Root(str(world.folder)))
    wheels = tuple(PlannedWheel(name=each.project.name, version=each.project.version, file=each.file, sha256=sha256,
                                url=None, size=None) for sha256, each in sorted(source.tables.items()))
    subject = Subject(target=TARGET, wheels=wheels, outside=(), tables=source.tables)
    return Proof(targets=(Prover(subject, source, knowledge(LIBRARIES)).proven(()),))


def test_a_proof_is_read_back_as_it_was(proof: Proof) -> None:
    text = proof_text(proof)
    assert parse_proof(text, "stack-proof.json") == proof
    assert proof_text(parse_proof(text, "stack-proof.json")) == text


def test_it_is_plain_json_with_a_schema_version(proof: Proof) -> None:
    document = json.loads(proof_text(proof))
    assert document["schema_version"] == 1
    assert document["targets"][0]["environments"][0]["troubles"][0]["symbols"] == ["__nvJitLinkAddData_12_1"]
    assert "/planned" not in proof_text(proof)


def test_fields_of_a_later_release_are_passed_over(proof: Proof) -> None:
    document = json.loads(proof_text(proof))
    document["more"] = document["targets"][0]["more"] = {"a": 1}
    assert parse_proof(json.dumps(document), "x") == proof


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", "{}", "[" * 100_000, '{"kind": "stackfix stack proof"}', "1" * 5000,
    '{"kind": "stackfix stack proof", "schema_version": 2, "targets": []}',
    '{"kind": "stackfix stack proof", "schema_version": "1", "targets": []}',
    '{"kind": "stackfix stack proof", "schema_version": 1, "targets": {}}',
    '{"kind": "stackfix stack proof", "schema_version": 1, "targets": [1]}', "\ud800",
])
def test_what_is_no_proof_is_one_error(text: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_proof(text, "some/stack-proof.json")
    assert raised.value.what().startswith("some/stack-proof.json: ")
    assert raised.value.next_step() == "make it again: stackfix lock --prove"


def test_a_proof_that_is_damaged_anywhere_is_read_or_refused(proof: Proof) -> None:
    text, rng = proof_text(proof), random.Random(7)        # noqa: S311 - no secret: the same damage each time
    for _ in range(300):
        start = rng.randrange(len(text))
        damaged = text[:start] + rng.choice(["", "0", '"', "[", "null", "{}", "-1", "1e999"]) + text[
            start + rng.randrange(6):]
        with suppress(BadInput):
            parse_proof(damaged, "x")


@pytest.mark.parametrize(("spoil", "told"), [
    (lambda target: target.pop("wheels"), "targets[0]: a field 'wheels'"),
    (lambda target: target.update(wheels="all"), "targets[0].wheels: a list"),
    (lambda target: target["files"][0].update(size=-1), "targets[0].files[0].size: a number"),
    (lambda target: target["files"][0].update(size=True), "targets[0].files[0].size: a number"),
    (lambda target: target["imports"][0].update(maps=[None]), "targets[0].imports[0].maps[0]: text"),
    (lambda target: target["environments"][0].update(variables=[["A"]]), "variables[0]: a list of 2"),
])
def test_the_way_to_what_is_wrong_is_told(spoil: Callable[[Any], object], told: str, proof: Proof) -> None:
    document = json.loads(proof_text(proof))
    spoil(document["targets"][0])
    with pytest.raises(BadInput, match=r".*") as raised:
        parse_proof(json.dumps(document), "x")
    assert told in raised.value.reason


def test_a_proof_that_is_too_large_is_refused() -> None:
    with pytest.raises(BadInput, match="more than 32 MB"):
        parse_proof(" " * (33 << 20), "x")


def test_names_that_are_no_text_are_written_and_read_back(proof: Proof) -> None:
    name = "lib\udce9\x1b[31m.so"
    target = proof.targets[0]
    odd = replace(proof, targets=(replace(target, files=(replace(target.files[0], path=name),)),))
    text = proof_text(odd)
    assert text.isascii()
    assert parse_proof(text, "x") == odd
    assert visible(name) == "lib\\udce9\\x1b[31m.so"
    assert visible("plain") == "plain"
