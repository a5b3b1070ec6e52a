"""A real LDAP directory: UnboundID's, in the memory of a JVM that runs nothing but a py4j gateway.

Its own command binds every interface. Here it listens on a loopback port that the system chooses.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from calque.resources import cache_folder
from calque.sandbox.artifacts import installed
from calque.sandbox.java import java_17, pyspark_jars
from calque.sandbox.processes import GATEWAY, KeptProcess, gateway_to
from support.services import manifest

BASE = "dc=example,dc=com"
USER_PATTERN = f"uid=%s,ou=people,{BASE}"
"""Where the entry of a user is, as Hive's `ldap.userDNPattern` has it."""
_START_SECONDS = 60.0


class Directory:
    """One running directory; `stop` it, or use it as a context manager.

    url: where it is, for who asks it.
    """

    def __init__(self, users: Mapping[str, str], directory: Path, cache: Path | None = None) -> None:
        """users: their names and passwords. directory: takes its log; made when missing."""
        directory.mkdir(parents=True, exist_ok=True)
        jars = [*installed(manifest.DIRECTORY_JARS, cache or cache_folder()), *pyspark_jars("py4j-*.jar")]
        class_path = ":".join(str(jar) for jar in jars)
        self._server = KeptProcess([str(java_17()), "-Xmx64m", "-cp", class_path, *GATEWAY], directory / "ldap.log")
        try:
            self.url = f"ldap://127.0.0.1:{self._listen(users)}"
        except BaseException:
            self._server.kill()
            raise

    def _listen(self, users: Mapping[str, str]) -> int:
        gateway = gateway_to(self._server, _START_SECONDS)
        try:
            ldap: Any = gateway.jvm.com.unboundid.ldap.listener
            names = gateway.new_array(gateway.jvm.java.lang.String, 1)
            names[0] = BASE
            settings = ldap.InMemoryDirectoryServerConfig(names)
            loopback = gateway.jvm.java.net.InetAddress.getByName("127.0.0.1")
            listeners = gateway.jvm.java.util.ArrayList()
            listeners.add(ldap.InMemoryListenerConfig.createLDAPConfig("loopback", loopback, 0, None))
            settings.setListenerConfigs(listeners)
            server = ldap.InMemoryDirectoryServer(settings)
            for entry in entries(users):
                lines = gateway.new_array(gateway.jvm.java.lang.String, len(entry))
                for number, line in enumerate(entry):
                    lines[number] = line
                server.add(lines)
            server.startListening()
            return int(server.getListenPort())
        finally:
            gateway.shutdown()

    def stop(self) -> None:
        """Ends it; what it knew is gone."""
        self._server.kill()

    def __enter__(self) -> "Directory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def entries(users: Mapping[str, str]) -> list[list[str]]:
    """In LDIF."""
    people = [
        [f"dn: {BASE}", "objectClass: domain", "dc: example"],
        [f"dn: ou=people,{BASE}", "objectClass: organizationalUnit", "ou: people"],
    ]
    for name, password in users.items():
        person = [f"uid: {name}", f"cn: {name}", f"sn: {name}", f"userPassword: {password}"]
        people.append([f"dn: {USER_PATTERN % name}", "objectClass: inetOrgPerson", *person])
    return people
