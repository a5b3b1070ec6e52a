"""The plugin `notices`: the value `PLUGIN`, which names what channels of notices add to calque."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calque.extension import Plugin

if TYPE_CHECKING:
    from click import Command

    from calque.config.extras import Extra
    from calque.config.sections import SectionKind
    from calque.extension import Check, StatusPart
    from calque.streams.kinds import PublisherKind
    from calque.wiring.retention_kinds import RetentionKind
    from calque.wiring.wiring import Wiring


def sections() -> tuple[SectionKind[Any], ...]:
    from calque.plugins.notices.config import NOTICES

    return (NOTICES,)


def status() -> Mapping[str, StatusPart]:
    return {"notices": states_of_channels}


def states_of_channels(wiring: Wiring) -> Mapping[str, Any]:
    """Return the state of each channel by its name. What tells them is loaded where there are any."""
    from calque.plugins.notices.config import channels_of

    if not channels_of(wiring.config):
        return {}
    from calque.plugins.notices.status import channel_states

    return channel_states(wiring)


def checks() -> tuple[Check, ...]:
    from calque.plugins.notices.checks import check_channels

    return (check_channels,)


def publishers() -> tuple[PublisherKind, ...]:
    from calque.plugins.notices.run import PUBLISHER

    return (PUBLISHER,)


def retention() -> tuple[RetentionKind, ...]:
    from calque.plugins.notices.wiring import RETENTION

    return (RETENTION,)


def commands() -> tuple[Command, ...]:
    from calque.plugins.notices.commands import command

    return (command,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.notices.extras import ACTIVEMQ, KAFKA

    return (KAFKA, ACTIVEMQ)


PLUGIN = Plugin(
    name="notices",
    commands=commands,
    sections=sections,
    checks=checks,
    status=status,
    publishers=publishers,
    retention=retention,
    extras=extras,
)
