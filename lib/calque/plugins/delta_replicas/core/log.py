"""The log of a Delta table that is a replica: what it shows, as the source's definitions and files say it, and the
actions that take it from one state to another.

Beside what the Delta protocol asks for, the log holds the source's definitions in domains of its own (`domainMetadata`,
which readers pass over): that of the table, and that of each partition, because a partition without files is nowhere
else in a Delta log. Files carry as tags the partition that they belong to, and the time that the source says. Source:
the Delta transaction log protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

from calque.core.events import decode
from calque.core.events.encode import tjson
from calque.core.events.log_messages import key_names
from calque.core.formats.layout import join
from calque.core.formats.pointers import moved
from calque.core.images.image import INCARNATION, ORIGIN, SOURCE
from calque.core.images.table_layout import has_own_row_files
from calque.errors import Broken
from calque.model.files import File, Listing
from calque.model.hive import Partition, Storage, Table, location_of
from calque.model.names import EventId, partition_name, partition_values
from calque.model.plan import ShownState
from calque.plugins.delta_replicas.core.row_log import (
    NOT_OURS,
    ROWS_DOMAIN,
    NewRows,
    row_sources,
    tags_of,
    write_ids_of,
)

TABLE_DOMAIN = "calque.table"
PARTITION_DOMAIN = "calque.partition/"
READER_VERSION, FEATURES = 1, frozenset({"domainMetadata"})
PROTOCOL = {"minReaderVersion": READER_VERSION, "minWriterVersion": 7, "writerFeatures": sorted(FEATURES)}
"""The protocol that calque gives a log. Every reader of Delta can read it."""
PARTITION_TAG, TIME_TAG = "calque.partition", "calque.modified_ns"
APPLICATION = "calque:"
"""The beginning of the identifier of calque's transactions in a log."""
Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A data file of a log, by its decoded path below the table's root. `record` is the action that added it."""

    path: str
    partition: str
    size: int
    modified_ns: int
    record: Action = field(compare=False)


