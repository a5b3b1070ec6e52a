"""The keys of WITH: those that have a meaning for DUMP or LOAD, Hive's keys that mean nothing here, and unknown keys.

Source of the names: `HiveConf` of 4.x and 3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from calque.errors import Refused, nearest
from calque.plugins.dumps.core.layout import DumpLayout

LAYOUT = "calque.repl.layout"
MODE = "calque.repl.mode"
SOURCE = "calque.repl.source"
ROOT = "hive.repl.rootdir"
METADATA_ONLY = "hive.repl.dump.metadata.only"
INCLUDE_EXTERNAL = "hive.repl.include.external.tables"
EXTERNAL_METADATA_ONLY = "hive.repl.dump.metadata.only.for.external.table"
BOOTSTRAP_EXTERNAL = "hive.repl.bootstrap.external.tables"
EXTERNAL_BASE = "hive.repl.replica.external.table.base.dir"
COPY_AT_LOAD = "hive.repl.run.data.copy.tasks.on.target"
CHANGE_ROOT = "hive.repl.cmrootdir"
TIME_TO_LIVE = "hive.repl.dumpdir.ttl"
CLEAN_FREQUENCY = "hive.repl.dumpdir.clean.freq"
RETAIN = "hive.repl.retain.prev.dump.dir"
RETAIN_COUNT = "hive.repl.retain.prev.dump.dir.count"
TASKS = "hive.repl.approx.max.load.tasks"
THREADS = "hive.exec.parallel.thread.number"
FUNCTIONS_ROOT = "hive.repl.replica.functions.root.dir"

DUMP_KEYS = frozenset(
    {
        LAYOUT,
        MODE,
        ROOT,
        METADATA_ONLY,
        INCLUDE_EXTERNAL,
        EXTERNAL_METADATA_ONLY,
        BOOTSTRAP_EXTERNAL,
        EXTERNAL_BASE,
        COPY_AT_LOAD,
        CHANGE_ROOT,
        TIME_TO_LIVE,
        CLEAN_FREQUENCY,
        RETAIN,
        RETAIN_COUNT,
        TASKS,
    }
)
LOAD_KEYS = frozenset({SOURCE, ROOT, EXTERNAL_BASE, TASKS, THREADS, FUNCTIONS_ROOT})

MEANINGLESS = frozenset(
    {
        "hive.exec.parallel",
        "hive.exec.copyfile.maxnumfiles",
        "hive.exec.copyfile.maxsize",
        "hive.in.test",
        "hive.distcp.privileged.doAs",
        "hive.stats.autogather",
        "hive.execution.engine",
        "hive.query.id",
        "hive.metastore.dml.events",
        "hive.repl.add.raw.reserved.namespace",
        "hive.repl.batch.incremental.events",
        "hive.repl.bootstrap.acid.tables",
        "hive.repl.bootstrap.dump.abort.write.txn.after.timeout",
        "hive.repl.bootstrap.dump.open.txn.timeout",
        "hive.repl.cm.enabled",
        "hive.repl.cm.encryptionzone.rootdir",
        "hive.repl.cm.interval",
        "hive.repl.cm.nonencryptionzone.rootdir",
        "hive.repl.cm.retain",
        "hive.repl.copy.file.list.iterator.retry",
        "hive.repl.dump.include.acid.tables",
        "hive.repl.dump.skip.immutable.data.copy",
        "hive.repl.event.db.listener.timetolive",
        "hive.repl.external.client.connect.timeout",
        "hive.repl.external.warehouse.single.copy.task",
        "hive.repl.external.warehouse.single.copy.task.paths",
        "hive.repl.externaltable.snapshot.overwrite.target",
        "hive.repl.externaltable.snapshotdiff.copy",
        "hive.repl.filter.transactions",
        "hive.repl.include.materialized.views",
        "hive.repl.load.partitions.batch.size",
        "hive.repl.load.partitions.with.data.copy.batch.size",
        "hive.repl.metrics.cache.maxsize",
        "hive.repl.metrics.update.frequency",
        "hive.repl.parallel.copy.tasks",
        "hive.repl.partitions.dump.parallelism",
        "hive.repl.retain.custom.db.locations.on.target",
        "hive.repl.retry.backoff.coefficient",
        "hive.repl.retry.initial.delay",
        "hive.repl.retry.jitter",
        "hive.repl.retry.max.delay.between.retries",
        "hive.repl.retry.total.duration",
        "hive.repl.stats.events.count",
        "hive.repl.table.dump.parallelism",
        "hive.repl.txn.timeout",
        *DUMP_KEYS,
        *LOAD_KEYS,
    }
)
"""Keys of Hive that a script may have: they are accepted, and a note says that they change nothing. A key of DUMP alone
changes nothing for LOAD, and the other way round."""
MEANINGLESS_BEGINNINGS = (
    "distcp.options.",
    "hive.dbpath.",
    "mapred.",
    "mapreduce.",
    "tez.",
    "yarn.",
    "dfs.",
    "fs.",
    "ipc.",
    "spark.",
    "hive.metastore.",
)
NOT_BUILT: Mapping[str, str] = {
    "hive.repl.failover.start": "Failover",
    "hive.repl.ha.datapath.replace.remote.nameservice": "Replacing name services",
    "hive.repl.include.atlas.metadata": "Metadata of Atlas",
    "hive.repl.include.authorization.metadata": "Policies of Ranger",
}
"""Keys that would change the contents of a dump, each with the feature: refused where their value turns it on."""

OFF = "false"
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class KnownOptions:
    """The options of one statement. `values` has those with a meaning, by key; `meaningless` has the keys that
    change nothing."""

    values: Mapping[str, str]
    meaningless: tuple[str, ...]

    def is_on(self, key: str, otherwise: bool) -> bool:
        """Tell whether the option is "true"; `otherwise` where it is not given. Raises `Refused` for a value that is
        neither true nor false."""
        return self.one_of(key, {"true": True, "false": False}, "true" if otherwise else "false")

    def one_of(self, key: str, choices: Mapping[str, Choice], otherwise: str) -> Choice:
        value = self.values.get(key, otherwise).strip().lower()
        if value not in choices:
            todo = f"Write one of {', '.join(choices)}"
            raise Refused(f"'{key}' = '{self.values[key]}' is no choice", nearest(value, choices), todo)
        return choices[value]

    def number(self, key: str, otherwise: int) -> int:
        value = self.values.get(key, str(otherwise)).strip()
        if not value.isdecimal() or not 0 < int(value) < 1 << 31:
            raise Refused(f"'{key}' = '{value}' is no number", "It is a whole number above 0", "Write e.g. '10000'")
        return int(value)


def known_options(options: Mapping[str, str], meaningful: Collection[str]) -> KnownOptions:
    """Return the options of a statement for which the keys `meaningful` have a meaning. Raises `Refused` for an unknown
    key, naming the nearest, and for a key that asks for a feature that calque does not have."""
    values: dict[str, str] = {}
    meaningless: list[str] = []
    for key, value in options.items():
        if key in meaningful:
            values[key] = value
        elif key in NOT_BUILT and value.strip().lower() not in ("", OFF):
            raise Refused(f"'{key}' is not built", f"{NOT_BUILT[key]} is Hive's own work", "Leave the key out")
        elif key in MEANINGLESS or key in NOT_BUILT or key.startswith(MEANINGLESS_BEGINNINGS):
            meaningless.append(key)
        else:
            known = sorted({*meaningful, *MEANINGLESS})
            raise Refused(f"WITH has an unknown key '{key}'", nearest_key(key, known), "Correct it, or leave it out")
    return KnownOptions(values, tuple(meaningless))


def nearest_key(key: str, known: Collection[str]) -> str:
    answer = nearest(key, known)
    return answer if answer.startswith("The nearest") else f"Keys are such as {INCLUDE_EXTERNAL}"


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of WITH for one dump. None and an empty text mean that the statement leaves the choice to the
    configuration. `batch` is the number of events in one directory of an increment."""

    layout: DumpLayout
    mode: str | None
    root: str
    data: bool
    external: bool
    external_data: bool
    external_base: str
    bootstraps_external: bool
    copies: bool
    change_root: str
    time_to_live: str
    clean_frequency: str
    retain: int | None
    batch: int


