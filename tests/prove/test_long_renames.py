"""The demo's writer at two targets, for long: what a target has is not read again, and what the source had does not
vanish there. What goes is counted from the metastores' own logs, beside what calque says of itself."""

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
from calque.config import load
from calque.control.status import snapshot
from calque.demo import configuration
from calque.demo.run import replication, started
from calque.demo.source import Source
from calque.demo.warehouse import create_sample
from calque.demo.writer import Writer
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId
from calque.sandbox.writer import HiveClient
from calque.wiring.wiring import Wiring
from support.judges.departures import departures, logged
from support.runs.seeds import seed

TARGET_EVENTS = int(os.environ.get("CALQUE_TARGET_EVENTS", "10000"))
"""Events that the targets, all together, follow once each shows something."""
NAMES = ["mirror", "dr"]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("pause", [0.05, 0.6], ids=["fast", "slow"])
@pytest.mark.parametrize("pin", ["none", "hardlink"])
def test_the_demo_reads_nothing_again_and_nothing_is_away_that_its_source_has(
    pin: str, pause: float, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        servers = started(["source", *NAMES], tmp_path / "metastores", stack)
        file = tmp_path / "calque.toml"
        configuration.write(file, servers["source"].uri, {name: servers[name].uri for name in NAMES})
        file.write_text(file.read_text().replace("[source]", f'[source]\npin = "{pin}"'))
        client = HiveClient(servers["source"].uri)
        stack.callback(client.close)
        source = Source(client, tmp_path / "data", seed())
        create_sample(source)
        writer = Writer(source, seed())
        run = replication(file, tmp_path)
        stack.callback(run.stop)
        wiring, logs = Wiring(load(str(file))), {name: HiveLog(Client(servers[name].uri)) for name in servers}

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
            print(f"{pin}, {pause} s, {name}: {len(entries)} events, {here.total()} departures, {rereads}, {bridges}")
            unsaid = [bridge for bridge in bridges if not any(is_unsaid(entry, *bridge, pin) for entry in entries)]
            unsaid = [bridge for bridge in unsaid if not came_and_went(entries, *bridge)]
            unsaid += [reread for reread in rereads if pin != "none" or reread["cause"] != "hole"]
            assert unsaid == []
            assert not here - there - Counter(table for table, _, _ in bridges)


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
