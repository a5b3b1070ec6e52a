"""Why a metastore that answers does not give its notification log: it asks who may read that, and says no more than
that the call failed."""

from __future__ import annotations

from contextlib import suppress

from calque.adapters.metastore.client import Client, ServerFailed
from calque.adapters.metastore.messages import GET_CURRENT_EVENT_ID, GET_DATABASE, Fault
from calque.adapters.metastore.server_settings import setting
from calque.errors import Refused

AUTHORIZATION = "hive.metastore.event.db.notification.api.auth"
SET_UGI = "hive.metastore.execute.setugi"


def refusal(client: Client) -> Refused | None:
    """What to grant, after a call about the log has failed. None where another such call is answered, or the cause may
    be another: the server does not ask who may, or its database does not answer either. Raises `Unavailable`."""
    if not fails(client) or setting(client, AUTHORIZATION).lower() != "true":
        return None
    with suppress(Fault):
        client.call(GET_DATABASE, "default")
    if not fails(client):
        return None
    user = client.access.user_name() if setting(client, SET_UGI).lower() == "true" else ""
    return Refused(
        f"The metastore at {client.uris} does not let {user or 'the user that it runs as'} read its notification log",
        f"{AUTHORIZATION} is true there, and the user has no proxy privilege",
        f"Set hadoop.proxyuser.{user or 'USER'}.hosts to * or the addresses of this host, and "
        f"hadoop.proxyuser.{user or 'USER'}.groups to *, in its core-site.xml, or that property to false in its "
        "hive-site.xml, and start it again",
    )


def fails(client: Client) -> bool:
    """Whether the server answers that it failed."""
    with suppress(ServerFailed):
        client.call(GET_CURRENT_EVENT_ID)
        return False
    return True
