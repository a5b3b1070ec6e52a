"""Iceberg's REST catalog: the servlet of its own tests, in the HTTP server that Spark brings, told by py4j. It listens
on loopback, knows what it has made only while it runs, and takes anybody's word.
"""

from pathlib import Path
from types import TracebackType
from typing import Any

from calque.resources import cache_folder
from calque.sandbox.artifacts import installed
from calque.sandbox.java import java_17, pyspark_jars
from calque.sandbox.processes import GATEWAY, KeptProcess, gateway_to
from support.services import manifest

_START_SECONDS = 60.0


class IcebergRest:
    """One running server; `stop` it, or use it as a context manager.

    uri: what clients name, `http://127.0.0.1:<port>`. warehouse: where its tables lie.
    """

    def __init__(self, directory: Path, *, cache: Path | None = None) -> None:
        """directory: takes its log, and its tables below `lake`; made when missing."""
        directory.mkdir(parents=True, exist_ok=True)
        # Iceberg's own come first: other versions of what they need are among pyspark's.
        jars = [*installed(manifest.ICEBERG_REST_JARS, cache or cache_folder()), *pyspark_jars("*.jar")]
        command = [str(java_17()), "-Xmx256m", "-XX:+UseSerialGC", "-cp", ":".join(map(str, jars)), *GATEWAY]
        self.warehouse = directory / "lake"
        self._server = KeptProcess(command, directory / "iceberg.log")
        try:
            self.uri = f"http://127.0.0.1:{self._listen()}"
        except BaseException:
            self._server.kill()
            raise

    def _listen(self) -> int:
        jvm: Any = gateway_to(self._server, _START_SECONDS).jvm
        iceberg, jetty = jvm.org.apache.iceberg, jvm.org.sparkproject.jetty
        settings = jvm.java.util.HashMap()
        settings.put("warehouse", f"file:{self.warehouse}")
        settings.put("uri", f"jdbc:sqlite:{self.warehouse}.db")
        settings.put("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO")
        catalog = iceberg.jdbc.JdbcCatalog()
        catalog.initialize("lake", settings)
        servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
        paths = jetty.ee10.servlet.ServletContextHandler()
        paths.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
        server = jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(paths)
        server.start()
        return int(server.getURI().getPort())

    def stop(self) -> None:
        """Ends it."""
        self._server.kill()

    def __enter__(self) -> "IcebergRest":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
