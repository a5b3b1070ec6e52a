"""Carry a statement out: each kind has its executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calque.errors import NotBuilt, Refused
from calque.statements.forms import HELP_COLUMNS, form_of, forms_of
from calque.statements.parse import Parameter, parse
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


def run(text: str, session: Session, parameters: Sequence[Parameter] = ()) -> Iterator[tuple[str, Result]]:
    """The statements of the text one after another, each with its result. Nothing is carried out before the whole text
    was parsed; the first statement that fails is the last one. Raises what `parse` and `execute` raise."""
    for parsed in parse(text, parameters):
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
        raise Refused(f'No statement begins with "{topic}"', "HELP takes how one begins", "Write HELP for all of them")
    return result_of(HELP_COLUMNS, ({"statement": form.syntax, "does": form.does} for form in forms))


def no_engine(statement: EngineStatement) -> Refused:
    """Names calque's own statement that begins alike: `SHOW TABLES` may lack its AT."""
    words = statement.text.split()
    own_forms = forms_of(" ".join(words[:2]))
    return Refused(
        f'"{words[0]}" begins a statement for an engine'
        if not own_forms
        else f"{' '.join(words[:2])} is for an engine",
        "The configuration has no [clusters] that it could run on",
        f"calque's own is {own_forms[0].syntax}" if own_forms else "HELP shows calque's own statements",
    )


def not_built(
    statement: ReplStatement | RemoteStatement | ClusterStatement | MarkStatement | ShowVersions,
) -> NotBuilt:
    form = form_of(statement)
    return NotBuilt(f"{form.name} is not built yet", f"This version has no {form.system}", "Use a newer version")
