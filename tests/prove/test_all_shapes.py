"""The whole matrix of shapes: sources and targets of both versions, at each moment what a loaded dump has as well, and
what Spark itself reads where its client fits the metastore.

Spark's own client reads metastores of 3.1.3 alone. Of the shapes it reads all but `UNREAD`; what these, Presto's views
and Avro's bytes are to their engines nothing here can tell.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.cli import main
from calque.model.hive import Database
from calque.model.names import DEFAULT_PARTITION, TableName
from support.judges.engines import read
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import SETTINGS, Shared, shared_servers
from support.services.shaped import Shaped, Standing, differences, shaped
from support.services.sparksql import SparkSql
from support.sources.shapes import Ground, not_a_number

BUCKETS = ("buckets_none", "buckets_1", "buckets_2")
UNREAD = frozenset({"avro", "listed", "nan", "odd_keys", "skewed", "view_parts", *BUCKETS})
"""Bytes that are no Avro, a list that Spark does not know, a double and dates that it shows in its own form, a
directory below the table's, partitions of a view, and columns of buckets with capitals, which it refuses."""
UNDUMPED = frozenset({"columns_parts", "view_other", "view_parts"})
"""No dump tells of a CASCADE; that view reads another database, of which there is no dump; and of a view a bootstrap
has no partitions, as Hive's."""
WITH_DATA = "'hive.repl.run.data.copy.tasks.on.target' = 'false'"


@dataclass
class Dumps:
    """A bootstrap at the first moment and increments at the next, each of them loaded at once under another name."""

    world: Shaped
    target: str
    root: Path
    since: int = 0
    config: Path = field(init=False)

    def __post_init__(self) -> None:
        self.root.mkdir()
        self.config = self.root / "calque.toml"
        self.local = f"{self.world.databases[0]}_loaded"
        self.config.write_text(
            f'[source]\nname = "hq"\nmetastore = "{self.world.server.uri}"\n[repl]\nroot = "{self.root}/dumps"\n'
            f'[state]\npath = "{self.root}/state"\n[targets.loaded]\nmetastore = "{self.target}"\n'
            f'warehouse = "file://{self.root}/wh"\nexternal_base = "file://{self.root}/wh/external"\n'
            'include = ["nothing.*"]\n'
        )
        self.catalog = HiveReader(Client(self.target))

    def sql(self, text: str) -> list[list[object]]:
        said, told = StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(told):
            code = main(["sql", text, "--json", "-c", str(self.config)])
        assert code == 0, f"{text}: {told.getvalue()}"
        rows: list[list[object]] = json.loads(said.getvalue())[0]["rows"]
        return rows

    def look(self, moment: str) -> None:
        """Of what is there now."""
        since = f" FROM {self.since}" if self.since else ""
        layout = f"'calque.repl.layout' = '{self.world.version}'"
        [[directory, event_id]] = self.sql(f"REPL DUMP {self.world.databases[0]}{since} WITH ({WITH_DATA}, {layout})")
        self.sql(f"REPL LOAD {self.local} FROM '{directory}'")
        self.since = int(str(event_id))
        wrong = [problem for one in self.standing() for problem in self.problems(one)]
        assert not wrong, "\n".join([f"loaded, {moment}:", *wrong])

    def standing(self) -> Iterator[Standing]:
        yield from (one for key, one in self.world.standing.items() if shape_of(key) not in UNDUMPED)

    def problems(self, one: Standing) -> Iterator[str]:
        here = read(self.world.source.client.catalog, one.name)
        yield from differences(here, self.catalog, TableName(self.local, one.name.table), f"{self.root}/wh")


def shape_of(key: str) -> str:
    return key.rpartition("_")[0]


@dataclass
class Engine:
    """Spark at a metastore."""

    spark: SparkSql
    where: str

    def require_rows(self, world: Shaped, name_here: dict[str, TableName]) -> None:
        wrong = [problem for key, one in world.standing.items() for problem in self.problems(key, one, name_here[key])]
        assert not wrong, "\n".join([f"Spark at {self.where}:", *wrong])

    def problems(self, key: str, one: Standing, name: TableName) -> Iterator[str]:
        if shape_of(key) in UNREAD:
            return
        try:
            rows = sorted(map(as_read, self.spark.sql(f"SELECT * FROM {name}")))
        except RuntimeError as problem:
            yield f"{name}: {problem}"
            return
        if rows != sorted(one.rows):
            yield f"{name}: {rows} in place of {one.rows}"


def as_read(row: Sequence[object]) -> tuple[str, ...]:
    return tuple(DEFAULT_PARTITION if cell is None else str(cell) for cell in row)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.mark.timeout(0)
@pytest.mark.parametrize("target", ["target-3", "target-4"])
@pytest.mark.parametrize("source", ["source-3", "source-4"])
def test_readers_of_every_shape_read_the_same_rows_from_each_version_to_each(
    source: str, target: str, shared: Shared, tmp_path: Path
) -> None:
    servers = shared(source, target)
    with shaped(shared, source, target, tmp_path) as world:
        dumps = Dumps(world, servers[target].uri, tmp_path / "loaded")
        world.play(dumps.look, is_described=True)
        world.require_described()
        world.require_equal()
        require_rows_in_spark(world, servers[source].uri if SETTINGS[source].version < "4" else "", "", tmp_path)
        for place in world.targets if SETTINGS[target].version < "4" else ():
            require_rows_in_spark(world, servers[target].uri, place.name, tmp_path)
        world.require_found_out("dr", "copy")
        world.require_set_aside()
        assert world.end(signal.SIGTERM) == 0


def require_rows_in_spark(world: Shaped, uri: str, target: str, root: Path) -> None:
    """At the target of that name, or at the source where there is none; nothing where no address is given."""
    if not uri:
        return
    admissions = {one.name: one.admission for one in world.targets}
    names = {
        key: admissions[target].name_at_target(one.name) if target else one.name for key, one in world.standing.items()
    }
    folder = root / f"spark-{target}"
    folder.mkdir()
    spark = SparkSql(uri, folder)
    try:
        Engine(spark, target or "the source").require_rows(world, names)
    finally:
        spark.close()


@pytest.mark.timeout(0)
def test_a_renamed_table_of_3_1_calls_its_statistics_accurate_at_a_target_of_4(shared: Shared, tmp_path: Path) -> None:
    servers = shared("source-3", "target-4")
    world = Deployment(tmp_path, next(NUMBERS), servers["source-3"], {"dr": servers["target-4"]}, seed=1)
    ground = Ground(world.source.client, *world.databases, tmp_path / "data", 3)
    world.source.create_database(Database(ground.database))
    not_a_number(ground, "counted")
    assert world.calque("run", "--until", "head").returncode == 0
    ground.rename("counted", "renamed")
    assert world.calque("run", "--until", "head").returncode == 0
    verified = world.calque("verify")
    assert verified.returncode == 0, verified.stdout
