"""What Hadoop's own configuration says of an HDFS: which NameNodes an address means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from calque.errors import Refused

PORT = 8020
"""A NameNode's when its address has none."""
FILES = ("core-site.xml", "hdfs-site.xml")


def settings_of(options: Mapping[str, str]) -> Mapping[str, str]:
    """All settings by name: those in the files of `config_dir`, else of `HADOOP_CONF_DIR` or `HADOOP_HOME`, and
    `options` above them. Raises `Refused` for a file that can't be read."""
    settings: dict[str, str] = {}
    home = os.environ.get("HADOOP_HOME")
    folder = options.get("config_dir") or os.environ.get("HADOOP_CONF_DIR") or (home and f"{home}/etc/hadoop")
    for file in (Path(folder, name) for name in FILES if folder):
        try:
            if file.exists():
                properties = ElementTree.parse(file).iter("property")
                settings |= {
                    each.findtext("name", "").strip(): each.findtext("value", "").strip() for each in properties
                }
        except (OSError, ElementTree.ParseError) as error:
            raise Refused(f"{file} can't be read", str(error), "Put it right, or name another config_dir") from error
    return {**settings, **{name: value for name, value in options.items() if name != "config_dir"}}


def name_nodes(authority: str, settings: Mapping[str, str]) -> tuple[str, int]:
    """The address that a location's authority means, with a port or as the name of a name service, and how many
    NameNodes stand behind it. Raises `Refused` where an empty one means none."""
    if not authority:
        default = urlsplit(settings.get("fs.defaultFS", ""))
        if default.scheme != "hdfs" or not default.netloc:
            why = "It names no host, and no fs.defaultFS on HDFS is configured"
            raise Refused("hdfs:/// can't be opened", why, "Write the host, or name Hadoop's configuration")
        authority = default.netloc
    nodes = [node for node in settings.get(f"dfs.ha.namenodes.{authority}", "").split(",") if node.strip()]
    if nodes or ":" in authority:
        return authority, max(1, len(nodes))
    return f"{authority}:{PORT}", 1
