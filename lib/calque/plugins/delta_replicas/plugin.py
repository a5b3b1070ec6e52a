"""The plugin `delta_replicas`: the value `PLUGIN`, which names what Delta replicas add to calque."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.ports.formats import TableFormat
    from calque.statements.forms import Statements
    from calque.wiring.kinds import TargetPartsKind


def statements() -> Statements:
    from calque.plugins.delta_replicas.statements.forms import STATEMENTS

    return STATEMENTS


def target_parts() -> tuple[TargetPartsKind, ...]:
    from calque.plugins.delta_replicas.wiring import with_delta_tables

    return (with_delta_tables,)


def formats() -> tuple[TableFormat, ...]:
    from calque.plugins.delta_replicas.wiring import DeltaFormat

    return (DeltaFormat(),)


PLUGIN = Plugin(
    name="delta_replicas", statements=statements, target_parts=target_parts, formats=formats, format_names=("delta",)
)
