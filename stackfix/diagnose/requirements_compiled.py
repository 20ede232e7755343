"""A cuDNN that is older than the one a package was compiled with, which only an extra of that package tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import install_line
from stackfix.diagnose.installed_torch import installed_torch, platform_of
from stackfix.diagnose.library_needs import askers
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.releases import admits, release_of
from stackfix.diagnose.requirements_lines import parse_line
from stackfix.diagnose.requirements_stack import Stack, named
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution, Owner


def find_older_than_compiled(view: View, stack: Stack) -> Iterator[Finding]:
    """SF601: TensorFlow and JAX refuse a cuDNN of an older minor than they were compiled with."""
    cudnn = [each for name, each in view.distributions.items()
             if (family := stack.family(name)) and family.name == "cuDNN"]
    for by in view.distributions.values() if cudnn else ():
        for found, wanted, text in extras_above(by, cudnn) if stack.has(by.name) and by.name != "torch" else ():
            pins = tuple(pins_below(view, found, wanted))
            yield make_finding(
                "SF601", "note" if stack.shown(found.name) else "warning", level="cudnn",
                summary=f"{named(by)} was compiled with cuDNN {wanted}, and {found.version} is installed",
                why=f"{by.name} refuses a cuDNN of an older minor at run time. What it was compiled with is told by an "
                    "extra, which no installed package requires.",
                culprit=Culprit(package=named(found)), requester=Requester(package=named(by)),
                evidence=(f"{by.metadata}/METADATA: Requires-Dist: {text}",
                          f"{found.metadata}: {found.version}", *pins),
                error=error_of(by, found, wanted),
                cure=(*(later_torch(view, by, wanted) if pins else ()),
                      install_line(view, found, f"{found.name}>={wanted}"), *(f"pip will warn that {each}"
                                                                              for each in pins)),
            )


def extras_above(by: Distribution, cudnn: Sequence[Distribution]) -> Iterator[tuple[Distribution, str, str]]:
    """(what is installed, the version that an extra names, the requirement) where that is of a newer minor."""
    for text in by.requires:
        line = parse_line(text) if "extra" in text and "cudnn" in text else None
        found = next((each for each in cudnn if line is not None and each.name == line.name), None)
        if line is None or found is None or not line.specifier.startswith(("==", ">=", "~=")):
            continue
        wanted = line.specifier[2:].partition(",")[0].strip()
        if (release_of(wanted) or ())[:2] > (release_of(found.version) or ())[:2]:
            yield found, wanted, text


def pins_below(view: View, found: Distribution, wanted: str) -> Iterator[str]:
    """Requirements that hold the installed version, and not the wanted one."""
    owner = Owner(name=found.name, version=found.version, manager=found.manager)
    for line in dict.fromkeys(askers(view, owner)):
        specifier = line.partition(f"requires {found.name}")[2]
        if "=" in specifier and admits(specifier, found.version) and not admits(specifier, wanted):
            yield line


def later_torch(view: View, by: Distribution, wanted: str) -> Iterator[str]:
    """A lock of the next torch that comes with such a cuDNN, for the same CUDA major."""
    torch, least = installed_torch(view), (release_of(wanted) or ())[:2]
    if torch is None:
        return
    rows = [each for each in view.matrix.torch if each.index == "default" and each.platform == platform_of(view)
            and each.cuda.partition(".")[0] == str(torch.cuda_major) and each.cudnn is not None
            and (release_of(each.cudnn) or ())[:2] >= least
            and (release_of(each.version) or ()) > (release_of(torch.release) or ())]
    best = min(rows, key=lambda each: release_of(each.version) or (), default=None)
    if best is not None:
        yield (f"stackfix lock --torch {best.version} --cuda {best.cuda} --with {by.name}=={by.version}  "
               f"# it comes with cuDNN {best.cudnn}")


def error_of(by: Distribution, found: Distribution, wanted: str) -> str | None:
    """What TensorFlow prints."""
    if not by.name.startswith("tensorflow"):
        return None
    loaded, source = (".".join(each.split(".")[:3]) for each in (found.version, wanted))
    return f"Loaded runtime CuDNN library: {loaded} but source was compiled with: {source}."
