"""Which project a compiled module is of, by its path and its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from stackfix.explain.records import Facts, Fields

# Modules that lie in a site folder by themselves, as the setup.py of each project names them.
MODULES = {
    "flash_attn_2_cuda": "flash-attn", "flash_attn_3_cuda": "flash-attn", "flashattn_hopper_cuda": "flash-attn",
    "dropout_layer_norm": "flash-attn", "fused_dense_lib": "flash-attn", "xentropy_cuda_lib": "flash-attn",
    "rotary_emb": "flash-attn", "fused_softmax_lib": "flash-attn", "vllm_flash_attn_2_cuda": "vllm-flash-attn",
    "selective_scan_cuda": "mamba-ssm", "causal_conv1d_cuda": "causal-conv1d", "exllamav2_ext": "exllamav2",
    "exllama_kernels": "auto-gptq", "exllamav2_kernels": "auto-gptq", "awq_ext": "autoawq-kernels",
    "awq_inference_engine": "autoawq-kernels", "transformer_engine_torch": "transformer-engine",
    "transformer_engine_extensions": "transformer-engine", "torchac_cuda": "torchac-cuda", "amp_C": "apex",
    "apex_C": "apex", "fused_layer_norm_cuda": "apex", "fused_weight_gradient_mlp_cuda": "apex", "syncbn": "apex",
    "scaled_masked_softmax_cuda": "apex", "scaled_upper_triang_masked_softmax_cuda": "apex", "mlp_cuda": "apex",
    "fast_multihead_attn": "apex", "fused_adam_cuda": "apex", "fused_lamb_cuda": "apex", "fast_layer_norm": "apex",
}
FOLDERS = {"vllm": "vllm", "torio": "torchaudio", "onnxruntime": "onnxruntime-gpu", "functorch": "torch"}
MODULE = re.compile(r"(?:^|/)(?P<module>[A-Za-z0-9_]+?)(?:\.(?:cpython-3\d|cp3\d|abi3|pypy3)[\w-]*)?\.(?:so|pyd)$")
BUILT = re.compile(r"torch_extensions/(?P<build>(?:py3\d+_\w+/)?(?P<module>\w+))/")
DOTS = re.compile(r"\.{2,}(?!/)|\u2026")     # what a report leaves out: "flash_attn_2_cuda...so"
TOP = re.compile(r"(?:site|dist)-packages/(?P<top>[A-Za-z0-9_]+)/")
CHECKOUT = re.compile(r"/(?P<top>[A-Za-z0-9_]+)/[^/]+$")      # of a checkout: its own folder beside the module
RELATIVE = re.compile(r"^(?P<top>[A-Za-z][A-Za-z0-9_]*)/(?:[A-Za-z0-9_]+/)*[^/]+$")


def extension_name(fields: Fields, facts: Facts) -> Fields:
    """`ext`, the project that `requester` is of, `ext_version` where a listing has it, `ext_import` its import name.

    `built_here` is the folder of an extension that torch compiled when it was first used, `built_name` its name. {} for
    torch's own files, for libraries of the system, and where neither path nor name tells.
    """
    path = DOTS.sub(".", fields.get("requester", "").strip("'\"`").replace("\\", "/"))
    if (built := BUILT.search(path)) is not None:
        return {"built_here": path[:built.end() - 1], "built_name": built["module"], "ext_shown": built["module"]}
    name = project_of(path, facts)
    if name is None or name == "torch" or name.startswith("nvidia"):
        return {}
    found = {"ext": name, "ext_shown": name, "ext_import": import_name(name, facts)}
    if (version := fields.get(f"pkg_{name.replace('-', '_')}") or fields.get(f"pkg_{name}")) is not None:
        found |= {"ext_version": version, "ext_shown": f"{name} {version}"}
    return found


def project_of(path: str, facts: Facts) -> str | None:
    """The project: what the rows about imports tell, a module's name, else the top folder in the site folder."""
    for row in facts.libraries.imports:
        for step in row.steps:
            for pattern in (step.file, *step.also):
                if "/" in pattern and "lib/lib" not in pattern and fnmatchcase(f"/{path}", f"*/{plain(pattern)}"):
                    return row.project
    module = MODULE.search(path)
    if module is not None and module["module"] in MODULES:
        return MODULES[module["module"]]
    top = TOP.search(path) or (RELATIVE.match(path) if module is not None else None)
    if top is None and module is not None and (folder := CHECKOUT.search(path)) is not None:
        known = {row.module: row.project for row in facts.libraries.imports} | FOLDERS
        if folder["top"] in known:
            return known[folder["top"]]
    if top is None:
        alone = re.search(r"(?:site|dist)-packages/([A-Za-z0-9_]+)\.[^/]*$", path)
        return alone[1].replace("_", "-").lower() if alone and module is not None else None
    if top["top"] in {"lib", "lib64", "usr", "opt", "nvidia", "home", "bin", "tmp", "build"}:
        return None
    return FOLDERS.get(top["top"], top["top"].replace("_", "-").lower())


def plain(pattern: str) -> str:
    """A pattern of an import row without the braces that stand for torch's CUDA."""
    return re.sub(r"\{[a-z-]+\}", "*", pattern)


def import_name(project: str, facts: Facts) -> str:
    """The name that the project is imported by."""
    known: Mapping[str, str] = {row.project: row.module for row in facts.libraries.imports}
    return known.get(project, project.replace("-", "_"))
