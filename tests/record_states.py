"""Records the archives of `golden/state` with real metastores, a real Kafka broker and `calque run`.

    python tests/record_states.py [FOLDER]

writes the archives into the folder (default: `golden/state`), with the calque that Python imports.
`golden/state/README.md` says what each archive holds.
"""

from __future__ import annotations

import json
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition
from deltalake import write_deltalake

from calque.config import load
from calque.model.hive import Column, Table
from calque.model.names import TableName
from calque.sandbox import Broker, Metastore
from calque.sandbox.demo.files import storage
from calque.sandbox.demo.source import Source, location_at
from calque.sandbox.writer import HiveClient
from calque.wiring import Wiring
from states import (
    ARCHIVES,
    BROKER_PLACEHOLDER,
    DUMP,
    INSTALLATIONS,
    OUTPUTS,
    RECORDED_ROOT,
    SERVERS,
    TOPICS,
    Installation,
    make_root,
)

COLUMNS, DAY = (Column("id", "bigint"), Column("name", "string")), (Column("day", "string"),)
FOREVER = "36500d"
"""As retention and grace period: recorded events and epochs never expire."""
SET_ASIDE = 75
"""The exit code of a run with a quarantined table."""
LEFT_OUT = {"checkpoints", "spark", "locks", "run.log", "conf", "metastore.log", "postgres.log"}
"""Names of files and folders that a start does not need."""


@dataclass
class RecordedInstallation(Installation):
    """An installation and the writer of its source."""

    source: Source

    def __init__(self, folder: Path, uri: str) -> None:
        super().__init__(folder)
        folder.mkdir()
        self.source = Source(HiveClient(uri), folder / "data")

    def configure(self, *sections: str) -> None:
        self.config.write_text("\n".join(sections))

    @property
    def wiring(self) -> Wiring:
        return Wiring(load(self.config))

    def settle(self, *targets: str) -> None:
        """Waits until the position of each target is the source's newest event, whatever is set aside."""
        head = self.source.client.current()
        for target in targets:
            self.wait_until(lambda: (self.command("status")["targets"][target]["position"] or 0) >= head)  # noqa: B023

    def kinds(self, target: str) -> set[str]:
        return {row.kind for row in self.wiring.ledger(target).tables().values()}

    def wait_until(self, is_reached: Callable[[], object]) -> None:
        deadline = time.monotonic() + 120
        while not is_reached():
            assert time.monotonic() < deadline, self.log_tail()
            time.sleep(0.1)

    def request(self, *words: str) -> None:
        """Runs a command that leaves a request, and waits until the process has taken it up."""
        self.command(*words)
        self.wait_until(lambda: not self.wiring.control.names("requests/"))

    def record_outputs(self) -> None:
        """Writes the outputs of commands beside the state."""
        outputs = {words: self.command(*words.split()) for words in ("status", "quarantine list")}
        targets = load(self.config).targets
        outputs |= {f"epochs {name}": self.command("epochs", "list", "--target", name) for name in targets}
        (self.folder / OUTPUTS).write_text(json.dumps(outputs, indent=1))


def section(title: str, **keys: Any) -> str:
    """A section of the configuration. TOML reads these values as JSON writes them; tables become inline tables."""

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return f"{{ {', '.join(f'{json.dumps(key)} = {written(one)}' for key, one in value.items())} }}"
        return json.dumps(value)

    return "\n".join([f"[{title}]", *(f"{key} = {written(value)}" for key, value in keys.items())])


def source_section(uri: str, **keys: Any) -> str:
    return section("source", name="hq", metastore=uri, poll="50ms", **keys)


def target_section(name: str, uri: str, folder: Path, **keys: Any) -> str:
    return section(f"targets.{name}", metastore=uri, warehouse=f"file://{folder}/at_{name}", grace=FOREVER, **keys)


NO_ENDPOINT = section("serve", address="")


# Archive `operating`: nearly all kinds of rows of the ledger


