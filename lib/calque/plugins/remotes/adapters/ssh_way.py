"""A route over SSH in the form in which metastore clients take a route."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from calque.errors import Refused
from calque.plugins.remotes.model import SshRoute


@dataclass(frozen=True, slots=True)
class SshWay:
    """A route over hops of SSH, as `model.access.Route`."""

    route: SshRoute

    def connect(
        self, host: str, port: int, seconds: float, first: Callable[[str, int, float], socket.socket], *, far_only: bool
    ) -> socket.socket:
        """Return a socket to `host` and `port` at the end of the route. `first` makes the socket to the first hop.
        Raises `OSError`, `AccessRefused`, and `Refused`, also where the extra `ssh` is not installed."""
        try:
            from calque.plugins.remotes.adapters.ssh_tunnel import through
        except ModuleNotFoundError as error:
            what, todo = "SSH needs a package that is not installed", "pip install 'calque-replicator[ssh]'"
            raise Refused(what, str(error), todo) from error
        return through(self.route, host, port, seconds, first, far_only=far_only)
