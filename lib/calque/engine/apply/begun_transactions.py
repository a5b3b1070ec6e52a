"""Transactions of calque's at a target that may be open: a file in the table's directory names them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calque.core.formats.layout import join
from calque.engine.sides.sides import TargetSide, TargetTransactions
from calque.engine.target.observe import ShownTable
from calque.model.hive import location_of
from calque.model.transactions import TransactionId

BEGUN = "_calque_transaction"
"""The file's name, which readers of the table pass over."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction that a process has begun, by its number, with the directories that it makes, without its suffix."""

    number: int
    directories: Sequence[str]

    def text(self) -> str:
        return json.dumps({"number": self.number, "directories": list(self.directories)})


def begun_in(side: TargetSide, root: str) -> Begun | None:
    """Return the transaction that was begun in the table's directory and, as far as is known, not ended."""
    text = side.storage.read(join(root, BEGUN))
    if text is None:
        return None
    said = json.loads(text)
    return Begun(said["number"], said["directories"])


def remove_directories(side: TargetSide, made: Iterable[str], transaction: TransactionId) -> None:
    side.storage.remove([f"{directory}_v{transaction:07d}" for directory in sorted(made)])


def end_begun(side: TargetSide, shown: ShownTable) -> None:
    """End a transaction of the table that a process began, and that none goes on with: without its directories. It is
    committed: readers see nothing of it, and its write id counts as any other that has no directory. That of an aborted
    one would hide the directory that a later transaction makes for the same write id."""
    root = location_of(shown.table) or ""
    begun = begun_in(side, root)
    if begun is None:
        return
    writer = transactions_of(side).writer
    # The same transaction is opened again, unless it was committed: then another one, which has no directories.
    remove_directories(side, begun.directories, writer.open(begun.number))
    writer.commit(begun.number)
    forget(side, root)


def begin(side: TargetSide, root: str, begun: Begun) -> None:
    """Name the transaction before its first call."""
    side.storage.write(join(root, BEGUN), begun.text().encode())


def forget(side: TargetSide, root: str) -> None:
    """Note that the transaction has ended."""
    side.storage.remove([join(root, BEGUN)])


def transactions_of(side: TargetSide) -> TargetTransactions:
    assert side.transactions is not None
    return side.transactions
