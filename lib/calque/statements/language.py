"""The language: the kernel's statements and those of plugins, parsed, explained and carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from calque.errors import Refused
from calque.statements.complete import completions
from calque.statements.forms import Executors, Form, Statements
from calque.statements.kinds import HELP_COLUMNS, Help
from calque.statements.misread import shortened
from calque.statements.own_forms import KERNEL
from calque.statements.result import AnyResult, Result, result_of
from calque.statements.statement import EngineStatement

if TYPE_CHECKING:
    from calque.statements.parse import Parameter, ParsedStatement, Statement, StatementParser
    from calque.statements.session import Session


class Language:
    """Of the kernel and `plugins`. `forms` is the table of statements."""

    def __init__(self, plugins: Iterable[Statements] = ()) -> None:
        self._parts = (KERNEL, *plugins)
        self.forms = tuple(form for part in self._parts for form in part.forms)

    def forms_of(self, beginning: str) -> tuple[Form, ...]:
        """Those whose syntax begins with these words, in any case; all for none."""
        words = beginning.upper().split()
        return tuple(form for form in self.forms if form.syntax.upper().split()[: len(words)] == words)

    def parse(self, text: str, parameters: Sequence[Parameter] = ()) -> tuple[ParsedStatement, ...]:
        """As `StatementParser.parse`."""
        return self._parser.parse(text, parameters)

    def completions(self, before: str, targets: Iterable[str]) -> Sequence[str]:
        """The keywords that may follow the text, and the names of targets where one of those may."""
        return completions(before, targets, self._parser.expected_after)

    def run(self, text: str, session: Session) -> Iterator[tuple[str, AnyResult]]:
        """The statements of the text one after another, each with its result. Nothing is carried out before the whole
        text was parsed; the first statement that fails is the last one. Raises what `parse` and `execute` raise."""
        for parsed in self.parse(text):
            session.report(parsed.text)
            yield parsed.text, self.execute(parsed.statement, session)

    def execute(self, statement: Statement, session: Session) -> AnyResult:
        """Raises `Refused`, `Unavailable` and `Broken` as the commands do."""
        match statement:
            case Help():
                return self._help(statement)
            case EngineStatement():
                for foreign in self._executors.foreign:
                    result = foreign(statement, session)
                    if result is not None:
                        return result
                raise self._no_engine(statement)
            case _:
                return self._executors.by_kind[type(statement)](statement, session)

    @cached_property
    def _parser(self) -> StatementParser:
        from calque.statements.parse import StatementParser

        start = f"?start: {' | '.join(form.rule for form in self.forms)}\n"
        grammar = start + "\n".join(part.grammar for part in self._parts)
        return StatementParser(grammar, {form.rule: form.kind for form in self.forms})

    @cached_property
    def _executors(self) -> Executors:
        parts = [part.executors() for part in self._parts]
        by_kind = {kind: run for part in parts for kind, run in part.by_kind.items()}
        return Executors(by_kind, tuple(foreign for part in parts for foreign in part.foreign))

    def _help(self, statement: Help) -> Result:
        topic = (statement.topic or "").rstrip()
        forms = self.forms_of(topic)
        if not forms:
            what = f'No statement begins with "{shortened(topic)}"'
            raise Refused(what, "HELP takes how one begins", "Write HELP for all of them")
        return result_of(HELP_COLUMNS, ({"statement": form.syntax, "does": form.does} for form in forms))

    def _no_engine(self, statement: EngineStatement) -> Refused:
        """Names calque's own statement that begins alike: `SHOW TABLES` may lack its AT."""
        words = statement.text.split()[:2]
        own_forms = self.forms_of(" ".join(words))
        if own_forms:
            what, todo = " ".join(words), f"calque's own is {own_forms[0].syntax}"
        else:
            what, todo = words[0], "HELP shows calque's own statements"
        why = "The configuration has no [clusters] that it could run on"
        return Refused(f'"{shortened(what)}" begins a statement for an engine', why, todo)
