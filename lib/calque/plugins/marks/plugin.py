"""The plugin `marks`: the value `PLUGIN`, which names what done sets add to calque."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calque.extension import Plugin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click import Command

    from calque.config.sections import SectionKind
    from calque.control.question import HttpQuestion, Question
    from calque.extension import TableCheck
    from calque.statements.forms import Statements
    from calque.streams.followers import Follower
    from calque.wiring.retention_kinds import RetentionKind
    from calque.wiring.wiring import Wiring


def statements() -> Statements:
    from calque.plugins.marks.statements.forms import STATEMENTS

    return STATEMENTS


def sections() -> tuple[SectionKind[Any], ...]:
    from calque.plugins.marks.config import DONE

    return (DONE,)


def followers() -> tuple[Follower, ...]:
    from calque.plugins.marks.run import FOLLOWER

    return (FOLLOWER,)


def retention() -> tuple[RetentionKind, ...]:
    from calque.plugins.marks.run import RETENTION

    return (RETENTION,)


def table_checks() -> tuple[TableCheck, ...]:
    from calque.plugins.marks.checks import check_lifetimes

    return (check_lifetimes,)


def questions() -> Mapping[str, Question]:
    return {f"done {name}": done(name) for name in ("mark", "list", "check", "wait")}


def http_questions() -> Mapping[str, HttpQuestion]:
    def ask(wiring: Wiring, given: Mapping[str, str]) -> tuple[int, Any]:
        from calque.plugins.marks.questions import done_over_http

        return done_over_http(wiring, given)

    return {"/done": ask}


def done(name: str) -> Question:
    """Return the question that `calque done NAME` asks; what answers it is loaded when it is asked."""

    def ask(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
        from calque.plugins.marks.questions import QUESTIONS

        return QUESTIONS[name](wiring, arguments)

    return ask


def commands() -> tuple[Command, ...]:
    from calque.plugins.marks.commands import command

    return (command,)


PLUGIN = Plugin(
    name="marks",
    commands=commands,
    questions=questions,
    http_questions=http_questions,
    sections=sections,
    statements=statements,
    followers=followers,
    retention=retention,
    table_checks=table_checks,
)
