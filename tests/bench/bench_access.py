"""What a call costs within TLS, after a login by a password, and over HTTP, beside a plain one, at servers of 4.2.0.

Each server has a database of its own, with the same events. A small call asks for the current event id, a large one for
all events. The ways take turns, call by call, so that all of them meet the same machine.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rig import arguments, plain_table, tell, tell_machine, tell_ratio, timed

from calque.adapters.metastore.messages import GET_NEXT_NOTIFICATION, EventRequest, Events
from calque.model.access import MetastoreAccess, PasswordLogin
from calque.model.hive import Database
from calque.model.journal import Event
from calque.model.secrets import FileSecret
from calque.model.tls import Tls
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.services.authority import Authority

PASSWORD = "hush"
WARM_CALLS = 200
"""Of each way, before any is counted: a server's JVM compiles what it does often."""
CONFIG = {
    "metastore.authentication": "CONFIG",
    "metastore.authentication.config.username": "calque",
    "metastore.authentication.config.password": PASSWORD,
    "metastore.execute.setugi": "false",
}


@dataclass(frozen=True)
class Way:
    """A server, and how it is called."""

    settings: MetastoreSettings
    access: MetastoreAccess


def ways(folder: Path) -> Mapping[str, Way]:
    authority, password = Authority(folder), folder / "password"
    password.write_text(PASSWORD)
    keystore, tls = authority.keystore("127.0.0.1"), Tls(authority.ca)
    login = PasswordLogin(FileSecret(str(password)))
    return {
        "plain": Way(MetastoreSettings("4.2.0"), MetastoreAccess()),
        "TLS": Way(MetastoreSettings("4.2.0", keystore=keystore), MetastoreAccess(tls=tls)),
        "SASL PLAIN": Way(MetastoreSettings("4.2.0", extra=CONFIG), MetastoreAccess("calque", login)),
        "SASL PLAIN within TLS": Way(
            MetastoreSettings("4.2.0", keystore=keystore, extra=CONFIG), MetastoreAccess("calque", login, tls)
        ),
        "HTTP": Way(MetastoreSettings("4.2.0", http=True), MetastoreAccess()),
        "HTTPS": Way(MetastoreSettings("4.2.0", http=True, keystore=keystore), MetastoreAccess(tls=tls)),
    }


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, calls=500, large=50, tables=200, warm=WARM_CALLS).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name).resolve()
        clients: dict[str, HiveClient] = {}
        for number, (label, way) in enumerate(ways(folder).items()):
            server = Metastore.start(way.settings, folder / f"metastore{number}")
            stack.callback(server.stop)
            clients[label] = HiveClient(server.uri, connections=1, access=way.access)
            stack.callback(clients[label].close)
            write(clients[label], folder / str(number), options.tables)
        weight = sum(len(event.message) for event in all_events(clients["plain"]))
        print(f"large answers: {options.tables + 1} events, {weight:,} bytes of messages", flush=True)
        for client in clients.values():
            for _ in range(options.warm):
                client.current()
        compare("small call", options.calls, {label: clients[label].current for label in clients})
        compare("large call", options.large, {label: partial(all_events, clients[label]) for label in clients})


def all_events(client: HiveClient) -> Sequence[Event]:
    """In one answer."""
    events: Events = client.call(GET_NEXT_NOTIFICATION, EventRequest(0, 1_000_000))
    return events.events


def write(client: HiveClient, folder: Path, tables: int) -> None:
    client.create_database(Database("shop", location=(folder / "shop").as_uri()))
    for number in range(tables):
        client.create_table(plain_table("shop", f"t{number}", folder / "data" / str(number)))


def compare(label: str, count: int, calls: Mapping[str, Callable[[], object]]) -> None:
    """Medians, and how many times that of a plain call each is."""
    seconds: dict[str, list[float]] = {way: [] for way in calls}
    for _ in range(count):
        for way, call in calls.items():
            seconds[way].append(timed(call) * 1000)
    plain = statistics.median(seconds["plain"])
    for way, values in seconds.items():
        tell_ratio(f"{label}, {way}: times plain", tell(f"{label}, {way}", values, "ms") / plain)


def test_ways_are_measured() -> None:
    main(["--calls", "5", "--large", "2", "--tables", "3", "--warm", "5"])


if __name__ == "__main__":
    main()
