"""KEY=VALUE pairs of `matrix why`: which there are, and what a version in one admits."""

from __future__ import annotations

from collections.abc import Collection

from packaging.specifiers import SpecifierSet

from stackfix.abi.records import Books
from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.resolve.pep508 import admits, parse_specifier, parse_version

COMPANIONS = ("torchvision", "torchaudio", "xformers", "triton", "vllm")
KEYS = ("torch", "cuda", "python", "platform", "driver", "gpu-arch", "flash-attn", "transformers", *COMPANIONS)
NO_VERSIONS = frozenset({"cuda", "python", "platform", "driver", "gpu-arch"})
NVIDIA = "nvidia-"          # begins the names of NVIDIA's wheels, which are keys too


def keys_of(books: Books | None) -> tuple[str, ...]:
    """KEYS, and the packages whose wheels were read."""
    more = books.judged.packages if books is not None else ()
    return (*KEYS, *(each for each in more if each not in KEYS))


def check_pair(key: str, value: str, keys: Collection[str] = KEYS) -> None:
    """Raises BadInput for an unknown key, and for a value that cannot be read."""
    if key not in keys and not key.startswith(NVIDIA):
        raise BadInput(repr(key), "is not a key", f"keys: {', '.join(keys)}, and names of NVIDIA's wheels")
    if key.startswith(NVIDIA) and parse_version(value) is None:
        raise BadInput(f"{key}={value}", "is no version", "write it as 12.1.105")
    if key == "gpu-arch" and query.gpu_capability(value) is None:
        raise BadInput(f"{key}={value}", "is no GPU architecture", "write it as sm_90")
    if key in {"driver", "cuda", "python"} and value != query.CPU and not _is_numbers(value):
        raise BadInput(f"{key}={value}", "is no version", "write it as numbers with dots, such as 12.1")
    if key not in NO_VERSIONS and not key.startswith(NVIDIA) and _specifier(value) is None:
        raise BadInput(f"{key}={value}", "is no version and no PEP 440 specifier", "write it as 2.3 or '>=2.3,<2.5'")


def _is_numbers(text: str) -> bool:
    return all(part.isdigit() for part in text.split("."))


def _specifier(text: str) -> SpecifierSet | None:
    """`2.9` as 2.9.*, `2.6.3` as it is, or the specifier itself."""
    if parse_version(text) is None:
        return parse_specifier(text)
    return parse_specifier(f"=={text}" if text.count(".") > 1 else f"=={text}.*")


def wanted(text: str, version: str) -> bool:
    specifier, parsed = _specifier(text), parse_version(version)
    return specifier is not None and parsed is not None and admits(specifier, parsed)
