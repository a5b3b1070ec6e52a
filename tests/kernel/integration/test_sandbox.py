"""The sandbox's services, really started: that they answer, keep data, bind loopback only and outlive nobody."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from hdfs_native import Client as HdfsClient
from hypothesis import settings
from s3fs import S3FileSystem
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from calque.errors import Refused, Unavailable
from calque.sandbox import Broker, Cluster, Metastore, MetastoreSettings, spark_jars
from calque.sandbox.processes import KeptProcess
from support.places import ROOT
from support.runs.changes import changed_files
from support.services.hdfs import Hdfs
from support.services.objects import ObjectStore
from support.services.registry import SchemaRegistry

RIG = ("lib/calque/sandbox/", "tests/kernel/integration/test_sandbox.py")
"""What must have changed for the sandbox to be another one."""


def is_unchanged() -> bool:
    """As it is on the default branch, as far as git can tell: where it can't, the sandbox is tried."""
    changed = changed_files(ROOT)
    return changed is not None and not any(path.startswith(RIG) for path in changed)


pytestmark = pytest.mark.skipif(
    settings.get_current_profile_name() != "prove" and is_unchanged(),
    reason="the sandbox is as it is on the default branch; `make prove` tries it",
)
VERSIONS = ("3.1.3", "4.2.0")
MARK = "CALQUE_TEST_MARK"
LOGGED = """SELECT "EVENT_TYPE", "MESSAGE_FORMAT", "MESSAGE" FROM "NOTIFICATION_LOG" WHERE "DB_NAME" = 'logged'"""


@pytest.fixture(scope="module")
def metastores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Metastore]]:
    """Both versions, started side by side, with a cleaner for what is older than an hour."""

    directory = tmp_path_factory.mktemp("metastores")

    def start(version: str) -> Metastore:
        settings = MetastoreSettings(version=version, event_ttl=3600, cleaner_interval=0.5)
        return Metastore.start(settings, directory / version)

    with ThreadPoolExecutor() as pool:
        started = dict(zip(VERSIONS, pool.map(start, VERSIONS), strict=True))
    yield started
    for metastore in started.values():
        metastore.stop()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_metastore_answers_with_an_empty_log_and_the_default_database(
    metastores: dict[str, Metastore], version: str
) -> None:
    assert metastores[version].warehouse.is_dir()
    assert metastores[version].sql('SELECT "NAME" FROM "DBS"') == [("default",)]
    assert call(metastores[version], "get_current_notificationEventId", event_id_answer) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_is_in_the_log_as_plain_text(metastores: dict[str, Metastore], version: str) -> None:
    create_database(metastores[version], "logged")
    ((event_type, message_format, message),) = metastores[version].sql(LOGGED)
    assert (event_type, message_format, message[0]) == ("CREATE_DATABASE", "json-0.2", "{")


def test_a_stock_metastore_can_write_its_log_compressed(tmp_path: Path) -> None:
    settings = MetastoreSettings(version="4.2.0", message_format="gzip", stock=True)
    with Metastore.start(settings, tmp_path) as metastore:
        create_database(metastore, "logged")
        ((event_type, message_format, message),) = metastore.sql(LOGGED)
    assert (event_type, message_format, message[:4]) == ("CREATE_DATABASE", "gzip(json-2.0)", "H4sI")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_written_survives_a_kill(metastores: dict[str, Metastore], version: str) -> None:
    metastore = metastores[version]
    uri = metastore.uri
    append_event(metastore, 41, age=0)
    metastore.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port(metastore)), timeout=1)
    metastore.restart()
    assert metastore.uri == uri
    assert call(metastore, "get_current_notificationEventId", event_id_answer) == 41


@pytest.mark.parametrize("version", VERSIONS)
def test_events_older_than_their_time_to_live_are_removed(metastores: dict[str, Metastore], version: str) -> None:
    metastore = metastores[version]
    append_event(metastore, 50, age=7200)
    append_event(metastore, 51, age=0)
    events = 'SELECT "EVENT_ID" FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" >= 50'
    eventually(lambda: metastore.sql(events) == [(51,)])


def test_only_loopback_is_listened_on(metastores: dict[str, Metastore]) -> None:
    addresses = {address for pid in children_of(os.getpid()) for address in listening_addresses(pid)}
    assert addresses == {"127.0.0.1"}
    assert len(metastores) == 2


