"""A window prepared by Spark's tasks and the same window prepared by the driver."""

from __future__ import annotations

import random
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.held_evidence import MemoryEvidence
from calque.adapters.spark.session import session
from calque.core.events.effects import MAY_BE_OF_DATABASE_OR_FUNCTION
from calque.core.events.rows import rows_of_events
from calque.core.states.fold import names_in
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.cascade_detection import cascaded
from calque.engine.window.groups import FAILURES, Group, WindowBounds, gist
from calque.engine.window.prepare import prepare, ready_of
from calque.errors import Unavailable
from calque.model.names import EventId
from calque.model.policy import Policy
from calque.sandbox import spark_jars
from calque.wiring.spark_windows import SparkSpread, WorkerOpening
from support.memory.ledger import MemoryLedger
from support.memory.metastore import MemoryCatalog, MemoryLog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.places import TESTS
from support.sources.writers import Writer

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Its workers find what tests share."""
    found, folder = session("tests", spark_jars(), tmp_path_factory.mktemp("spark")), tmp_path_factory.mktemp("shared")
    found.sparkContext.addPyFile(shutil.make_archive(str(folder / "support"), "zip", TESTS, "support"))
    return found


def sides(folder: str) -> tuple[SourceSide, TargetSide]:
    """A target that shows nothing yet, beside the journal in the folder."""
    catalog, storage = MemoryCatalog(MemoryMetastore()), MemoryStorage()
    journal = DeltaJournal(folder)
    source = SourceSide("hq", MemoryLog(catalog.metastore), catalog, journal, MemoryEvidence(), storage)
    policy = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", data="none")
    return source, TargetSide.of(policy, catalog, MemoryLedger(), storage)


def gone(_folder: str) -> tuple[SourceSide, TargetSide]:
    raise Unavailable("The target does not answer", "It is down", "Wait")


def write_journal(folder: str, seed: int, operations: int) -> EventId:
    """A random history of pairs of databases from their first event on; its last event id."""
    source, storage, chance = MemoryMetastore(), MemoryStorage(), random.Random(seed)
    writers = [Writer(source, storage, chance, (f"d{number}", f"d{number}_too")) for number in range(10)]
    for _ in range(operations):
        chance.choice(writers).step()
    DeltaJournal(folder).append(rows_of_events(source.events(0)))
    return source.current()


def prepared_here(folder: str, cut: WindowBounds) -> list[Group]:
    source, side = sides(folder)
    found = []
    for group in cut.groups(side.admission, source.journal.entries(cut.span)):
        positions = cut.positions(group)
        try:
            prepared = prepare(source, side, group, positions, cut.upto, cascaded(source, side, group))
        except FAILURES:
            found.append(Group(gist(group)))
        else:
            found.append(Group(gist(group), ready_of(prepared, positions.by_all(names_in(group)))))
    return found


def test_spark_and_the_driver_make_the_same_plans_of_the_same_groups(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "journal")
    cut = WindowBounds(0, 0, write_journal(folder, 11, 800), {})
    spread = SparkSpread(lambda: spark, WorkerOpening(partial(sides, folder), DeltaJournal(folder).rows))
    beside, groups = spread(cut)
    assert list(groups) == prepared_here(folder, cut)
    hops = [len(group.ready.plan.hops) for group in groups if group.ready]
    assert len(hops) > 20
    assert sum(hops) > 20
    entries = DeltaJournal(folder).entries(cut.span)
    assert list(beside) == [entry for entry in entries if entry.keys.kind in MAY_BE_OF_DATABASE_OR_FUNCTION]


def test_what_a_task_could_not_reach_is_said_as_the_driver_would_say_it(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "journal")
    cut = WindowBounds(0, 0, write_journal(folder, 11, 20), {})
    spread = SparkSpread(lambda: spark, WorkerOpening(partial(gone, folder), DeltaJournal(folder).rows))
    with pytest.raises(Unavailable, match="The target does not answer"):
        spread(cut)