def operate(installation: RecordedInstallation, servers: Mapping[str, Metastore]) -> None:
    source, uris = installation.source, {name: server.uri for name, server in servers.items()}
    three: dict[str, Any] = {"include": ["shop.*", "gone.*"]}
    four: dict[str, Any] = {"include": ["shop.*"], "rename": {"shop": "store"}, "consistency": "database"}

    def configure(retention: str = FOREVER) -> None:
        installation.configure(
            source_section(uris["source"], scans={"shop.loose": "500ms"}),
            section("journal", retention=retention),
            NO_ENDPOINT,
            target_section("three", uris["three"], installation.folder, **three),
            target_section("four", uris["four"], installation.folder, **four),
        )

    configure()
    furnish(source)
    target = HiveClient(uris["three"])
    installation.start()
    installation.settle("three", "four")
    for number in range(3):
        source.insert(TableName("shop", "items"))
        source.add_partitions(TableName("shop", "orders"), [(f"2024-01-0{number + 1}",)])
        commit(source, TableName("shop", "versions"))
        installation.settle("three", "four")
    installation.stop()

    # The journal forgets an event that `four` has not taken.
    configure(retention="1s")
    source.insert(TableName("shop", "items"))
    installation.run("--until", "head", "--target", "three", code=SET_ASIDE)
    installation.wait_until(
        lambda: installation.command("sweep") is not None and installation.wiring.source().journal.oldest() is None
    )
    source.insert(TableName("shop", "items"))
    installation.run("--until", "head", code=SET_ASIDE)
    configure()
    assert "behind" in installation.kinds("four")

    # The log loses events.
    first = source.client.current() + 1
    for number in range(4, 7):
        source.add_partitions(TableName("shop", "orders"), [(f"2024-01-0{number}",)])
    servers["source"].sql('DELETE FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" BETWEEN %s AND %s', (first, first + 1))
    installation.run("--until", "head", code=SET_ASIDE)
    assert installation.command("status")["journal"]["gaps"]

    close_ring(installation.folder.parent / "branch", uris)
    installation.start()
    installation.wait_until(lambda: "home" in installation.kinds("three"))
    source.insert(TableName("shop", "orders"), "day=2024-01-01")
    (source.place(TableName("shop", "loose")) / "silent").write_text("1\x01without an event\n")
    installation.wait_until(lambda: any(installation.folder.joinpath("at_three").rglob("silent")))
    installation.wait_until(lambda: any(installation.folder.joinpath("at_four").rglob("silent")))

    # Tables are paused, and operators request reads of them.
    installation.command(
        "pause", "--target", "three", "--tables", "shop.held", "--tables", "shop.taken", "--tables", "gone.last"
    )
    installation.wait_until(lambda: installation.command("status")["targets"]["three"]["tables"]["waiting"] == 3)
    before = str(source.client.current())
    source.insert(TableName("shop", "held"))
    source.drop_database("gone")
    seize(target, TableName("shop", "taken"), installation.folder)
    source.create_function(TableName("shop", "clash"), "org.example.Ours")
    source.alter_database("shop", {"looked": "at"})
    installation.wait_until(lambda: "database" in installation.kinds("three"))
    installation.request("adopt", "--target", "three", "--tables", "shop.taken")
    installation.request("replay", "--target", "three", "--from", before, "--tables", "shop.held")
    installation.request("bootstrap", "--target", "three", "--tables", "shop.held")
    installation.request("bootstrap", "--target", "three")
    installation.wait_until(lambda: reads_nothing(installation, "three"))
    installation.command("pause", "--target", "three", "--tables", "shop.left")
    installation.wait_until(lambda: installation.command("status")["targets"]["three"]["tables"]["waiting"] == 4)
    source.insert(TableName("shop", "left"))

    # Both policies change while the source is ahead. `four` is paused, so no epoch lists the bridge of its swap.
    installation.settle("four")
    installation.command("pause", "--target", "four")
    installation.stop()
    source.insert(TableName("shop", "items"))
    three |= {"include": ["shop.*", "gone.*", "crm.*"], "exclude": ["shop.retired"], "drops": "keep"}
    four["rename"] = {"shop": "store", "shop.left": "store.right", "shop.right": "store.left"}
    configure()
    installation.start()
    installation.wait_until(
        lambda: {"admitted", "kept"} <= installation.kinds("three") and "bridge" in installation.kinds("four")
    )
    installation.wait_until(lambda: reads_nothing(installation, "three"))
    source.insert(TableName("shop", "items"))
    installation.settle("three")
    installation.stop()
    installation.record_outputs()
    missing = KINDS - installation.kinds("three") - installation.kinds("four")
    assert not missing, missing


KINDS = {
    *("table", "database", "function", "cursor", "gap", "behind", "policy", "admitted", "kept", "home", "scan"),
    *("bridge", "read_again", "count_again", "look_again", "adopt"),
}
"""Kinds of rows of the ledgers' `tables`. Only `in_parts` is missing: it needs a drop of a thousand partitions."""


def furnish(source: Source) -> None:
    for database in ("shop", "gone", "crm"):
        source.create_database(database)
    for name in ("items", "held", "taken", "retired", "left", "right"):
        source.create_table(TableName("shop", name), COLUMNS, form="text")
        source.insert(TableName("shop", name))
    source.create_table(TableName("shop", "loose"), COLUMNS, form="text", external=True)
    source.create_table(TableName("shop", "orders"), COLUMNS, DAY, external=True)
    source.add_partitions(TableName("shop", "orders"), [("2023-12-30",), ("2023-12-31",)])
    source.create_view(TableName("shop", "recent"), TableName("shop", "items"), COLUMNS)
    source.create_function(TableName("shop", "mask"), "org.example.Mask")
    source.client.create_table(
        Table(
            "handled",
            "shop",
            storage=storage("text", COLUMNS),
            parameters={"storage_handler": "org.example.Handler"},
            type="MANAGED_TABLE",
        )
    )
    for name in (TableName("gone", "last"), TableName("crm", "customers")):
        source.create_table(name, COLUMNS, form="text")
        source.insert(name)
    source.create_function(TableName("crm", "mask"), "org.example.Mask")


