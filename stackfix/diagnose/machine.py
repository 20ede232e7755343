"""The machine below an environment: NVIDIA's driver, its devices, the C and C++ libraries, the processor."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.machine_architecture import check_architecture
from stackfix.diagnose.machine_devices import check_devices
from stackfix.diagnose.machine_driver import check_driver_libraries
from stackfix.diagnose.machine_order import check_import_order
from stackfix.diagnose.machine_system import check_system_libraries
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided


def check_machine(view: View) -> Iterator[Finding | Undecided]:
    """SF803, SF804, SF903 to SF905, SF1001 to SF1004, SF1006 and SF1007."""
    yield from check_driver_libraries(view)
    yield from check_devices(view)
    yield from check_system_libraries(view)
    yield from check_import_order(view)
    yield from check_architecture(view)
