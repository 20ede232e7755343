"""A small world for the resolver: a made-up matrix of three torch releases, and an index in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from stackfix.abi.records import Books
from stackfix.errors import Unreachable
from stackfix.matrix.records import (
    Companion,
    DriverFamily,
    FlashAttnRelease,
    FlashAttnWheel,
    Frameworks,
    Matrix,
    Rule,
    Sources,
    ToolkitComponent,
    ToolkitDriver,
    TorchBuild,
)
from stackfix.resolve.decide import decide
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.records import (
    Index,
    Lock,
    NoConsistentStack,
    ProjectPage,
    Releases,
    Requirement,
    StackRequest,
    TargetLock,
)
from stackfix.sources.errors import NoSuchProject, SdistNeedsBuild
from stackfix.sources.records import CoreMetadata, IndexFile, ReleaseAsset

INDEX = "https://index.invalid"
DOWNLOAD = "https://releases.invalid/download"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(kw_only=True)
class Release:
    """One version of a project on the index. `tags` make its wheels; none: an sdist alone."""

    requires: tuple[str, ...] = ()
    tags: tuple[str, ...] = ("py3-none-any",)
    requires_python: str | None = None
    yanked: str | None = None
    upload_time: str | None = "2024-01-01T00:00:00Z"
    hashed: bool = True
    sdist: bool = False
    static: bool = True             # the sdist's metadata is static
    extras: tuple[str, ...] = ()


@dataclass
class FakePage:
    name: str
    releases: dict[str, Release]

    def version_strings(self) -> tuple[str, ...]:
        return tuple(self.releases)

    def files(self, version: str) -> tuple[IndexFile, ...]:
        release = self.releases.get(version)
        if release is None:
            return ()
        stem = f"{self.name.replace('-', '_')}-{version}"
        names = [f"{stem}-{tag}.whl" for tag in release.tags]
        if release.sdist or not names:
            names.append(f"{stem}.tar.gz")
        return tuple(self._file(name, version, release) for name in names)

    def _file(self, name: str, version: str, release: Release) -> IndexFile:
        return IndexFile(
            project=self.name, filename=name, version=version, url=f"{INDEX}/{name}",
            sha256=sha(name) if release.hashed else None, requires_python=release.requires_python,
            yanked=release.yanked, size=1, upload_time=release.upload_time, core_metadata=True, index=INDEX,
        )


@dataclass
class FakeIndex:
    """Fills resolve.records.Index and notes what was asked."""

    projects: dict[str, dict[str, Release]]
    pages_asked: list[str] = field(default_factory=list)
    metadata_asked: list[str] = field(default_factory=list)
    prefetched: list[str] = field(default_factory=list)
    on_page: Callable[[ProjectPage], None] | None = None
    on_metadata: Callable[[IndexFile, CoreMetadata], None] | None = None

    def watch(
        self, *, on_page: Callable[[ProjectPage], None] | None = None,
        on_metadata: Callable[[IndexFile, CoreMetadata], None] | None = None,
    ) -> None:
        self.on_page, self.on_metadata = on_page, on_metadata

    def prefetch_pages(self, names: tuple[str, ...]) -> None:
        self.prefetched.extend(names)
        for name in names:
            if self.on_page is not None and name in self.projects:
                self.on_page(FakePage(name, self.projects[name]))

    def prefetch_metadata(self, files: tuple[IndexFile, ...]) -> None:
        for file in files:
            self.prefetched.append(file.filename)
            if self.on_metadata is not None and file.is_wheel:
                self.on_metadata(file, self._metadata(file))

    def page(self, name: str) -> ProjectPage:
        self.pages_asked.append(name)
        if name not in self.projects:
            raise NoSuchProject(name, (INDEX,))
        return FakePage(name, self.projects[name])

    def metadata(self, file: IndexFile) -> CoreMetadata:
        self.metadata_asked.append(file.filename)
        return self._metadata(file)

    def _metadata(self, file: IndexFile) -> CoreMetadata:
        release = self.projects[file.project][file.version]
        if not file.is_wheel and not release.static:
            raise SdistNeedsBuild(file.project, file.version, "has dynamic metadata")
        return CoreMetadata(
            name=file.project, version=file.version, requires_dist=release.requires,
            requires_python=release.requires_python, provides_extra=release.extras, basis="advertised",
        )


@dataclass
class FakeReleases:
    """Fills resolve.records.Releases. `listed`: assets by version; None: nobody answers."""

    listed: dict[str, tuple[ReleaseAsset, ...]] | None = None
    downloadable: bool = True
    asked: list[tuple[str, ...]] = field(default_factory=list)
    downloaded: list[str] = field(default_factory=list)

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        self.asked.append(versions)
        if self.listed is None:
            raise Unreachable("the release source", "nobody answers")
        return {version: self.listed.get(version, ()) for version in versions}

    def sha256(self, asset: ReleaseAsset) -> str:
        self.downloaded.append(asset.file)
        if not self.downloadable:
            raise Unreachable(asset.file, "cut off")
        return sha(f"bytes of {asset.file}")


def asset(file: str, sha256: str | None = None) -> ReleaseAsset:
    version = file.split("-")[1].partition("+")[0]
    return ReleaseAsset(
        version=version, file=file, url=f"https://mirror.invalid/{file}", sha256=sha256, size=1, updated_at=None,
    )


def wheel_tags(pythons: Iterable[str], platform: str = "manylinux_2_17_x86_64") -> tuple[str, ...]:
    digits = [python.replace(".", "") for python in pythons]
    return tuple(f"cp{python}-cp{python}-{platform}" for python in digits)


# -- the matrix ------------------------------------------------------------------------------------------------------

def torch_build(version: str, cuda: str, toolkit: str | None, **changes: object) -> TorchBuild:
    build = TorchBuild(
        version=version, platform="linux-64", cuda=cuda, index="default", pythons=("3.10", "3.11", "3.12"),
        cxx11_abi=False, gpu_archs=("sm_80", "sm_90"), requires=(), toolkit=toolkit, cudnn="8.9.2.26", nccl=None,
        glibc="2.17", source=f"row of torch {version}", confidence="certain",
    )
    return replace(build, **changes)    # type: ignore[arg-type]


def component(toolkit: str, package: str, version: str) -> ToolkitComponent:
    return ToolkitComponent(
        toolkit=toolkit, package=package, version=version, source="components", confidence="certain",
    )


def companion(package: str, version: str, torch: str | None, cuda: str | None, same: str = "minor") -> Companion:
    return Companion(
        package=package, version=version, torch=torch, cuda=cuda, same_cuda=same, requires=(), source="companions",
        confidence="certain",
    )


def rule(package: str, versions: str, needs: str, confidence: str = "certain") -> Rule:
    return Rule(
        package=package, versions=versions, needs=needs, why=f"measured on {package}", source="symbols",
        confidence=confidence,
    )


def flash_wheel(
    version: str, tag: str, torch: str, python: str, *, abi: bool = False, hashed: bool = True, basis: str = "listed",
    confidence: str = "high",
) -> FlashAttnWheel:
    digits = python.replace(".", "")
    file = (
        f"flash_attn-{version}+{tag}torch{torch}cxx11abi{'TRUE' if abi else 'FALSE'}"
        f"-cp{digits}-cp{digits}-linux_x86_64.whl"
    )
    return FlashAttnWheel(
        file=file, version=version, cuda_tag=tag, torch_minor=torch, cxx11_abi=abi, python=python,
        platform="linux-64", sha256=sha(file) if hashed else None, basis="hashed" if hashed else basis,
        source="assets", confidence=confidence,
    )


def flash_release(version: str) -> FlashAttnRelease:
    return FlashAttnRelease(
        version=version, requires=("einops",), build_requires=("packaging", "ninja"), gpu_archs=("sm_80", "sm_90"),
        sdist=True, source=f"row of flash-attn {version}", confidence="high",
    )


MATRIX = Matrix(
    torch=(
        torch_build("2.4.1", "12.4", "12.4.1", cxx11_abi=True, gpu_archs=("sm_80", "sm_90", "sm_120")),
        torch_build("2.3.1", "12.1", "12.1.1"),
        torch_build("2.3.0", "12.1", "12.1.1"),
        torch_build("2.3.1", "11.8", "11.8.0", index="cu118"),
        torch_build("2.0.1", "11.7", "11.7.1", pythons=("3.10", "3.11")),
        torch_build("2.3.1", "cpu", None, platform="linux-aarch64", gpu_archs=()),
        torch_build("2.4.1", "cpu", None, platform="linux-aarch64", gpu_archs=(), cxx11_abi=True),
    ),
    components=(
        component("12.1.1", "nvidia-nvjitlink-cu12", "12.1.105"),
        component("12.1.1", "nvidia-cusparse-cu12", "12.1.0.106"),
        component("12.4.1", "nvidia-nvjitlink-cu12", "12.4.127"),
    ),
    companions=(
        companion("torchvision", "0.19.1", "==2.4.1", "12.4"),
        companion("torchvision", "0.18.1", "==2.3.1", "12.1"),
        companion("torchvision", "0.18.0", "==2.3.0", "12.1"),
        companion("vision-any", "2.0", ">=2.0", "12.4"),
        companion("vision-any", "1.0", ">=2.0", "12.1"),
    ),
    rules=(
        rule("nvidia-cusparse-cu12", "==12.1.0.106", "nvidia-nvjitlink-cu12>=12.1.55"),
        rule("nvidia-cusolver-cu12", "==11.4.5.107", "nvidia-nvjitlink-cu12>=12.1.55"),
        rule("transformers", ">=5", "torch>=2.4"),
    ),
    flash_attn=tuple(flash_release(version) for version in ("2.7.0", "2.6.3", "2.5.8")),
    flash_attn_wheels=(
        flash_wheel("2.7.0", "cu12", "2.3", "3.10", hashed=False),
        flash_wheel("2.7.0", "cu12", "2.3", "3.11", hashed=False),
        flash_wheel("2.6.3", "cu123", "2.3", "3.10"),
        flash_wheel("2.5.8", "cu122", "2.3", "3.10"),
        flash_wheel("2.5.8", "cu118", "2.3", "3.10"),
        flash_wheel("2.5.8", "cu122", "2.3", "3.10", abi=True),
    ),
    driver_families=(
        DriverFamily(cuda_major=11, floor="450.80.02", source="drivers", confidence="certain"),
        DriverFamily(cuda_major=12, floor="525.60.13", source="drivers", confidence="certain"),
    ),
    toolkit_drivers=(
        ToolkitDriver(cuda="11.7", update="GA", driver="515.43.04", source="drivers", confidence="certain"),
        ToolkitDriver(cuda="12.1", update="GA", driver="530.30.02", source="drivers", confidence="certain"),
        ToolkitDriver(cuda="12.4", update="GA", driver="550.54.14", source="drivers", confidence="certain"),
    ),
    closures=(("torch", ("filelock", "nvidia-cusparse-cu12", "nvidia-nvjitlink-cu12")),),
    sources=Sources(
        torch_index="https://torch.invalid", release_api="https://api.invalid", release_download=DOWNLOAD,
        conda_channels=(),
    ),
    frameworks=Frameworks(frameworks=(), bitsandbytes=()),
    directory="made up", digest="0",
)

CU12 = ("nvidia-cusparse-cu12==12.1.0.106", "filelock")


def projects() -> dict[str, dict[str, Release]]:
    """An index that agrees with the matrix. A fresh copy each time."""
    return {
        "torch": {
            "2.4.1": Release(requires=("nvidia-cusparse-cu12==12.3.1.170", "filelock"), tags=wheel_tags(
                ("3.10", "3.11", "3.12")) + wheel_tags(("3.10", "3.11"), "manylinux_2_17_aarch64")),
            "2.3.1": Release(requires=CU12, tags=wheel_tags(("3.10", "3.11", "3.12"))
                             + wheel_tags(("3.10", "3.11"), "manylinux_2_17_aarch64")),
            "2.3.0": Release(requires=CU12, tags=wheel_tags(("3.10", "3.11", "3.12"))),
            "2.0.1": Release(requires=("filelock",), tags=wheel_tags(("3.10", "3.11"))),
        },
        "nvidia-cusparse-cu12": {
            "12.3.1.170": Release(requires=("nvidia-nvjitlink-cu12",)),
            "12.1.0.106": Release(requires=("nvidia-nvjitlink-cu12",)),
        },
        "nvidia-cusolver-cu12": {"11.4.5.107": Release(requires=("nvidia-nvjitlink-cu12",))},
        "nvidia-nvjitlink-cu12": {
            version: Release() for version in ("12.9.86", "12.4.127", "12.1.105", "12.1.55", "12.0.140")
        },
        "filelock": {"3.1": Release(), "3.0": Release()},
        "torchvision": {
            "0.19.1": Release(requires=("torch==2.4.1", "numpy")),
            "0.18.1": Release(requires=("torch==2.3.1", "numpy")),
            "0.18.0": Release(requires=("torch==2.3.0", "numpy")),
        },
        "vision-any": {"2.0": Release(requires=("torch>=2.0",)), "1.0": Release(requires=("torch>=2.0",))},
        "numpy": {"2.1": Release(), "2.0": Release(), "1.26": Release(), "2.2rc1": Release()},
        "transformers": {
            "5.0": Release(requires=("numpy", 'torch ; extra == "torch"'), extras=("torch",)),
            "4.40": Release(requires=("numpy<2", "tokenizers==0.19"), extras=("torch",)),
        },
        "tokenizers": {"0.20": Release(), "0.19": Release()},
        "einops": {"0.8": Release()},
        "packaging": {"24": Release()},
        "ninja": {"1.11": Release()},
        "setuptools": {"70": Release()},
        "wheel": {"0.43": Release()},
        "flash-attn": {v: Release(tags=(), static=False) for v in ("2.7.0", "2.6.3", "2.5.8")},
    }


# -- asking ----------------------------------------------------------------------------------------------------------

def asked(*lines: str, constraints: tuple[str, ...] = (), **options: object) -> StackRequest:
    """A request: requirement lines as --with, and fields of StackRequest. flash-attn is left out unless said."""
    requirements = (
        *(Requirement(text=line, origin=f"--with {line}") for line in lines),
        *(Requirement(text=line, origin=f"--constraint {line}", constraint=True) for line in constraints),
    )
    options.setdefault("no_flash_attn", "flash_attn" not in options)
    options.setdefault("pythons", ("3.10",))
    return StackRequest(requirements=requirements, **options)  # type: ignore[arg-type]


def told(request: StackRequest) -> str:
    """Stands in for the command line."""
    return repr(request)


def lock(
    request: StackRequest, index: Index | None = None, *, matrix: Matrix = MATRIX, releases: Releases | None = None,
    books: Books | None = None,
) -> Lock:
    return decide(request, matrix, index or FakeIndex(projects()), releases or FakeReleases(), command=told,
                  books=books)


def refusal(
    request: StackRequest, index: Index | None = None, *, matrix: Matrix = MATRIX, releases: Releases | None = None,
    books: Books | None = None,
) -> NoConsistentStack:
    try:
        found = lock(request, index, matrix=matrix, releases=releases, books=books)
    except NoConsistentStack as error:
        return error
    raise AssertionError(f"a lock: {found.stack}")


def pins(lock_or_target: Lock | TargetLock) -> dict[str, str]:
    """name -> version of the first target."""
    target = lock_or_target.targets[0] if isinstance(lock_or_target, Lock) else lock_or_target
    return {package.name: package.version for package in target.packages}


def evidence(index: Index | None = None, *, matrix: Matrix = MATRIX, releases: Releases | None = None) -> Evidence:
    return Evidence(matrix, index or FakeIndex(projects()), releases or FakeReleases(), None)
