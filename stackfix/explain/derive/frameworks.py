"""What other frameworks than torch want of CUDA and cuDNN, and which builds of torch go with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stackfix.explain.derive.driver import for_driver
from stackfix.explain.derive.releases import (
    CPU,
    DEFAULT_INDEX,
    PLATFORM,
    build_name,
    by_preference,
    lock_command,
    numbers,
    public,
    releases,
    spread,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.hardware import driver_floor, driver_supports, jit_cuda_of_driver, major_of
from stackfix.matrix.records import Framework, TorchBuild

OF_CUDA = re.compile(r"lib(?:cudart|cublas|cublasLt)\.so\.(\d{1,3})\b")


def rows_of(facts: Facts, project: str) -> list[Framework]:
    """What is known of a project, oldest first."""
    return [each for each in facts.frameworks.frameworks if each.project == project]


def releases_of(row: Framework) -> str:
    """"2.18 to 2.19"."""
    return row.first if row.first == row.last else f"{row.first} to {row.last}"


def wants(rows: Iterable[Framework], *, cudnn: bool) -> str:
    """In words: "1.21 to 1.26 CUDA 12 and cuDNN 9; …"."""
    return "; ".join(f"{releases_of(row)} CUDA {row.cuda}" + (f" ({row.cudnn})" if cudnn and row.cudnn else "")
                     for row in rows)


def cuda_build(fields: Fields, facts: Facts) -> Fields:
    """The build with CUDA of the release that the text names, else the newest: its name, how to get it, its `lock`.

    `reinstall` is what pip does in place of a CPU build. Where the text names neither torch nor a driver, the lock is
    of what the machine's driver runs.
    """
    builds = [each for each in facts.torch if each.platform == PLATFORM and each.cuda != CPU]
    arm = [each.version for each in facts.torch
           if each.platform == "linux-aarch64" and each.index == DEFAULT_INDEX and each.cuda == CPU]
    if not builds:
        return {}
    driver = fields.get("driver")
    served = [each for each in builds if driver and driver_supports(facts.matrix, driver, each.cuda)]
    serves = jit_cuda_of_driver(facts.matrix, driver) if driver and served else None
    best = (for_driver(served, serves, fields, facts) if serves else by_preference(served or builds, fields, facts))[0]
    named = best.version == public(fields.get("torch", "")) or served
    floor = driver_floor(facts.matrix, best.cuda)
    found = {"cuda_build": build_name(best), "reinstall": reinstalled(best),
             "lock": lock_command(best, driver=driver if served else None) if named else "stackfix lock --driver auto",
             "cuda_driver": floor.floor if floor else "", "last_arm_cpu": max(arm, key=numbers, default="")}
    return {name: value for name, value in found.items() if value}


def reinstalled(build: TorchBuild) -> str:
    """How pip takes a build where the same release for the CPU is installed.

    The default index names its builds without a local version: one for the CPU of another index satisfies that.
    """
    if build.index == DEFAULT_INDEX:
        return f"pip install --force-reinstall 'torch=={build.version}' takes that of the default index"
    return (f"pip takes it from the path {build.index} of the torch index alone (--index-url), "
            f"as 'torch=={build.version}+{build.index}'")


def jax_plugins(_fields: Fields, facts: Facts) -> Fields:
    """`jax_plugins`, in words."""
    names = dict.fromkeys(each.project for each in facts.frameworks.frameworks if each.project.startswith("jax-"))
    return {"jax_plugins": " or ".join(names)}


def xla_cudnn(fields: Fields, facts: Facts) -> Fields:
    """What JAX and TensorFlow want of cuDNN, and which default builds of torch have cuDNN 8 and 9.

    `compiled_like`: the releases of TensorFlow whose extra names the minor of `compiled_version`.
    """
    jax = [f"{project} {releases_of(row)} {row.cudnn}" for project in ("jax-cuda12-plugin", "jax-cuda13-plugin")
           for row in rows_of(facts, project)[-1:]]
    found = {"jax_cudnn": "; ".join(jax)}
    found["tensorflow_cudnn"] = "; ".join(f"{releases_of(row)} {row.cudnn}" for row in rows_of(facts, "tensorflow"))
    minor = numbers(fields.get("compiled_version", ""))[:2]
    like = [row for row in rows_of(facts, "tensorflow") if minor and numbers(least_of(row))[:2] == minor]
    found["compiled_like"] = ", ".join(f"{releases_of(row)} ({row.cudnn})" for row in like)
    for major in ("8", "9"):
        pinned = {each.version for each in facts.torch if each.index == DEFAULT_INDEX and each.platform == PLATFORM
                  and (each.cudnn or "").startswith(f"{major}.")}
        found[f"torch_cudnn_{major}"] = spread(pinned, releases(facts))
    return {name: value for name, value in found.items() if value}


def tensorflow_cuda(fields: Fields, facts: Facts) -> Fields:
    """`tensorflow_cuda`, in words: the CUDA major of its releases; `tf_like`: those that open `tf_library`.

    The number of a runtime's or cuBLAS' file is the major of its CUDA.
    """
    rows = rows_of(facts, "tensorflow")
    found = {"tensorflow_cuda": wants(rows, cudnn=True)}
    match = OF_CUDA.match(fields.get("tf_library", ""))
    like = [row for row in rows if match and row.cuda == int(match[1])]
    if match and like:
        found |= {"tf_cuda": match[1], "tf_like": f"{like[0].first} to {like[-1].last}"}
    return found


def ctranslate2_wants(_fields: Fields, facts: Facts) -> Fields:
    """`ct2_wants`, in words: the CUDA major of its releases."""
    return {"ct2_wants": wants(rows_of(facts, "ctranslate2"), cudnn=False)}


def onnxruntime_wants(fields: Fields, facts: Facts) -> Fields:
    """What releases of ONNX Runtime want, and a lock of those for the CUDA that the message wants.

    That is what it says, or the major of the first file that is missing, where releases of today are for it.
    """
    rows = rows_of(facts, "onnxruntime-gpu")
    found = {"onnxruntime_wants": wants(rows, cudnn=True)}
    found |= {"ort_preload": rows[0].preloads_from} if rows and rows[0].preloads_from else {}
    file = OF_CUDA.match(fields.get("first_missing", ""))
    same = [each for each in rows if file and str(each.cuda) == file[1] and each.preloads_from
            and numbers(each.first) >= numbers(each.preloads_from)]
    wanted = fields.get("wants_cuda")
    fitting = [each for each in rows if wanted == str(each.cuda)] if wanted else same or rows
    if not fitting:
        return found
    row = fitting[-1]
    builds = [each for each in facts.torch if each.platform == PLATFORM and each.index == DEFAULT_INDEX
              and each.cuda != CPU and major_of(each.cuda) == row.cuda]
    if builds:
        build = by_preference(builds, fields, facts)[0]
        extra = f"[{row.extra}]" if row.extra else ""
        found["onnxruntime_lock"] = f"{lock_command(build)} --with 'onnxruntime-gpu{extra}{bounds(row)}'"
    return found


def bounds(row: Framework) -> str:
    """The releases of a row as a specifier: ">=1.21,<1.27"."""
    *head, tail = numbers(row.last)
    return f">={row.first},<{'.'.join(map(str, [*head, tail + 1]))}"


def framework_lock(fields: Fields, facts: Facts) -> Fields:
    """Locks of JAX and of TensorFlow beside a torch of the same CUDA major whose cuDNN they take.

    `xla_lock` is that of JAX where the text names it, else of TensorFlow.
    """
    found: dict[str, str] = {}
    for name, project, requirement in (("jax_lock", "jax-cuda12-plugin", "jax[cuda12]"),
                                       ("tensorflow_lock", "tensorflow", "tensorflow[and-cuda]")):
        rows = [each for each in rows_of(facts, project) if each.cudnn and ">=" in each.cudnn]
        builds = [each for row in rows[-1:] for each in beside(row, facts)]
        if builds:
            more = bounds(rows[-1]) if project == "tensorflow" else ""
            found[name] = f"{lock_command(by_preference(builds, fields, facts)[0])} --with '{requirement}{more}'"
    chosen = found.get("jax_lock" if fields.get("jax_named") else "tensorflow_lock")
    return {**found, **({"xla_lock": chosen} if chosen else {})}


def least_of(row: Framework) -> str:
    """The release of cuDNN that a row pins, or from which on it takes them."""
    return (row.cudnn or "").partition("=")[2].lstrip("=").partition(",")[0]


def beside(row: Framework, facts: Facts) -> list[TorchBuild]:
    """Default builds of torch for the CUDA of a row, whose cuDNN is not older than it wants."""
    least = numbers(least_of(row))
    return [each for each in facts.torch if each.platform == PLATFORM and each.index == DEFAULT_INDEX
            and each.cuda != CPU and major_of(each.cuda) == row.cuda and numbers(each.cudnn or "") >= least]


def nccl_torch(fields: Fields, facts: Facts) -> Fields:
    """`nccl_torch`: which default builds of torch pin the NCCL that the text names."""
    version = fields.get("nccl_version", "")
    pinned = {each.version for each in facts.torch if version and each.index == DEFAULT_INDEX
              and each.platform == PLATFORM and each.nccl is not None and numbers(each.nccl)[:3] == numbers(version)}
    return {"nccl_torch": spread(pinned, releases(facts))} if pinned else {}


def bitsandbytes_libraries(fields: Fields, facts: Facts) -> Fields:
    """Which releases of bitsandbytes have the library for the CUDA whose digits are in the file's name."""
    rows = sorted(facts.frameworks.bitsandbytes, key=lambda each: numbers(each.first))
    found = {"bnb_newest": rows[-1].last, "bnb_newest_cuda": ", ".join(rows[-1].cuda)} if rows else {}
    digits = fields.get("bnb_digits", "")
    if not digits:
        return found
    cuda = f"{digits[:-1]}.{digits[-1]}"
    having = [each for each in rows if cuda in each.cuda]
    found["bnb_cuda"] = cuda
    if having:
        found |= {"bnb_with": spans([cuda in each.cuda for each in rows], [(each.first, each.last) for each in rows]),
                  "bnb_last": having[-1].last}
    alike = [each for each in rows[-1].cuda if major_of(each) == major_of(cuda)] if rows else []
    return {**found, **({"bnb_same_major": max(alike, key=numbers).replace(".", "")} if alike else {})}


def spans(chosen: list[bool], ends: list[tuple[str, str]]) -> str:
    """Neighbouring rows that are chosen as one span each, in words."""
    runs: list[tuple[str, str]] = []
    before = False
    for now, (first, last) in zip(chosen, ends, strict=True):
        if now:
            runs[-1:] = [(runs[-1][0], last)] if before else [*runs[-1:], (first, last)]
        before = now
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in runs)


DERIVE: Mapping[str, Derivation] = {
    "torch-cuda-build": cuda_build, "jax-plugins": jax_plugins, "xla-cudnn": xla_cudnn,
    "tensorflow-cuda": tensorflow_cuda, "ctranslate2-wants": ctranslate2_wants, "onnxruntime-wants": onnxruntime_wants,
    "framework-lock": framework_lock, "nccl-torch": nccl_torch,
    "bitsandbytes-libraries": bitsandbytes_libraries,
}
