"""The checksums of files on HDFS by WebHDFS, because hdfs-native has no call for them.

A NameNode sends the question on to a DataNode, which reads the checksums of the file's blocks and not their content.
There is no Kerberos here: a NameNode that wants it refuses.
"""

from __future__ import annotations

import errno
import getpass
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, build_opener

LOG = logging.getLogger(__name__)
OPENER = build_opener(ProxyHandler({}))
"""Nodes are asked without a proxy, as Hadoop's own clients do."""
LONGEST = 1 << 16
"""The most bytes of an answer."""
PAUSE_SECONDS = 60.0
"""Seconds for which NameNodes that did not answer are not asked again, because each file would wait for them."""


class WebHdfs:
    """The NameNodes at these HTTP addresses, each with its scheme. Each answer is waited for `silent` seconds."""

    def __init__(self, addresses: Sequence[str], silent: float) -> None:
        self._addresses, self._silent = addresses, silent
        self._asked_again = 0.0

    def checksum(self, path: str) -> str:
        """Return the file's checksum of Hadoop's `FileSystem.getFileChecksum` as Hive writes it: hexadecimal,
        lower-case. After a call that ended without an answer, every call fails at once for `PAUSE_SECONDS`. Raises
        `OSError`."""
        if time.monotonic() < self._asked_again:
            raise ConnectionError(errno.EHOSTUNREACH, f"{self._addresses[0]} did not answer a moment ago", path)
        query = urlencode({"op": "GETFILECHECKSUM", **user()})
        problem: OSError | None = None
        for address in self._addresses:
            try:
                with OPENER.open(f"{address}/webhdfs/v1{quote(path)}?{query}", timeout=self._silent) as answer:
                    checksum = json.loads(answer.read(LONGEST))["FileChecksum"]
                    # What follows is the rest of a buffer.
                    return str(checksum["bytes"])[: 2 * int(checksum["length"])].lower()
            except HTTPError as error:
                if error.code == 404:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
                # A NameNode in stand-by answers 403, as one does that denies access.
                problem = PermissionError(errno.EACCES, f"{address}: {error}", path)
            except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
                problem = ConnectionError(errno.EHOSTUNREACH, f"{address}: {error}", path)
        if not isinstance(problem, PermissionError):
            self._asked_again = time.monotonic() + PAUSE_SECONDS
            LOG.warning("Checksums of files can't be asked for: %s", problem)
        raise problem or ConnectionError(errno.EHOSTUNREACH, "No NameNode is known", path)


def user() -> Mapping[str, str]:
    """Return the query parameters that name the user, as hdfs-native finds the user."""
    name = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    proxied = os.environ.get("HADOOP_PROXY_USER")
    return {"user.name": name, **({"doas": proxied} if proxied else {})}
