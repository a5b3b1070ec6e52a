"""The policy under which a dump is loaded into a target, and the checks whether it may be loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calque.core.images.image import SOURCE, source_mark
from calque.core.policy.admit import Admission
from calque.core.policy.patterns import Glob
from calque.errors import Refused
from calque.model.hive import HIVE_POSITION, Database
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from calque.plugins.dumps.core.dump_metadata import PolicyLine


@dataclass(frozen=True, slots=True)
class LoadPolicy:
    """The policy of one load. `is_own`: it is the target's own policy, which follows that database alone. Then `run`
    goes on from the event at which a load ended, and a load from the event at which `run` ended."""

    policy: Policy
    is_own: bool


def load_policy(
    policy: Policy, source: str, database: str, local_database: str, external_base: str, functions_root: str = ""
) -> LoadPolicy:
    """Return the policy for loads of dumps of `database` of the source `source`, which gets the name `local_database`
    at the target; `policy` is the target's own. A load's drops never wait for an operator (`max_drop` is 1), because
    the user who loads a dump wants all objects to go that the dump does not have."""
    admission = Admission(policy)
    name_at_target = admission.name_at_target(TableName(database)).database
    is_own = (
        policy.source == source
        and admission.takes_database(database)
        and name_at_target == local_database
        and all(isinstance(pattern, Glob) and pattern.database == database for pattern in admission.include)
    )
    loaded = replace(
        policy,
        source=source,
        start=None,
        max_drop=1.0,
        external_base=external_base or policy.external_base,
        functions_root=functions_root,
    )
    if not is_own:
        rename = {database: local_database} if database != local_database else {}
        loaded = replace(loaded, include=(f"{database}.*",), rename=rename)
    return LoadPolicy(loaded, is_own)


def require_policy(location: str, dumped: PolicyLine | None, asked: PolicyLine) -> None:
    """Raise `Refused` where the statement's policy `asked` chooses tables and the dump at `location` is of another
    policy, because a load takes a dump whole. A policy without a choice of tables means all that the dump has."""
    if (asked.include is None and asked.exclude is None) or dumped == asked:
        return
    raise Refused(
        f"The newest dump, {location}, is not of the policy that the statement names",
        "A load takes a dump whole: the tables were chosen by REPL DUMP",
        "Dump that policy, name a dump of it by REPL LOAD … FROM, or leave the tables out",
    )


@dataclass(frozen=True, slots=True)
class DumpSpan:
    """The span of a dump as a load sees it. `begin` is the event that an increment goes on from, and `end` its last
    event. For a bootstrap both are the event whose state it has."""

    location: str
    begin: EventId
    end: EventId
    is_bootstrap: bool


def require_takeable(
    target_database: Database | None, local_database: str, source: str, database: str, shown: EventId | None
) -> None:
    """Raise `Refused` where a load may not write to the database `local_database` at the target: it is the replica of
    another source, or no replica at all, or Hive loaded it. `shown` is the event that the ledger says the database
    shows, None where nothing was loaded."""
    if target_database is None:
        return
    parameters: Mapping[str, str] = target_database.parameters or {}
    mark, last = parameters.get(SOURCE, ""), parameters.get(HIVE_POSITION, "")
    if mark == source_mark(source, TableName(database)):
        return
    if mark:
        raise Refused(
            f"Database {local_database} at the target is the replica of {mark}",
            f"The dump is of {source_mark(source, TableName(database))}",
            "Load it into another database: REPL LOAD name FROM",
        )
    if last and shown is None:
        raise Refused(
            f"Database {local_database} at the target was loaded by Hive, and shows event {last}",
            "calque knows nothing of its files",
            "Take it over by `calque adopt`, or load the dump into another database",
        )
    if shown is None:
        raise Refused(
            f"Database {local_database} exists at the target, and carries no {HIVE_POSITION}",
            "It is no replica: somebody's tables may be in it",
            "Load the dump into another database, or drop that one",
        )


def require_fills_gone(dump: DumpSpan, local_database: str, shown: EventId) -> None:
    """Raise `Refused` where the database is gone at the target, where it showed event `shown`, and the dump does not
    bring all of it back: only a bootstrap that ends at `shown` or later does."""
    if not dump.is_bootstrap or dump.end < shown:
        raise Refused(
            f"Database {local_database} is gone at the target, where it showed event {shown}",
            f"The dump in {dump.location} ends at event {dump.end}, and does not have all of it as it was then",
            f"Load a bootstrap dump of event {shown} or later; or load this one into another database: INTO",
        )


def is_loaded(dump: DumpSpan, shown: EventId | None) -> bool:
    """Tell whether the target, which shows event `shown` (None: nothing), has all of the dump already. Raises `Refused`
    for an increment that begins after `shown`: the events between would be missing."""
    if shown is None:
        if dump.is_bootstrap:
            return False
        raise Refused(
            f"The increment in {dump.location} does not follow on what the target shows",
            f"It goes on from event {dump.begin}, and nothing of its database was loaded",
            "Load a bootstrap dump first",
        )
    if dump.end <= shown:
        return True
    if not dump.is_bootstrap and dump.begin > shown:
        raise Refused(
            f"The increment in {dump.location} does not follow on what the target shows",
            f"It goes on from event {dump.begin}, and the target shows event {shown}",
            f"Load the dumps between first, or make one: REPL DUMP … FROM {shown}",
        )
    return False
