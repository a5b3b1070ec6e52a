"""Carry a statement out: each kind has its executor."""

from __future__ import annotations

from collections.abc import Iterator

from calque.errors import NotBuilt, Refused
from calque.statements.forms import HELP_COLUMNS, form_of, forms_of
from calque.statements.misread import shortened
from calque.statements.parse import parse
from calque.statements.result import NO_RESULT, Result, result_of
from calque.statements.session import Session
from calque.statements.show import show_epochs, show_tables, show_targets
from calque.statements.statement import (
    ClusterStatement,
    EngineStatement,
    Help,
    MarkStatement,
    RemoteStatement,
    ReplStatement,
    ShowEpochs,
    ShowTables,
    ShowTargets,
    ShowVersions,
    Statement,
    UseDatabase,
)


def run(text: str, session: Session) -> Iterator[tuple[str, Result]]:
    """The statements of the text one after another, each with its result. Nothing is carried out before the whole text
    was parsed; the first statement that fails is the last one. Raises what `parse` and `execute` raise."""
    for parsed in parse(text):
        session.report(parsed.text)
        yield parsed.text, execute(parsed.statement, session)


def execute(statement: Statement, session: Session) -> Result:
    """Raises `Refused`, `Unavailable` and `Broken` as the commands do."""
    match statement:
        case ShowTargets():
            return show_targets(session)
        case ShowTables():
            return show_tables(statement, session)
        case ShowEpochs():
            return show_epochs(statement, session)
        case UseDatabase():
            session.database = statement.database
            return NO_RESULT
        case Help():
            return help_on(statement)
        case EngineStatement():
            raise no_engine(statement)
        case _:
            raise not_built(statement)


def help_on(statement: Help) -> Result:
    topic = (statement.topic or "").rstrip()
    forms = forms_of(topic)
    if not forms:
        raise Refused(
            f'No statement begins with "{shortened(topic)}"', "HELP takes how one begins", "Write HELP for all of them"
        )
    return result_of(HELP_COLUMNS, ({"statement": form.syntax, "does": form.does} for form in forms))


def no_engine(statement: EngineStatement) -> Refused:
    """Names calque's own statement that begins alike: `SHOW TABLES` may lack its AT."""
    words = statement.text.split()[:2]
    own_forms = forms_of(" ".join(words))
    if own_forms:
        what, todo = " ".join(words), f"calque's own is {own_forms[0].syntax}"
    else:
        what, todo = words[0], "HELP shows calque's own statements"
    why = "The configuration has no [clusters] that it could run on"
    return Refused(f'"{shortened(what)}" begins a statement for an engine', why, todo)


def not_built(
    statement: ReplStatement | RemoteStatement | ClusterStatement | MarkStatement | ShowVersions,
) -> NotBuilt:
    form = form_of(statement)
    return NotBuilt(f"{form.name} is not built yet", f"This version has no {form.system}", "Use a newer version")
