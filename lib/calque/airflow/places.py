"""The meaning of the fields of a connection of Airflow: a running process, or a configuration on the worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.airflow.local import Local
from calque.airflow.server import PORT, Server
from calque.errors import Refused, nearest

Place = Server | Local
KEYS = ("tls", "ca", "certificate", "key", "config")
"""The keys of the extra."""


def place_of(fields: Mapping[str, Any]) -> Place:
    """Return the process that the fields name, or else the configuration. Raises `Refused` for fields that name
    neither, and for an extra that has other keys.

    TLS is spoken where the host begins with https://, where `tls` says so, and where a file for it is named.
    """
    extra = extra_of(fields)
    host = str(fields["host"] or "").rstrip("/")
    if not host:
        return local_of(fields)
    scheme, _, name = host.rpartition("://")
    files = {key: str(extra.get(key) or "") for key in ("ca", "certificate", "key")}
    is_tls = (
        scheme == "https" or str(extra.get("tls", "")).lower() == "true" or bool(files["ca"] or files["certificate"])
    )
    bracketed = f"[{name}]" if ":" in name and not name.startswith("[") else name
    address = f"{'https' if is_tls else 'http'}://{bracketed}:{fields['port'] or PORT}"
    return Server(address, str(fields["token"] or ""), **files)


def local_of(fields: Mapping[str, Any]) -> Local:
    """Return the configuration that the fields name. Raises `Refused` for fields that name none."""
    config = extra_of(fields).get("config")
    if not config:
        why = "Its host is a process, which does this only on its page" if fields["host"] else "It names no host either"
        todo = 'Add {"config": "/etc/calque/calque.toml"}, a file on the worker, to its extra'
        raise Refused(f"The connection {fields['name']} names no configuration", why, todo)
    return Local(str(config))


def extra_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    extra: Mapping[str, Any] = fields["extra"] or {}
    for key in extra:
        if key not in KEYS:
            what = f'The extra of the connection {fields["name"]} has a key "{key}"'
            raise Refused(what, nearest(key, KEYS), "Correct or remove it")
    return extra
