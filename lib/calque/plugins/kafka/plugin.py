"""The plugin `kafka`: the value `PLUGIN`, which names what Kafka adds to calque."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.config.extras import Extra
    from calque.extension import BrokerOptions, Check
    from calque.wiring.kinds import JournalKind


def checks() -> tuple[Check, ...]:
    from calque.plugins.kafka.checks.journals import check_journals

    return (check_journals,)


def broker_options() -> BrokerOptions:
    from calque.plugins.kafka.config import refusal

    return refusal


def journals() -> tuple[JournalKind, ...]:
    from calque.plugins.kafka.wiring import KAFKA

    return (KAFKA,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.kafka.extras import KAFKA

    return (KAFKA,)


PLUGIN = Plugin(name="kafka", broker_options=broker_options, journals=journals, checks=checks, extras=extras)
