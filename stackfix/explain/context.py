"""What a text tells of the environment that it comes from, whatever its error is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.explain.records import Fields
from stackfix.explain.text_words import Words

VERSION = r"\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*(?:\+[A-Za-z0-9.]+)?"
END = r"(?![\w.+-]*\.(?:so|whl|tar))(?!\w)"

# (a word of the line in lower case, pattern): of each field the first pattern that is found decides, in its first line.
# What is stated as installed stands before what a file name or a requirement says.
PATTERNS = tuple((word, re.compile(pattern)) for word, pattern in (
    ("torch", rf"(?:^|\s)(?:[Pp]y)?[Tt]orch version: +(?P<torch>{VERSION})"),
    ("torch", rf"\byou have (?:py)?torch(?:==| )(?P<torch>{VERSION})"),
    ("torch", rf"^(?:py)?torch +(?P<torch>{VERSION})(?: |$)"),
    ("torch", rf"\btorch-(?P<torch>{VERSION})\.dist-info"),
    ("torch", rf"[Ss]uccessfully installed .*\btorch-(?P<torch>{VERSION})(?: |$)"),
    ("torch", rf"[Rr]equirement already satisfied: torch\b.*\((?P<torch>{VERSION})\)"),
    ("torch", rf"^(?:ERROR: )?torch (?P<torch>{VERSION}) requires "),
    ("torch", rf"\(you have (?P<torch>{VERSION})\)"),
    ("torch", rf"(?:^|[\s'\"`(])(?:py)?torch(?:==|[ :]+v?)(?P<torch>{VERSION}){END}"),
    ("torch", rf"\btorch-(?P<torch>{VERSION})-cp"),
    ("python", r"[Pp]ython(?: version)?:? +(?P<python>3\.\d+)(?:\.\d+)?"),
    ("python", r"/python(?P<python>3\.\d+)/(?:(?:site|dist)-packages|[a-z_]+(?:/|\.py))"),
    ("cpython-3", r"\.cpython-3(?P<python_minor>\d+)-"),
    ("-cp3", r"-cp3(?P<python_minor>\d+)-"),
    # from the start of a word: else each slash of a long path would be tried as one
    ("-packages", r"(?<![^\s:'\"()<>|=])(?P<site>/[^\s:'\"()<>|=]+?/(?:site|dist)-packages)(?![^\s:/'\"])"),
    ("cuda", r"CUDA used to build PyTorch: +(?P<cuda>\d+\.\d+)"),
    ("pytorch", r"^pytorch +\S+ +py3\.\d+_cuda(?P<cuda>\d+\.\d+)"),
    ("cuda", r"^(?:py)?torch +\S+ +cuda(?P<cuda_digits>\d{3})_"),
    ("cuda", r"CUDA runtime version: +(?P<toolkit>\d+\.\d+)"),
    ("release", r"release (?P<toolkit>\d+\.\d+), V\d+\.\d+\.\d+"),
    ("driver version", r"(?:Nvidia driver version|Driver Version): +(?P<driver>\d{3,}(?:\.\d+)+)"),
    ("cuda version", r"Driver Version: \S+ +CUDA Version: +(?P<driver_cuda>\d+\.\d+)"),
    ("kernel module", r"Kernel Module +(?P<driver>\d{3,}(?:\.\d+)+)"),
    ("glibc", r"[Ll]ibc version: +glibc-(?P<glibc>\d+\.\d+)"),
    ("glibc", r"(?:GLIBC|GNU libc|glibc)[ )]+(?P<glibc>2\.\d+)"),
    ("gpu", r"GPU (?:models and configuration|0): (?:GPU 0: )?(?P<gpu>(?:NVIDIA|Tesla|GeForce|RTX) [\w -]{2,60})"),
    ("ld_library_path", r"LD_LIBRARY_PATH[=:] ?['\"]?(?P<library_path>[^\s'\"]+)"),
    ("cuda_home", r"CUDA_(?:HOME|PATH)[=:] ?['\"]?(?P<cuda_home>/[^\s'\"]+)"),
    ("conda_prefix", r"CONDA_PREFIX[=:] ?['\"]?(?P<conda_prefix>/[^\s'\"]+)"),
    ("pip-build-env", r"(?<!\S)['\"(]?(?P<isolated>/\S*?/pip-build-env-[^/\s]+)/"),
    ("builds-v0", r"(?<!\S)['\"(]?(?P<isolated>/\S*?/builds-v0/\.tmp[^/\s]+)/"),
    ("microsoft", r"(?P<wsl>microsoft(?:-standard)?(?:-WSL2)?)"),
    ("/usr/lib/wsl", r"(?P<wsl>/usr/lib/wsl)/"),
))
# `pip list`, `conda list`, `pip freeze`, collect_env's "[pip3] torch==2.3.1", uv's " + torch==2.3.1"
FAMILY = (r"nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+|lib(?:cu[a-z]+|nvjitlink|npp|stdcxx(?:-ng)?)|cudnn|nccl|cuda-version|"
          r"pytorch(?:-cuda|-gpu)?|torch[a-z0-9]*|triton|xformers|flash[-_]attn|vllm|deepspeed|bitsandbytes|apex|"
          r"jax[a-z0-9-]*|tensorflow[a-z-]*|onnxruntime(?:-gpu)?|ctranslate2|faster-whisper|transformers|numpy|cupy-[a-z0-9]+")
LISTED = re.compile(
    rf"^(?:\[(?:pip3?|conda)\] |[+-] )?(?P<name>{FAMILY})(?: {{1,60}}|==| @ |=)(?P<version>{VERSION})(?:$|[ =])",
)
CONDA = re.compile(r"/envs/[^/]+$|conda|mamba|/miniforge", re.IGNORECASE)
LISTED_WORDS = ("torch", "nvidia-", "cuda", "libcu", "libnvjitlink", "cudnn", "nccl", "triton", "xformers", "attn",
                "vllm", "deepspeed", "bitsandbytes", "apex", "jax", "tensorflow", "onnxruntime", "ctranslate2",
                "whisper", "transformers", "numpy", "cupy", "libstdcxx")


def read_context(words: Words) -> Fields:
    """What the text names: `python`, `site`, `torch`, `cuda`, `driver`, `library_path` and others.

    Of each package of a listing it is `pkg_NAME`, its version, with `_` for `-`. docs/explain.md lists them all.
    """
    fields: dict[str, str] = {}
    for word, pattern in PATTERNS:
        if set(pattern.groupindex) <= fields.keys():
            continue
        for place in words.places((word,)):
            if match := pattern.search(words.look(place)):
                fields = {**{name: value for name, value in match.groupdict().items() if value}, **fields}
                break
    fields.update(listed(words))
    return dict(sorted({**of_torch(fields), **of_place(fields), **of_digits(fields)}.items()))


def listed(words: Words) -> Iterator[tuple[str, str]]:
    """Packages of a listing with their versions; the first of each."""
    seen: set[str] = set()
    for place in words.places(LISTED_WORDS):
        match = LISTED.match(words.look(place))
        if match and match["name"] not in seen:
            seen.add(match["name"])
            yield f"pkg_{match['name'].replace('-', '_')}", match["version"]


def of_torch(fields: Fields) -> Fields:
    """`torch` without its local version, and what that one tells: `cuda` 12.1 of "2.3.1+cu121"."""
    torch = fields.get("torch") or fields.get("pkg_torch") or fields.get("pkg_pytorch")
    if torch is None:
        return {}
    version, _, local = torch.partition("+")
    told = {"torch": version, **({"torch_local": local} if local else {})}
    if local == "cpu":
        told["cuda"] = "cpu"
    elif found := re.match(r"cu(\d{2})(\d)$", local):
        told["cuda"] = f"{found[1]}.{found[2]}"
    return told


def of_place(fields: Fields) -> Fields:
    """`prefix` of the environment that `site` lies in, and whether it is one of conda's by its path."""
    site = fields.get("site", "")
    found = re.fullmatch(r"(/.+)/lib(?:64)?/python3(?:\.\d+)?/(?:site|dist)-packages", site)
    if found is None or "isolated" in fields:
        return {}
    prefix = found[1]
    if prefix.endswith("/.local"):
        return {"user_site": site}
    return {"prefix": prefix, **({"conda": "yes"} if CONDA.search(prefix) else {})}


def of_digits(fields: Fields) -> Fields:
    """The fields, with versions that file names write without dots."""
    told = {name: value for name, value in fields.items() if name not in {"python_minor", "cuda_digits", "torch"}}
    if "python_minor" in fields:
        told.setdefault("python", f"3.{fields['python_minor']}")
    if digits := fields.get("cuda_digits"):
        told.setdefault("cuda", f"{digits[:2]}.{digits[2]}")
    return told
