"""A local metastore with links, a remote one that is written to, and `calque run` between them.

linked = Linked(tmp_path, local, remote)
linked.sql("CREATE REMOTE TABLE here.t CONNECTED TO shop.t WITH TBLPROPERTIES ('hive.metastore.uris' = '…')")
linked.start()
linked.wait_until(lambda: linked.state("here.t") == "live")
linked.close()                          # in a fixture, or in `finally`
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from getpass import getuser
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import urlopen

from calque.adapters.metastore.catalog import HiveCatalog
from calque.cli import main
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox.writer import HiveClient
from support.services.deployments import RealFiles
from support.worlds.worlds import INPUT, OUTPUT, SERDE

KEY = Column("p", "string")
T = TypeVar("T")
Outcome = tuple[int, str, str]
"""Exit code, standard output, standard error."""


class Catalog:
    """One of the two metastores, with hands for tables of text; files lie below `root`."""

    def __init__(self, uri: str, root: Path) -> None:
        self.uri, self.root, self.client = uri, root, HiveClient(uri)
        self.catalog = HiveCatalog(self.client.client, TargetCapabilities())
        self.files = RealFiles()

    def database(self, name: str, **parameters: str) -> None:
        """Its owner is the one that engines of this user give it."""
        location, user = f"file:{self.root}/{name}.db", getuser()
        self.client.create_database(Database(name, location=location, parameters=parameters, owner=user))

    def owner(self, name: str) -> str | None:
        database = self.client.catalog.database(name)
        return database.owner if database is not None else None

    def place(self, name: TableName, value: str = "") -> str:
        return f"file:{self.root}/{name.database}.db/{name.table}" + (f"/p={value}" if value else "")

    def storage(self, location: str, *columns: str) -> Storage:
        return Storage(
            tuple(Column(name, "int") for name in columns or ("x",)),
            location,
            INPUT,
            OUTPUT,
            serde=SerDe(class_name=SERDE, parameters={}),
        )

    def table(self, name: str, *values: str, columns: tuple[str, ...] = ("x",), **parameters: str) -> None:
        """An external one, with a file; with values one with these partitions."""
        table = named(name)
        self.client.create_table(
            Table(
                table.table,
                table.database,
                owner=self.owner(table.database),
                storage=self.storage(self.place(table), *columns),
                partition_keys=(KEY,) if values else (),
                parameters={"EXTERNAL": "TRUE", **parameters},
                type="EXTERNAL_TABLE",
            )
        )
        if not values:
            self.files.write(f"{self.place(table)}/one", b"1\n")
        self.partitions(name, *values)

    def transactional(self, name: str) -> None:
        """One that has rows by transactions."""
        table = named(name)
        storage, parameters = self.storage(self.place(table)), {"transactional": "true"}
        parameters["transactional_properties"] = "insert_only"
        self.client.create_table(
            Table(table.table, table.database, storage=storage, parameters=parameters, type="MANAGED_TABLE")
        )

    def view(self, name: str, text: str) -> None:
        table = named(name)
        storage = replace(self.storage(""), location=None)
        self.client.create_table(
            Table(
                *reversed(table),
                storage=storage,
                parameters={},
                view_original_text=text,
                view_expanded_text=text,
                type="VIRTUAL_VIEW",
            )
        )

    def bare(self, name: str, parameters: dict[str, str], owner: str | None = None) -> None:
        """An external one where nothing lies, as an engine makes it; the database's owner has it where none is said."""
        table = named(name)
        self.client.create_table(
            Table(
                table.table,
                table.database,
                owner=self.owner(table.database) if owner is None else owner,
                storage=self.storage(self.place(table)),
                parameters={"EXTERNAL": "TRUE", **parameters},
                type="EXTERNAL_TABLE",
            )
        )

    def partitions(self, name: str, *values: str) -> None:
        table = named(name)
        for value in values:
            self.files.write(f"{self.place(table, value)}/one", b"1\n")
        if values:
            parts = [Partition((value,), *table, storage=self.storage(self.place(table, value))) for value in values]
            self.client.add_partitions(table, [replace(part, parameters={}) for part in parts])

    def alter(self, name: str, **parameters: str) -> None:
        """Set parameters; an empty value removes."""
        self.set(name, {key.replace("__", "."): value for key, value in parameters.items()})

    def set(self, name: str, parameters: dict[str, str]) -> None:
        table = self.client.catalog.table(named(name))
        assert table is not None
        now = {**(table.parameters or {}), **parameters}
        self.client.alter_table(
            named(name), replace(table, parameters={key: value for key, value in now.items() if value})
        )

    def rename(self, was: str, to: str) -> None:
        table = self.client.catalog.table(named(was))
        assert table is not None
        self.client.alter_table(named(was), replace(table, database=named(to).database, name=named(to).table))

    def drop(self, name: str) -> None:
        self.client.drop_table(named(name))

    def shown(self, name: str) -> Table | None:
        return self.client.catalog.table(named(name))

    def parameters(self, name: str) -> dict[str, str]:
        table = self.shown(name)
        return dict((table.parameters if table is not None else None) or {})

    def parts(self, name: str) -> list[str]:
        return sorted(self.client.catalog.partition_names(named(name)))

    def location(self, name: str) -> str:
        table = self.shown(name)
        return (table.storage.location if table is not None and table.storage is not None else None) or ""

    def locations(self, name: str) -> list[str]:
        """Of the table, then of its partitions in the order of their names."""
        found = self.client.catalog.partitions(named(name), self.parts(name))
        return [self.location(name), *((found[part].storage or Storage()).location or "" for part in sorted(found))]

    def look(self, name: str) -> tuple[int, bool]:
        """How many partitions a reader finds, and whether each has its row; the table is there."""
        locations = self.locations(name)
        assert locations[0]
        return len(locations) - 1, all(self.files.content(place) == (("one", b"1\n"),) for place in locations[1:])

    def rows(self, name: str) -> int:
        """How many rows a reader finds in its partitions."""
        return sum(len(self.files.content(place)) for place in self.locations(name)[1:])

    def place_of(self, name: str) -> str:
        return self.place(named(name))

    def has_file(self, name: str, value: str) -> bool:
        return (self.root / f"{named(name).database}.db" / named(name).table / f"p={value}" / "one").exists()

    def tables(self, database: str) -> list[str]:
        return sorted(self.client.catalog.tables(database))


