"""The address of an HDFS, read from Hadoop's own configuration: the NameNodes that an authority means."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from calque.errors import Refused

PORT = 8020
"""The port of a NameNode whose address has none."""
WEB_PORTS = {"http": 9870, "https": 9871}
OWN_OPTIONS = frozenset({"config_dir", "principal", "keytab"})
"""Options that are no settings of Hadoop."""
ANY_HOST = ("", "0.0.0.0")
"""The hosts in the address of a server that listens on all of its names."""
FILES = ("core-site.xml", "hdfs-site.xml")


def settings_of(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return all settings by name: those in the files of `config_dir`, else of `HADOOP_CONF_DIR` or `HADOOP_HOME`,
    overridden by `options`. Raises `Refused` for a file that can't be read."""
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
    return {**settings, **{name: value for name, value in options.items() if name not in OWN_OPTIONS}}


def name_nodes(authority: str, settings: Mapping[str, str]) -> tuple[str, int]:
    """Return the address that a location's authority means, with a port or as the name of a name service, and the
    number of NameNodes behind it. Raises `Refused` for an empty authority where no default is configured."""
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


def web_addresses(address: str, settings: Mapping[str, str]) -> Sequence[str]:
    """Return the HTTP addresses of the NameNodes behind `address` (from `name_nodes`), as URLs without a path."""
    scheme = "https" if settings.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
    nodes = [node.strip() for node in settings.get(f"dfs.ha.namenodes.{address}", "").split(",") if node.strip()]
    suffixes = [f".{address}.{node}" for node in nodes] or [""]
    rpc_addresses = [settings.get(f"dfs.namenode.rpc-address{suffix}", address) for suffix in suffixes]
    return [
        web_address(scheme, settings.get(f"dfs.namenode.{scheme}-address{suffix}", ""), rpc_address)
        for suffix, rpc_address in zip(suffixes, rpc_addresses, strict=True)
    ]


def web_address(scheme: str, configured: str, rpc_address: str) -> str:
    host, _, port = configured.rpartition(":")
    host = rpc_address.rpartition(":")[0] if host in ANY_HOST else host
    return f"{scheme}://{host}:{port or WEB_PORTS[scheme]}"
