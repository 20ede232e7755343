"""A package index made from the matrix: at first the two agree, then a test takes something away or adds it."""

from __future__ import annotations

from dataclasses import dataclass, field

from stackfix.errors import StackfixError
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.platforms import PLATFORMS
from stackfix.resolve.records import Index
from stackfix.sources.errors import NoSuchProject
from stackfix.sources.records import CoreMetadata, IndexFile

TAGS = {"2.5": "manylinux1", "2.17": "manylinux2014", "2.28": "manylinux_2_28"}


def index_file(project: str, filename: str, version: str, *, yanked: str | None = None) -> IndexFile:
    return IndexFile(
        project=project, filename=filename, version=version, url=f"https://index.invalid/{filename}", sha256="0" * 64,
        requires_python=None, yanked=yanked, size=1, upload_time=None, core_metadata=None, index="https://index.invalid",
    )


@dataclass
class FakePage:
    """Fills resolve.records.ProjectPage."""

    name: str
    by_version: dict[str, list[IndexFile]] = field(default_factory=dict)

    def version_strings(self) -> tuple[str, ...]:
        return tuple(self.by_version)

    def files(self, version: str) -> tuple[IndexFile, ...]:
        return tuple(self.by_version[version])


@dataclass
class FakeIndex:
    """Fills resolve.records.Index."""

    pages: dict[str, FakePage] = field(default_factory=dict)
    requires: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by file name
    broken: dict[str, StackfixError] = field(default_factory=dict)      # raised for that file's metadata
    read: list[str] = field(default_factory=list)                       # file names whose metadata was asked for

    def prefetch_pages(self, names: tuple[str, ...]) -> None: ...
    def prefetch_metadata(self, files: tuple[IndexFile, ...]) -> None: ...

    def page(self, name: str) -> FakePage:
        if name not in self.pages:
            raise NoSuchProject(name, ("https://index.invalid",))
        return self.pages[name]

    def metadata(self, file: IndexFile) -> CoreMetadata:
        self.read.append(file.filename)
        if file.filename in self.broken:
            raise self.broken[file.filename]
        return CoreMetadata(
            name=file.project, version=file.version, requires_dist=self.requires.get(file.filename, ()),
            requires_python=None, provides_extra=(), basis="file",
        )

    def add(self, project: str, version: str, filename: str, *requires: str) -> None:
        """One more file."""
        page = self.pages.setdefault(project, FakePage(project))
        page.by_version.setdefault(version, []).append(index_file(project, filename, version))
        self.requires[filename] = requires

    def drop(self, project: str, version: str, part: str = "") -> None:
        """Take a release away, or only its files whose names hold `part`."""
        page = self.pages[project]
        page.by_version[version] = [file for file in page.by_version[version] if part not in file.filename]
        if not page.by_version[version]:
            del page.by_version[version]

    def yank(self, project: str, version: str) -> None:
        files = self.pages[project].by_version[version]
        files[:] = [index_file(project, file.filename, version, yanked="broken") for file in files]


def agreeing_index(matrix: Matrix) -> FakeIndex:
    """An index that says what the matrix says."""
    index = FakeIndex()
    for build in query.builds(matrix, index="default"):
        for python in build.pythons:
            index.add("torch", build.version, torch_wheel(build, python), *build.requires, 'opt ; extra == "opt"')
    for row in matrix.companions:
        torch = [] if row.torch is None else [f"torch{row.torch}"]
        name = f"{row.package}-{row.version}-py3-none-manylinux_2_28_x86_64.whl"
        index.add(row.package, row.version, name, *torch, *row.requires, "numpy")
    toolkits: dict[str, list[str]] = {}
    for component in matrix.components:
        pin = f'{component.package}=={component.version}.* ; extra == "all"'
        if "rc" in component.version:
            pin = pin.replace(".*", "")
        toolkits.setdefault(component.toolkit, []).append(pin)
    for toolkit, pins in toolkits.items():
        index.add("cuda-toolkit", toolkit, f"cuda_toolkit-{toolkit}-py2.py3-none-any.whl", *pins)
    for release in matrix.flash_attn:
        if release.sdist:
            index.add("flash-attn", release.version, f"flash_attn-{release.version}.tar.gz")
    return index


def torch_wheel(build: TorchBuild, python: str) -> str:
    """File name of the wheel for one Python."""
    tag = "cp" + python.replace(".", "")
    abi = tag + "m" if python == "3.7" else tag
    if build.macos is not None:
        return f"torch-{build.version}-{tag}-none-macosx_{build.macos.replace('.', '_')}_arm64.whl"
    machine = PLATFORMS[build.platform].wheel
    return f"torch-{build.version}-{tag}-{abi}-{'win' if build.glibc is None else TAGS[build.glibc]}_{machine}.whl"


def as_index(index: FakeIndex) -> Index:
    """The same, as resolve sees it: mypy checks that what the matrix reads from is what resolve reads from."""
    return index
