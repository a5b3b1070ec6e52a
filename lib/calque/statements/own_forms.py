"""The table of the kernel's statements."""

from __future__ import annotations

from importlib.resources import files

from calque.control.epoch_rows import EPOCH_FIELDS
from calque.statements.forms import Executors, Form, Statements
from calque.statements.kinds import (
    HELP_COLUMNS,
    TABLE_COLUMNS,
    TARGET_COLUMNS,
    Help,
    ShowEpochs,
    ShowTables,
    ShowTargets,
    UseDatabase,
)


def executors() -> Executors:
    from calque.statements.own import show_epochs, show_tables, show_targets, use_database

    return Executors(
        {ShowTargets: show_targets, ShowTables: show_tables, ShowEpochs: show_epochs, UseDatabase: use_database}
    )


KERNEL = Statements(
    grammar=files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8"),
    forms=(
        Form(
            rule="show_targets",
            kind=ShowTargets,
            syntax="SHOW TARGETS",
            does="each target with its position, its lag and how many tables are in which state",
            columns=TARGET_COLUMNS,
            example="SHOW TARGETS",
        ),
        Form(
            rule="show_tables",
            kind=ShowTables,
            syntax="SHOW TABLES AT target [LIKE 'pattern']",
            does="the tables of a target by their names at the source, with their states and the events that they show",
            columns=TABLE_COLUMNS,
            example="SHOW TABLES AT dr LIKE 'sales.*'",
        ),
        Form(
            rule="show_epochs",
            kind=ShowEpochs,
            syntax="SHOW EPOCHS [AT target]",
            does="the epochs of a target's ledger, oldest first",
            columns=EPOCH_FIELDS,
            example="SHOW EPOCHS AT dr",
        ),
        Form(
            rule="use_database",
            kind=UseDatabase,
            syntax="USE db",
            does="makes db the database of names and patterns that name none, until the session ends",
            columns=(),
            example="USE sales",
        ),
        Form(
            rule="help",
            kind=Help,
            syntax="HELP [statement]",
            does="how statements are written; those that begin so, where a beginning is named",
            columns=HELP_COLUMNS,
            example="HELP SHOW TABLES",
        ),
    ),
    executors=executors,
)
