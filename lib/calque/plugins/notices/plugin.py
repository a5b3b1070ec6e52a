"""Notices as a plugin: what they add, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.extension import Check


def checks() -> tuple[Check, ...]:
    from calque.plugins.notices.checks import check_channels

    return (check_channels,)


PLUGIN = Plugin(name="notices", checks=checks)
