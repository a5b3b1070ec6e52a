"""The language: the kernel's statements and those of plugins, parsed, explained and carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from calque.errors import Refused
from calque.statements.complete import completions
from calque.statements.forms import Form, Statements
from calque.statements.kinds import HELP_COLUMNS, Help
from calque.statements.misread import shortened
from calque.statements.own_forms import KERNEL
from calque.statements.result import AnyResult, Result, result_of
from calque.statements.statement import EngineStatement

if TYPE_CHECKING:
    from calque.statements.parse import Parameter, ParsedStatement, Statement, StatementParser
    from calque.statements.session import Session


class Language:
    """The language of the kernel and of `plugins`. `forms` is the table of all its statements."""

    def __init__(self, plugins: Iterable[Statements] = ()) -> None:
        self._parts = (KERNEL, *plugins)
        self.forms = tuple(form for part in self._parts for form in part.forms)

    def forms_of(self, beginning: str) -> tuple[Form, ...]:
        """Return the forms whose syntax begins with these words, in any case; all forms for an empty text."""
        words = beginning.upper().split()
        return tuple(form for form in self.forms if form.syntax.upper().split()[: len(words)] == words)

    def parse(self, text: str, parameters: Sequence[Parameter] = ()) -> tuple[ParsedStatement, ...]:
        """Return the statements of the text; see `StatementParser.parse`."""
        return self._parser.parse(text, parameters)

    def completions(self, before: str, targets: Iterable[str]) -> Sequence[str]:
        """Return the keywords that may follow the text `before`, and the names of targets where a target may follow."""
        return completions(before, targets, self._parser.expected_after)

    def run(self, text: str, session: Session) -> Iterator[tuple[str, AnyResult]]:
        """Carry out the statements of the text one after another, and yield each statement's text with its result. No
        statement is carried out before the whole text was parsed; the first one that fails is the last one. Raises what
        `parse` and `execute` raise."""
        for parsed in self.parse(text):
            session.report(parsed.text)
            yield parsed.text, self.execute(parsed.statement, session)

    def execute(self, statement: Statement, session: Session) -> AnyResult:
        """Carry out the statement and return its result. Raises `Refused`, `Unavailable` and `Broken` as the commands
        do."""
        match statement:
            case Help():
                return self._help(statement)
            case EngineStatement():
                for part in self._parts:
                    for foreign in part.executors().foreign:
                        result = foreign(statement, session)
                        if result is not None:
                            return result
                raise self._no_engine(statement)
            case _:
                return self._part_of(type(statement)).executors().by_kind[type(statement)](statement, session)

    @cached_property
    def _parser(self) -> StatementParser:
        from calque.statements.parse import StatementParser

        start = f"?start: {' | '.join(form.rule for form in self.forms)}\n"
        grammar = start + "\n".join(part.grammar for part in self._parts)
        return StatementParser(grammar, {form.rule: form.kind for form in self.forms})

    def _part_of(self, kind: type[Statement]) -> Statements:
        """Return the statements among which those of this kind are. The executors of others are not loaded."""
        return next(part for part in self._parts if any(form.kind is kind for form in part.forms))

    def _help(self, statement: Help) -> Result:
        topic = (statement.topic or "").rstrip()
        forms = self.forms_of(topic)
        if not forms:
            what = f'No statement begins with "{shortened(topic)}"'
            raise Refused(what, "HELP takes how one begins", "Write HELP for all of them")
        return result_of(HELP_COLUMNS, ({"statement": form.syntax, "does": form.does} for form in forms))

    def _no_engine(self, statement: EngineStatement) -> Refused:
        """Return the refusal of a statement for an engine where no cluster is configured. It names calque's own
        statement that begins alike, because a `SHOW TABLES` may only lack its AT."""
        words = statement.text.split()[:2]
        own_forms = self.forms_of(" ".join(words))
        if own_forms:
            what, todo = " ".join(words), f"calque's own is {own_forms[0].syntax}"
        else:
            what, todo = words[0], "HELP shows calque's own statements"
        why = "The configuration has no [clusters] that it could run on"
        return Refused(f'"{shortened(what)}" begins a statement for an engine', why, todo)
