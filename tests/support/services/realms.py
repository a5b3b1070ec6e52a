"""Two realms of Kerberos that know nothing of each other, with users and a metastore in each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from calque.model.access import KerberosLogin
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.hive_settings import KerberosService
from support.services.kdc import Kdc, write_krb5

HQ, DR = "HQ.EXAMPLE", "DR.EXAMPLE"
HOSTS = {HQ: "127.0.0.1", DR: "localhost"}
"""Of the metastores, as their principals have them."""
USERS = {HQ: ("calque", "stranger"), DR: ("replica",)}
TOKENS = {"dfs.data.transfer.protection": "authentication"}
"""What Hadoop's configuration says of DataNodes that take tokens of blocks alone."""
LACKING = "" if find_spec("gssapi") else "gssapi is not installed, whose building needs libkrb5-dev"
"""Why there can be no tests of Kerberos; empty where they can be."""


@dataclass(frozen=True)
class Realms:
    """The key distribution centers, by realm, and the krb5.conf that names both."""

    folder: Path
    kdcs: Mapping[str, Kdc]
    krb5: Path

    def login(self, user: str, realm: str = HQ) -> KerberosLogin:
        """By the keytab that has the keys of all users of the realm."""
        return KerberosLogin(f"{user}@{realm}", str(self.kdcs[realm].keytab("users")))

    def settings(self, realm: str, protection: str = "authentication") -> MetastoreSettings:
        """Of a metastore that takes the realm's tickets, and whose log its first user may read."""
        service = self.service("hive", realm)
        hdfs = {"dfs.namenode.kerberos.principal": f"hdfs/{HOSTS[realm]}@{realm}", **TOKENS}
        extra = {"hadoop.rpc.protection": protection, **hdfs}
        return MetastoreSettings("3.1.3", kerberos=service, proxy_users=USERS[realm][:1], extra=extra)

    def service(self, name: str, realm: str) -> KerberosService:
        """Of a server that knows its own realm alone."""
        krb5 = write_krb5(self.folder / f"krb5-of-{realm}.conf", [self.kdcs[realm]])
        return KerberosService(f"{name}/{HOSTS[realm]}@{realm}", self.kdcs[realm].keytab(name), krb5)

    @contextmanager
    def tickets_of(self, lifetime: str) -> Iterator[None]:
        """Who asks for one meanwhile, in this process, gets one that lives no longer."""
        with krb5_of(write_krb5(self.folder / f"krb5-{lifetime}.conf", list(self.kdcs.values()), lifetime=lifetime)):
            yield


@contextmanager
def two_realms(folder: Path) -> Iterator[Realms]:
    """While they are there, this process and those that it starts know them."""
    with ExitStack() as stack:
        kdcs = {}
        for realm, host in HOSTS.items():
            keytabs = {"hive": [f"hive/{host}"], "hdfs": [f"hdfs/{host}", f"HTTP/{host}"], "users": USERS[realm]}
            kdcs[realm] = stack.enter_context(Kdc(realm, keytabs, folder / realm))
        krb5 = write_krb5(folder / "krb5.conf", list(kdcs.values()))
        stack.enter_context(krb5_of(krb5))
        yield Realms(folder, kdcs, krb5)


@contextmanager
def krb5_of(file: Path) -> Iterator[None]:
    """The configuration of libkrb5, and no tickets but those that are got meanwhile."""
    variables = {"KRB5_CONFIG": str(file), "KRB5CCNAME": f"FILE:{file}-tickets"}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def metastores(realms: Realms, protections: Mapping[str, str]) -> Iterator[Mapping[str, Metastore]]:
    """One in each realm, by its name, that protects bytes as is said."""
    with ThreadPoolExecutor(len(protections)) as pool, ExitStack() as stack:
        starting = {
            realm: pool.submit(Metastore.start, realms.settings(realm, protection), realms.folder / f"hive-{realm}")
            for realm, protection in protections.items()
        }
        yield {realm: stack.enter_context(started.result()) for realm, started in starting.items()}


def address(server: Metastore, realm: str) -> str:
    """Under the host of its principal."""
    return server.uri.replace("127.0.0.1", HOSTS[realm])


def keys(login: KerberosLogin) -> str:
    """Of a section of the configuration."""
    return f'auth = "kerberos"\nprincipal = "{login.principal}"\nkeytab = "{login.keytab}"'