def commit(source: Source, name: TableName) -> None:
    """Commits a version of a Delta table and fires an event for it. The first version creates the table."""
    place = source.root / "delta" / name.table
    write_deltalake(place, pa.table({"id": pa.array([1], pa.int64()), "name": ["ash"]}), mode="append")
    if source.client.catalog.table(name) is None:
        parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "DELTA"}
        stored = storage("parquet", COLUMNS, location_at(place))
        source.client.create_table(Table(*reversed(name), storage=stored, parameters=parameters, type="EXTERNAL_TABLE"))
    source.client.insert(name, [str(max(place.glob("_delta_log/*.json")))])


def close_ring(folder: Path, uris: Mapping[str, str]) -> None:
    """Another calque replicates a database of `three` to the source."""
    branch = RecordedInstallation(folder, uris["three"])
    branch.source.create_database("branch")
    branch.configure(
        section("source", name="branch", metastore=uris["three"], poll="50ms"),
        NO_ENDPOINT,
        target_section("hq", uris["source"], folder, include=["branch.*"]),
    )
    branch.run("--until", "head")


def seize(target: HiveClient, name: TableName, folder: Path) -> None:
    """Replaces a replica by a foreign table, and creates a foreign function under the name of a later one."""
    replica = target.catalog.table(name)
    assert replica is not None
    target.drop_table(name, delete_data=False)
    place = folder / "foreign"
    place.mkdir()
    stored = storage("text", COLUMNS, location_at(place))
    target.create_table(replace(replica, storage=stored, parameters={"EXTERNAL": "TRUE"}))
    mask = target.catalog.function(TableName(name.database, "mask"))
    assert mask is not None
    target.create_function(replace(mask, name="clash", class_name="org.example.Theirs"))


def reads_nothing(installation: RecordedInstallation, target: str) -> bool:
    tables = installation.command("status")["targets"][target]["tables"]
    return not any(tables[state] for state in ("unknown", "reading", "staging"))


# Archive `kafka`


def operate_on_kafka(installation: RecordedInstallation, servers: Mapping[str, Metastore], broker: str) -> None:
    source = installation.source
    installation.configure(
        source_section(servers["source"].uri),
        section("journal", format="kafka", brokers=broker, topic="hq.events", retention=FOREVER),
        NO_ENDPOINT,
        target_section("three", servers["three"].uri, installation.folder, include=["web.*"]),
    )
    source.create_database("web")
    for name in ("hits", "held"):
        source.create_table(TableName("web", name), COLUMNS, form="text")
    source.create_table(TableName("web", "visits"), COLUMNS, DAY, external=True)
    installation.start()
    installation.settle("three")
    for day in ("1", "2"):
        source.insert(TableName("web", "hits"))
        source.add_partitions(TableName("web", "visits"), [(day,)])
        installation.settle("three")
    installation.command("pause", "--tables", "web.held")
    installation.wait_until(lambda: installation.command("status")["targets"]["three"]["tables"]["waiting"] == 1)
    source.insert(TableName("web", "held"))
    source.insert(TableName("web", "visits"), "day=1")
    installation.settle("three")
    installation.stop()
    installation.record_outputs()
    (installation.folder / TOPICS).write_text(json.dumps(records(broker), indent=0))


