"""The search for files that events name by their checksums: at their places, and where Hive keeps removed files."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from calque.core.states.kept_files import NamedFile
from calque.errors import Refused
from calque.model.files import File
from calque.ports import Storage

LOG = logging.getLogger(__name__)


def find(storage: Storage, named_files: Collection[NamedFile]) -> dict[NamedFile, File]:
    """Return each file that was found, where it lies, with the checksum that its event says. A file that is nowhere, or
    may not be read, is left out."""
    at_place = with_checksums(storage, {file: file.path for file in named_files})
    kept = with_checksums(storage, {file: file.kept_path for file in named_files if file not in at_place})
    return at_place | kept


def with_checksums(storage: Storage, paths: Mapping[NamedFile, str]) -> dict[NamedFile, File]:
    """Return those of the files that lie at the given paths with the checksums that their events say."""
    present = looked_at(storage, paths.values())
    checksums = storage.system_checksums(sorted(present)) if present else {}
    return {file: present[path] for file, path in paths.items() if checksums.get(path) == file.checksum}


def looked_at(storage: Storage, paths: Collection[str]) -> Mapping[str, File]:
    """Return the files that exist, by their paths; none at all where one of them may not be read."""
    try:
        return storage.files(sorted(set(paths))) if paths else {}
    except Refused as error:
        LOG.warning("kept files: %s", error)
        return {}
