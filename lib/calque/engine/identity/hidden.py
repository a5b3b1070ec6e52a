"""The record of a deployment in the target's hidden database: the parameters of a view, as for the lease's generations.

Only the holder of the lease on the target writes it. Its name is made of the same words as the lease's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex

from calque.core.records.lease import lease_subject, subject_digest
from calque.engine.sides.calque_database import ensure_own_database, own_view
from calque.errors import Unavailable
from calque.model.identity import HiddenIdentity, LedgerPosition
from calque.model.names import OURS, TableName
from calque.ports import Catalog, CatalogReader, Conflict

PREFIX = f"{OURS}_identity_"
PARAMETER = "calque.identity."
LEDGER = f"{PARAMETER}ledger."
TRIES = 5
"""The number of looks at the record: a read in the moment of a change may show neither the old object nor the new
one."""


def record_name(source: str, target: str, warehouse: str) -> TableName:
    """Return the name of the deployment's record. `warehouse` is the spelling under which the directory was marked
    first."""
    return TableName(OURS, PREFIX + subject_digest(lease_subject(source, target, warehouse)))


def look(catalog: CatalogReader, name: TableName) -> HiddenIdentity | None:
    """Return the record; None where the metastore does not know the deployment. Raises `Unavailable` where it can't be
    read."""
    for _ in range(TRIES):
        view = catalog.table(name)
        if view is None:
            return None
        identity = identity_of(view.parameters or {})
        if identity.nonce:
            return identity
    raise Unavailable(f"The record {name} can't be read", "It has no name", "It is read again")


def put(catalog: Catalog, warehouse: str, name: TableName, identity: HiddenIdentity) -> HiddenIdentity:
    """Write the record, and return it as the metastore has it then. Its random name (`nonce`) is that of `identity`,
    else the one that the record had, else a new one."""
    written = look(catalog, name)
    identity = replace(identity, nonce=identity.nonce or (written.nonce if written is not None else token_hex(16)))
    if written is None:
        ensure_own_database(catalog, warehouse)
        with suppress(Conflict):
            catalog.create_table(own_view(name, parameters_of(identity)))
            return identity
    catalog.alter_table(name, own_view(name, parameters_of(identity)))
    return identity


def parameters_of(identity: HiddenIdentity) -> dict[str, str]:
    ledgers = {
        f"{LEDGER}{ledger}": f"{position.generation} {position.epoch} {position.writer}".rstrip()
        for ledger, position in identity.ledgers.items()
    }
    return {f"{PARAMETER}name": identity.nonce, f"{PARAMETER}source": identity.source_id, **ledgers}


def identity_of(parameters: Mapping[str, str]) -> HiddenIdentity:
    """Return the record in a view's parameters. A ledger's position that can't be read is left out."""
    ledgers = {
        key.removeprefix(LEDGER): position
        for key, value in parameters.items()
        if key.startswith(LEDGER) and (position := position_of(value)) is not None
    }
    # Some databases keep no empty texts.
    return HiddenIdentity(parameters.get(f"{PARAMETER}name") or "", parameters.get(f"{PARAMETER}source") or "", ledgers)


def position_of(text: str) -> LedgerPosition | None:
    generation, _, rest = (text or "").partition(" ")
    epoch, _, writer = rest.partition(" ")
    if not generation.isdecimal() or not epoch.isdecimal():
        return None
    return LedgerPosition(int(generation), int(epoch), writer)
