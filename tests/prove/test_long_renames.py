"""The demo's writer at two targets, and at links, for long: what a target has is not read again, and what the source
had does not vanish there. What goes is counted from the metastores' own logs, beside what calque says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.app import APP
from calque.control.status import snapshot
from calque.demo import configuration
from calque.demo.child import replication
from calque.demo.run import started
from calque.demo.source import Source
from calque.demo.warehouse import create_sample
from calque.demo.writer import Writer
from calque.model.hive import Storage, location_of
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName
from calque.sandbox.writer import HiveClient
from support.judges.departures import departures, logged
from support.runs.seeds import seed
from support.services.linked import Catalog, Linked

TARGET_EVENTS = int(os.environ.get("CALQUE_TARGET_EVENTS", "10000"))
"""Events that the targets, all together, follow once each shows something."""
NAMES = ["mirror", "dr"]
FAR = "far_"
"""How the names of linked databases begin."""


@pytest.mark.timeout(0)
@pytest.mark.parametrize("pause", [0.05, 0.6], ids=["fast", "slow"])
@pytest.mark.parametrize(("pin", "data"), [("none", "copy"), ("hardlink", "copy"), ("none", "none")])
def test_the_demo_reads_nothing_again_and_nothing_is_away_that_its_source_has(
    pin: str, data: str, pause: float, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        servers = started(["source", *NAMES], tmp_path / "metastores", stack)
        file = tmp_path / "calque.toml"
        configuration.write(file, servers["source"].uri, {name: servers[name].uri for name in NAMES})
        text = file.read_text().replace("[source]", f'[source]\npin = "{pin}"')
        file.write_text(text.replace("\nwarehouse =", f'\ndata = "{data}"\nwarehouse ='))
        client = HiveClient(servers["source"].uri)
        stack.callback(client.close)
        source = Source(client, tmp_path / "data", seed())
        create_sample(source)
        writer = Writer(source, seed())
        run = replication(file, tmp_path)
        stack.callback(run.stop)
        wiring, logs = APP.wiring(APP.load(str(file))), {name: HiveLog(Client(servers[name].uri)) for name in servers}

        while None in [target["position"] for target in snapshot(wiring)["targets"].values()]:
            writer.step()
            time.sleep(pause)
        wait_for_targets(file, client.current())
        shown_before = {name: len(epochs_of(file, name)) for name in NAMES}
        first_events = {name: log.current() for name, log in logs.items()}
        while (logs["source"].current() - first_events["source"]) * len(NAMES) < TARGET_EVENTS:
            assert run.running, run.output()[-3000:]
            writer.step()
            time.sleep(pause)

        wait_for_targets(file, client.current())
        command("verify", "-c", file, "--data", "checksum")
        entries = logged(servers["source"].uri, first_events["source"])
        for name in NAMES:
            admission = wiring.config.targets[name].admission()
            epochs = epochs_of(file, name)[shown_before[name] :]
            rereads = [reread for epoch in epochs for reread in epoch["rereads"]]
            bridges = {
                (bridge["table"], bridge["from"], bridge["to"]) for epoch in epochs for bridge in epoch["bridges"]
            }
            gone = departures(logged(servers[name].uri, first_events[name]))
            named = ((admission.source_of(one), times) for one, times in gone.items())
            here = Counter({str(one): times for one, times in named if one is not None and admission.takes(one)})
            there = Counter({str(one): times for one, times in departures(entries).items()})
            case = f"{pin}, {data}, {pause} s, {name}"
            print(f"{case}: {len(entries)} events, {here.total()} departures, {rereads}, {bridges}")
            unsaid = [bridge for bridge in bridges if not any(is_unsaid(entry, *bridge, pin) for entry in entries)]
            unsaid = [bridge for bridge in unsaid if not came_and_went(entries, *bridge)]
            unsaid += [reread for reread in rereads if pin != "none" or reread["cause"] != "hole"]
            assert unsaid == []
            assert not here - there - Counter(table for table, _, _ in bridges)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("pause", [0.05, 0.6], ids=["fast", "slow"])
def test_links_are_never_away_where_their_tables_are_there(pause: float, tmp_path: Path) -> None:
    """The same writer at a metastore whose databases are linked under other names, counted from the logs of both."""
    with ExitStack() as stack:
        servers = started(["source", "local"], tmp_path / "metastores", stack)
        source = Source(HiveClient(servers["source"].uri), tmp_path / "data", seed())
        create_sample(source)
        writer = Writer(source, seed())
        linked = Linked(tmp_path, servers["local"].uri, servers["source"].uri)
        stack.callback(linked.close)
        databases = sorted(name for name in source.client.catalog.databases() if name != "default")
        for database in databases:
            linked.link_database(f"{FAR}{database}", database)
        linked.start()
        linked.wait_live(*(f"{FAR}{database}" for database in databases))
        wait_for_links(linked, databases)
        first_events = {"source": linked.there.client.current(), "local": linked.here.client.current()}
        while linked.there.client.current() - first_events["source"] < TARGET_EVENTS:
            assert linked.process is not None
            assert linked.process.poll() is None, linked.tail()
            writer.step()
            time.sleep(pause)
        wait_for_links(linked, databases)
        gone_at_source = departures(logged(servers["source"].uri, first_events["source"]))
        gone = departures(logged(servers["local"].uri, first_events["local"]))
        here = Counter({name_at_source(one): times for one, times in gone.items() if one.database.startswith(FAR)})
        print(f"links, {pause} s: {here.total()} departures of links, {gone_at_source.total()} of tables")
        assert not here - gone_at_source
        assert linked.end() == 0


def name_at_source(link: TableName) -> TableName:
    return TableName(link.database.removeprefix(FAR), link.table)


def wait_for_links(linked: Linked, databases: Sequence[str]) -> None:
    """Until each link shows what its table is."""
    linked.wait_until(
        lambda: all(shown(linked.here, f"{FAR}{one}") == shown(linked.there, one) for one in databases), 300
    )


def shown(catalog: Catalog, database: str) -> dict[str, object]:
    """Of each table its columns and its partitions with their places."""
    found: dict[str, object] = {}
    for table in catalog.tables(database):
        definition = catalog.shown(f"{database}.{table}")
        if definition is None or definition.type == "VIRTUAL_VIEW":
            continue
        columns = tuple((definition.storage or Storage()).columns or ())
        parts = catalog.locations(f"{database}.{table}") if definition.partition_keys else [location_of(definition)]
        found[table] = (columns, parts)
    return found


def wait_for_targets(file: Path, event_id: EventId) -> None:
    for name in NAMES:
        command("wait", "-c", file, "--target", name, "--event-id", event_id, "--timeout", 300)


def epochs_of(file: Path, target: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(command("epochs", "list", "-c", file, "--target", target, "--json"))
    return found


def is_unsaid(entry: Entry, table: str, first: EventId, last: EventId, pin: str) -> bool:
    """Whether nothing says what this event of the bridge made of the table: its partitions' columns, where none of them
    stays until somebody looks, or, without pins, files that went before they were listed."""
    keys = entry.keys
    if str(keys.table) != table or not first <= entry.event_id <= last:
        return False
    return keys.columns_changed or (pin == "none" and bool(keys.locations))


def came_and_went(entries: Sequence[Entry], table: str, first: EventId, last: EventId) -> bool:
    """Whether the bridge leads over partitions that were added and dropped within it: nobody listed them."""
    inside = [entry.keys for entry in entries if str(entry.keys.table) == table and first <= entry.event_id <= last]
    added = {name for keys in inside if keys.kind is EventKind.ADD_PARTITIONS for name in keys.partitions}
    dropped = {name for keys in inside if keys.kind is EventKind.DROP_PARTITIONS for name in keys.partitions}
    return bool(added & dropped)


def command(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "calque.cli", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
