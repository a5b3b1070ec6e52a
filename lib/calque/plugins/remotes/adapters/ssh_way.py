"""A route over SSH as metastores are reached by it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from calque.errors import Refused
from calque.plugins.remotes.model import SshRoute


@dataclass(frozen=True, slots=True)
class SshWay:
    """`model.access.Route` over hops of SSH."""

    route: SshRoute

    def connect(
        self, host: str, port: int, seconds: float, first: Callable[[str, int, float], socket.socket], *, far_only: bool
    ) -> socket.socket:
        """Raises `Refused` where the extra `ssh` is not installed, too."""
        try:
            from calque.plugins.remotes.adapters.ssh_tunnel import through
        except ModuleNotFoundError as error:
            what, todo = "SSH needs a package that is not installed", "pip install 'calque-replicator[ssh]'"
            raise Refused(what, str(error), todo) from error
        return through(self.route, host, port, seconds, first, far_only=far_only)
