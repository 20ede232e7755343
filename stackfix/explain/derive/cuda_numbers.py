"""Numbers and names that CUDA and its libraries print."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.explain.derive.cudnn import dotted
from stackfix.explain.records import Derivation, Facts, Fields

TEN_THOUSANDS = 100_000         # from there on a library's version is the major by 10000, below it by 1000
ALIASES = {"CUDA": "CUDA runtime", "cuBLASLt": "cuBLAS", "cuPTI": "CUPTI"}     # what JAX calls a family


def cuda_text(fields: Fields, facts: Facts) -> Fields:
    """`cuda_code` and `cuda_name` of the error whose number is `cuda_number`, or whose words are `cuda_text`."""
    number, text = fields.get("cuda_number", ""), fields.get("cuda_text", "").rstrip(".").lower()
    row = next((each for each in facts.codes.cuda if str(each.number) == number
                or (not number and text and (each.text or "").lower() == text)), None)
    return {"cuda_code": str(row.number), "cuda_name": row.runtime or row.driver or ""} if row else {}


def cuda_library(fields: Fields, facts: Facts) -> Fields:
    """`library_file` and `library_package` of the family that a message calls `library`: cuSPARSE."""
    name = fields.get("library", "")
    family = next((each for each in facts.libraries.families if each.name == ALIASES.get(name, name)), None)
    if family is None or not family.projects:
        return {}
    return {"library_file": f"{family.stems[0]}.so", "library_package": family.projects[0]}


def jax_versions(fields: Fields, _facts: Facts) -> Fields:
    """The releases that the numbers `jax_built` and `jax_found` mean, each library counting in its own way."""
    library = fields.get("library", "")
    found = {f"{name}_version": version_of(library, fields[name]) for name in ("jax_built", "jax_found")
             if fields.get(name, "").isdecimal()}
    return found if len(found) == len(("jax_built", "jax_found")) else {}


def version_of(library: str, digits: str) -> str:
    """The release of a number: CUDA 12010 is 12.1, cuBLAS 120103 is 12.1.3, cuSOLVER 11405 is 11.4.5."""
    number = int(digits)
    if library == "cuDNN":
        return dotted(digits)
    if library == "CUDA":
        return f"{number // 1000}.{number % 1000 // 10}"
    major = 10_000 if number >= TEN_THOUSANDS else 1000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def cupy_package(fields: Fields, facts: Facts) -> Fields:
    """`cupy_fits`: the package of CuPy for the CUDA major of the library that it could not load."""
    major = fields.get("cupy_major", "")
    if not major and ".so." in fields.get("cupy_library", ""):
        major = fields["cupy_library"].partition(".so.")[2].partition(".")[0]
    known = {str(each.cuda_major) for each in facts.matrix.driver_families}
    return {"cupy_fits": f"cupy-cuda{major}x", "cupy_major": major} if major in known else {}


DERIVE: Mapping[str, Derivation] = {
    "cuda-text": cuda_text, "cuda-library": cuda_library, "jax-versions": jax_versions, "cupy-package": cupy_package,
}
