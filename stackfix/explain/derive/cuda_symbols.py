"""Functions of NVIDIA's libraries: whose they are, and which releases have them."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.explain.records import Derivation, Facts, Fields


def cuda_symbol(fields: Fields, facts: Facts) -> Fields:
    """`package` and `since` of the `symbol` in `file`, from the almanac; {} where it knows no such function."""
    for run in facts.books.nvidia.since(fields.get("file", ""), fields["symbol"]):
        if run.first:
            return {"package": run.package, "since": run.first}
    return {}


DERIVE: Mapping[str, Derivation] = {"cuda-symbol": cuda_symbol}
