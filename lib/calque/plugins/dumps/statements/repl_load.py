"""The statement `REPL LOAD`: a dump into a database at a target, played by the engine that `calque run` replicates
with."""

from __future__ import annotations

from collections.abc import Mapping

from calque.config.checks import source_name
from calque.core.formats.layout import place
from calque.errors import Refused
from calque.plugins.dumps.config import REPL
from calque.plugins.dumps.core.load_policy import require_policy
from calque.plugins.dumps.core.options import (
    EXTERNAL_BASE,
    FUNCTIONS_ROOT,
    LOAD_KEYS,
    ROOT,
    SOURCE,
    TASKS,
    THREADS,
    KnownOptions,
    known_options,
)
from calque.plugins.dumps.run.load import TASKS as MOST_TASKS
from calque.plugins.dumps.run.load import THREADS as MOST_THREADS
from calque.plugins.dumps.run.load import LoadBounds
from calque.plugins.dumps.run.load_target import TargetLoad
from calque.plugins.dumps.statements.kinds import ReplLoad, ReplLoadDirectory
from calque.plugins.dumps.statements.repl_dump import scope_of_policy
from calque.plugins.dumps.statements.repl_status import say_meaningless
from calque.plugins.dumps.wiring.dump_source import OpenedDump, open_dump_at, open_newest_dump
from calque.statements.result import NO_RESULT, Result
from calque.statements.session import Session
from calque.wiring.target import TargetWiring


def repl_load_directory(statement: ReplLoadDirectory, session: Session) -> Result:
    """Execute a REPL LOAD of the dump in a directory. Raises `Refused` for a wrong key or value of WITH, for a
    directory without a whole dump, and as `TargetLoad.run` does, and `Unavailable` where objects of the dump could not
    be loaded."""
    known = options_of(session, statement.options)
    place(statement.directory)
    target = session.wiring.target(session.only_target(None))
    return load(session, open_dump_at(target.source, statement.directory), statement.database, known)


def repl_load(statement: ReplLoad, session: Session) -> Result:
    """Execute a REPL LOAD of the newest whole dump of the policy's database, if that dump is of the policy. Raises as
    `repl_load_directory`."""
    known = options_of(session, statement.options)
    root = known.values.get(ROOT, "") or session.wiring.config.section(REPL).root
    if not root:
        raise Refused(
            "Nothing says where dumps lie",
            "REPL LOAD without FROM takes the newest below a root",
            'Write root = "file:///data/dumps" below [repl], or name a directory: REPL LOAD … FROM',
        )
    target = session.wiring.target(session.only_target(None))
    opened = open_newest_dump(target.source, root, statement.policy.database)
    require_policy(opened.dump.location, opened.dump.metadata.policy, scope_of_policy(statement.policy).policy)
    return load(session, opened, statement.database, known)


def options_of(session: Session, options: Mapping[str, str]) -> KnownOptions:
    known = known_options(options, LOAD_KEYS)
    say_meaningless(known.meaningless, session)
    return known


def load(session: Session, opened: OpenedDump, local_database: str | None, known: KnownOptions) -> Result:
    target = session.wiring.target(session.only_target(None))
    if not opened.dump.database:
        raise Refused(
            f"The dump in {opened.dump.location} does not say of which database it is",
            "It has no events",
            "Load the next one, which has some",
        )
    bounds = LoadBounds(known.number(TASKS, MOST_TASKS), known.number(THREADS, MOST_THREADS))
    TargetLoad(
        session.wiring,
        target,
        opened,
        source_of(session, target, known),
        (local_database or opened.dump.database).lower(),
        known.values.get(EXTERNAL_BASE, ""),
        known.values.get(FUNCTIONS_ROOT, ""),
        bounds,
        session.report,
        session.note,
    ).run()
    return NO_RESULT


def source_of(session: Session, target: TargetWiring, known: KnownOptions) -> str:
    """Return the name of the source that the dump comes from. Raises `Refused` where the statement's is no valid
    name."""
    given = known.values.get(SOURCE, "").strip()
    return source_name(given) if given else session.wiring.config.section(REPL).source or target.plug.source
