"""The plugin of the operator's page, which a running process serves at `/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.streams.kinds import Page, RunningProcess


def page(run: RunningProcess, has_token: bool) -> Page:
    from calque.plugins.page.run.console import PageData

    return PageData(run, has_token)


PLUGIN = Plugin(name="page", page=page)
