"""The reason why a metastore that answers does not give its notification log. Such a server asks for a privilege, and
says no more than that the call failed."""

from __future__ import annotations

from contextlib import suppress

from calque.adapters.metastore.client import Client, ServerFailed
from calque.adapters.metastore.messages import GET_CURRENT_EVENT_ID, GET_DATABASE, Fault
from calque.adapters.metastore.server_settings import setting
from calque.errors import AccessRefused
from calque.model.access import KerberosLogin, NoLogin, TokenLogin

AUTHORIZATION = "hive.metastore.event.db.notification.api.auth"
SET_UGI = "hive.metastore.execute.setugi"


def refusal(client: Client) -> AccessRefused | None:
    """Return the error that says which privilege to grant, after a call about the log has failed. None where another
    such call is answered, or where the cause may be another one: the server asks for no privilege, or its database does
    not answer either. Raises `Unavailable`."""
    if not fails(client) or setting(client, AUTHORIZATION).lower() != "true":
        return None
    with suppress(Fault):
        client.call(GET_DATABASE, "default")
    if not fails(client):
        return None
    shown, user = caller(client)
    return AccessRefused(
        f"The metastore at {client.uris} does not let {shown} read its notification log",
        f"{AUTHORIZATION} is true there, and the user has no proxy privilege",
        f"Set hadoop.proxyuser.{user}.hosts to * or the addresses of this host, and hadoop.proxyuser.{user}.groups to "
        "*, in its core-site.xml, or that property to false in its hive-site.xml, and start it again",
    )


def caller(client: Client) -> tuple[str, str]:
    """Return the user in whose name the server takes calls: in words, and the name or a placeholder for it. With
    passwords the server does everything in its own name."""
    access = client.access
    if isinstance(access.login, TokenLogin):
        return "the user of the token", "USER"
    if isinstance(access.login, KerberosLogin):
        return access.login.principal or "the user of the ticket", access.login.short_name() or "USER"
    is_http = client.addresses[0].scheme != "thrift"
    if isinstance(access.login, NoLogin) and (is_http or setting(client, SET_UGI).lower() == "true"):
        return access.user_name(), access.user_name()
    return "the user that it runs as", "USER"


def fails(client: Client) -> bool:
    """Return whether the server answers a call about the log with a failure."""
    with suppress(ServerFailed):
        client.call(GET_CURRENT_EVENT_ID)
        return False
    return True
