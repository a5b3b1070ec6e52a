"""What definitions name is read at places that are admitted, wherever links lead; and nobody else gets rights by it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import md5
from pathlib import Path

import pytest

from calque.adapters.files.admitted import real_path
from calque.adapters.files.copy import WHOLE
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.app import APP
from calque.core.events.decode import LoggedFile
from calque.core.formats.layout import place
from calque.core.formats.roots import HOST, Roots, roots_of
from calque.errors import Refused
from calque.model.files import Listing
from calque.plugins.dumps.adapters.find_files import FileLocator
from calque.ports import CopyTask


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("file:///etc", "a place of this host's own"),
        ("/etc/ssl/private", "a place of this host's own"),
        ("file:/proc/self/cwd/x", "a place of this host's own"),
        ("/root/.ssh", "a place of this host's own"),
        ("/etcetera", ""),
        ("/data/t", ""),
        ("/data/calque/state/journal", "a place of calque's own"),
        ("/data/calque/state", "a place of calque's own"),
        ("/data/calque/state/pins/7/t", ""),
        ("/root/warehouse/t", ""),
        ("s3a://bucket/state/evidence", "a place of calque's own"),
        ("s3://bucket/other", ""),
        ("hdfs://ns/etc", ""),
    ],
)
def test_without_roots_every_place_is_read_but_the_hosts_own_and_calques_own(location: str, said: str) -> None:
    private = ("/data/calque/state", "s3://bucket/state")
    roots = roots_of((), private, ("file:///data/calque/state/pins", "file:/root/warehouse"))
    assert roots.why_not(place(location)) == said


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("/data/t", ""),
        ("/data", ""),
        ("/database/t", "below none of the roots of [source]"),
        ("/data/state/x", "a place of calque's own"),
        ("/etc/hive", ""),
        ("/etc", "below none of the roots of [source]"),
        ("s3a://bucket/lake/t", ""),
        ("s3://bucket/t", "below none of the roots of [source]"),
        ("hdfs://ns/data", "below none of the roots of [source]"),
    ],
)
def test_written_roots_are_exact(location: str, said: str) -> None:
    roots = roots_of(("file:///data", "/etc/hive", "s3://bucket/lake"), ("/data/state",), ())
    assert roots.why_not(place(location)) == said


def test_a_configuration_lends_nothing_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret\n")
    config = tmp_path / "calque.toml"
    config.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://h:9083"\nuser = "ann"\nauth = "plain"\n'
        'password_file = "password"\nroots = ["data", "."]\n'
        '[targets.dr]\nmetastore = "thrift://d:9083"\nwarehouse = "dr"\n'
    )
    roots = APP.load(config).sources["hq"].roots()
    for own in ("password", "calque.toml", "state/journal", "checkpoints"):
        assert roots.why_not(place(f"{tmp_path}/{own}")) == "a place of calque's own", own
    assert roots.why_not(place(f"{tmp_path}/data/t")) == ""
    assert roots.why_not(place("/data/t")) != ""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only calque may read, and that no root admits."""
    folder = tmp_path / "private"
    folder.mkdir()
    file = folder / "shadow"
    file.write_text("root:x\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "t"
    folder.mkdir(parents=True)
    (folder / "rows").write_text("1\n")
    return folder


def storage_of(tmp_path: Path, *written: Path) -> FileStorage:
    own = (str(tmp_path / "warehouse"),)
    roots = roots_of(map(str, written), (str(tmp_path / "private"),), own)
    return FileStorage(FileSystemSet(own=OwnLocations(own), roots=roots))


def names(listings: Mapping[str, Listing], location: Path) -> list[str]:
    return [file.path for file in listings[str(location)].files]


@pytest.mark.parametrize("written", [False, True])
def test_a_link_among_a_tables_files_is_data_only_where_it_leads_to_an_admitted_place(
    written: bool, tmp_path: Path, table: Path, secret: Path
) -> None:
    storage = storage_of(tmp_path, *([tmp_path / "data"] if written else []))
    other = tmp_path / "data" / "other"
    other.write_text("2\n")
    (table / "more").symlink_to(other)
    (table / "sub").mkdir()
    (table / "sub" / "rows").write_text("3\n")
    assert names(storage.list([str(table)]), table) == ["more", "rows", "sub/rows"]
    for link, target in ((table / "leak", secret), (table / "sub" / "leak", secret), (table / "dir", secret.parent)):
        link.symlink_to(target)
        with pytest.raises(Refused, match=f"Nothing is read at {link}. It leads to {target}"):
            storage.list([str(table)])
        link.unlink()
    assert names(storage.list([str(table)]), table) == ["more", "rows", "sub/rows"]


@pytest.mark.parametrize("way", ["link", "place", "host"])
def test_nothing_is_read_below_a_directory_that_is_elsewhere(way: str, tmp_path: Path, secret: Path) -> None:
    storage = storage_of(tmp_path) if way == "host" else storage_of(tmp_path, tmp_path / "data")
    location, file = secret.parent, "shadow"
    if way == "link":
        location = tmp_path / "data"
        location.symlink_to(secret.parent)
        storage = storage_of(tmp_path)
    elif way == "host":
        location, file = Path("/etc"), "passwd"
    for look in (
        lambda: storage.list([str(location)]),
        lambda: storage.children(str(location)),
        lambda: storage.entries(str(location)),
        lambda: storage.read(f"{location}/{file}"),
        lambda: storage.checksums([f"{location}/{file}"]),
        lambda: storage.digests([f"{location}/{file}"]),
        lambda: storage.tails([f"{location}/{file}"], 4),
    ):
        with pytest.raises(Refused, match="Nothing is read at"):
            look()


@pytest.mark.usefixtures("table")
def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.symlink_to(tmp_path / "data")
    storage = storage_of(tmp_path, mounted)
    assert names(storage.list([f"{mounted}/t"]), Path(f"{mounted}/t")) == ["rows"]


@pytest.mark.parametrize("size", [10, WHOLE + 1])
def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_copied(
    size: int, tmp_path: Path, table: Path, secret: Path
) -> None:
    storage = storage_of(tmp_path, tmp_path / "data")
    secret.write_bytes(b"x" * size)
    facts = secret.stat()
    (table / "rows").unlink()
    (table / "rows").symlink_to(secret)
    target = tmp_path / "warehouse" / "rows"
    [copied] = storage.copy([CopyTask(str(table / "rows"), str(target), size, facts.st_mtime_ns)])
    assert "It leads to" in copied.problem
    assert not target.exists()
    [copied] = storage.copy([CopyTask(str(secret), str(target), size, facts.st_mtime_ns)])
    assert "a place of calque's own" in copied.problem


@pytest.mark.parametrize("named", ["file:///etc/passwd", "/proc/self/environ", "{secret}", "{link}"])
def test_a_file_that_a_dump_names_is_read_where_it_is_admitted(named: str, tmp_path: Path, secret: Path) -> None:
    storage, link = storage_of(tmp_path), tmp_path / "link"
    link.symlink_to(secret)
    file = LoggedFile(named.format(secret=secret, link=link), checksum=md5(secret.read_bytes()).hexdigest())
    with pytest.raises(Refused, match="Nothing is read at"):
        FileLocator(storage).located([file])


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("size", [10, WHOLE + 1])
@pytest.mark.parametrize(("mode", "given"), [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o666, 0o644)])
def test_what_is_no_tables_data_gets_no_right_that_its_source_did_not_give(
    size: int, mode: int, given: int, tmp_path: Path, table: Path
) -> None:
    storage, umask = storage_of(tmp_path), os.umask(0o022)
    try:
        jar, linked, target = tmp_path / "f.jar", table / "link", tmp_path / "warehouse"
        jar.write_bytes(b"x" * size)
        jar.chmod(mode)
        linked.symlink_to(jar)
        (table.parent / "linked").symlink_to(table)
        below = table.parent / "linked" / "file"
        (table / "file").write_bytes(b"x" * size)
        (table / "file").chmod(mode)
        time = jar.stat().st_mtime_ns
        of_file = (table / "file").stat().st_mtime_ns
        tasks = [
            CopyTask(str(jar), f"{target}/jar", size, time, lent=True),
            CopyTask(str(linked), f"{target}/linked", size, time, within=str(table)),
            CopyTask(str(below), f"{target}/below", size, of_file, within=str(table.parent)),
            CopyTask(str(below), f"{target}/data", size, of_file, within=str(below.parent)),
        ]
        assert [copied.problem for copied in storage.copy(tasks)] == [""] * 4
    finally:
        os.umask(umask)
    assert [rights(target / name) for name in ("jar", "linked", "below", "data")] == [given, given, given, 0o644]


def test_the_hosts_own_places_are_these() -> None:
    assert {str(one) for one in HOST} == {
        f"file:{path}" for path in ("/etc", "/proc", "/sys", "/dev", "/run", "/boot", "/root")
    }
    assert Roots().why_not(place("/etc")) == ""


@pytest.mark.parametrize(
    "below",
    [
        "d",
        "d/f",
        "d/",
        "d/missing",
        "d/missing/too",
        "link/f",
        "link/missing",
        "dangling",
        "dangling/x",
        "loop",
        "d/../d/f",
    ],
)
def test_where_a_path_leads_is_what_the_system_says(tmp_path: Path, below: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").touch()
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "dangling").symlink_to("nowhere/x")
    (tmp_path / "loop").symlink_to("loop")
    assert real_path(f"{tmp_path}/{below}") == os.path.realpath(f"{tmp_path}/{below}")
