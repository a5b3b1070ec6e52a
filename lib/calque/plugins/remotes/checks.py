"""The look of `calque check` at links: whether they can be followed, and which are set aside."""

from __future__ import annotations

from calque.engine.check.check_target import TODO_WRITERS, WHY_WRITERS
from calque.engine.check.findings import Findings, Severity
from calque.errors import CalqueError
from calque.plugins.remotes.config import REMOTES
from calque.plugins.remotes.wiring.remotes import remotes_at
from calque.wiring.wiring import Wiring


def check_links(wiring: Wiring, findings: Findings) -> None:
    if wiring.config.section(REMOTES) is None:
        return
    remotes = remotes_at(wiring)
    try:
        remotes.log().current()
        links = remotes.registry().links
    except CalqueError as error:
        findings.refused("remotes", error)
        return
    if links:
        what = "Engines that reach the metastore can write to links, and through them to remote files"
        findings.add_expected("remotes", what, WHY_WRITERS, TODO_WRITERS)
    for name, record in links.items():
        if record.reason:
            findings.add("remotes", Severity.WARNING, f"The link {name} is set aside", record.reason, "")
