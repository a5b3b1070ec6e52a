"""A real server of SSH that forwards connections and does nothing else: Apache MINA's, in a JVM that runs nothing but a
py4j gateway. It listens on loopback.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from calque.resources import cache_folder
from calque.sandbox.artifacts import installed
from calque.sandbox.java import java_17, pyspark_jars
from calque.sandbox.processes import GATEWAY, KeptProcess, gateway_to
from support.services import manifest

_START_SECONDS = 60.0


class Bastion:
    """One running server; `stop` it, or use it as a context manager.

    port: where it listens, on 127.0.0.1.
    """

    def __init__(
        self,
        host_keys: Sequence[Path],
        authorized_keys: Path,
        directory: Path,
        *,
        forwards: bool = True,
        port: int = 0,
        cache: Path | None = None,
    ) -> None:
        """host_keys: files of its private keys, each of another kind. authorized_keys: whom it lets in, under any name.
        directory: takes its log; made when missing. port: 0 for one that the system chooses."""
        directory.mkdir(parents=True, exist_ok=True)
        jars = [*installed(manifest.SSH_JARS, cache or cache_folder()), *pyspark_jars("py4j-*.jar")]
        class_path = ":".join(str(jar) for jar in jars)
        self._server = KeptProcess([str(java_17()), "-Xmx96m", "-cp", class_path, *GATEWAY], directory / "ssh.log")
        try:
            self.port = self._listen(host_keys, authorized_keys, forwards, port)
        except BaseException:
            self._server.kill()
            raise

    def _listen(self, host_keys: Sequence[Path], authorized_keys: Path, forwards: bool, port: int) -> int:
        gateway = gateway_to(self._server, _START_SECONDS)
        sshd: Any = gateway.jvm.org.apache.sshd
        paths = gateway.new_array(gateway.jvm.java.nio.file.Path, len(host_keys))
        for number, file in enumerate(host_keys):
            paths[number] = gateway.jvm.java.io.File(str(file)).toPath()
        server = sshd.server.SshServer.setUpDefaultServer()
        server.setHost("127.0.0.1")
        server.setPort(port)
        server.setKeyPairProvider(sshd.common.keyprovider.FileKeyPairProvider(paths))
        allowed = gateway.jvm.java.io.File(str(authorized_keys)).toPath()
        server.setPublickeyAuthenticator(sshd.server.config.keys.AuthorizedKeysAuthenticator(allowed))
        forwarding = sshd.server.forward
        rule = forwarding.AcceptAllForwardingFilter if forwards else forwarding.RejectAllForwardingFilter
        server.setForwardingFilter(rule.INSTANCE)
        server.start()
        return int(server.getPort())

    def stop(self) -> None:
        """Ends it, and all that goes over it."""
        self._server.kill()

    def __enter__(self) -> "Bastion":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