@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_the_process_that_started_it(tmp_path: Path, signalled: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    script = f"""
import sys, threading, time
from pathlib import Path
from calque.sandbox import Metastore, MetastoreSettings

def start(version):
    started.append(Metastore.start(MetastoreSettings(version=version), Path({str(tmp_path)!r}) / version))

started = []
threads = [threading.Thread(target=start, args=(version,)) for version in {VERSIONS!r}]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(len(started), flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, MARK: mark},
        start_new_session=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == b"2\n"
        assert len(marked(mark)) > 8
        os.killpg(parent.pid, signalled)
        parent.wait(60)
    eventually(lambda: marked(mark) == [])


def test_a_fork_that_lives_on_does_not_keep_services_alive(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    script = f"""
import os, time
from pathlib import Path
from calque.sandbox.processes import KeptProcess

kept = KeptProcess(["sleep", "500"], Path({str(tmp_path)!r}) / "log")
if os.fork() == 0:
    time.sleep(20)
    os._exit(0)
print("ready", flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, MARK: mark}, start_new_session=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == b"ready\n"
        parent.kill()
        parent.wait(60)
    eventually(lambda: not any(line.startswith("sleep") for line in command_lines(marked(mark))), seconds=5)


def test_a_killed_keeper_takes_its_command_along(tmp_path: Path) -> None:
    seconds = f"500.{uuid.uuid4().int}"
    kept = KeptProcess(["sleep", seconds], tmp_path / "log")
    eventually(lambda: len(children_of(os.getpid(), seconds)) == 2)
    keeper = min(children_of(os.getpid(), seconds))
    os.kill(keeper, signal.SIGKILL)
    kept.stop()
    eventually(lambda: not any(seconds in line for line in command_lines(all_processes())))


def test_a_failed_start_shows_the_end_of_the_log(tmp_path: Path) -> None:
    kept = KeptProcess(["sh", "-c", "echo first; echo the reason >&2; exit 3"], tmp_path / "log")
    with pytest.raises(Unavailable, match=r"ended before it was ready\. Its log ends: first . the reason\. See .*log"):
        kept.wait_until(lambda output: "never" in output, seconds=10)


def test_a_metastore_that_cannot_start_leaves_nothing_behind(tmp_path: Path) -> None:
    before = programs_of(os.getpid())
    wrong = MetastoreSettings(extra={"metastore.transactional.event.listeners": "no.such.Listener"})
    with pytest.raises(Unavailable, match=r"no\.such\.Listener"):
        Metastore.start(wrong, tmp_path)
    assert programs_of(os.getpid()) <= before


def test_settings_that_a_version_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        Metastore.start(MetastoreSettings(version="3.1.3", message_format="gzip"), tmp_path)


def test_an_object_store_keeps_what_is_put_into_it_on_loopback_only_and_leaves_nothing(tmp_path: Path) -> None:
    others = set(children_of(os.getpid(), "weed"))
    with ObjectStore.start(tmp_path) as store:
        files = S3FileSystem(endpoint_url=store.endpoint, key=store.key, secret=store.secret, skip_instance_cache=True)
        files.pipe_file(f"{store.bucket}/a/b", b"content")
        assert files.cat_file(f"{store.bucket}/a/b") == b"content"
        wrong = S3FileSystem(endpoint_url=store.endpoint, key=store.key, secret="another", skip_instance_cache=True)
        with pytest.raises(PermissionError):
            wrong.cat_file(f"{store.bucket}/a/b")
        mine = set(children_of(os.getpid(), "weed")) - others
        addresses = {address for pid in mine for address in listening_addresses(pid)}
        assert addresses == {"127.0.0.1"}
        sockets = [
            Path(f"/tmp/seaweedfs-s3-{store.endpoint.rpartition(':')[2]}.sock"),
            Path(f"/tmp/seaweedfs-filer-grpc-{store.filer.rpartition('.')[2]}.sock"),
        ]
        assert [path.exists() for path in sockets] == [True, True]
    assert set(children_of(os.getpid(), "weed")) == others
    assert [path.exists() for path in sockets] == [False, False]


@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGINT])
def test_an_object_store_does_not_outlive_the_process_that_started_it(
    tmp_path: Path, signalled: signal.Signals
) -> None:
    mark = uuid.uuid4().hex
    script = f"""
import time
from pathlib import Path
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from support.services.objects import ObjectStore

store = ObjectStore.start(Path({str(tmp_path)!r}))
print(store.endpoint, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, MARK: mark}, start_new_session=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline().startswith(b"http://127.0.0.1:")
        assert len(marked(mark)) > 2
        os.killpg(parent.pid, signalled)
        parent.wait(60)
    eventually(lambda: marked(mark) == [])


def test_a_broker_keeps_what_was_written_under_its_old_address_on_loopback_only_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    others = set(children_of(os.getpid(), "kafka.Kafka"))
    with Broker.start(tmp_path) as broker:
        address = broker.address
        make_topic(address, "kept")
        write(address, "kept", b"before the kill")
        mine = set(children_of(os.getpid(), "kafka.Kafka")) - others
        assert {bound for pid in mine for bound in listening_addresses(pid)} == {"127.0.0.1"}
        broker.kill()
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": address}).list_topics(timeout=0.5)
        broker.restart()
        write(address, "kept", b"after it")
    assert set(children_of(os.getpid(), "kafka.Kafka")) == others
    with Broker.start(tmp_path) as again:
        assert again.address == address
        assert read(address, "kept", 2) == [b"before the kill", b"after it"]


def test_a_broker_can_ask_for_a_password(tmp_path: Path) -> None:
    with Broker.start(tmp_path, password="geheim") as broker:
        known = AdminClient({"bootstrap.servers": broker.address, **broker.options})
        assert known.list_topics(timeout=20).brokers
        stranger = AdminClient({"bootstrap.servers": broker.address, **broker.options, "sasl.password": "another"})
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=2)


def test_the_other_broker_leads_when_the_leader_is_killed_and_it_comes_back(tmp_path: Path) -> None:
    with Cluster.start(tmp_path) as cluster:
        make_topic(cluster.address, "led")
        first = leader(cluster.address, "led")
        write(cluster.address, "led", b"by the first")
        cluster.brokers[first - 1].kill()
        eventually(lambda: leader(cluster.address, "led") not in (first, -1))
        write(cluster.address, "led", b"by the second")
        cluster.brokers[first - 1].restart()
        assert read(cluster.brokers[first - 1].address, "led", 2) == [b"by the first", b"by the second"]


@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGINT])
def test_a_broker_does_not_outlive_the_process_that_started_it(tmp_path: Path, signalled: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    script = f"""
import time
from pathlib import Path
from calque.sandbox import Broker

