"""The table of statements over Delta replicas."""

from __future__ import annotations

from importlib.resources import files

from calque.plugins.delta_replicas.statements.kinds import VERSION_COLUMNS, ShowVersions
from calque.statements.forms import Executors, Form, Statements


def executors() -> Executors:
    from calque.plugins.delta_replicas.statements.execute import show_versions

    return Executors(
        {
            ShowVersions: show_versions,
        }
    )


STATEMENTS = Statements(
    grammar=files("calque.plugins.delta_replicas").joinpath("grammar.lark").read_text(encoding="utf-8"),
    forms=(
        Form(
            rule="show_versions",
            kind=ShowVersions,
            syntax="SHOW VERSIONS OF t [AT target]",
            does="the versions of a Delta replica, and the events that they show",
            columns=VERSION_COLUMNS,
            example="SHOW VERSIONS OF sales.orders",
        ),
    ),
    executors=executors,
)
