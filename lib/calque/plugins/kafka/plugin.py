"""Kafka as a plugin: what it adds, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.extension import Check


def checks() -> tuple[Check, ...]:
    from calque.plugins.kafka.checks.journals import check_journals

    return (check_journals,)


PLUGIN = Plugin(name="kafka", checks=checks)