def records(broker: str) -> list[Mapping[str, Any]]:
    """All records of all topics but Kafka's own."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "recording", "enable.auto.commit": False})
    recorded = []
    for topic in consumer.list_topics(timeout=10).topics.values():
        for number in () if topic.topic.startswith("_") else topic.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic.topic, number))
            assert low == 0
            consumer.assign([TopicPartition(topic.topic, number, 0)])
            messages = [message for _ in range(high) if (message := consumer.poll(10)) is not None]
            assert [message.offset() for message in messages] == list(range(high))
            recorded += map(record, messages)
    consumer.close()
    return recorded


def record(message: Any) -> Mapping[str, Any]:
    def text(content: bytes | None) -> str | None:
        return None if content is None else content.decode("latin-1")

    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "timestamp": message.timestamp()[1],
        "key": text(message.key()),
        "value": text(message.value()),
        "headers": [(name, text(value)) for name, value in message.headers() or ()],
    }


# Archive `bootstrapping`


def bootstrap(installation: RecordedInstallation, servers: Mapping[str, Metastore]) -> None:
    """The process dies before its third record of landed tables: the first one holds one table, the second all that
    landed in half a second."""
    source, tables = installation.source, 24
    installation.configure(
        source_section(servers["source"].uri, connections=1),
        section("journal", retention=FOREVER),
        NO_ENDPOINT,
        target_section("three", servers["three"].uri, installation.folder, include=["many.*"]),
    )
    source.create_database("many")
    for number in range(tables):
        name = TableName("many", f"t{number:02}")
        source.create_table(name, COLUMNS, DAY, form="text", external=True)
        source.add_partitions(name, [("1",), ("2",)])
    installation.run("--until", "head", code=-signal.SIGKILL, CALQUE_FAILPOINT="ledger.put_tables.before@7")
    installation.record_outputs()
    states = [row.state.value for row in installation.wiring.ledger("three").tables().values() if row.kind == "table"]
    assert len(states) == tables
    assert 1 < states.count("staging") < tables - 1, states


# Packing


def pack(name: str, root: Path, into: Path, texts: Mapping[str, str]) -> None:
    """Packs the folder `root/name`, with each of `texts` replaced by its placeholder."""
    placeholders = {text.encode(): placeholder.encode() for text, placeholder in texts.items()}
    uncompress(root / name / "state", str(root))
    with tarfile.open(into / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted((root / name).rglob("*")):
            inside = path.relative_to(root)
            if not LEFT_OUT.isdisjoint(inside.parts):
                continue
            information = tarfile.TarInfo(str(inside))
            stat = path.stat()
            information.pax_headers = {"mtime": f"{stat.st_mtime_ns // 10**9}.{stat.st_mtime_ns % 10**9:09}"}
            if path.is_dir():
                information.type = tarfile.DIRTYPE
                archive.addfile(information)
                continue
            content = path.read_bytes()
            for text, placeholder in placeholders.items():
                content = content.replace(text, placeholder)
            information.size = len(content)
            archive.addfile(information, BytesIO(content))


def uncompress(state: Path, root: str) -> None:
    """Rewrites Parquet files that contain `root` without compression, so that bytes can be replaced in them, and
    corrects their sizes in the Delta logs."""
    sizes: dict[str, int] = {}
    for file in state.rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        if root in json.dumps(rows.to_pylist(), default=str):
            keys, described = rows.column_names[:1], bool(rows.schema.metadata)
            pq.write_table(rows, file, compression="none", write_statistics=keys, store_schema=described)
            sizes[file.name] = file.stat().st_size

    def resized(action: dict[str, Any]) -> dict[str, Any]:
        for file in filter(None, (action.get("add"), action.get("remove"))):
            if file["path"] in sizes:
                file["size"] = sizes[file["path"]]
        return action

    for file in state.rglob("_delta_log/*.checkpoint.parquet"):
        rows = pq.ParquetFile(file).read()
        pq.write_table(pa.Table.from_pylist([*map(resized, rows.to_pylist())], schema=rows.schema), file)
    for file in state.rglob("_delta_log/*.json"):
        actions = [json.dumps(resized(json.loads(line)), separators=(",", ":")) for line in file.open()]
        file.write_text("\n".join(actions))


def dump(server: Metastore) -> str:
    """All rows of the metastore's database as JSON, by table."""
    tables = [table for (table,) in server.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    content = {table: server.sql(f"SELECT coalesce(json_agg(t), '[]') FROM \"{table}\" t")[0][0] for table in tables}
    return json.dumps({table: rows for table, rows in sorted(content.items()) if rows}, ensure_ascii=False)


def record_states(into: Path, folder: Path) -> None:
    root = make_root(folder)
    with ExitStack() as started, ThreadPoolExecutor(len(SERVERS) + 1) as pool:
        starting = {
            name: pool.submit(Metastore.start, settings, root / "servers" / name) for name, settings in SERVERS.items()
        }
        broker = started.enter_context(Broker.start(root / "broker"))
        servers = {name: started.enter_context(future.result()) for name, future in starting.items()}
        installations = {name: RecordedInstallation(root / name, servers["source"].uri) for name in INSTALLATIONS}
        for installation in installations.values():
            started.callback(installation.close)
        operate(installations["operating"], servers)
        operate_on_kafka(installations["kafka"], servers, broker.address)
        bootstrap(installations["bootstrapping"], servers)
        addresses = {server.uri: f"thrift://{name}" for name, server in servers.items()} | {
            broker.address: BROKER_PLACEHOLDER
        }
        for name, server in servers.items():
            (root / "servers" / name / DUMP).write_text(dump(server))
    for name in ("servers", *INSTALLATIONS):
        pack(name, root, into, {str(root): RECORDED_ROOT, **addresses})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        record_states(Path(sys.argv[1]) if sys.argv[1:] else ARCHIVES, Path(scratch).resolve())
