"""The question whether the metastores and directories that answer belong to a target's ledger, and the records by which
ledger, directories and metastore remember each other.

`require` only reads. `settle` is for the holder of the lease on the target: it records what answers, and gives a ledger
that lost its newest state another name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from secrets import token_hex

from calque.core.formats.layout import place
from calque.core.records.identity import (
    aliases,
    has_lost_state,
    is_settled,
    refusal,
    shared_directory,
    user_of,
    with_directories,
    with_ledgers,
)
from calque.engine.identity import directories, hidden
from calque.engine.sides.sides import TargetSide
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.identity import Answers, HiddenIdentity, LedgerPosition, MarkedDirectory
from calque.model.lease import Generation
from calque.model.names import OURS, EventId, TableName
from calque.model.records import LedgerIdentity, TargetPolicies, one_of
from calque.ports import CatalogReader, EventLog, Leases

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A source's statement about itself: its id (empty where it has none) and its newest event id. Both are None where
    the source does not answer, or need not be asked."""

    id: str | None = None
    event: EventId | None = None


def ask_source(catalog: CatalogReader, log: EventLog) -> SourceAnswer:
    """Ask the source for its id and its newest event. A source that does not answer gives an empty answer and holds no
    target up, because the journal goes on without it."""
    try:
        return SourceAnswer(catalog.identity(), log.current())
    except (Unavailable, AccessRefused):
        return SourceAnswer()


def remembered(side: TargetSide) -> LedgerIdentity | None:
    """Return the identity that the target's ledger remembers; None until a writer of a version that knows identities
    has written."""
    return one_of(side.ledger.records(), LedgerIdentity)


def ask(side: TargetSide, leases: Leases, source: SourceAnswer) -> Answers:
    """Return what the target's directories, metastore and lease, and the source, say now. Raises `Broken` where a mark
    can't be read, and `Unavailable` and `Refused` as the ports do."""
    policy, known = side.policy, remembered(side)
    marked = tuple(directories.look(side.storage, location) for location in directories.roots_of(side))
    warehouse = warehouse_of(side, marked)
    name_in_ledger = known.warehouse if known is not None else ""
    return Answers(
        policy.source,
        policy.target,
        side.catalog.identity(),
        source.id,
        source.event,
        marked,
        hidden.look(side.catalog, record_name(side, name_in_ledger or warehouse)),
        leases.newest(),
        warehouse,
    )


def warehouse_of(side: TargetSide, marked: Iterable[MarkedDirectory]) -> str:
    """Return the spelling under which the warehouse was marked first, which names in the target's hidden database are
    made of."""
    first = next((one.first_place for one in marked if one.location == side.policy.warehouse), "")
    return str(place(first or side.policy.warehouse))


def record_name(side: TargetSide, warehouse: str) -> TableName:
    return hidden.record_name(side.policy.source, side.policy.target, warehouse)


def require(side: TargetSide, answers: Answers) -> None:
    """Raise `Refused` if what answers is not what the ledger remembers, or if the target's directories are another
    deployment's (`core.records.identity.refusal`)."""
    problem = refusal(remembered(side), answers, side.ledger.last_epoch() is not None)
    if problem is not None:
        raise problem


def require_removal(side: TargetSide, answers: Answers) -> LedgerIdentity:
    """Require all that `require` does and, for a process that removes, also an identity that was recorded, and
    directories that no other target metastore uses. Return what the ledger remembers, with every spelling that the
    target has of its directories; before the first epoch, when there is nothing to remove, an empty identity may do.
    Nothing is written. Raises `Refused` where one of these does not hold."""
    require(side, answers)
    identity = remembered(side)
    if side.ledger.last_epoch() is None:
        return identity or LedgerIdentity("")
    if identity is None or not is_settled(identity):
        raise Refused(
            f"It is not written down yet which metastores {side.policy.target} is of",
            "No `calque run` has done that since a version before, or since another one was accepted",
            "Start `calque run` first",
        )
    if (problem := shared_directory(answers)) is not None:
        raise problem
    return with_spellings(side, identity, answers)


def mark_directories(side: TargetSide) -> None:
    """Give the directories that the target writes below their marks. The caller does this before it takes the lease,
    whose name is made of the first spelling."""
    directories.mark(side.storage, directories.roots_of(side))


