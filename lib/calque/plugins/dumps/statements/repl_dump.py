"""The statement `REPL DUMP`: its words become a request for a dump, and the finished dump its row."""

from __future__ import annotations

from dataclasses import replace

from calque.config.units import seconds
from calque.control.status_records import capture_record
from calque.errors import Refused
from calque.plugins.dumps.config import REPL
from calque.plugins.dumps.core.options import DUMP_KEYS, DumpOptions, dump_options, known_options
from calque.plugins.dumps.core.scope import Scope, scope_of
from calque.plugins.dumps.engine.dump import DumpPlace, dump
from calque.plugins.dumps.engine.next_dump import WaitingDump, next_dump
from calque.plugins.dumps.engine.request import DumpRequest
from calque.plugins.dumps.statements.kinds import ReplDump
from calque.plugins.dumps.statements.repl_status import say_meaningless
from calque.plugins.dumps.wiring.dump_target import DumpWiring
from calque.statements.result import Result
from calque.statements.session import Session
from calque.statements.statement import ReplicationPolicy

COLUMNS = ("dump_dir", "last_repl_id")


def repl_dump(statement: ReplDump, session: Session) -> Result:
    """Execute a REPL DUMP. The row has the dump's directory and its last event. In the mode `hive4` a dump that is not
    loaded yet is returned, and nothing is dumped. Raises `Refused` for a wrong key or value of WITH, and as `dump`
    does, and `Unavailable`."""
    known = known_options(statement.options, DUMP_KEYS)
    options = dump_options(known)
    request = request_of(statement, options)
    say_meaningless(known.meaningless, session)
    wiring = DumpWiring(session.wiring)
    place = place_of(wiring, options)
    if (options.mode or session.wiring.config.section(REPL).mode) == "hive4":
        match next_dump(place, request):
            case WaitingDump() as waiting:
                session.note(f"{waiting.directory} is not loaded yet: nothing is dumped until it is")
                return Result(COLUMNS, ((waiting.directory, waiting.last_event),))
            case DumpRequest() as following:
                request = following
    source = wiring.side(request.from_event, captured=is_captured(session))
    change_root = options.change_root or wiring.change_root()
    keeps_files = bool(change_root) and wiring.keeps_files(request.scope.database)
    request = replace(request, change_root=change_root, keeps_files=keeps_files)
    finished = dump(source, place, request, session.report)
    for note in finished.notes:
        session.note(note)
    return Result(COLUMNS, ((finished.directory.directory, finished.last_event),))


def request_of(statement: ReplDump, options: DumpOptions) -> DumpRequest:
    """Return the request that the statement means. Raises `Refused` for words that contradict each other."""
    scope = scope_of_policy(statement.policy)
    replaced = scope_of_policy(statement.replaced_policy) if statement.replaced_policy is not None else None
    if statement.from_event is None:
        if replaced is not None:
            raise Refused("REPLACE is for increments", "A bootstrap replaces no policy", "Add FROM and an event id")
        if statement.limit is not None:
            raise Refused("LIMIT is for increments", "A bootstrap has no events", "Add FROM, or leave LIMIT out")
    elif replaced is not None and replaced.database != scope.database:
        raise Refused(
            f"REPLACE names {replaced.database}, and the policy {scope.database}",
            "A policy keeps its database",
            "Name the same one",
        )
    return DumpRequest(scope, options, replaced, statement.from_event, statement.to_event, statement.limit)


def scope_of_policy(policy: ReplicationPolicy) -> Scope:
    return scope_of(policy.database, policy.include, policy.exclude)


def place_of(wiring: DumpWiring, options: DumpOptions) -> DumpPlace:
    root = wiring.root(options.root)
    retain = options.retain if options.retain is not None else wiring.wiring.config.section(REPL).retain
    spans = seconds(options.time_to_live), seconds(options.clean_frequency)
    return DumpPlace(wiring.storage(root), root, wiring.folder, retain, *spans)


def is_captured(session: Session) -> bool:
    """Tell whether a running calque captures the source."""
    record = capture_record(session.wiring, session.wiring.only_source().places)
    return record["state"] not in ("stopped", "failed")
