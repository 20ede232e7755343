"""torch beside the packages that are released with it, and the file of a compiled module by its Python name."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.explain.derive.pins import builds_named
from stackfix.explain.derive.words import key_of
from stackfix.explain.records import Derivation, Facts, Fields


def torch_row(fields: Fields, facts: Facts) -> Fields:
    """`row`: torch with its own torchvision and torchaudio, as requirements: those of the torch that is meant.

    `loose`: the release of torchaudio from which on it does not require the very torch that it was built for.
    """
    from stackfix.matrix.query import companion_fits, other_minor

    loose = [(key_of(each.version), f"{each.package} {each.version}") for each in facts.companions
             if each.package == "torchaudio" and not (each.torch or "").startswith("==")]
    found = {"loose": min(loose)[1]} if loose else {}
    builds = builds_named(fields, facts) or builds_named({"torch": fields.get("ext_torch", "")}, facts)
    if not builds:
        return found
    words = [f"torch=={builds[0].version}"]
    for name in ("torchvision", "torchaudio"):
        rows = [each for each in facts.companions if each.package == name and companion_fits(each, builds[0]) is None]
        own = [each for each in rows if not other_minor(each, builds[0])]
        fits = [each.version for each in own or rows if each.torch is not None or own]
        if fits:
            words.append(f"{name}=={max(fits, key=key_of)}")
    return {**found, "row": " ".join(words)}


def compiled_module(fields: Fields, _: Facts) -> Fields:
    """`requester` of the Python name of a `module` that is compiled: "vllm/_C.so" of "vllm._C"."""
    module = fields.get("module", "")
    return {"requester": f"{module.replace('.', '/')}.so"} if module else {}


DERIVE: Mapping[str, Derivation] = {"torch-row": torch_row, "compiled-module": compiled_module}
