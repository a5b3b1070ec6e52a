"""The parser of predicates: from a text, or an expression of sqlglot, to a `model.predicate.Predicate`.

It stands apart from `predicates`, because sqlglot takes long to import, and most configurations have no predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.core.policy.predicates import PARAMETER, is_date, number
from calque.errors import Refused
from calque.model.predicate import (
    AllOf,
    AnyOf,
    Comparison,
    IsNull,
    Literal,
    LiteralKind,
    Not,
    OneOf,
    Operator,
    Predicate,
)

WHY = "A predicate compares a name with literals: =, <>, <, <=, >, >=, IN, BETWEEN, IS NULL, joined by AND, OR, NOT"
DEPTH = 100
OPERATORS: Mapping[type[exp.Expr], Operator] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.AT_MOST,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.AT_LEAST,
}
MIRRORED = {
    Operator.EQUAL: Operator.EQUAL,
    Operator.NOT_EQUAL: Operator.NOT_EQUAL,
    Operator.LESS: Operator.GREATER,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.GREATER: Operator.LESS,
    Operator.AT_LEAST: Operator.AT_MOST,
}


def parse_predicate(text: str) -> Predicate:
    """Parse a predicate over any names; `param('k')` is the name `param:k`. Raises `Refused` for a text that is no SQL,
    and for SQL that is no predicate of calque's."""
    try:
        tree = sqlglot.parse_one(text, read="hive")
    except (SqlglotError, RecursionError) as error:
        place = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Refused(f'"{text}" is no predicate', place, "Write e.g. \"ds >= '2024-01-01'\"") from None
    predicate = predicate_of(tree)
    if predicate is None:
        raise Refused(f'"{text}" is no predicate that calque knows', WHY, "Write e.g. \"ds >= '2024-01-01'\"")
    return predicate


def predicate_of(tree: exp.Expr, name_of: Callable[[exp.Expr], str | None] | None = None) -> Predicate | None:
    """Return the predicate that an expression of sqlglot means; None where it means more than a predicate can say.
    `name_of` (`operand_name` by default) gives the name that an operand stands for, or None for an operand that is not
    a name."""
    return _converted(tree, name_of or operand_name, DEPTH)


def _converted(tree: exp.Expr, name_of: Callable[[exp.Expr], str | None], depth: int) -> Predicate | None:
    if depth == 0:
        return None
    match tree:
        case exp.Paren():
            return _converted(tree.this, name_of, depth - 1)
        case exp.Not():
            inner = _converted(tree.this, name_of, depth - 1)
            return None if inner is None else Not(inner)
        case exp.And() | exp.Or():
            # Long chains lean to the left: they are walked, not descended.
            kind, operands = type(tree), [tree.expression]
            left: exp.Expr = tree.this
            while type(left) is kind:
                operands.append(left.expression)
                left = left.this
            operands.append(left)
            parts = [_converted(operand, name_of, depth - 1) for operand in reversed(operands)]
            known_parts = tuple(part for part in parts if part is not None)
            if len(known_parts) < len(parts):
                return None
            return AllOf(known_parts) if kind is exp.And else AnyOf(known_parts)
        case exp.Is():
            name = name_of(tree.this)
            return IsNull(name) if name is not None and isinstance(tree.expression, exp.Null) else None
        case exp.Between():
            name, low, high = name_of(tree.this), literal_of(tree.args["low"]), literal_of(tree.args["high"])
            if name is None or low is None or high is None or tree.args.get("symmetric"):
                return None
            at_least, at_most = Operator.AT_LEAST, Operator.AT_MOST
            return AllOf((Comparison(name, at_least, low), Comparison(name, at_most, high)))
        case exp.In():
            name = name_of(tree.this)
            literals = tuple(map(literal_of, tree.expressions))
            known_literals = tuple(literal for literal in literals if literal is not None)
            others = tree.args.get("query") or tree.args.get("unnest") or tree.args.get("field")
            if name is None or others or not literals or len(known_literals) < len(literals):
                return None
            return OneOf(name, known_literals)
        case _ if type(tree) in OPERATORS:
            operator = OPERATORS[type(tree)]
            name, literal = name_of(tree.this), literal_of(tree.expression)
            if name is None:
                name, literal, operator = name_of(tree.expression), literal_of(tree.this), MIRRORED[operator]
            return Comparison(name, operator, literal) if name is not None and literal is not None else None
        case _:
            return None


def operand_name(operand: exp.Expr) -> str | None:
    match operand:
        case exp.Column() if len(operand.parts) == 1:
            return operand.name.lower()
        case exp.Anonymous() if operand.name.lower() == PARAMETER and len(operand.expressions) == 1:
            key = operand.expressions[0]
            return f"{PARAMETER}:{key.this}" if isinstance(key, exp.Literal) and key.is_string else None
        case _:
            return None


def literal_of(operand: exp.Expr) -> Literal | None:
    match operand:
        case exp.Literal() if operand.is_string:
            return Literal(LiteralKind.STRING, operand.this)
        case exp.Literal():
            return number_literal(operand.this)
        case exp.Neg():
            return number_literal(f"-{operand.this.this}") if isinstance(operand.this, exp.Literal) else None
        case exp.Boolean():
            return Literal(LiteralKind.BOOLEAN, str(bool(operand.this)).lower())
        case exp.Cast() if operand.to.is_type("date") and isinstance(operand.this, exp.Literal):
            return date_literal(operand.this.this)
        case _:
            return None


def number_literal(text: str) -> Literal | None:
    return Literal(LiteralKind.NUMBER, text) if number(text) is not None else None


def date_literal(text: str) -> Literal | None:
    return Literal(LiteralKind.DATE, text) if is_date(text) else None