def named(text: str) -> TableName:
    database, _, table = text.partition(".")
    return TableName(database, table)


class Linked:
    """The local catalog `here`, the remote one `there`, a configuration with `[remotes]` alone, and its process."""

    def __init__(self, root: Path, local: str, remote: str, allow: str = "") -> None:
        self.root, self.remote_uri = root, remote
        self.here, self.there = Catalog(local, root / "here"), Catalog(remote, root / "there")
        self.config, self.log = root / "calque.toml", root / "run.log"
        self.config.write_text(
            f'[remotes]\nmetastore = "{local}"\nwarehouse = "{root}/warehouse"\nallow = [{allow}]\n'
            '[window]\nmax_delay = "50ms"\n[serve]\naddress = ""\n'
        )
        self.process: subprocess.Popen[bytes] | None = None

    # Statements

    def calque(self, *arguments: str) -> Outcome:
        said, told = StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(told):
            code = main([*arguments, "-c", str(self.config)])
        return code, said.getvalue(), told.getvalue()

    def sql(self, text: str) -> list[dict[str, Any]]:
        """The rows of the last statement; all of them have to succeed."""
        code, said, told = self.calque("sql", text, "--json")
        assert code == 0, told
        last = json.loads(said)[-1]
        return [dict(zip(last["columns"], row, strict=True)) for row in last["rows"]]

    def refused(self, text: str) -> tuple[int, str]:
        code, _, told = self.calque("sql", text)
        return code, told

    def properties(self, kind: str = "TBL", uri: str = "") -> str:
        return f"WITH {kind}PROPERTIES ('hive.metastore.uris' = '{uri or self.remote_uri}')"

    def link(self, name: str, to: str) -> None:
        self.sql(f"CREATE REMOTE TABLE {name} CONNECTED TO {to} {self.properties()}")

    def link_database(self, name: str, to: str) -> None:
        self.sql(f"CREATE REMOTE DATABASE {name} CONNECTED TO {to} {self.properties('DB')}")

    def page(self, path: str) -> dict[str, Any]:
        """What the page of the running process is told."""
        code, said, told = self.calque("status", "--json")
        assert code == 0, told
        [address] = [one["serves"] for one in json.loads(said)["processes"]]
        with urlopen(f"{address}/api/{path}", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def rows(self) -> dict[str, dict[str, Any]]:
        return {str(row["name"]): row for row in (*self.sql("SHOW REMOTE TABLES"), *self.sql("SHOW REMOTE DATABASES"))}

    def state(self, name: str) -> str:
        return str(self.rows().get(name, {}).get("state", ""))

    def reason(self, name: str) -> str:
        return str(self.rows().get(name, {}).get("reason", ""))

    # The process

    def start(self, **environment: str) -> None:
        command = [sys.executable, "-m", "calque.cli", "run", "-c", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.root, env={**os.environ, **environment}
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        yield
        assert self.end() == 0, self.tail()

    @contextmanager
    def reader(self, look_once: Callable[[], T]) -> Iterator[set[T]]:
        """What one sees that looks again and again; for the first time before what is done meanwhile, for the last time
        after it."""
        seen: set[T] = set()
        over, begun = threading.Event(), threading.Event()

        def look() -> None:
            is_last = False
            while not is_last:
                is_last = over.is_set()
                seen.add(look_once())
                begun.set()

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(look)
            try:
                while not begun.wait(0.1) and not future.done():
                    pass
                yield seen
            finally:
                over.set()
            future.result()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-60:]) if self.log.exists() else ""

    def threads(self) -> str:
        """Where the process's threads are."""
        if self.process is None or self.process.poll() is not None:
            return ""
        before, deadline = self.log.stat().st_size, time.monotonic() + 10
        self.process.send_signal(signal.SIGUSR1)
        while self.log.stat().st_size == before and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.log.read_bytes()[before:].decode()

    def wait_until(self, reached: Callable[[], object], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert self.process is None or self.process.poll() is None, self.tail()
            assert time.monotonic() < deadline, f"{self.rows()}\n{self.tail()}\n{self.threads()}"
            time.sleep(0.1)

    def wait_live(self, *names: str, seconds: float = 120) -> None:
        self.wait_until(lambda: self.are_live(names), seconds)

    def are_live(self, names: Sequence[str]) -> bool:
        rows = self.rows()
        return all(rows.get(name, {}).get("state") == "live" for name in names)
