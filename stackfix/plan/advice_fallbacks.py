"""What works without a cure, and what it costs: said, never done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.situation import View

FLASH = "flash-attn"
BUILD = ("--no-binary", "FLASH_ATTENTION_FORCE_BUILD=TRUE")
ABOUT_BUILDS = frozenset({"SF501", "SF503", "SF504", "SF902"})
ABOUT_CUDNN = frozenset({"SF101", "SF301", "SF302", "SF401", "SF402", "SF403"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """One way round, with its price."""

    summary: str
    command: str


def fallbacks(view: View, finding: Finding) -> Iterator[Fallback]:
    """Ways round a finding that the plan does not cure."""
    package = (finding.culprit.package or "").partition(" ")[0]
    if "torch" in view.distributions and finding.level == "cudnn" and finding.code in ABOUT_CUDNN:
        yield Fallback(
            summary="Switch cuDNN off in the program. Its cost: convolutions and RNNs run on PyTorch's own kernels, "
                    "which are slower and take more memory; other frameworks have no such switch",
            command="import torch; torch.backends.cudnn.enabled = False")
    if package == FLASH and finding.code in ABOUT_BUILDS:
        yield Fallback(
            summary="Use PyTorch's own attention, which chooses a backend that runs on this GPU. Its cost: the code "
                    "that calls flash_attn has to be changed, and what only flash-attn has (variable lengths in one "
                    "batch, its KV cache) is not there",
            command="torch.nn.functional.scaled_dot_product_attention(q, k, v)  # transformers: "
                    'attn_implementation="sdpa"')
    for line in finding.cure:
        if finding.code in ABOUT_BUILDS and any(each in line for each in BUILD):
            yield Fallback(
                summary=f"Build {package or 'the extension'} from source, against the torch that is installed. Its "
                        "cost: a compiler and an nvcc of torch's CUDA, much memory, and up to hours",
                command=line)
