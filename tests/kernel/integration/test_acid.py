"""Insert-only ACID tables of real metastores as external ones, with a real process, while readers look."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import Fault
from calque.adapters.metastore.transactions import HiveTransactionReader
from calque.core.formats.layout import place
from calque.model.hive import Database, is_transactional
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from support.judges.proof import Look, places_of, read_tables, touched
from support.services.deployments import NUMBERS, Deployment, RealFiles
from support.services.servers import Shared
from support.sources.plain_transactions import HiveTransactions
from support.worlds.acid import AcidWriters
from support.worlds.worlds import State, rows_of, rows_seen


class AcidFiles(RealFiles):
    """Local files as writers of ACID tables handle them."""

    def make(self, location: str) -> None:
        Path(place(location).path).mkdir(parents=True, exist_ok=True)

    def contents(self, location: str) -> Sequence[tuple[str, bytes]]:
        return [(path, content) for path, content in super().content(location)]

    def content(self, location: str) -> State:
        """The rows of a plain table, in whichever files."""
        return rows_of(content for _, content in self.contents(location))


class AcidDeployment(Deployment):
    """A deployment whose source has ACID tables in the first of its databases."""

    def __init__(self, root: Path, number: int, source: Metastore, targets: Mapping[str, Metastore], seed: int) -> None:
        super().__init__(root, number, source, targets, seed)
        self.acid_files = AcidFiles()
        client = Client(source.uri)
        self.transactions, self.reader = HiveTransactions(client), HiveTransactionReader(client)
        for target in self.targets:
            target.content = self.acid_files.content
        self.source.client.create_database(Database(self.databases[0]))
        self.writers = AcidWriters(
            self.source,
            self.acid_files,
            self.transactions,
            self.reader,
            self.note,
            random.Random(seed),
            self.databases[0],
        )

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002
        first, _ = self.databases
        return Policy(name, "hq", include=(f"{first}.*",), warehouse=f"file://{self.root}/wh_{name}", acid="external")

    def text(self, source: Metastore) -> str:
        text = super().text(source)
        return text.replace("\ninclude", '\nacid = "external"\ninclude')

    def write(self, steps: int, pause: float = 0.0) -> None:
        for _ in range(steps):
            try:
                self.writers.step()
            except Fault as fault:
                self.writer.done.append(f"refused: {fault}")
            if pause:
                time.sleep(self.rng.random() * 2 * pause)

    def note(self) -> None:
        event_id = self.source.current()
        events = self.source.client.events(event_id if self.noted is None else self.noted)
        order, self.noted = touched(events), event_id
        database = self.databases[0]
        found = {
            TableName(database, name): table
            for name, table in read_tables(self.source.client.catalog, database).items()
        }
        ids = self.reader.valid_write_ids(list(found))
        contents = {
            location: rows_seen(self.acid_files, location, ids[name])
            for name, table in found.items()
            for location in places_of([table])
            if is_transactional(table.table)
        }
        for target in self.targets:
            look = Look(event_id, found, contents, frozenset())
            target.proof.note(event_id, look.source_states(target.looker), order, len(events))


@pytest.fixture
def deployment(request: pytest.FixtureRequest, shared: Shared, tmp_path: Path) -> Iterator[AcidDeployment]:
    servers = shared(request.param, "target-3", "target-4")
    targets = {"three": servers["target-3"], "four": servers["target-4"]}
    made = AcidDeployment(tmp_path, next(NUMBERS), servers[request.param], targets, seed=5)
    yield made
    made.close()


@pytest.mark.parametrize("deployment", ["source-3", "source-4"], indirect=True)
def test_readers_see_states_of_insert_only_tables_while_calque_is_killed(deployment: AcidDeployment) -> None:
    deployment.write(30)
    deployment.watch()
    for number in (signal.SIGKILL, signal.SIGTERM):
        deployment.start()
        deployment.wait_for(lambda status: status["state"] == "running")
        deployment.write(40, pause=0.05)
        deployment.end(number)
        deployment.write(5)
    deployment.start()
    deployment.write(30, pause=0.02)
    deployment.writers.finish()
    deployment.settle()
    deployment.check_equal()
    deployment.wait_for_readers()
    assert not (problems := deployment.problems()), "\n".join(problems[:3])
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0