def settle(side: TargetSide, answers: Answers, mine: Generation, previous: Generation | None) -> LedgerIdentity:
    """Record what answers, for a process that has just taken the generation `mine` of the lease after another writer's
    `previous`. Return the identity that the ledger has then. Raises `Refused` as `require` does."""
    require(side, answers)
    before, epoch = remembered(side), side.ledger.last_epoch()
    epoch_number = epoch.epoch if epoch is not None else 0
    identity = before or LedgerIdentity(token_hex(16), since=epoch_number)
    if before is not None and has_lost_state(before, previous, answers.hidden, epoch_number):
        identity = replace(identity, ledger=token_hex(16))
        LOG.warning(
            "%s: the ledger has lost its newest state; what lies at the target and is not in it counts as another's",
            side.policy.target,
        )
    identity = with_answers(identity, answers, mine)
    identity = with_spellings(side, identity, answers)
    if identity != before:
        side.ledger.put_records([identity])
    seen = answers.hidden or HiddenIdentity("")
    seen = replace(seen, source_id=answers.source_id or seen.source_id)
    seen = with_ledgers(seen, previous, identity.ledger, LedgerPosition(mine.number, epoch_number, mine.writer.id))
    written = hidden.put(side.catalog, side.policy.warehouse, record_name(side, answers.warehouse), seen)
    if (written.nonce, answers.warehouse) != (identity.hidden, identity.warehouse):
        identity = replace(identity, hidden=written.nonce, warehouse=answers.warehouse)
        side.ledger.put_records([identity])
    note(side, replace(answers, hidden=written))
    return identity


def with_answers(identity: LedgerIdentity, answers: Answers, mine: Generation) -> LedgerIdentity:
    return replace(
        identity,
        source_id=answers.source_id or identity.source_id,
        target_id=answers.target_id,
        generation=mine.number,
        writer=mine.writer.id,
        source_event=max(identity.source_event, answers.source_event or 0),
        directories=with_directories(identity.directories, answers.directories),
    )


def note(side: TargetSide, answers: Answers) -> None:
    """Record in the marks of the directories which target metastore and which source use them."""
    for directory in answers.directories:
        directories.note_target(side.storage, directory, user_of(answers))
        if answers.source_id is not None:
            directories.note_source(side.storage, directory, answers.source, answers.source_id)


# Spellings


def with_spellings(side: TargetSide, identity: LedgerIdentity, answers: Answers) -> LedgerIdentity:
    """Return the identity with the spellings that the target's databases and earlier policies have of its
    directories."""
    known = {spelling for spellings in identity.directories.values() for spelling in spellings}
    found = [look_if_possible(side, one) for one in sorted(former_places(side)) if one not in known]
    nonces = {one.nonce for one in answers.directories if one.nonce}
    same = tuple(one for one in found if one.nonce in nonces)
    return replace(identity, directories=with_directories(identity.directories, (*answers.directories, *same)))


def look_if_possible(side: TargetSide, location: str) -> MarkedDirectory:
    """Return what the mark of the directory says. For a place that can't be read, return a value without a mark: a
    place that nothing can be read at is no second spelling of a directory that calque writes in. Raises `Broken` where
    the mark can't be read."""
    try:
        return directories.look(side.storage, location)
    except (Refused, Unavailable, AccessRefused) as error:
        LOG.info("%s is not looked at: %s", location, error)
        return MarkedDirectory(location)


def former_places(side: TargetSide) -> set[str]:
    """Return the places under which directories that the target writes below may be known by another spelling: those of
    earlier policies, and the parents of its databases' locations."""
    policies = one_of(side.ledger.records(), TargetPolicies)
    locations = {
        str(place(location))
        for terms in (policies.policies if policies is not None else ())
        for location in (terms.warehouse, terms.external_base)
        if location
    }
    for name in side.catalog.databases():
        if name == OURS or side.admission.source_of(TableName(name)) is not None:
            database = side.catalog.database(name)
            location = database.location if database is not None else None
            if location and (parent := parent_of(location)):
                locations.add(parent)
    return locations


def parent_of(location: str) -> str:
    """Return the directory that the place lies directly in; empty where that is a whole file system, or `location` is
    no place."""
    try:
        own = place(location)
    except Refused:
        return ""
    path = own.path.rpartition("/")[0]
    return str(replace(own, path=path)) if path else ""


def spellings_of(identity: LedgerIdentity | None, location: str) -> tuple[str, ...]:
    """Return every spelling of a location that the ledger knows, `location` first."""
    return aliases(identity, location)
