"""The meaning of the service's declared exceptions to calque."""

from __future__ import annotations

import re

from calque.adapters.metastore.messages import Call, Fault
from calque.errors import AlterationRefused, CallFailed, Refused
from calque.ports import Conflict
from calque.ports.services import COLUMN_CHANGES

CONFLICTS = frozenset({"AlreadyExists", "NoSuchObject", "NoSuchTxn", "TxnAborted", "UnknownDB", "UnknownTable"})
CONFLICT_TEXT = re.compile(
    r"""(does|do)(n't|\ not)\ exist | already\ exist | not\ found | (is|are)\ missing
      | has\ been\ modified | is\ not\ empty
      | NoSuchObjectException|AlreadyExistsException
      | not\ matching\ with\ old\ parts\ size   # 4.x: alter_partitions of one that is not there
      | \bdatabase\ [\w.]+$ | ^[\w.]+$           # nothing but the name of the database that is not there
    """,
    re.IGNORECASE | re.VERBOSE,
)
REFUSALS = frozenset({"InvalidObject", "InvalidOperation", "InvalidInput"})


INCOMPATIBLE = re.compile(r"types incompatible with the existing columns", re.IGNORECASE)
"""The text of servers about a column change that `COLUMN_CHANGES` forbids."""


def todo_of(refusal: str) -> str:
    if INCOMPATIBLE.search(refusal):
        return f"Set {COLUMN_CHANGES} = false at this metastore, as the source has it"
    return "Correct the object, or leave it out"


def settled(fault: Fault, call: Call) -> Conflict | Refused | CallFailed:
    """Return the error of calque's that `fault`, the answer to `call`, stands for.

    Servers declare the same condition differently (an alter of a missing table is InvalidOperation in one, Meta in
    another), so texts count where the type does not decide.
    """
    if fault.kind in CONFLICTS or CONFLICT_TEXT.search(fault.text):
        return Conflict(f"{call.name}: {fault.text or fault.kind}")
    if fault.kind in REFUSALS and call.name.startswith("alter_table"):
        return AlterationRefused(f"The metastore refused {call.name}", fault.text, todo_of(fault.text))
    if fault.kind in REFUSALS:
        return Refused(f"The metastore refused {call.name}", fault.text, "Correct the object, or leave it out")
    return CallFailed(
        f"The metastore failed in {call.name}; nothing was changed",
        fault.text,
        "It is tried again; look into the metastore's log when this goes on",
    )
