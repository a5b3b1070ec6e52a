"""Statements that only show what there is, as a question that a running process may answer for a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.errors import CalqueError
from calque.statements.language import Language
from calque.statements.result import Result
from calque.statements.session import Session
from calque.statements.shows import is_a_show
from calque.statements.statement import EngineStatement
from calque.wiring.wiring import Wiring


def shown(language: Language, wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Return the results of the statements in `text` as `calque sql --json` prints them; None where the text has other
    statements too, of which none is carried out then, and where one fails: the command has to run it then, so that its
    error comes behind what was printed before."""
    notes: list[str] = []
    target = arguments["target"]
    try:
        parsed = language.parse(arguments["text"])
        if any(isinstance(one.statement, EngineStatement) or not is_a_show(one.text) for one in parsed):
            return None
        session = Session(wiring, wiring.config.select([target])[0] if target is not None else None, note=notes.append)
        try:
            results = [(one.text, language.execute(one.statement, session)) for one in parsed]
        finally:
            session.close()
    except CalqueError:
        return None
    if notes or not all(isinstance(result, Result) for _, result in results):
        return None
    return [
        {"statement": text, "columns": list(result.columns), "rows": [list(row) for row in result.rows]}
        for text, result in results
    ]
