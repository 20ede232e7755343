"""What works without a cure, and what it costs: said, never done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.situation import View

BUILD = ("--no-binary", "FLASH_ATTENTION_FORCE_BUILD=TRUE")
ABOUT_EXTENSIONS = frozenset({"SF501", "SF502", "SF503", "SF504", "SF902"})
ABOUT_OTHER_TORCH = frozenset({"SF501", "SF504"})
ABOUT_CUDNN = frozenset({"SF101", "SF201", "SF202", "SF301", "SF302", "SF401", "SF402", "SF403"})
# PyTorch prefers cuDNN's attention on some GPUs since then, and its own switch is another one
CUDNN_ATTENTION = (2, 5)
# Packages of attention kernels, and what of theirs PyTorch's own does not have
ATTENTION: Mapping[str, tuple[str, str]] = MappingProxyType({
    "flash-attn": ("flash_attn", "variable lengths in one batch, its KV cache"),
    "flash-attn-3": ("flash_attn_interface", "variable lengths in one batch, its KV cache, FP8"),
    "sageattention": ("sageattention", "8-bit attention"),
    "vllm-flash-attn": ("vllm_flash_attn", "the paged KV cache, for which vLLM takes its other backends"),
    "xformers": ("xformers.ops", "attention biases of its own, variable lengths in one batch"),
})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """One way round, with its price."""

    summary: str
    command: str | None             # None: there is no line that does it everywhere


def fallbacks(view: View, finding: Finding) -> Iterator[Fallback]:
    """Ways round a finding that the plan does not cure."""
    package = (finding.culprit.package or "").partition(" ")[0]
    if finding.level == "cudnn" and finding.code in ABOUT_CUDNN and torch_starts(view):
        yield without_cudnn(view)
    if package in ATTENTION and finding.code in ABOUT_EXTENSIONS:
        yield other_attention(package)
    yield from builds(view, finding, package)


def torch_starts(view: View) -> bool:
    """Whether torch is there and its import loads all that it needs: a switch of its own comes after that."""
    return "torch" in view.distributions and not any(
        each.project == "torch" and each.phase == "import" and each.may_fail is None and each.outcome.failures
        for each in view.openings)


def without_cudnn(view: View) -> Fallback:
    """Both switches: cuDNN's convolutions and RNNs, and its attention."""
    attention = (release_of(view.distributions["torch"].version) or ()) >= CUDNN_ATTENTION
    more = "; torch.backends.cuda.enable_cudnn_sdp(False)" if attention else ""
    rest = "; attention takes another of its backends (flash, memory-efficient, math)" if attention else ""
    return Fallback(
        summary="Switch cuDNN off in the program. Its cost: convolutions and RNNs run on PyTorch's own kernels, "
                f"which are slower and take more memory{rest}; other frameworks have no such switch",
        command=f"import torch; torch.backends.cudnn.enabled = False{more}")


def other_attention(package: str) -> Fallback:
    """PyTorch's own, in place of a package of kernels."""
    module, lost = ATTENTION[package]
    return Fallback(
        summary="Use PyTorch's own attention, which chooses a backend that runs on this GPU. Its cost: the code "
                f"that calls {module} has to be changed, and what only {package} has ({lost}) is not there",
        command="torch.nn.functional.scaled_dot_product_attention(q, k, v)  # transformers: "
                'attn_implementation="sdpa"')


def builds(view: View, finding: Finding, package: str) -> Iterator[Fallback]:
    """From source: by the line of the cure, where the index has the source; else in words."""
    if finding.code not in ABOUT_EXTENSIONS:
        return
    lines = [line for line in finding.cure if any(each in line for each in BUILD)]
    cost = "against the installed torch. Its cost: a compiler and an nvcc of torch's CUDA, much memory, and up to hours"
    for line in lines:
        yield Fallback(summary=f"Build {package or 'the extension'} from source, {cost}", command=line)
    if not lines and package in view.distributions and finding.code in ABOUT_OTHER_TORCH:
        yield Fallback(
            summary=f"Build {package} from the source of its release, with pip's --no-build-isolation and {cost}",
            command=None)
