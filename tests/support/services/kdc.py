"""A real key distribution center of Kerberos, for one realm: Hadoop's MiniKdc, in a JVM that runs nothing but a py4j
gateway. It listens on loopback.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from calque.resources import cache_folder
from calque.sandbox.artifacts import installed
from calque.sandbox.java import java_17, pyspark_jars
from calque.sandbox.processes import GATEWAY, KeptProcess, gateway_to
from support.services import manifest

_START_SECONDS = 60.0


class Kdc:
    """One running center; `stop` it, or use it as a context manager.

    realm: two words, as `HQ.EXAMPLE`. A JVM can't serve two of them.
    """

    def __init__(
        self, realm: str, keytabs: Mapping[str, Sequence[str]], directory: Path, cache: Path | None = None
    ) -> None:
        """keytabs: the principals of each keytab, by its name, all without the realm. directory: takes the keytabs and
        its log; made when missing."""
        directory.mkdir(parents=True, exist_ok=True)
        self.realm, self._directory = realm, directory
        jars = [*installed(manifest.KDC_JARS, cache or cache_folder()), *pyspark_jars("py4j-*.jar")]
        class_path = ":".join(str(jar) for jar in jars)
        self._server = KeptProcess([str(java_17()), "-Xmx96m", "-cp", class_path, *GATEWAY], directory / "kdc.log")
        try:
            self.port = self._serve(keytabs)
        except BaseException:
            self._server.kill()
            raise

    def keytab(self, name: str) -> Path:
        """The file of that name."""
        return self._directory / f"{name}.keytab"

    def _serve(self, keytabs: Mapping[str, Sequence[str]]) -> int:
        gateway = gateway_to(self._server, _START_SECONDS)
        try:
            java: Any = gateway.jvm.java
            mini_kdc: Any = gateway.jvm.org.apache.hadoop.minikdc.MiniKdc
            settings = mini_kdc.createConf()
            organisation, _, domain = self.realm.partition(".")
            for key, value in {"org.name": organisation, "org.domain": domain, "transport": "TCP"}.items():
                settings.setProperty(key, value)
            server = mini_kdc(settings, java.io.File(str(self._directory)))
            server.start()
            for name, principals in keytabs.items():
                names = gateway.new_array(java.lang.String, len(principals))
                for number, principal in enumerate(principals):
                    names[number] = principal
                server.createPrincipal(java.io.File(str(self.keytab(name))), names)
            return int(server.getPort())
        finally:
            gateway.shutdown()

    def stop(self) -> None:
        """Ends it; what it knew is gone."""
        self._server.kill()

    def __enter__(self) -> "Kdc":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def write_krb5(file: Path, kdcs: Sequence[Kdc], *, lifetime: str = "1d") -> Path:
    """What `KRB5_CONFIG` and Java's `java.security.krb5.conf` have to name; the first realm is the default one.

    lifetime: that of tickets. libkrb5 uses none that has ended; servers take it for five minutes more.
    """
    realms = "".join(f"  {kdc.realm} = {{\n    kdc = 127.0.0.1:{kdc.port}\n  }}\n" for kdc in kdcs)
    file.write_text(
        "[libdefaults]\n"
        f"  default_realm = {kdcs[0].realm}\n"
        f"  ticket_lifetime = {lifetime}\n"
        "  udp_preference_limit = 1\n"
        "  dns_lookup_kdc = false\n  dns_canonicalize_hostname = false\n  rdns = false\n"
        f"[realms]\n{realms}"
    )
    return file
