"""A ledger before one of whose writes the process dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calque.model.ledger import StateKey, StateRow
from calque.model.records import Record, RecordKey
from support.memory.ledger import MemoryLedger
from support.worlds.worlds import Died


class FragileLedger(MemoryLedger):
    """`writes_left` are made before that one (None: nobody dies); `meanwhile` happens before the next process."""

    def __init__(self) -> None:
        super().__init__()
        self.writes_left: int | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        self._write()
        super().put_tables(rows)

    def remove_tables(self, keys: Sequence[StateKey]) -> None:
        self._write()
        super().remove_tables(keys)

    def put_records(self, records: Sequence[Record]) -> None:
        self._write()
        super().put_records(records)

    def remove_records(self, keys: Sequence[RecordKey]) -> None:
        self._write()
        super().remove_records(keys)

    def _write(self) -> None:
        if self.writes_left is None:
            return
        if not self.writes_left:
            self.writes_left = None
            self.meanwhile()
            raise Died
        self.writes_left -= 1