@dataclass(slots=True)
class LoggedTable:
    """The state of a log at `version`. Once it is shared it is not changed any more; `after` makes the next version.
    `partitions` are the texts of definitions by Hive's names of the partitions. `files` are by partition (`""`: the
    table itself) and by path, `rows` the texts of their domains in a replica of an ACID table (`row_log`). `others` are
    the domains of other writers."""

    root: str
    version: int = -1
    protocol: Action | None = None
    metadata: Action | None = None
    definition: str = ""
    partitions: dict[str, str] = field(default_factory=dict)
    files: dict[str, dict[str, LoggedFile]] = field(default_factory=dict)
    transactions: dict[str, Action] = field(default_factory=dict)
    removed: dict[str, Action] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    others: dict[str, Action] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    """The partition of each file, by path."""
    _table: Table | None = None
    _own: set[str] = field(default_factory=set)
    """The partitions whose files are in a dictionary that only this version has."""

    def after(self, actions: Iterable[Action]) -> LoggedTable:
        """Return the version that a commit with these actions makes; this one stays as it is."""
        later = replace(
            self,
            version=self.version + 1,
            partitions=dict(self.partitions),
            files=dict(self.files),
            transactions=dict(self.transactions),
            removed=dict(self.removed),
            rows=dict(self.rows),
            others=dict(self.others),
            _owners=dict(self._owners),
            _own=set(),
        )
        later.play(actions)
        return later

    def play(self, actions: Iterable[Action]) -> None:
        """Change this state by the actions of a commit, or of a checkpoint. Call it only before the state is shared."""
        for row in actions:
            if (add := row.get("add")) is not None:
                self.add(add)
            elif (remove := row.get("remove")) is not None:
                self.remove(remove)
            elif (domain := row.get("domainMetadata")) is not None:
                self.set_domain(domain)
            elif (transaction := row.get("txn")) is not None:
                self.transactions[transaction["appId"]] = transaction
            elif (metadata := row.get("metaData")) is not None:
                self.metadata = metadata
            elif (protocol := row.get("protocol")) is not None:
                self.protocol = protocol

    def add(self, action: Action) -> None:
        path, tags = unquote(action["path"]), dict(action.get("tags") or {})
        partition = tags.get(PARTITION_TAG)
        if partition is None:
            partition = self.partition_of(dict(action["partitionValues"] or {}))
        self.forget(path)
        time_ns = int(tags.get(TIME_TAG) or action["modificationTime"] * 10**6)
        file = LoggedFile(path, partition, action["size"], time_ns, action)
        self.own_files(partition)[path] = file
        self._owners[path] = partition
        self.removed.pop(path, None)

    def remove(self, action: Action) -> None:
        path = unquote(action["path"])
        self.forget(path)
        self.removed[path] = action

    def forget(self, path: str) -> None:
        """Take the file at the path out of its partition, if it is in one."""
        partition = self._owners.pop(path, None)
        if partition is not None:
            files = self.own_files(partition)
            del files[path]
            if not files:
                del self.files[partition]

    def own_files(self, partition: str) -> dict[str, LoggedFile]:
        if partition not in self._own or partition not in self.files:
            self._own.add(partition)
            self.files[partition] = dict(self.files.get(partition, {}))
        return self.files[partition]

    def set_domain(self, action: Action) -> None:
        domain, is_removed = action["domain"], bool(action.get("removed"))
        if domain == TABLE_DOMAIN:
            self.definition, self._table = action["configuration"], None
        elif domain.startswith((PARTITION_DOMAIN, ROWS_DOMAIN)):
            is_rows = domain.startswith(ROWS_DOMAIN)
            texts = self.rows if is_rows else self.partitions
            name = domain.removeprefix(ROWS_DOMAIN if is_rows else PARTITION_DOMAIN)
            if is_removed:
                texts.pop(name, None)
            else:
                texts[name] = action["configuration"]
        elif is_removed:
            self.others.pop(domain, None)
        else:
            self.others[domain] = action

    def partition_of(self, values: Mapping[str, str | None]) -> str:
        """Return the partition of a file that another writer added, by its partition values as they are."""
        if not values:
            return ""
        return partition_name(list(values), [value or "__HIVE_DEFAULT_PARTITION__" for value in values.values()])

    # What it shows

    @property
    def table(self) -> Table:
        """The source's definition as the target shows it. Its location is where a table without partitions has its
        content. Raises `Broken` where the log is not one of calque's."""
        if self._table is None:
            if not self.definition:
                raise Broken(
                    f"The Delta log at {self.root} is no replica's",
                    "It has no definition of a source's table",
                    "Find out who wrote it; drop the table at the target to have it made anew",
                )
            self._table = decode.thrift_object(Table, self.definition)
        return self._table

    def partition_names(self) -> set[str]:
        """Return the names of all partitions in Hive's form, also of those that have only files, which another writer
        added."""
        nulls = {self.partition_of_nulls()} if self.strays() else set()
        return {*self.partitions, *self.files, *nulls} - {""}

    def strays(self) -> Mapping[str, LoggedFile]:
        """Return the files of a table with partition keys that have no partition values, by path. Readers see their
        rows with NULLs as keys."""
        strays = self.files.get("", {})
        return strays if strays and self.definition and self.table.partition_keys else {}

    def partition_of_nulls(self) -> str:
        """Return the name of the partition whose rows have NULL for each key."""
        return self.partition_of({key.name: None for key in self.table.partition_keys or ()})

    def partition(self, name: str) -> Partition | None:
        """Return the definition of the partition of that name, in Hive's form; None where there is none."""
        text = self.partitions.get(name)
        if text is not None:
            return partition_of(text, self.table, self.root)
        if name not in self.files and not (self.strays() and name == self.partition_of_nulls()):
            return None
        return Partition(
            partition_values(name),
            self.table.database,
            self.table.name,
            storage=replace(self.table.storage or Storage(), location=join(self.root, name)),
        )

    @property
    def shows(self) -> EventId:
        """The event of the newest state that was committed; 0 before the first."""
        events = (row["version"] for app, row in self.transactions.items() if app.startswith(APPLICATION))
        return max(events, default=0)

    def contents(self, name: str) -> Listing:
        """Return the files of the partition, or of the table itself (`""`), with its location; no files for a partition
        that the log does not have. Files without partition values (`strays`) count to the partition of nulls."""
        thing = self.partition(name) if name else self.table
        location = (location_of(thing) if thing is not None else None) or self.root
        if self.definition and has_own_row_files(self.table):
            return self.rows_of(name, location)
        prefix = below(self.root, location)
        strays = self.strays()
        if strays and name != self.partition_of_nulls():
            strays = {}
        files = (
            File(file.path.removeprefix(prefix), file.size, file.modified_ns)
            for file in (*self.files.get(name, {}).values(), *strays.values())
        )
        return Listing(location, tuple(sorted(files)))

    def rows_of(self, name: str, location: str) -> Listing:
        """Return the files of the source whose rows the partition of an ACID table has, with those that have them
        here."""
        files = row_sources(self.rows.get(name, "")).files
        if self.has_others(name) or (self.strays() and name == self.partition_of_nulls()):
            files = (*files, NOT_OURS)
        row_files = tuple(
            File(join(self.root, path), file.size, file.modified_ns) for path, file in self.files.get(name, {}).items()
        )
        return Listing(location, tuple(sorted(files)), row_files=row_files)

    def has_others(self, name: str) -> bool:
        """Tell whether another writer put files with rows into the partition of an ACID table, or took some."""
        here = self.files.get(name, {})
        is_count_right = len(here) == row_sources(self.rows.get(name, "")).rows
        return not is_count_right or any(write_ids_of(file.record) is None for file in here.values())


