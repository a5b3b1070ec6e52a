"""What a call and a connection cost by a ticket of Kerberos, beside plain ones, at servers of 3.1.3: with bytes in the
clear, signed and encrypted.

Each server has a database of its own, with the same events; calls take turns, as in `bench_access`. A connection is a
new one with one small call. Its ticket is already there, but for `first`, which asks the key distribution center.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from bench_access import WARM_CALLS, all_events, compare, write
from rig import arguments, tell_machine

from calque.model.access import KerberosLogin, MetastoreAccess
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.services.realms import HQ, LACKING, two_realms

PROTECTIONS = {"Kerberos": "authentication", "Kerberos, signed": "integrity", "Kerberos, encrypted": "privacy"}


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, calls=500, large=50, tables=200, warm=WARM_CALLS, connections=50).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name).resolve()
        realms = stack.enter_context(two_realms(folder / "realms"))
        by_ticket = MetastoreAccess(login=realms.login("calque"))
        ways = {"plain": (MetastoreSettings("3.1.3"), MetastoreAccess())}
        ways |= {label: (realms.settings(HQ, protection), by_ticket) for label, protection in PROTECTIONS.items()}
        clients: dict[str, HiveClient] = {}
        for number, (label, (settings, access)) in enumerate(ways.items()):
            server = stack.enter_context(Metastore.start(settings, folder / f"metastore{number}"))
            clients[label] = HiveClient(server.uri, connections=1, access=access)
            stack.callback(clients[label].close)
            write(clients[label], folder / str(number), options.tables)
        for client in clients.values():
            for _ in range(options.warm):
                client.current()
        connections = {label: partial(connect, client, client.client.access) for label, client in clients.items()}
        connections["Kerberos, first"] = first(clients["Kerberos"], realms.login("calque"), folder)
        compare("small call", options.calls, {label: client.current for label, client in clients.items()})
        compare("large call", options.large, {label: partial(all_events, client) for label, client in clients.items()})
        compare("connection", options.connections, connections)


def connect(client: HiveClient, access: MetastoreAccess) -> None:
    another = HiveClient(client.client.uris, connections=1, access=access)
    another.current()
    another.close()


def first(client: HiveClient, login: KerberosLogin, folder: Path) -> Callable[[], None]:
    """Connects with a keytab of another name each time, of which there are no tickets."""
    names = iter(range(1_000_000))

    def connect_first() -> None:
        keytab = shutil.copy(login.keytab, folder / f"keytab{next(names)}")
        connect(client, MetastoreAccess(login=KerberosLogin(login.principal, str(keytab))))

    return connect_first


@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_tickets_are_measured() -> None:
    main(["--calls", "5", "--large", "2", "--tables", "3", "--warm", "5", "--connections", "2"])


if __name__ == "__main__":
    main()
