"""The links that are missing from the local catalog for a moment, as records of the state folder. With the records a
process that dies in that moment loses no link."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from calque.adapters.control import ControlStore
from calque.core.events.decode import Undecodable, thrift_object
from calque.core.events.encode import tjson
from calque.errors import Broken
from calque.model.hive import Table
from calque.model.names import TableName

PREFIX = "links-in-hand/"


@dataclass(frozen=True, slots=True)
class RecordedMissingLinks:
    """The missing links as records of the state folder, as `plugins.remotes.engine.linked_catalog.MissingLinks`. Every
    method may raise `Unavailable`."""

    control: ControlStore

    def put(self, link: Table) -> None:
        self.control.put(_record(TableName(link.database, link.name)), {"link": tjson(link)})

    def remove(self, name: TableName) -> None:
        self.control.remove(_record(name))

    def __contains__(self, name: TableName) -> bool:
        return self.control.read(_record(name)) is not None

    def __iter__(self) -> Iterator[Table]:
        """Return the missing links. Raises `Broken` for a record that can't be read."""
        for name in self.control.names(PREFIX):
            record = self.control.read(name)
            if record is not None:
                try:
                    yield thrift_object(Table, str(record["link"]))
                except (KeyError, Undecodable) as error:
                    todo = "Remove it, and make the link again if it is missing"
                    raise Broken(f"The record {name} of a link can't be read", repr(error), todo) from error


def _record(name: TableName) -> str:
    """Return the name of the link's record: a digest, because names of tables may have characters that names of records
    may not."""
    return f"{PREFIX}{hashlib.blake2b(str(name).encode(), digest_size=12).hexdigest()}"