def below(root: str, location: str) -> str:
    """Return the prefix that paths of files at `location` have in the log of the table at `root`. Raises `Broken` where
    the location is outside."""
    if location.rstrip("/") == root.rstrip("/"):
        return ""
    prefix = f"{root.rstrip('/')}/"
    if not location.startswith(prefix):
        raise Broken(f"{location} is not below {root}", "The files of a Delta table lie below it", "Report this")
    return f"{location.removeprefix(prefix).rstrip('/')}/"


# Definitions of partitions


def partition_text(partition: Partition, table: Table, root: str) -> str:
    """Return what the log says of a partition, as JSON. What it has in common with its table is left out."""
    location = location_of(partition) or ""
    record: dict[str, Any] = {
        "partition": tjson(replace(partition, storage=None, database="", table="", catalog=None)),
        "location": below(root, location),
    }
    if without_place(partition.storage) != without_place(table.storage):
        record["storage"] = tjson(without_place(partition.storage) or Storage())
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def partition_of(text: str, table: Table, root: str) -> Partition:
    record = json.loads(text)
    partition = decode.thrift_object(Partition, record["partition"])
    own = record.get("storage")
    storage = decode.thrift_object(Storage, own) if own is not None else without_place(table.storage)
    location = join(root, record["location"].rstrip("/"))
    storage = moved(storage or Storage(), location)
    return replace(partition, database=table.database, table=table.name, storage=storage)


def without_place(storage: Storage | None) -> Storage | None:
    if storage is None:
        return None
    serde = storage.serde
    if serde is not None and serde.parameters and "path" in serde.parameters:
        serde = replace(serde, parameters={**serde.parameters, "path": ""})
    return replace(storage, location=None, serde=serde)


# Changes


