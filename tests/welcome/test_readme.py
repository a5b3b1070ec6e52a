"""The commands of README, from the wheel to a replica that follows its source: `make first-replica`.

The reader who carries them out is not root, has nothing of the checkout but the wheel, and installs it into a new
environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from calque.demo.source import Source
from calque.model.access import MetastoreAccess
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.places import ROOT
from support.reader import carried_out, page_blocks, shell

ORDERS = TableName("sales", "orders")
NOBODY = (65534, 65534)
READER = NOBODY if os.geteuid() == 0 else None
"""User and group id of the reader; None where it is the user that runs the tests."""
PYTHON = 'python3 -c "import sys; print(sys.executable)"'
IDENTITY = 'python -c "import os, calque; print(os.getuid(), calque.__file__)"'
FOLLOW = """\
{run} >run.log 2>&1 &
until calque verify; do sleep 1; done
timeout 60 {watch} | head -n 1
kill $!
wait $!
"""


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can look into, outside of the checkout."""
    with umask(0o022), TemporaryDirectory(prefix="first-replica-") as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


@pytest.fixture
def home(place: Path) -> Path:
    """The reader's own folder, with the wheel in `dist`, as `make release` builds it."""
    home = place / "home"
    (home / "tmp").mkdir(parents=True)
    wheels(sys.executable, home / "dist", "--no-deps", ROOT)
    if READER:
        for folder in (home, home / "tmp"):
            os.chown(folder, *READER)
    return home


@pytest.fixture
def environment(place: Path, home: Path) -> Mapping[str, str]:
    """All that the reader's shell has. Its pip takes packages from a folder, in the versions of `constraints.txt`.

    The user that runs the tests fetches them, because the settings and the cache of pip are that user's.
    """
    java = {name: value for name, value in os.environ.items() if name == "JAVA_HOME"}
    reader = {
        **java,
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "PATH": f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(place / "packages"),
    }
    with shell(home, reader, READER) as started:
        python = carried_out(started, PYTHON).strip()
    [wheel] = (home / "dist").iterdir()
    wheels(python, place / "packages", "--constraint", ROOT / "constraints.txt", wheel)
    return reader


def wheels(python: str, folder: Path, *arguments: str | Path) -> None:
    """Have pip put wheels for that Python into the folder."""
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--wheel-dir", folder, *arguments], check=True)


@pytest.fixture
def metastores(place: Path) -> Iterator[Mapping[str, Metastore]]:
    """A source whose log the reader may read, and a target whose folders its group may write to, as README asks."""
    own = MetastoreAccess().user_name()
    users = (own, "nobody") if READER else (own,)
    log_readers = MetastoreSettings(proxy_users=users)
    group_writes = MetastoreSettings(extra={"fs.permissions.umask-mode": "002"})
    with (
        Metastore.start(log_readers, place / "source") as source,
        Metastore.start(group_writes, place / "target") as target,
    ):
        yield {"source": source, "target": target}


@pytest.fixture
def warehouse(place: Path) -> Path:
    """A folder of the reader's group, with the setgid bit, as README asks."""
    warehouse = place / "dr"
    warehouse.mkdir()
    if READER:
        os.chown(warehouse, -1, READER[1])
    warehouse.chmod(0o2775)
    return warehouse


@pytest.fixture
def source(metastores: Mapping[str, Metastore], place: Path) -> Source:
    """A table with a file in each of two partitions."""
    found = Source(HiveClient(metastores["source"].uri), place / "data")
    found.create_database(ORDERS.database)
    found.create_table(ORDERS, (Column("amount", "bigint"),), (Column("ds", "string"),), external=True)
    found.add_partitions(ORDERS, [["2026-01-01"], ["2026-01-02"]])
    return found


def equal(source: Source) -> str:
    """How `calque verify` says that all files of the source are at the target."""
    sizes = [size for files in source.expected_files()[ORDERS].values() for size in files.values()]
    compared = f"1 database, 1 table, 2 partitions, {len(sizes)} files ({sum(sizes)} bytes) compared"
    return f"dr equals the source at event {source.client.current()}: {compared}\n"


@pytest.mark.timeout(900)
def test_the_commands_of_readme_lead_from_the_wheel_to_a_replica_that_follows_its_source(
    metastores: Mapping[str, Metastore], source: Source, warehouse: Path, home: Path, environment: Mapping[str, str]
) -> None:
    (_, installation), (_, first), (_, then) = page_blocks(ROOT / "README.md", {"sh"})
    replacements = {
        "thrift://metastore.hq:9083": metastores["source"].uri,
        "thrift://metastore.dr:9083": metastores["target"].uri,
        "/data/dr": str(warehouse),
    }
    for written, real in replacements.items():
        assert written in first
        first = first.replace(written, real)
    run, watch = then.splitlines()
    with shell(home, environment, READER) as started:
        carried_out(started, installation)
        user, module = carried_out(started, IDENTITY).split()
        assert user != "0"
        assert Path(module).is_relative_to(home / "calque")
        copied = carried_out(started, first)
        assert "All is well." in copied
        assert copied.endswith(equal(source))
        source.insert(ORDERS, "ds=2026-01-02")
        followed = carried_out(started, FOLLOW.format(run=run, watch=watch))
        assert equal(source) in followed
    print(copied, followed, sep="\n")
