"""The parser of statements: it turns a text into values, or finds the place that can't be understood and what belongs
there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError

from calque.errors import CalqueError, Refused
from calque.statements.misread import Expectation, misread, unclosed_error
from calque.statements.split import Piece, count_placeholders, split
from calque.statements.statement import EngineStatement, QualifiedTable, ReplicationPolicy

Parameter = str | int
Statement = object
"""A value of the class that a row of the table of statements names, or an `EngineStatement`."""
ESCAPED = re.compile(r"""\\['"\\ntr]|''|\"\"""")
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement's value, and its text as it was written."""

    text: str
    statement: Statement


@dataclass(frozen=True)
class StatementParser:
    """The parser of one grammar. `rules` has the class of each of its statements; the fields of a class are what the
    rule names, in that order."""

    grammar: str
    rules: Mapping[str, type]

    def parse(self, text: str, parameters: Sequence[Parameter] = ()) -> tuple[ParsedStatement, ...]:
        """Return the statements of the text. A `?` stands for the next of `parameters`.

        Raises `StatementSyntaxError` with the place of the first mistake, and `Refused` where the parameters do not
        fit.
        """
        pieces, unclosed = split(text)
        values = iter(parameters)
        statements = tuple(ParsedStatement(piece.text, self._parse_piece(piece, text, values)) for piece in pieces)
        if unclosed is not None:
            raise unclosed_error(unclosed, text)
        if (left_over := len(list(values))) > 0:
            why = f"{left_over} of them have no ? in the text"
            raise Refused(f"{len(parameters)} values are given", why, "Give each ? a value")
        return statements

    def expected_after(self, text: str) -> Expectation:
        """Return how far the text of a statement can be understood, and what belongs there."""
        state = self.lark.parse_interactive(text)
        tokens: list[Token] = []
        try:
            tokens.extend(state.iter_parse())
            position = len(text)
        except UnexpectedInput as error:
            position = error.pos_in_stream or 0
        accepts: Callable[[], set[str]] = state.accepts
        understood = frozenset(token.type for token in tokens if (token.start_pos or 0) < position)
        return Expectation(position, understood, frozenset(accepts()))

    @cached_property
    def lark(self) -> Lark:
        """The parser of lark, made when the first statement is parsed, because that takes 0.05 s."""
        return Lark(self.grammar, parser="lalr", lexer="contextual", maybe_placeholders=True)

    def _parse_piece(self, piece: Piece, text: str, parameters: Iterator[Parameter]) -> Statement:
        """Return the value of one statement of the text."""
        try:
            tree = self.lark.parse(piece.text)
        except UnexpectedInput:
            expectation = self.expected_after(piece.text)
            error = misread(piece, text, expectation)
            if error is None:
                return EngineStatement(piece.text, tuple(islice(parameters, count_placeholders(piece.text))))
            raise error from None
        try:
            return StatementBuilder(self.rules, parameters).transform(tree)
        except VisitError as error:
            if isinstance(error.orig_exc, CalqueError):
                raise error.orig_exc from None
            raise


@v_args(inline=True)
class StatementBuilder(Transformer[Token, Statement]):
    """A transformer that makes values of the grammar's rules, from the innermost ones outwards. The name of a method is
    that of its rule or terminal."""

    def __init__(self, rules: Mapping[str, type], parameters: Iterator[Parameter]) -> None:
        super().__init__()
        self.rules, self.parameters = rules, parameters

    def __default__(self, rule: str, children: list[Any], _meta: object) -> Statement:
        return self.rules[rule](*children)

    def PARAMETER(self, _token: Token) -> Parameter:  # noqa: N802 - the grammar's name
        for value in self.parameters:
            return value
        raise Refused("A ? has no value", "Values come as parameters of a call", "Give each ? a value")

    def QUOTED(self, token: Token) -> str:  # noqa: N802
        return token[1:-1].replace("``", "`")

    def STRING(self, token: Token) -> str:  # noqa: N802
        return unescaped(token)

    def IF(self, _token: Token) -> bool:  # noqa: N802
        return True

    EXTERNAL = EXTENDED = IF

    def if_exists(self, is_written: bool | None) -> bool:
        return bool(is_written)

    if_not_exists = external = extended = if_exists

    def COPY(self, token: Token) -> str:  # noqa: N802
        return token.lower()

    NONE = COPY

    def name(self, text: str) -> str:
        return str(text)

    def string(self, value: Parameter) -> str:
        if isinstance(value, str):
            return str(value)
        raise Refused(f"The parameter {value!r} is no text", "A string is needed in its place", "Give a str")

    target = string

    def number(self, value: Parameter) -> int:
        if isinstance(value, Token) or (isinstance(value, int) and value >= 0):
            return int(value)
        raise Refused(f"The parameter {value!r} is no whole number", "One is needed in its place", "Give an int")

    def literal(self, value: Parameter) -> str:
        return str(value)

    def REST(self, token: Token) -> str:  # noqa: N802
        return str(token)

    def database(self, name: str) -> str:
        return name.lower()

    def table(self, database: str | None, name: str) -> QualifiedTable:
        return QualifiedTable(database, name.lower())

    def policy(
        self, database: str, include: tuple[str, ...] | None, exclude: tuple[str, ...] | None
    ) -> ReplicationPolicy:
        return ReplicationPolicy(database, include, exclude)

    def patterns(self, *patterns: str | None) -> tuple[str, ...]:
        return tuple(pattern for pattern in patterns if pattern is not None)

    def condition(self, key: str, value: str) -> tuple[str, str]:
        return key, value

    property = condition

    def properties(self, *pairs: tuple[str, str] | None) -> Mapping[str, str]:
        values: dict[str, str] = {}
        for key, value in filter(None, pairs):
            if key in values:
                raise Refused(f'"{key}" has two values', "A key has one", "Remove one of them")
            values[key] = value
        return values

    conditions = properties

    def options(self, properties: Mapping[str, str] | None) -> Mapping[str, str]:
        return properties or {}

    in_partition = table_properties = database_properties = options


def unescaped(literal: str) -> str:
    r"""Return the text of a string literal, without its quotes. A quote stands after a backslash or twice, a backslash
    twice; \n, \t and \r are characters; any other backslash stands for itself, as regular expressions need it."""
    quote = literal[0]
    return ESCAPED.sub(lambda match: unescaped_pair(match.group(), quote), literal[1:-1])


def unescaped_pair(pair: str, quote: str) -> str:
    if pair in ESCAPES:
        return ESCAPES[pair]
    return pair[1:] if pair[0] in ("\\", quote) else pair
