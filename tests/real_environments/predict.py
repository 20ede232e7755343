"""What the simulation says that `import torch` maps, to be held against a child's own map."""

from __future__ import annotations

from pathlib import Path

from stackfix.cli.inspecting import Asked, open_view
from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import MissingLibrary, OpenLibrary, ProcessState
from stackfix.diagnose.situation import View
from stackfix.inspect.places import Root
from tests.real_environments.child import Told
from tests.real_environments.workshop import Made, Workshop

OF_TORCH = ("torch", "functorch", "torchgen")


def predicted_map(workshop: Workshop, made: Made, told: Told, **variables: str) -> frozenset[str]:
    """Real paths of all that a process with `import torch` maps.

    Of the child's word only the extension modules of others are taken (which of numpy's and the standard library's
    modules Python code imports is no question to a loader); each is one more dlopen.
    """
    asked = Asked(root=Root(), environ=workshop.quiet(**variables), cwd=str(workshop.folder), prefix=str(made.prefix),
                  python=None, extensions=(), wheels=(), deep=False)
    with open_view(asked) as view:
        assert view.start.objects, "the interpreter's own start was not simulated"
        state = after_import(view, "torch")
        simulator = Simulator(view.situation.loader, view.files)
        for name, file in told.modules:
            if name.partition(".")[0] not in OF_TORCH:
                outcome = simulator.load(OpenLibrary(name=file), state)
                assert outcome.failure is None, outcome.failure.message()
                state = outcome.state
        return frozenset(str(Path(each.real_path).resolve()) for each in state.objects)


def after_import(view: View, project: str) -> ProcessState:
    """The process after the import of a project."""
    surely = [each for each in view.openings if each.project == project and each.phase == "import"]
    assert surely, f"no dlopen of `import {project}` is known"
    faults = [failure.message() for each in surely if each.may_fail is None for failure in each.outcome.failures
              if not (isinstance(failure, MissingLibrary) and failure.name == "libcuda.so.1")]
    assert not faults, faults
    return surely[-1].outcome.attempted
