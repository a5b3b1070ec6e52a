"""Transactions of calque's at a target that may be open: a file for each table names them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from secrets import randbits

from calque.core.formats.layout import join, natural_location
from calque.engine.sides.sides import TargetSide, TargetTransactions
from calque.model.names import OURS
from calque.model.transactions import TransactionId

BEGUN = "transactions"
"""The directory of these files, in that of calque's own database. They don't lie in the tables' directories, because a
Hive that lists local files fails where one goes meanwhile."""


def note_of(side: TargetSide, root: str) -> str:
    """Return the place of the file that names the transaction of the table with the directory `root`."""
    digest = hashlib.blake2b(root.encode(), digest_size=16).hexdigest()
    return join(natural_location(side.policy.warehouse, OURS), f"{BEGUN}/{digest}.json")


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction that a process has begun, by its number. `roots` are the directories of the tables that it writes
    to; `directories` are those that it makes below them, without its suffix."""

    number: int
    roots: Collection[str]
    directories: Collection[str]

    def text(self) -> str:
        return json.dumps({"number": self.number, "roots": sorted(self.roots), "directories": sorted(self.directories)})


def begun_in(side: TargetSide, root: str) -> Begun | None:
    """Return the transaction that was begun for the table with the directory `root` and, as far as is known, not
    ended."""
    text = side.storage.read(note_of(side, root))
    if text is None:
        return None
    said = json.loads(text)
    return Begun(said["number"], said["roots"], said["directories"])


def begin(side: TargetSide, made: Mapping[str, Collection[str]]) -> tuple[int, TransactionId]:
    """Return the number and the id of an open transaction for the tables with the directories `made`, by the tables'
    own. It is the one that was begun for just these tables; any other that was begun for one of them is ended. Of the
    directories that it made before only those in `made` are left."""
    known = {root: begun for root in made if (begun := begun_in(side, root)) is not None}
    wanted, left = set(chain.from_iterable(made.values())), set[str]()
    if is_shared(known, made):
        number = next(iter(known.values())).number
        left = {directory for begun in known.values() for directory in begun.directories} - wanted
    else:
        number = randbits(62)
        for root, begun in known.items():
            end(side, root, begun)
    # Each of the tables names the transaction, and all that it may have made, before its first call.
    text = Begun(number, made.keys(), wanted | left).text().encode()
    for root in made:
        side.storage.write(note_of(side, root), text)
    transaction = transactions_of(side).writer.open(number)
    remove_directories(side, left, transaction)
    return number, transaction


def is_shared(known: Mapping[str, Begun], made: Mapping[str, Collection[str]]) -> bool:
    """Tell whether one transaction was begun in all the tables of `made`, and in no other."""
    numbers = {begun.number for begun in known.values()}
    return len(numbers) == 1 and known.keys() == made.keys() and set(known[min(known)].roots) == made.keys()


def remove_directories(side: TargetSide, made: Iterable[str], transaction: TransactionId) -> None:
    side.storage.remove([f"{directory}_v{transaction:07d}" for directory in sorted(made)])


def end_begun(side: TargetSide, root: str) -> None:
    """End the transaction, if there is one, that a process began for the table, and that none goes on with."""
    begun = begun_in(side, root)
    if begun is not None:
        end(side, root, begun)


def end(side: TargetSide, root: str, begun: Begun) -> None:
    """End a transaction without its directories, also those in other tables. It is committed: readers see nothing of
    it, and its write ids count as any others that have no directory. That of an aborted one would hide the directory
    that a later transaction makes for the same write id. The other tables name it until they are ended, too."""
    writer = transactions_of(side).writer
    # The same transaction is opened again, unless it was committed: then another one, which has no directories.
    remove_directories(side, begun.directories, writer.open(begun.number))
    writer.commit(begun.number)
    forget(side, [root])


def forget(side: TargetSide, roots: Iterable[str]) -> None:
    """Note that the transaction of these tables has ended."""
    side.storage.remove([note_of(side, root) for root in roots])


def transactions_of(side: TargetSide) -> TargetTransactions:
    assert side.transactions is not None
    return side.transactions