@dataclass(frozen=True, slots=True)
class NewContent:
    """The files that a partition (`""`: the table) is to have. `statistics` are the texts of their statistics, by the
    files' paths below the location; `values` are the partition's values in Delta's form."""

    listing: Listing
    values: Mapping[str, str | None]
    statistics: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LogChange:
    """The change that a commit is to make of a table. `put` are the partitions that are there afterwards, with these
    definitions. `contents` are the partitions among them (`""`: the table) that get these files, and no others.
    `restated` are new statistics of files that stay, by their paths below the root: they are needed for every file when
    the table gets another column, because delta-rs takes a bound that is not said for a bound of NULL. `rows` are in
    place of `contents` for an ACID table; they hold at the version `since` alone."""

    table: Table
    schema: str
    partition_columns: Sequence[str]
    put: Mapping[str, Partition] = field(default_factory=dict)
    drop: Sequence[str] = ()
    contents: Mapping[str, NewContent] = field(default_factory=dict)
    cascade: bool = False
    restated: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, NewRows] = field(default_factory=dict)
    since: int | None = None


def actions_of(before: LoggedTable, change: LogChange, table_id: str, now_ms: int) -> list[dict[str, Any]]:
    """Return the actions of the commit that makes the change; none where nothing differs. `table_id` is the id of a
    table that has no commit yet."""
    actions: list[dict[str, Any]] = []
    if before.version < 0:
        actions.append({"protocol": PROTOCOL})
    if (metadata := metadata_of(before, change, table_id, now_ms)) != before.metadata:
        actions.append({"metaData": metadata})
    text = tjson(change.table)
    if text != before.definition:
        actions.append(domain_action(TABLE_DOMAIN, text))
    actions += partition_actions(before, change)
    actions += row_source_actions(before, change)
    actions += file_actions(before, change, now_ms)
    return actions


def metadata_of(before: LoggedTable, change: LogChange, table_id: str, now_ms: int) -> Action:
    created = {"id": table_id, "createdTime": now_ms}
    if before.metadata is not None:
        created = {key: before.metadata[key] for key in ("id", "createdTime")}
    marks = {
        key: value for key, value in (change.table.parameters or {}).items() if key in (SOURCE, INCARNATION, ORIGIN)
    }
    return {
        "id": created["id"],
        "format": {"provider": "parquet", "options": {}},
        "schemaString": change.schema,
        "partitionColumns": list(change.partition_columns),
        "configuration": marks,
        "createdTime": created["createdTime"],
    }


