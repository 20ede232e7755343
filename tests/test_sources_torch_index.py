"""The torch index as a source: official addresses, hashes of page and matrix, what stands in for an answer."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stackfix.errors import BadInput, Unreachable
from stackfix.matrix.records import TorchIndexWheel
from stackfix.sources.errors import (
    BadPage,
    HashMismatch,
    IndexUnreachable,
    NoSuchProject,
    NotAllowedOffline,
    RequestFailed,
)
from stackfix.sources.page import parse_page
from stackfix.sources.records import Answered, CoreMetadata, IndexFile
from stackfix.sources.torch_index import TorchHashDisagreement, TorchIndex, check_base
from stackfix.sources.torch_index_page import LivePage

READ, WRITTEN = "https://mirror.example/whl", "https://official.example/whl"
A, B, C = "a" * 64, "b" * 64, "c" * 64
TORCH = "torch-2.3.1+cu118-cp311-cp311-linux_x86_64.whl"


def row(file: str, sha256: str = A, path: str = "cu118", *, confidence: str = "high") -> TorchIndexWheel:
    project, version = file.split("-")[:2]
    return TorchIndexWheel(file=file, project=project.replace("_", "-"), version=version, path=path, sha256=sha256,
                           requires=None, source="locks", confidence=confidence)


def anchor(href: str, file: str, sha256: str | None = A) -> str:
    return f'<a href="{href}{f"#sha256={sha256}" if sha256 else ""}" data-core-metadata="true">{file}</a><br/>'


@dataclass
class Client:
    """One path of the index: pages by project, or a fault that every question meets."""

    address: str
    pages: dict[str, str] = field(default_factory=dict)
    fault: Exception | None = None
    asked: list[str] = field(default_factory=list)
    metadata_fault: Exception | None = None

    def prefetch_pages(self, names: tuple[str, ...]) -> None:
        self.asked += names

    def page(self, name: str) -> LivePage:
        self.asked.append(name)
        if self.fault is not None:
            raise self.fault
        if name not in self.pages:
            raise NoSuchProject(name, (self.address,))
        return parse_page(self.pages[name].encode(), "text/html", project=name, index=self.address,
                          url=f"{self.address}/{name}/")

    def metadata(self, file: IndexFile) -> CoreMetadata:
        if self.metadata_fault is not None:
            raise self.metadata_fault
        return CoreMetadata(name=file.project, version=file.version, requires_dist=(f"read-from=={file.url}",),
                            requires_python=None, provides_extra=(), basis="advertised")

    def answers(self) -> tuple[Answered, ...]:
        return ()

    def close(self) -> None:
        self.asked.append("closed")


def index_of(*anchors: str, rows: tuple[TorchIndexWheel, ...] = (), fault: Exception | None = None,
             metadata_fault: Exception | None = None, name: str = "torch") -> tuple[TorchIndex, list[Client]]:
    clients: list[Client] = []

    def opened(address: str) -> Client:
        clients.append(Client(address, {name: "\n".join(anchors)} if anchors else {}, fault,
                              metadata_fault=metadata_fault))
        return clients[-1]

    def by_path(path: str) -> tuple[TorchIndexWheel, ...]:
        return tuple(each for each in rows if each.path == path)

    return TorchIndex(read=READ, written=WRITTEN, rows=by_path, open_pages=opened), clients


def only_file(index: TorchIndex, version: str = "2.3.1+cu118") -> IndexFile:
    (file,) = index.page("cu118", "torch").files(version)
    return file


@pytest.mark.parametrize("href", [
    f"/whl/cu118/{TORCH.replace('+', '%2B')}", f"../{TORCH.replace('+', '%2B')}",
    f"https://r2.example/whl/cu118/{TORCH.replace('+', '%2B')}",
])
def test_the_official_address_is_written_wherever_the_page_was_read(href: str) -> None:
    index, clients = index_of(anchor(href, TORCH))
    file = only_file(index)
    assert file.url == f"{WRITTEN}/cu118/torch-2.3.1%2Bcu118-cp311-cp311-linux_x86_64.whl"
    assert (file.sha256, file.torch_path) == (A, "cu118")
    metadata = index.metadata(file)
    assert metadata is not None
    assert "official.example" not in metadata.requires_dist[0]      # it is read where the page leads
    assert [client.address for client in clients] == [f"{READ}/cu118"]


def test_what_lies_above_all_paths_is_written_so() -> None:
    file = "triton-2.3.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    index, _ = index_of(anchor(f"/whl/{file}", file), name="triton")
    (found,) = index.page("cu118", "triton").files("2.3.1")
    assert found.url == f"{WRITTEN}/{file}"


@pytest.mark.parametrize("folder", ["cu118_full", "cu118_pypi_cudnn", "test/cu118", "cu121", "nightly/cu118"])
def test_a_file_of_another_path_is_none_of_this_one(folder: str) -> None:
    index, _ = index_of(anchor(f"/whl/{folder}/{TORCH}", TORCH))
    assert index.page("cu118", "torch").files("2.3.1+cu118") == ()


def test_another_local_version_is_another_variant() -> None:
    names = [f"torch-2.1.0{local}-cp311-cp311-linux_x86_64.whl"
             for local in ("+cu118", "+cu121", "+cu118.with.pypi.cudnn", "+cpu", "")]
    index, _ = index_of(*(anchor(f"/whl/cu118/{name}", name) for name in names))
    assert set(index.page("cu118", "torch").version_strings()) == {"2.1.0+cu118", "2.1.0"}


def test_two_hashes_of_one_file_are_an_error_that_names_both() -> None:
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH, B), rows=(row(TORCH, A),))
    file = only_file(index)
    assert file.sha256 == B                                         # the page wins, until the file is to be used
    with pytest.raises(TorchHashDisagreement) as caught:
        index.metadata(file)
    assert TORCH in caught.value.what()
    assert A in caught.value.what()
    assert B in caught.value.what()
    assert caught.value.exit_status == 3


def test_a_hash_that_the_page_lacks_is_the_matrixs() -> None:
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH, None), rows=(row(TORCH, A),))
    file = only_file(index)
    assert file.sha256 == A
    assert not index.states_hash(file)
    assert index.metadata(file) is not None


def test_a_digest_of_metadata_is_no_hash_of_a_wheel() -> None:
    mixed = anchor(f"/whl/cu118/{TORCH}", TORCH, C).replace('"true"', f'"sha256={C}"')
    index, _ = index_of(mixed, rows=(row(TORCH, A),))
    assert only_file(index).sha256 == A
    assert index.metadata(only_file(index)) is not None
    unknown, _ = index_of(mixed)
    assert only_file(unknown).sha256 is None


def test_rows_are_not_read_before_a_page_is_asked_for() -> None:
    def never(path: str) -> tuple[TorchIndexWheel, ...]:
        raise AssertionError(path)

    TorchIndex(read=READ, written=WRITTEN, rows=never, open_pages=Client).close()


def test_a_hash_that_nobody_knows_stays_unknown() -> None:
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH, None), rows=(row(TORCH, A, "cu121"),))
    assert only_file(index).sha256 is None


def test_the_page_decides_which_files_there_are() -> None:
    gone = TORCH.replace("2.3.1", "2.3.0")
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH), rows=(row(TORCH), row(gone)))
    assert index.page("cu118", "torch").version_strings() == ("2.3.1+cu118",)
    assert index.page("cu118", "torchvision").version_strings() == ()      # a project it has not got


@pytest.mark.parametrize("fault", [
    IndexUnreachable(READ, "no connection"), NotAllowedOffline("page"), RequestFailed(READ, "503", status=503),
    RequestFailed(READ, "403", status=403),
])
def test_where_nobody_answers_the_matrix_stands_in(fault: Exception) -> None:
    index, clients = index_of(rows=(row(TORCH), row("triton-2.3.1-cp311-cp311-linux_x86_64.whl", B, "root")),
                              fault=fault)
    file = only_file(index)
    assert (file.sha256, file.url) == (A, f"{WRITTEN}/cu118/{TORCH.replace('+', '%2B')}")
    assert index.metadata(file) is None
    assert index.away is fault
    assert index.page("cu118", "triton").files("2.3.1")[0].sha256 == B
    index.prefetch("cu118", ("torchvision",))
    assert [client.asked for client in clients] == [["torch"]]      # asked once, not for each page


@pytest.mark.parametrize("fault", [
    BadPage("torch", READ, "is no index page"), RequestFailed(READ, "404", status=404),
    RequestFailed(READ, "it redirects from https to http"),
])
def test_an_answer_that_cannot_be_trusted_is_no_reason_to_go_on(fault: Exception) -> None:
    index, _ = index_of(rows=(row(TORCH),), fault=fault)
    with pytest.raises(type(fault)):
        index.page("cu118", "torch")


def test_a_server_that_goes_away_after_the_page_leaves_the_matrix() -> None:
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH), rows=(row(TORCH),),
                        metadata_fault=IndexUnreachable(READ, "cut off"))
    assert index.metadata(only_file(index)) is None
    assert index.away is not None


def test_without_a_row_its_going_away_is_an_error() -> None:
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH), metadata_fault=IndexUnreachable(READ, "cut off"))
    with pytest.raises(IndexUnreachable):
        index.metadata(only_file(index))


def test_metadata_that_are_not_what_was_promised_are_an_error_whatever_the_matrix_knows() -> None:
    fault: Unreachable = HashMismatch("METADATA", READ, stated=A, found=B)
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH), rows=(row(TORCH),), metadata_fault=fault)
    with pytest.raises(HashMismatch):
        index.metadata(only_file(index))


def test_builds_for_the_cpu_above_all_paths_belong_to_the_cpu_alone() -> None:
    vision = row("torchvision-0.15.2-cp311-cp311-manylinux2014_aarch64.whl", C, "root")
    index, _ = index_of(rows=(vision,), fault=IndexUnreachable(READ, "no connection"))
    assert index.page("cpu", "torchvision").version_strings() == ("0.15.2",)
    assert index.page("cu118", "torchvision").version_strings() == ()


def test_no_credential_of_the_address_is_written() -> None:
    index, _ = index_of(anchor(f"/whl/cu118/{TORCH}", TORCH))
    secret = TorchIndex(read="https://me:secret@mirror.example/whl", written=WRITTEN, rows=lambda _: (),
                        open_pages=lambda address: Client(
                            address.replace("me:secret@", ""), {"torch": anchor(f"/whl/cu118/{TORCH}", TORCH)}))
    assert "secret" not in repr(only_file(secret))
    assert only_file(secret).url == only_file(index).url


@pytest.mark.parametrize(("url", "said"), [
    ("file:///srv/whl", "only http and https"), ("whl", "has no scheme"), (f"{READ}/cu118", "is the path cu118"),
    (f"{READ}/cpu/", "is the path cpu"), ("https://", "names no valid host"),
])
def test_an_address_that_is_no_base_is_refused(url: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_base(url)


def test_a_base_is_taken_without_its_last_slash() -> None:
    assert check_base(f"{READ}/") == READ
