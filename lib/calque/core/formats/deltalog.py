"""The log of a Delta table: the versions that it holds, and the files that each of them needs.

Source: the Delta transaction log protocol. Paths in the log are relative to the table and URL-encoded; a file is named
together with its deletion vector, since a new vector is a new state of the same file. The module reads no files:
callers give names and contents.
"""

from __future__ import annotations

import re
from base64 import b85decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from calque.core.formats.bounded import parse_json, require_rows_fit
from calque.errors import Refused
from calque.model.bounds import MESSAGE
from calque.model.files import DELTA_LOG

LOG = DELTA_LOG
SIDECARS = f"{LOG}/_sidecars"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
ELSEWHERE = frozenset({"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"})
"""Features with which a table may have a version that no file of the log tells of."""
FEATURES = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Features with which a version is its log, the data files that the log names, and their deletion vectors: copied byte
for byte, it is the same version. Source: the protocol's list of features, at Delta 4.4."""
UNKNOWN = "calque does not know what belongs to a version"
READER_VERSION, WRITER_VERSION = 3, 7
"""The newest versions of the protocol, which grows by named features alone from these on."""

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError)
"""Exceptions that the parsing of a content raises when the content is no log's."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_CHECKPOINT_2 = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(?:json|parquet)")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint. `files` are the paths of all its files below the table; readers need each of them."""

    version: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """The commits and complete checkpoints of a log, by the names of its files."""

    commits: frozenset[int]
    checkpoints: tuple[Checkpoint, ...]
    """Complete checkpoints, ascending, one for each version that has any."""

    def checkpoint(self, upto: int) -> Checkpoint | None:
        """Return the newest checkpoint from which a reader of version `upto` can begin; None where there is none."""
        return next((checkpoint for checkpoint in reversed(self.checkpoints) if checkpoint.version <= upto), None)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file by its path below the table, decoded, with its deletion vector: `vector` tells the file's vectors
    apart, and `vector_path` is the file that holds the vector, empty for no vector or one that the log itself holds."""

    path: str
    vector: str = ""
    vector_path: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.vector_path) if self.vector_path else (self.path,)


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions on files in a commit or a part of a checkpoint. `changes` are change data files, `sidecars` parts of
    the checkpoint in files of their own; both by their paths below the table."""

    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    changes: tuple[str, ...] = ()
    sidecars: tuple[str, ...] = ()

    def paths(self) -> set[str]:
        """Return the paths of the added files and their deletion vectors: with them, the commit's version can be read
        where the version before it can."""
        return {path for file in self.added for path in file.paths}


def commit_path(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def newest_commit(names: Iterable[str]) -> int | None:
    """Return the newest version among the names in a log directory; None where no name is that of a commit."""
    return max((int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))), default=None)


def log_of(names: Iterable[str]) -> Log:
    """Return the log with these names of files. Incomplete checkpoints are left out; of several checkpoints of one
    version the one with the fewest files counts."""
    names = sorted(names)
    commits = frozenset(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
    parts: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3] or 1)), []).append(name)
        elif match := _CHECKPOINT_2.fullmatch(name):
            parts[int(match[1]), 1] = [name]
    checkpoints: dict[int, Checkpoint] = {}
    for (version, count), files in sorted(parts.items(), reverse=True):
        checkpoint_files = files[:1] if count == 1 else files
        if len(checkpoint_files) == count:
            checkpoints[version] = Checkpoint(version, tuple(f"{LOG}/{name}" for name in checkpoint_files))
    return Log(commits, tuple(checkpoints[version] for version in sorted(checkpoints)))


def replayed(checkpoint: Iterable[Actions], commits: Iterable[Actions]) -> set[DataFile]:
    """Return the files of the version that the last of `commits` makes, after the actions of a checkpoint before
    them."""
    live: set[DataFile] = set()
    for actions in (*checkpoint, *commits):
        live.difference_update(actions.removed)
        live.update(actions.added)
    return live


def commit_actions(content: bytes) -> Actions:
    """Parse the content of a commit, or of a checkpoint that is written as JSON. Raises `Refused` where the content
    can't be read, or the table can't be copied."""
    try:
        rows = [parse_json(line, MESSAGE) for line in content.splitlines() if line.strip()]
        return _actions(rows)
    except UNREADABLE as error:
        raise Refused("A commit of the Delta log can't be read", str(error), "Look at the table's log") from error