def domain_action(domain: str, configuration: str, *, removed: bool = False) -> dict[str, Any]:
    return {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": removed}}


def partition_actions(before: LoggedTable, change: LogChange) -> list[dict[str, Any]]:
    """Return the actions for partitions whose text changes. Among them are partitions that stay as they are while the
    table changes what they had in common with it."""
    texts = {name: partition_text(partition, change.table, before.root) for name, partition in change.put.items()}
    if before.partitions and without_place(before.table.storage) != without_place(change.table.storage):
        for name in before.partitions.keys() - change.put.keys() - {*change.drop}:
            kept = partition_of(before.partitions[name], before.table, before.root)
            if change.cascade and kept.storage is not None and change.table.storage is not None:
                kept = replace(kept, storage=replace(kept.storage, columns=change.table.storage.columns))
            texts[name] = partition_text(kept, change.table, before.root)
    actions = [
        domain_action(f"{PARTITION_DOMAIN}{name}", text)
        for name, text in sorted(texts.items())
        if before.partitions.get(name) != text
    ]
    return actions + [
        domain_action(f"{PARTITION_DOMAIN}{name}", "", removed=True)
        for name in sorted(change.drop)
        if name in before.partitions
    ]


def row_source_actions(before: LoggedTable, change: LogChange) -> list[dict[str, Any]]:
    """Return the actions that say of which files of the source partitions have the rows."""
    texts = {name: rows.text() for name, rows in change.rows.items()}
    gone = {*change.drop, *([""] if change.partition_columns else [])}
    if not has_own_row_files(change.table):
        gone |= before.rows.keys()
    new = [domain_action(f"{ROWS_DOMAIN}{name}", text) for name, text in texts.items() if before.rows.get(name) != text]
    old = sorted((gone & before.rows.keys()) - texts.keys())
    return [*new, *(domain_action(f"{ROWS_DOMAIN}{name}", "", removed=True) for name in old)]


def file_actions(before: LoggedTable, change: LogChange, now_ms: int) -> list[dict[str, Any]]:
    """Return the actions for files that come and go. A file that another partition had is only added, because it is the
    same file of the log. A table with partition keys has no files of its own: files of a table without keys, whose name
    it took, go."""
    adds: dict[str, dict[str, Any]] = {}
    gone: dict[str, LoggedFile] = {}
    for name in (*change.drop, *change.contents, *change.rows, *([""] if change.partition_columns else [])):
        gone |= before.files.get(name, {})
    for name, rows in change.rows.items():
        for path in (*rows.kept, *(made.path for made in rows.added)):
            gone.pop(path, None)
        for made in rows.added:
            logged = LoggedFile(made.path, name, made.size, made.modified_ns, {})
            action = add_action(logged, rows.values, made.statistics)
            adds[made.path] = {**action, "tags": {**action["tags"], **tags_of(made.write_ids)}}
    for name, content in change.contents.items():
        prefix, old_files = below(before.root, content.listing.location), before.files.get(name, {})
        for file in content.listing.files:
            path = f"{prefix}{file.path}"
            logged = LoggedFile(path, name, file.size, file.modified_ns, {})
            gone.pop(path, None)
            if old_files.get(path) != logged:
                adds[path] = add_action(logged, content.values, content.statistics.get(file.path, ""))
    for files in before.files.values():
        for path, kept in files.items():
            if path in change.restated and path not in adds and path not in gone:
                adds[path] = {**kept.record, "stats": change.restated[path], "dataChange": False}
    removes = [
        {
            "remove": {
                "path": file.record["path"],
                "deletionTimestamp": now_ms,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": dict(file.record["partitionValues"] or {}),
                "size": file.size,
            }
        }
        for _, file in sorted(gone.items())
    ]
    return [*removes, *({"add": action} for _, action in sorted(adds.items()))]


def add_action(file: LoggedFile, values: Mapping[str, str | None], statistics: str) -> dict[str, Any]:
    action = {
        "path": quote(file.path, safe="/="),
        "partitionValues": dict(values),
        "size": file.size,
        "modificationTime": file.modified_ns // 10**6,
        "dataChange": True,
        "tags": {PARTITION_TAG: file.partition, TIME_TAG: str(file.modified_ns)},
    }
    return {**action, "stats": statistics} if statistics else action


# Versions


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """The state that a commit shows, and the epoch that tells of it, as the commit itself says it."""

    state: ShownState
    epoch: int


def commit_text(actions: Sequence[Action], shown: ShownVersion, source: str, now_ms: int) -> str:
    """Return the content of a commit's file, one JSON document a line."""
    state = shown.state
    said = {"source": source, "event_id": state.event_id, "first_event": state.first_event, "epoch": shown.epoch}
    info = {
        "timestamp": now_ms,
        "operation": "REPLICATE",
        "operationParameters": {"source": source, "event_id": str(state.event_id)},
        "engineInfo": "calque",
        "userMetadata": json.dumps({"calque": said}, separators=(",", ":")),
    }
    transaction = {
        "appId": f"{APPLICATION}{source.partition(':')[0]}",
        "version": state.event_id,
        "lastUpdated": now_ms,
    }
    rows = [{"commitInfo": info}, {"txn": transaction}, *actions]
    return "".join(f"{json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n" for row in rows)


def version_of(commit: Iterable[Action]) -> ShownVersion | None:
    """Return what the commit says that it shows; None where another writer made it."""
    for row in commit:
        info = row.get("commitInfo")
        if info is None:
            continue
        try:
            said = json.loads(info.get("userMetadata") or "{}")["calque"]
            return ShownVersion(ShownState(int(said["event_id"]), int(said["first_event"])), int(said["epoch"]))
        except (KeyError, TypeError, ValueError):
            return None
    return None


def rows_of(content: bytes) -> list[dict[str, Any]]:
    """Return the actions in the content of a commit's file."""
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def names_of(table: Table, partitions: Iterable[Partition]) -> dict[str, Partition]:
    keys = key_names(table)
    return {partition_name(keys, partition.values): partition for partition in partitions}