def dump_options(known: KnownOptions) -> DumpOptions:
    """Return the options of a dump. Raises `Refused` for a value that its key does not take."""
    data = not known.is_on(METADATA_ONLY, False)
    retained = known.number(RETAIN_COUNT, 3) if known.is_on(RETAIN, False) else None
    return DumpOptions(
        layout=known.one_of(LAYOUT, {"4": DumpLayout.HIVE_4, "3": DumpLayout.HIVE_3, "3.1": DumpLayout.HIVE_3}, "4"),
        mode=known.one_of(MODE, {"": None, "seed": "seed", "hive4": "hive4"}, ""),
        root=known.values.get(ROOT, ""),
        data=data,
        external=known.is_on(INCLUDE_EXTERNAL, True),
        external_data=data and not known.is_on(EXTERNAL_METADATA_ONLY, False),
        external_base=known.values.get(EXTERNAL_BASE, ""),
        bootstraps_external=known.is_on(BOOTSTRAP_EXTERNAL, False),
        copies=data and not known.is_on(COPY_AT_LOAD, True),
        change_root=known.values.get(CHANGE_ROOT, ""),
        time_to_live=known.values.get(TIME_TO_LIVE, "7d"),
        clean_frequency=known.values.get(CLEAN_FREQUENCY, "0s"),
        retain=retained,
        batch=known.number(TASKS, 10_000),
    )
