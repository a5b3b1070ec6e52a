"""The check that a connection does not lead near calque itself (loopback and its like) where nothing allows that. The
check looks at the addresses of a name before a connection is made, and at the socket once it is open, before anything
is sent."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from calque.core.policy.near_addresses import is_near
from calque.errors import AccessRefused, Unavailable
from calque.plugins.remotes.adapters.catalogs.bounded_body import BoundedBody

if TYPE_CHECKING:
    from botocore.httpsession import URLLib3Session


def require_far(address: str) -> None:
    """Raise `AccessRefused` where the address leads to a host near calque itself, and `Unavailable` where its name is
    not known."""
    parts = urlsplit(address)
    try:
        resolved = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f"{address} is not known", str(error), "Check the name; it is tried again") from error
    for one in resolved:
        require_far_host(address, str(one[4][0]))


def require_far_host(address: str, host: str) -> None:
    """Raise `AccessRefused` where `host`, the IP address to which `address` was found to lead, is near calque
    itself."""
    if is_near(host):
        todo = "Write this address out in [remotes] allow, or make the link by CREATE REMOTE in calque sql"
        raise AccessRefused(f"{address} leads to {host}", "It is near calque itself, and nothing allows that", todo)


class FarConnection:
    """A mix-in for urllib3's connections that refuses near hosts. Each connection is checked when it is open, too,
    because a name may lead to another host at each look."""

    host: str
    port: int

    def _new_conn(self) -> socket.socket:
        require_far(f"//{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}")
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        try:
            require_far_host(f"{self.host}:{self.port}", str(made.getpeername()[0]))
        except BaseException:
            made.close()
            raise
        return made


def far_pools(http: type[Any], https: type[Any]) -> dict[str, type[Any]]:
    """Return urllib3's pools by scheme, with connections that refuse near hosts."""

    def far(pool: type[Any]) -> type[Any]:
        connection = type("Far", (FarConnection, pool.ConnectionCls), {})
        return type("FarPool", (pool,), {"ConnectionCls": connection})

    return {"http": far(http), "https": far(https)}


def aws_session(*, far_only: bool, **options: Any) -> URLLib3Session:
    """Return the session by which the AWS SDK sends its requests. It reads answers up to a bound, and with `far_only`
    refuses near hosts."""
    from botocore.awsrequest import AWSHTTPConnectionPool, AWSHTTPSConnectionPool
    from botocore.exceptions import ConnectionClosedError
    from botocore.httpsession import URLLib3Session
    from urllib3.exceptions import HTTPError

    class OwnSession(URLLib3Session):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(**options)
            if far_only:
                self._manager.pool_classes_by_scheme = far_pools(AWSHTTPConnectionPool, AWSHTTPSConnectionPool)

        def send(self, request: Any) -> Any:
            request.stream_output = True
            response = super().send(request)
            response.raw = BoundedBody(response.raw)
            try:
                response.content  # noqa: B018
            except HTTPError as error:
                raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
            return response

    return OwnSession()
