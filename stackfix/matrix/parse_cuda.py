"""cuda.toml to records."""

from __future__ import annotations

from stackfix.matrix.faults import Faults
from stackfix.matrix.records import DriverFamily, ToolkitComponent, ToolkitDriver
from stackfix.matrix.rows import Origins, Row
from stackfix.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaRows:
    """What cuda.toml holds."""

    components: tuple[ToolkitComponent, ...]
    families: tuple[DriverFamily, ...]
    drivers: tuple[ToolkitDriver, ...]


def parse_cuda(document: dict[str, object], faults: Faults) -> CudaRows:
    """Components, driver families and toolkit drivers in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    components = _components(top.table("toolkit"), origins, faults)
    driver = top.table("driver")
    source, confidence = origins.of(driver)
    families = tuple(_family(row, origins, source, confidence) for row in driver.rows("families"))
    drivers = tuple(_driver(row, origins, source, confidence) for row in driver.rows("toolkits"))
    driver.done()
    top.done()
    for what, keys in (
        ("driver, families: CUDA", [str(family.cuda_major) for family in families]),
        ("driver, toolkits: CUDA", [f"{row.cuda} {row.update}" for row in drivers]),
    ):
        for key in {key for key in keys if keys.count(key) > 1}:
            faults.add(f"{what} {key}", "given twice")
    return CudaRows(components=components, families=families, drivers=drivers)


def _components(toolkits: Row, origins: Origins, faults: Faults) -> tuple[ToolkitComponent, ...]:
    components: list[ToolkitComponent] = []
    for toolkit in toolkits.names():
        where = f"{toolkits.where} {toolkit}"
        faults.check(toolkit, "version", where)
        seen: set[str] = set()
        for line in toolkits.lines(toolkit, "text"):
            name, _, version = line.partition(" ")
            faults.check(name, "name", where)
            faults.check(version, "version", where)
            if name in seen:
                faults.add(where, f"{name} given twice")
            seen.add(name)
            components.append(
                ToolkitComponent(
                    toolkit=toolkit,
                    package=component_package(name, toolkit),
                    version=version,
                    source=origins.source,
                    confidence=origins.confidence,
                )
            )
    return tuple(components)


def component_package(name: str, toolkit: str) -> str:
    """The wheel's project name: "nvidia-cublas-cu12" of "cublas"; CUDA 13 dropped the suffix."""
    major = toolkit.partition(".")[0]
    return f"nvidia-{name}-cu{major}" if major in {"11", "12"} else f"nvidia-{name}"


def _family(row: Row, origins: Origins, source: str, confidence: str) -> DriverFamily:
    source, confidence = origins.of(row, source, confidence)
    family = DriverFamily(
        cuda_major=row.whole("major"), floor=row.text("floor", "number"), windows=row.optional("windows", "number"),
        source=source, confidence=confidence,
    )
    row.done()
    return family


def _driver(row: Row, origins: Origins, source: str, confidence: str) -> ToolkitDriver:
    source, confidence = origins.of(row, source, confidence)
    driver = ToolkitDriver(
        cuda=row.text("cuda", "minor"),
        update=row.text("update"),
        driver=row.text("driver", "number"),
        source=source,
        confidence=confidence,
    )
    row.done()
    return driver
