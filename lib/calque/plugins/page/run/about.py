"""The facts about a process and its configuration that the page shows: versions, addresses, documentation."""

from __future__ import annotations

import os
import socket
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from calque.config import Config
from calque.config.plugs import Source, Target
from calque.ports.records import Json
from calque.resources import package_versions

DOCUMENTATION = "documentation"
"""The label of the project's URL at which its documentation is, in small letters."""


def about(config: Config, began: float) -> Json:
    """Return the facts about this process, which began at the time `began` (seconds since 1970). Its addresses hold no
    logins: the configuration takes none with a user or a password."""
    return {
        "versions": dict(package_versions()),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": began,
        "configuration": str(config.path),
        "state": str(config.state.path),
        "reading": config.serve.reading,
        "sources": [{"name": name, "metastore": source_address(source)} for name, source in config.sources.items()],
        "targets": [
            {
                "name": name,
                "source": target.source,
                "metastore": target_address(target),
                "warehouse": target.keys.warehouse,
            }
            for name, target in config.targets.items()
        ],
        "docs": documentation(),
    }


def documentation() -> dict[str, Json]:
    """Return the address of the documentation: a URL where the project names one, else the folder in a checkout; None
    for what is not known."""
    try:
        labels = (text.partition(",") for text in metadata("calque-replicator").get_all("Project-URL") or ())
        urls = {label.strip().lower(): url.strip() for label, _, url in labels}
    except PackageNotFoundError:
        urls = {}
    folder = Path(__file__).parents[5] / "docs"
    return {"url": urls.get(DOCUMENTATION), "folder": str(folder) if folder.is_dir() else None}


def source_address(source: Source) -> str:
    return ", ".join(source.keys.metastore) if source.catalog is None else "a catalog without a log"


def target_address(target: Target) -> str:
    return ", ".join(target.keys.metastore) if target.catalog is None else "another system's catalog"
