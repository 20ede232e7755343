"""What of the machine that a lock is for stands against it, with where that was said and what would do."""

from __future__ import annotations

from stackfix.conda.layouts_records import Scene
from stackfix.conda.partner_solve import Missed
from stackfix.conda.records import CondaCause, VirtualPackage
from stackfix.matrix import query
from stackfix.quick import replace

NO_DRIVER = "the lock is for a machine without __cuda"


def with_the_machine(scene: Scene, miss: Missed, virtual: tuple[VirtualPackage, ...]) -> Missed:
    """The miss; where it lacks `__cuda` with the words that took it away."""
    if miss.conflict is None or any(one.name == "__cuda" for one in virtual):
        return miss
    causes = tuple(_of_no_driver(scene, cause) if cause.text == NO_DRIVER else cause for cause in miss.conflict.causes)
    return replace(miss, conflict=replace(miss.conflict, causes=causes))


def _of_no_driver(scene: Scene, cause: CondaCause) -> CondaCause:
    driver = scene.question.request.driver
    family = query.driver_floor(scene.evidence.matrix, scene.cuda)
    enough = f"--driver {family.floor} or newer" if family is not None else "--driver"
    if driver is not None:
        return replace(cause, text=f"{NO_DRIVER}, as no CUDA is known for its driver: {enough} gives it one",
                       source=f"--driver {driver}")
    return replace(cause, text=f"{NO_DRIVER}, as CONDA_OVERRIDE_CUDA is set and empty: {enough} gives it one, and so"
                               " does that variable unset", source="CONDA_OVERRIDE_CUDA")
