"""The table of statements over done sets."""

from __future__ import annotations

from importlib.resources import files

from calque.plugins.marks.api.rows import SET_FIELDS
from calque.plugins.marks.statements.kinds import MARK_COLUMNS, MarkSetDone, ShowSetsDone
from calque.statements.forms import Executors, Form, Statements


def executors() -> Executors:
    from calque.plugins.marks.statements.execute import mark_set_done, show_sets_done

    return Executors(
        {
            MarkSetDone: mark_set_done,
            ShowSetsDone: show_sets_done,
        }
    )


STATEMENTS = Statements(
    grammar=files("calque.plugins.marks").joinpath("grammar.lark").read_text(encoding="utf-8"),
    forms=(
        Form(
            rule="mark_set_done",
            kind=MarkSetDone,
            syntax="MARK SET DONE t PARTITION (k = 'v', …)",
            does="says that all partitions that match some keys are complete; "
            "gives the event that the mark stands behind",
            columns=MARK_COLUMNS,
            example="MARK SET DONE sales.orders PARTITION (ds = '2024-01-01')",
        ),
        Form(
            rule="show_sets_done",
            kind=ShowSetsDone,
            syntax="SHOW SETS DONE [t] [AT target]",
            does="the sets of partitions that were marked as complete; with AT those that are complete there",
            columns=SET_FIELDS,
            example="SHOW SETS DONE sales.orders AT dr",
        ),
    ),
    executors=executors,
)
