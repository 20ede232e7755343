"""Which mapped files belong to the GPU stack, by their names."""

from __future__ import annotations

import re

# Stems of the main families; a test compares them with matrices/libraries.toml
STEMS = ("cuda", "nv", "cublas", "cusparse", "cusolver", "cufft", "curand", "cudnn", "cupti", "cufile", "nccl", "npp",
         "torch", "c10", "caffe2", "shm", "checkpoint", "pcsamplingutil", "stdc", "gcc_s", "gomp", "cutlass", "cute",
         "triton", "gloo", "magma", "xformers")
EXTENSIONS = ("flash_attn", "_C", "xformers", "vllm", "transformer_engine", "selective_scan", "causal_conv1d")
STACK = rf"(?:lib(?:{'|'.join(STEMS)})|(?:{'|'.join(EXTENSIONS)})).*\.so(?:[.-].*)?$"
IN_STACK = re.compile(STACK)
