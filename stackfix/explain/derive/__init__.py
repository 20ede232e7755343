"""What the matrix and the almanac tell of what a rule read. Rules name these by the keys of DERIVE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from stackfix.explain.records import Derivation

NAMES: Mapping[str, str] = {        # derivation -> module with it; a module is imported when a rule needs it
    "build-subject": "stackfix.explain.derive.builds",
    "flash-attn-subject": "stackfix.explain.derive.builds",
    "conflict": "stackfix.explain.derive.conflicts",
    "companion-release": "stackfix.explain.derive.conflicts",
    "kept-pin": "stackfix.explain.derive.conflicts",
    "torch-release": "stackfix.explain.derive.resolution",
    "stack-requirement": "stackfix.explain.derive.resolution",
    "family-helper": "stackfix.explain.derive.resolution",
    "helper": "stackfix.explain.derive.resolution",
    "virtual-cuda": "stackfix.explain.derive.resolution",
    "cuda-build": "stackfix.explain.derive.resolution",
    "build-string": "stackfix.explain.derive.resolution",
    "project-of-module": "stackfix.explain.derive.plumbing",
    "shadowing-file": "stackfix.explain.derive.plumbing",
    "prebuilt-wheel": "stackfix.explain.derive.builds",
    "isolation": "stackfix.explain.derive.builds",
    "toolkit-pair": "stackfix.explain.derive.builds",
    "nvcc-architecture": "stackfix.explain.derive.builds",
    "wheel-name": "stackfix.explain.derive.builds",
    "cuda-symbol": "stackfix.explain.derive.cuda_symbols",
    "cudnn-pair": "stackfix.explain.derive.cudnn",
    "torch-cudnn-lock": "stackfix.explain.derive.cudnn",
    "found-cuda": "stackfix.explain.derive.driver",
    "driver-of-cuda": "stackfix.explain.derive.driver",
    "torch-for-driver": "stackfix.explain.derive.driver",
    "floors": "stackfix.explain.derive.driver",
    "image-driver": "stackfix.explain.derive.driver",
    "cpu-lock": "stackfix.explain.derive.driver",
    "ptx-pair": "stackfix.explain.derive.driver",
    "torch-with-cudnn-9": "stackfix.explain.derive.cudnn",
    "torch-cuda-build": "stackfix.explain.derive.frameworks",
    "jax-plugins": "stackfix.explain.derive.frameworks",
    "xla-cudnn": "stackfix.explain.derive.frameworks",
    "tensorflow-cuda": "stackfix.explain.derive.frameworks",
    "ctranslate2-wants": "stackfix.explain.derive.frameworks",
    "onnxruntime-wants": "stackfix.explain.derive.frameworks",
    "framework-lock": "stackfix.explain.derive.frameworks",
    "nccl-torch": "stackfix.explain.derive.frameworks",
    "bitsandbytes-libraries": "stackfix.explain.derive.frameworks",
    "cuda-text": "stackfix.explain.derive.cuda_numbers",
    "cuda-library": "stackfix.explain.derive.cuda_numbers",
    "jax-versions": "stackfix.explain.derive.cuda_numbers",
    "cupy-package": "stackfix.explain.derive.cuda_numbers",
    "cudnn-askers": "stackfix.explain.derive.cudnn_parts",
    "cudnn-parts": "stackfix.explain.derive.cudnn_parts",
    "cudnn-status": "stackfix.explain.derive.cudnn_parts",
    "named-cudnn": "stackfix.explain.derive.cudnn_parts",
    "gpu": "stackfix.explain.derive.devices",
    "gpu-by-name": "stackfix.explain.derive.devices",
    "arch-floors": "stackfix.explain.derive.devices",
    "newest-gpus": "stackfix.explain.derive.devices",
    "flash-attn-archs": "stackfix.explain.derive.devices",
    "torch-for-gpu": "stackfix.explain.derive.devices",
    "torch-symbol": "stackfix.explain.derive.torch_symbols",
    "extension": "stackfix.explain.derive.extensions",
    "missing-library": "stackfix.explain.derive.libraries",
    "nvrtc-release": "stackfix.explain.derive.libraries",
    "torch-library": "stackfix.explain.derive.torch_library",
    "runtime-version": "stackfix.explain.derive.runtime",
    "dropped-function": "stackfix.explain.derive.runtime",
    "torchvision-pair": "stackfix.explain.derive.companions",
    "torchaudio-pair": "stackfix.explain.derive.companions",
    "xformers-built": "stackfix.explain.derive.companions",
    "flash-attn": "stackfix.explain.derive.companions",
    "gpu-lock": "stackfix.explain.derive.companions",
    "compiled-module": "stackfix.explain.derive.torch_rows",
    "torch-row": "stackfix.explain.derive.torch_rows",
    "requester": "stackfix.explain.derive.requesters",
    "torch-lock": "stackfix.explain.derive.preloads",
    "preload": "stackfix.explain.derive.preloads",
}


class Derivations(Mapping[str, Derivation]):
    """By name; each module's `DERIVE` holds its own."""

    def __getitem__(self, name: str) -> Derivation:
        table: Mapping[str, Derivation] = import_module(NAMES[name]).DERIVE
        return table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


DERIVE = Derivations()