def checkpoint_actions(content: bytes) -> Actions:
    """Parse a part of a checkpoint, or a sidecar, that is written as Parquet. Tombstones are left out, because they
    remove no file that the checkpoint has. Raises `Refused` as `commit_actions` does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        action_names = [name for name in ("add", "protocol", "sidecar") if name in file.schema_arrow.names]
        columns = [f"{name}.{leaf}" for name in action_names for leaf in _LEAVES[name]]
        require_rows_fit(file.metadata)
        return _actions(file.read(columns).to_pylist())
    except (pa.ArrowException, *UNREADABLE) as error:
        raise Refused("A checkpoint of the Delta log can't be read", str(error), "Look at the table's log") from error


def starts_with(last_checkpoint: bytes | None, checkpoint: Checkpoint) -> bool:
    """Tell whether the content of `_last_checkpoint` points to that checkpoint; False where there is no content."""
    try:
        pointer = parse_json(last_checkpoint or b"{}")
    except ValueError:
        return False
    parts = pointer.get("parts") if type(pointer) is dict else None
    return (
        type(pointer) is dict and pointer.get("version") == checkpoint.version and (parts or 1) == len(checkpoint.files)
    )


_LEAVES = {
    "add": ("path", "deletionVector"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "sidecar": ("path",),
}


def _actions(rows: Sequence[Mapping[str, Any]]) -> Actions:
    for row in rows:
        _require_known(row.get("protocol") or {})
    return Actions(
        tuple(_data_file(row["add"]) for row in rows if _path_in(row, "add")),
        tuple(_data_file(row["remove"]) for row in rows if _path_in(row, "remove")),
        tuple(_relative(row["cdc"]["path"]) for row in rows if _path_in(row, "cdc")),
        tuple(_sidecar(row["sidecar"]["path"]) for row in rows if _path_in(row, "sidecar")),
    )


def _require_known(protocol: Mapping[str, Any]) -> None:
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if unknown := features - FEATURES:
        feature = min(unknown)
        raise Refused(
            f"The Delta table has the feature {feature}",
            "Its newest versions are not in its log" if feature in ELSEWHERE else f"{UNKNOWN} with it",
            "Drop the feature, or leave the table out",
        )
    for side, newest in (("Reader", READER_VERSION), ("Writer", WRITER_VERSION)):
        version = protocol.get(f"min{side}Version") or 0
        if version > newest:
            what = f"The Delta table has the protocol {version} for {side.lower()}s"
            raise Refused(what, f"{UNKNOWN} with one above {newest}", "Leave the table out")


def _path_in(row: Mapping[str, Any], action: str) -> bool:
    return bool((row.get(action) or {}).get("path"))


def _data_file(action: Mapping[str, Any]) -> DataFile:
    path = _relative(action["path"])
    vector = action.get("deletionVector")
    if not vector or not vector.get("storageType"):
        return DataFile(path)
    kind, path_or_inline = vector["storageType"], vector["pathOrInlineDv"]
    identity = f"{kind}{path_or_inline}@{vector.get('offset')}"
    if kind == "i":
        return DataFile(path, identity)
    if kind != "u":
        raise _outside(path_or_inline)
    return DataFile(path, identity, vector_path(path_or_inline))


def vector_path(encoded: str) -> str:
    """Return the path, below the table, of the deletion vector that `encoded` names: an optional prefix and 20
    characters of Z85."""
    prefix, name = encoded[:-20], encoded[-20:]
    file = f"deletion_vector_{UUID(bytes=b85decode(name.translate(_TO_B85)))}.bin"
    return f"{prefix}/{file}" if prefix else file


def _relative(path: str) -> str:
    decoded = unquote(path)
    if _ABSOLUTE.match(path) or ".." in decoded.split("/"):
        raise _outside(decoded)
    return decoded


def _sidecar(path: str) -> str:
    if "/" in path:
        raise _outside(path)
    return f"{SIDECARS}/{unquote(path)}"


def _outside(path: str) -> Refused:
    return Refused(
        f"The Delta table names its file {path} by an absolute path",
        "A shallow clone, or a log that was written for another place: its files are not the table's own",
        "Make it a deep clone, or leave the table out",
    )
