"""What only real brokers can do to notices: change their leader, fall silent, stand by for each other, ask for TLS."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.secrets import FileSecret
from calque.model.tls import Tls
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.notices.adapters.kafka.broker import KafkaNoticeBroker
from calque.plugins.notices.adapters.kafka.topics import MissingTopics
from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.adapters.stomp.broker import StompNoticeBroker
from calque.plugins.notices.adapters.stomp.session import Session
from calque.plugins.notices.model import Message
from calque.plugins.notices.ports import NoticeBroker, Subscription
from calque.sandbox import Broker, Cluster
from support.services.activemq import USER, ActiveMQ, ActiveMQSettings
from support.services.authority import Authority
from support.services.noticebrokers import by_key, numbered, published, received
from support.services.suspension import suspended

PATIENCE = 90.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def activemq(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[ActiveMQ]:
    settings = ActiveMQSettings(password=uuid4().hex, keystore=authority.keystore("127.0.0.1"))
    with ActiveMQ.start(tmp_path_factory.mktemp("activemq"), settings) as broker:
        yield broker


@pytest.fixture
def topic() -> str:
    return f"hq.sales.{uuid4().hex}"


@pytest.fixture
def address(activemq: ActiveMQ, tmp_path: Path) -> StompAddress:
    return address_of(activemq.address, password=secret(activemq, tmp_path))


def secret(broker: ActiveMQ, folder: Path) -> FileSecret:
    file = folder / "password"
    file.write_text(broker.password)
    return FileSecret(str(file))


def address_of(*hosts: str, password: FileSecret, tls: Tls | None = None) -> StompAddress:
    pairs = tuple((host.split(":")[0], int(host.split(":")[1])) for host in hosts)
    return StompAddress(pairs, USER, password, tls, "[notices.bus]")


def everything(subscription: Subscription, messages: list[Message], first: Sequence[Message] = ()) -> None:
    """All of them come behind the first ones, those of each topic and key in order, maybe some twice."""
    arrived = list(first)
    deadline = time.monotonic() + PATIENCE
    while by_key(arrived) != by_key(messages):
        assert time.monotonic() < deadline, f"{len(arrived)} of {len(messages)} came"
        arrived += subscription.receive(1.0)


def goes_through_silence(broker: NoticeBroker, pid: int, topic: str) -> None:
    """A broker that is silent is unavailable, and nothing is lost when it is there again."""
    subscription = broker.subscribe([topic])
    broker.publish(numbered(topic, range(10)))
    with suspended(pid):
        with pytest.raises(Unavailable, match="tried again"):
            broker.publish(numbered(topic, range(10, 20)))
        first = list(subscription.receive(0.5))
    published(broker, numbered(topic, range(10, 20)))
    everything(subscription, numbered(topic, range(20)), first)
    subscription.close()


def test_a_kafka_broker_that_falls_silent_is_unavailable_and_nothing_is_lost(kafka: Broker, topic: str) -> None:
    broker = KafkaNoticeBroker(Connection(kafka.address), silence=2.0)
    goes_through_silence(broker, kafka.pid, topic)
    broker.close()


def test_partitions_that_are_added_are_received_from_their_beginning(kafka: Broker, topic: str) -> None:
    broker = KafkaNoticeBroker(Connection(kafka.address))
    subscription = broker.subscribe([topic])
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for future in admin.create_partitions([NewPartitions(topic, 4)]).values():
        future.result(60)
    other = KafkaNoticeBroker(Connection(kafka.address))
    other.publish(numbered(topic, range(100)))
    everything(subscription, numbered(topic, range(100)))
    for used in (subscription, broker, other):
        used.close()


def test_a_topic_is_made_with_the_partitions_and_settings_that_are_given(kafka: Broker, topic: str) -> None:
    broker = KafkaNoticeBroker(Connection(kafka.address), MissingTopics(5, 1, {"max.message.bytes": "40000"}))
    broker.publish([Message(topic, "key", b"{}")])
    assert len(AdminClient({"bootstrap.servers": kafka.address}).list_topics(topic).topics[topic].partitions) == 5
    with pytest.raises(Refused, match="bytes is 40000"):
        broker.publish([Message(topic, "key", b"x" * 50_000)])
    with pytest.raises(Refused, match=r"config|INVALID_CONFIG"):
        KafkaNoticeBroker(Connection(kafka.address), MissingTopics(config={"no.such": "1"})).publish(
            [Message(f"{topic}.other", "key", b"{}")]
        )
    broker.close()


def limit_messages(kafka: Broker, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def test_what_arrived_of_a_refused_call_is_not_sent_again(kafka: Broker, topic: str) -> None:
    """One topic of two takes no more messages of that size: nobody looked at that before."""
    other = f"{topic}.other"
    broker = KafkaNoticeBroker(Connection(kafka.address))
    subscription = broker.subscribe([topic, other])
    first = [*numbered(topic, range(5)), *numbered(other, range(5))]
    broker.publish(first)
    limit_messages(kafka, other, 500)
    large = Message(other, "key", b'{"n": 5, "text": "' + random.Random(1).randbytes(3_000).hex().encode() + b'"}')
    batch = [*numbered(topic, range(5, 10)), large]
    for _ in range(2):
        with pytest.raises(Refused):
            broker.publish(batch)
    limit_messages(kafka, other, 1_000_000)
    published(broker, batch)
    last = [*numbered(topic, range(10, 11)), *numbered(other, range(6, 7))]
    broker.publish(last)
    arrived: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    while not {message.body for message in last} <= {message.body for message in arrived}:
        assert time.monotonic() < deadline
        arrived += subscription.receive(1.0)
    assert sorted(message.body for message in arrived) == sorted(message.body for message in (*first, *batch, *last))
    for used in (subscription, broker):
        used.close()


@pytest.mark.prove
def test_while_leaders_change_everything_arrives_in_order(tmp_path: Path, topic: str) -> None:
    with Cluster.start(tmp_path) as cluster:
        broker = KafkaNoticeBroker(Connection(cluster.address), MissingTopics(partitions=4))
        subscription = broker.subscribe([topic])
        messages = numbered(topic, range(2_000))

        def publish_all() -> None:
            for first in range(0, len(messages), 20):
                published(broker, messages[first : first + 20])

        with ThreadPoolExecutor(1) as pool:
            publishing = pool.submit(publish_all)
            arrived = list(subscription.receive(PATIENCE))
            cluster.brokers[0].kill()
            everything(subscription, messages, arrived)
            publishing.result()
        subscription.close()
        broker.close()


def test_an_activemq_broker_that_falls_silent_is_unavailable_and_nothing_is_lost(
    activemq: ActiveMQ, address: StompAddress, topic: str
) -> None:
    broker = StompNoticeBroker(address, silence=2.0)
    goes_through_silence(broker, activemq.pid, topic)
    with suspended(activemq.pid), pytest.raises(Unavailable):
        broker.subscribe([topic])
    with suspended(activemq.pid), pytest.raises(Unavailable):
        StompNoticeBroker(address, silence=2.0).publish(numbered(topic, range(3)))
    broker.close()


def test_of_a_pair_of_brokers_the_second_goes_on_where_the_first_died(tmp_path: Path, topic: str) -> None:
    settings = ActiveMQSettings(password=uuid4().hex, store=tmp_path / "store")
    with (
        ActiveMQ.start(tmp_path / "first", settings) as first,
        ActiveMQ.start(tmp_path / "second", settings, standby=True) as second,
    ):
        assert not second.taking_connections
        hosts = address_of(first.address, second.address, password=secret(first, tmp_path))
        broker = StompNoticeBroker(hosts)
        subscription = broker.subscribe([topic])
        messages = numbered(topic, range(2_000))

        def publish_all() -> None:
            for first_number in range(0, len(messages), 20):
                published(broker, messages[first_number : first_number + 20])

        with ThreadPoolExecutor(1) as pool:
            publishing = pool.submit(publish_all)
            arrived = list(subscription.receive(PATIENCE))
            first.kill()
            everything(subscription, messages, arrived)
            publishing.result()
        assert second.taking_connections
        subscription.close()
        broker.close()


def test_an_authority_that_signed_the_certificate_is_trusted_and_no_other(
    activemq: ActiveMQ, authority: Authority, tmp_path: Path, topic: str
) -> None:
    password = secret(activemq, tmp_path)
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    broker = StompNoticeBroker(address_of(activemq.tls_address, password=password, tls=Tls(authority.ca)))
    subscription = broker.subscribe([topic])
    messages = [*numbered(topic, range(300)), Message(topic, "large", b"x" * 900_000)]
    broker.publish(messages)
    assert by_key(received(subscription, 301)) == by_key(messages)
    subscription.close()
    broker.close()
    port = activemq.tls_address.split(":")[1]
    for host, tls, why in [
        (activemq.tls_address, Tls(other.ca), "from nobody that calque trusts"),
        (activemq.tls_address, Tls(str(tmp_path / "missing.pem")), "can't be used"),
        (f"localhost:{port}", Tls(authority.ca), "other names"),
        (activemq.tls_address, None, "speaks TLS"),
    ]:
        wrong = StompNoticeBroker(address_of(host, password=password, tls=tls), silence=5.0)
        with pytest.raises(AccessRefused, match=why):
            wrong.publish(numbered(topic, range(3)))
        with pytest.raises(AccessRefused, match=why):
            wrong.subscribe([topic])
        wrong.close()
    with pytest.raises(Unavailable, match="says nothing in TLS"):
        StompNoticeBroker(address_of(activemq.address, password=password, tls=Tls(authority.ca)), silence=2.0).publish(
            numbered(topic, range(3))
        )


def test_consumers_of_a_queue_share_keys_and_get_the_messages_of_each_in_order(address: StompAddress) -> None:
    name = uuid4().hex
    consumers = [Session(address) for _ in range(2)]
    for consumer in consumers:
        queue = {"id": "1", "destination": f"/queue/Consumer.reports.VirtualTopic.{name}", "ack": "auto"}
        consumer.send_and_wait("SUBSCRIBE", queue)
    broker = StompNoticeBroker(address)
    broker.publish(numbered(f"VirtualTopic.{name}", range(140)))
    deadline = time.monotonic() + PATIENCE
    while sum(len(consumer.messages) for consumer in consumers) < 140:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    keys = []
    for consumer in consumers:
        numbers: dict[str, list[int]] = {}
        for frame in consumer.messages:
            numbers.setdefault(frame.headers["calque_key"], []).append(int(frame.body))
        assert all(of_key == sorted(of_key) for of_key in numbers.values())
        keys.append(set(numbers))
        consumer.close()
    assert keys[0].isdisjoint(keys[1])
    broker.close()


def test_a_closed_subscription_leaves_nothing_at_the_broker(address: StompAddress, topic: str) -> None:
    broker = StompNoticeBroker(address)
    subscription = broker.subscribe([topic])
    client_id = subscription.client_id
    subscription.close()
    broker.publish(numbered(topic, range(3)))
    session = Session(address, client_id)
    session.send_and_wait(
        "SUBSCRIBE", {"id": "0", "destination": f"/topic/{topic}", "ack": "auto", "activemq.subscriptionName": "0"}
    )
    broker.publish(numbered(topic, [3]))
    with session.changed:
        assert session.changed.wait_for(lambda: session.messages, PATIENCE)
    assert session.messages[0].body == b"3"
    session.send_and_wait("UNSUBSCRIBE", {"id": "0"})
    session.close()
    broker.close()
