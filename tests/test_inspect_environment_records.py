"""Every record of an environment and of a machine survives JSON, whatever is in it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackfix.inspect import environment_records, machine_records
from stackfix.inspect.environment_records import Environment
from stackfix.inspect.machine_records import Machine
from stackfix.inspect.plain import from_json, to_json

RECORDS = [each for module in (environment_records, machine_records) for each in vars(module).values()
           if dataclasses.is_dataclass(each) and isinstance(each, type)]


def test_all_records_are_frozen() -> None:
    assert len(RECORDS) > 30
    assert all(each.__dataclass_params__.frozen for each in RECORDS)    # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [each for each in RECORDS if each not in (Environment, Machine)],
                         ids=lambda kind: kind.__name__)
@settings(max_examples=15, deadline=None)
@given(draw=st.data())
def test_a_record_survives_json(kind: type, draw: st.DataObject) -> None:
    record: Any = draw.draw(st.from_type(kind))
    assert from_json(json.loads(json.dumps(to_json(record))), kind) == record


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(environment=st.from_type(Environment), machine=st.from_type(Machine))
def test_a_whole_description_survives_json(environment: Environment, machine: Machine) -> None:
    for record in (environment, machine):
        assert from_json(json.loads(json.dumps(to_json(record))), type(record)) == record


def test_names_that_are_no_utf_8_survive() -> None:
    note = environment_records.Note(path="/caf\udce9", reason="x")
    text = json.dumps(to_json(note))
    assert text.isascii()
    assert from_json(json.loads(text), environment_records.Note) == note