broker = Broker.start(Path({str(tmp_path)!r}))
print(broker.address, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, MARK: mark}, start_new_session=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline().startswith(b"127.0.0.1:")
        assert len(marked(mark)) > 2
        os.killpg(parent.pid, signalled)
        parent.wait(60)
    eventually(lambda: marked(mark) == [])


def test_a_schema_registry_answers_on_loopback_only_and_leaves_nothing(tmp_path: Path) -> None:
    others = set(children_of(os.getpid(), "apicurio"))
    with SchemaRegistry.start(tmp_path) as registry:
        with urllib.request.urlopen(f"{registry.url}/subjects", timeout=10) as answer:
            assert answer.read() == b"[]"
        mine = set(children_of(os.getpid(), "apicurio")) - others
        assert {bound for pid in mine for bound in listening_addresses(pid)} == {"127.0.0.1"}
    assert set(children_of(os.getpid(), "apicurio")) == others


def test_hdfs_keeps_its_files_and_address_on_loopback_only_and_outlives_nobody(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    script = f"""
import time
from pathlib import Path
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from support.services.hdfs import Hdfs

hdfs = Hdfs.start(Path({str(tmp_path)!r}))
print(hdfs.uri, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, MARK: mark}, start_new_session=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        uri = parent.stdout.readline().decode().strip()
        with HdfsClient(uri).create("/kept") as file:
            file.write(b"content")
        assert {address for pid in marked(mark) for address in listening_addresses(pid)} == {"127.0.0.1"}
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait(60)
    eventually(lambda: marked(mark) == [])
    with Hdfs.start(tmp_path) as again:
        assert (again.uri, HdfsClient(uri).read("/kept").readall()) == (uri, b"content")
        hdfs = set(children_of(os.getpid(), str(tmp_path)))
        assert {again.name_node.pid, *(node.pid for node in again.data_nodes)} < hdfs
    assert not set(children_of(os.getpid(), str(tmp_path)))


def test_every_delta_jar_is_there() -> None:
    assert [jar.name for jar in spark_jars() if not jar.is_file()] == []
    assert any(jar.name.startswith("delta-spark_") for jar in spark_jars())


def make_topic(address: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(name, 1)])[name].result(60)


def leader(address: str, topic: str) -> int:
    found = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=20).topics[topic]
    return found.partitions[0].leader if found.partitions else -1


def write(address: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    failed: list[object] = []
    producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert (producer.flush(20), failed) == (0, [])


def read(address: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [value for message in consumer.consume(count, 20) if (value := message.value()) is not None]
    finally:
        consumer.close()


def port(metastore: Metastore) -> int:
    return int(metastore.uri.rpartition(":")[2])


def call(
    metastore: Metastore,
    name: str,
    read: Callable[[TBinaryProtocol], int],
    write: Callable[[TBinaryProtocol], None] | None = None,
) -> int:
    """One Thrift call made by hand: the sandbox stands below every client."""
    transport = TBufferedTransport(TSocket("127.0.0.1", port(metastore)))
    protocol = TBinaryProtocol(transport)
    transport.open()
    try:
        protocol.writeMessageBegin(name, TMessageType.CALL, 1)
        if write is not None:
            write(protocol)
        protocol.writeFieldStop()
        protocol.writeMessageEnd()
        transport.flush()
        assert protocol.readMessageBegin()[1] == TMessageType.REPLY
        return read(protocol)
    finally:
        transport.close()


def event_id_answer(protocol: TBinaryProtocol) -> int:
    assert protocol.readFieldBegin()[2] == 0
    assert protocol.readFieldBegin()[2] == 1
    event_id: int = protocol.readI64()
    return event_id


def create_database(metastore: Metastore, name: str) -> None:
    def write(protocol: TBinaryProtocol) -> None:
        protocol.writeFieldBegin("database", TType.STRUCT, 1)
        protocol.writeFieldBegin("name", TType.STRING, 1)
        protocol.writeString(name)
        protocol.writeFieldStop()

    def no_error(protocol: TBinaryProtocol) -> int:
        field_type: int = protocol.readFieldBegin()[1]
        return field_type

    assert call(metastore, "create_database", no_error, write) == TType.STOP


def append_event(metastore: Metastore, event_id: int, age: int) -> None:
    metastore.sql(
        'INSERT INTO "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", "MESSAGE")'
        f" VALUES ({event_id}, {event_id}, {int(time.time()) - age}, 'CREATE_DATABASE', '{{}}');"
        'DELETE FROM "NOTIFICATION_SEQUENCE";'
        f'INSERT INTO "NOTIFICATION_SEQUENCE" ("NNI_ID", "NEXT_EVENT_ID") VALUES (1, {event_id + 1})'
    )


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.1)


def all_processes() -> list[int]:
    return sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def marked(mark: str) -> list[int]:
    """The processes that inherited the mark in their environment."""
    return [pid for pid in all_processes() if f"{MARK}={mark}".encode() in proc_file(pid, "environ")]


def command_lines(pids: list[int]) -> list[str]:
    return [proc_file(pid, "cmdline").replace(b"\0", b" ").decode() for pid in pids]


def children_of(parent: int, argument: str = "") -> list[int]:
    """All living descendants whose command line contains the argument."""
    parents = {pid: int(stat.split()[1]) for pid in all_processes() if (stat := stat_of(pid)) and stat[0] != "Z"}
    family = {parent}
    while more := {pid for pid, its_parent in parents.items() if its_parent in family} - family:
        family |= more
    found = sorted(family - {parent})
    return [pid for pid, line in zip(found, command_lines(found), strict=True) if argument in line]


def programs_of(parent: int) -> set[int]:
    """The same without what a database starts for each connection: others come and go."""
    descendants = children_of(parent)
    titles = dict(zip(descendants, command_lines(descendants), strict=True))
    return {pid for pid, title in titles.items() if not title.startswith("postgres: ")}


def stat_of(pid: int) -> str:
    return proc_file(pid, "stat").decode(errors="replace").rpartition(") ")[2]


def listening_addresses(pid: int) -> set[str]:
    """The local addresses of the TCP sockets that a process listens on."""
    sockets = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                sockets.add(str(descriptor.readlink()))
    addresses = set()
    for table in ("tcp", "tcp6"):
        for row in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.add(readable(fields[1].partition(":")[0]))
    return addresses


def readable(address: str) -> str:
    """The kernel's notation of an address, in words of four bytes in host order, as text."""
    raw = b"".join(bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8))
    if raw[:12] == b"\0" * 10 + b"\xff\xff":
        raw = raw[12:]
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


def proc_file(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
