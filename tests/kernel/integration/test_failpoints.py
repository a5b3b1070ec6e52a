"""Real processes that die where they are told to, and real servers whose answers are lost, on real parts."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from calque.adapters.metastore import messages
from calque.control.requests import open_requests
from calque.engine.failpoints import RECORDS
from calque.sandbox import Metastore
from support.faults.deaths import REACHES, UNTIL, Site
from support.runs.proofs import one_a_day_or_all
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment
from support.services.thriftproxy import asked

SEED = seed()
SAMPLE = 1
ONCE = ("record.identity.put", "record.journal.put")


def add_and_remove_key(site: Site) -> None:
    site.add_key()
    site.deployment.settle()
    site.remove_key()


LOSABLE: Mapping[str, Mapping[str, Callable[[Site], object]]] = {
    "made": {
        messages.CREATE_DATABASE.name: REACHES["catalog.create_database"].change,
        messages.CREATE_TABLE.name: REACHES["catalog.create_table"].change,
        messages.ADD_PARTITIONS.name: REACHES["catalog.add_partitions"].change,
        messages.CREATE_FUNCTION.name: REACHES["catalog.create_function"].change,
        "add_primary_key": Site.add_key,
    },
    "altered": {
        messages.ALTER_DATABASE.name: REACHES["catalog.alter_database"].change,
        messages.ALTER_TABLE.name: REACHES["catalog.alter_table"].change,
        messages.ALTER_PARTITIONS.name: REACHES["catalog.alter_partitions"].change,
        messages.RENAME_PARTITION.name: REACHES["catalog.rename_partition"].change,
        messages.SET_STATISTICS.name: Site.analyze,
    },
    "dropped": {
        messages.DROP_PARTITIONS.name: REACHES["catalog.drop_partitions"].change,
        messages.DROP_FUNCTION.name: REACHES["catalog.drop_function"].change,
        messages.DROP_CONSTRAINT.name: add_and_remove_key,
        messages.DROP_TABLE.name: REACHES["catalog.drop_table"].change,
        messages.DROP_DATABASE.name: REACHES["catalog.drop_database"].change,
    },
}
"""Calls that change something at a metastore, by what they do to it, with what has calque make them."""


@pytest.mark.timeout(600)
def test_whoever_is_killed_twice_at_failpoints_goes_on_copies_no_file_twice_and_leaves_nothing(
    servers: Mapping[str, Metastore], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """At one of them, at another each day; `prove/test_long_failpoints.py` tries all."""
    rng = random.Random(SEED)
    chosen = rng.sample(
        [name for name, reach in REACHES.items() if reach.command == UNTIL and name not in ONCE], SAMPLE
    )
    names = [f"{name}.{rng.choice(['before', 'after'])}" for name in chosen]
    record_property("chosen", f"Failpoints of real processes: {', '.join(names)}")
    site = Site(
        Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1), servers["source"]
    )
    try:
        site.begin()
        site.calque(*UNTIL)
        assert {name: site.twice(name) > 0 for name in names} == dict.fromkeys(names, True)
        site.check()
        assert site.records() <= {*RECORDS, "gaps"}
    finally:
        site.deployment.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kinds", one_a_day_or_all(tuple(LOSABLE), SEED))
def test_answers_that_are_lost_after_a_server_did_what_was_asked_keep_nothing_from_coming_out_equal(
    kinds: Sequence[str], servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    losable = [item for kind in kinds for item in LOSABLE[kind].items()]
    with asked(servers["target"].uri) as proxy:
        target = SimpleNamespace(uri=proxy.uri)
        site = Site(Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": target}, seed=1), servers["source"])  # type: ignore[dict-item]
        try:
            site.begin()
            site.deployment.start()
            site.deployment.settle(240)
            for method, change in losable:
                site.note()
                proxy.losing[method] = 2
                change(site)
                deadline = time.monotonic() + 60
                while method not in proxy.lost:
                    assert time.monotonic() < deadline, (
                        f"{method} was not called: {proxy.lost}\n{site.deployment.tail()}"
                    )
                    time.sleep(0.05)
                proxy.losing.clear()
            site.deployment.settle(120)
            # Nor does a command that dies before it has woken the run, whose source is idle now.
            assert site.killed("record.requests.put.after", ("bootstrap", "--target", "dr", "--tables", "*.plain"), 60)
            deadline = time.monotonic() + 30
            while left := open_requests(site.wiring, "dr"):
                assert time.monotonic() < deadline, f"not taken up: {left}"
                time.sleep(0.05)
            assert site.deployment.process is not None
            assert site.deployment.process.poll() is None
            assert site.deployment.end(signal.SIGTERM) == 0
            site.check()
        finally:
            site.deployment.close()
