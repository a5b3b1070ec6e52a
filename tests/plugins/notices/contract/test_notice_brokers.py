"""The same promises for every `NoticeBroker`: order, durability, what subscribers see, refusals, restarts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from calque.errors import AccessRefused, Refused, Unavailable
from calque.plugins.notices.model import Message
from calque.plugins.notices.ports import NoticeBroker
from calque.sandbox import Broker
from support.memory.notices import MemoryNoticeBroker
from support.services.activemq import ActiveMQ, ActiveMQSettings
from support.services.noticebrokers import (
    ActiveMQService,
    KafkaService,
    MemoryService,
    Service,
    by_key,
    numbered,
    published,
    received,
    threads_and_sockets,
)
from support.services.suspension import suspended

PATIENCE = 60.0
TOPICS = (60, pytest.param(200, marks=pytest.mark.prove))
"""The time in which ActiveMQ removes their subscriptions grows with the square of them: 9 s, and 182 s for 1,000."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Service]]:
    settings = ActiveMQSettings(password=uuid4().hex, topics="hq.>")
    with (
        Broker.start(tmp_path_factory.mktemp("kafka"), password=uuid4().hex) as kafka,
        ActiveMQ.start(tmp_path_factory.mktemp("activemq"), settings) as activemq,
    ):
        yield {
            "memory": MemoryService(MemoryNoticeBroker()),
            "kafka": KafkaService(kafka),
            "activemq": ActiveMQService(activemq, tmp_path_factory.mktemp("passwords")),
        }
        # With many topics an orderly end takes its time.
        kafka.kill()
        activemq.kill()


@pytest.fixture(params=["memory", "kafka", "activemq"])
def service(request: pytest.FixtureRequest, services: Mapping[str, Service]) -> Service:
    return services[request.param]


@pytest.fixture
def broker(service: Service) -> Iterator[NoticeBroker]:
    connection = service.connect()
    yield connection
    connection.close()


@pytest.fixture
def topic() -> str:
    return f"hq.sales.{uuid4().hex}"


def test_a_subscriber_gets_everything_that_is_published_after_it_came(broker: NoticeBroker, topic: str) -> None:
    broker.publish(numbered(topic, range(10)))
    subscription = broker.subscribe([topic, f"{topic}.other"])
    messages = numbered(topic, range(10, 300)) + numbered(f"{topic}.other", range(10))
    broker.publish(messages)
    assert by_key(received(subscription, len(messages))) == by_key(messages)
    assert not subscription.receive(0.1)
    subscription.close()


def test_a_message_arrives_as_it_was_with_its_key_and_headers(broker: NoticeBroker, topic: str) -> None:
    message = Message(
        topic,
        "1b4e28ba-2fa1 Größe ☃: a\\b\n",
        '{"text": "Größe ☃\\n\\u0000"}\n'.encode(),
        {"HCAT_EVENT": "HCAT_ADD_PARTITION", "calque_note": "☃: x\\c\n y"},
    )
    subscription = broker.subscribe([topic])
    broker.publish([message])
    assert received(subscription, 1) == [message]
    subscription.close()


def test_nothing_to_publish_is_fine(broker: NoticeBroker) -> None:
    broker.publish([])


def test_each_subscriber_gets_everything(broker: NoticeBroker, topic: str) -> None:
    subscriptions = [broker.subscribe([topic]) for _ in range(2)]
    broker.publish(numbered(topic, range(20)))
    for subscription in subscriptions:
        assert by_key(received(subscription, 20)) == by_key(numbered(topic, range(20)))
        subscription.close()


def test_a_subscription_gets_nothing_after_it_was_closed(broker: NoticeBroker, topic: str) -> None:
    subscription = broker.subscribe([topic])
    subscription.close()
    subscription.close()
    broker.publish(numbered(topic, range(3)))
    assert not subscription.receive(0.1)


def test_a_broker_may_be_closed_twice_and_publishes_nothing_afterwards(service: Service, topic: str) -> None:
    broker = service.connect()
    broker.publish(numbered(topic, range(3)))
    broker.close()
    broker.close()
    with pytest.raises(Unavailable, match="closed"):
        broker.publish(numbered(topic, range(3)))


def test_several_threads_publish_at_once(broker: NoticeBroker, topic: str) -> None:
    subscription = broker.subscribe([topic])
    feeds = [numbered(topic, range(50), f"feed {number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(broker.publish, feeds))
    assert by_key(received(subscription, 200)) == by_key([message for feed in feeds for message in feed])
    subscription.close()


def test_a_message_that_is_too_large_is_refused_by_its_topic_and_nothing_is_sent(
    service: Service, broker: NoticeBroker, topic: str
) -> None:
    subscription = broker.subscribe([topic])
    with pytest.raises(Refused, match=topic):
        broker.publish([*numbered(topic, range(3)), Message(topic, "key", b"x" * service.largest)])
    broker.publish(numbered(topic, range(5)))
    assert by_key(received(subscription, 5)) == by_key(numbered(topic, range(5)))
    subscription.close()


def test_a_name_that_no_topic_can_have_is_refused(broker: NoticeBroker) -> None:
    for name in ("", "a, b > *", "hq.>"):
        with pytest.raises(Refused, match="topic named"):
            broker.publish([Message(name, "key", b"{}")])
        with pytest.raises(Refused, match="topic named"):
            broker.subscribe([name])


def test_a_wrong_login_is_refused_as_such(service: Service, topic: str) -> None:
    broker = service.connect_refused()
    for _ in range(2):
        with pytest.raises(AccessRefused):
            broker.publish(numbered(topic, range(3)))
        with pytest.raises(AccessRefused):
            broker.subscribe([topic])
    broker.close()


def test_a_topic_that_the_user_may_not_use_is_refused_and_others_are_not(service: Service, topic: str) -> None:
    broker = service.connect_without("closed")
    with pytest.raises(AccessRefused, match=r"closed\.sales"):
        broker.publish(numbered("closed.sales", range(3)))
    with pytest.raises(AccessRefused, match=r"closed\.sales"):
        broker.subscribe(["closed.sales"])
    subscription = broker.subscribe([topic])
    broker.publish(numbered(topic, range(3)))
    assert by_key(received(subscription, 3)) == by_key(numbered(topic, range(3)))
    subscription.close()
    broker.close()


def test_a_broker_that_is_away_is_unavailable_and_a_subscription_outlives_it(
    service: Service, broker: NoticeBroker, topic: str
) -> None:
    subscription = broker.subscribe([topic])
    broker.publish(numbered(topic, range(50)))
    service.stop()
    try:
        with pytest.raises(Unavailable):
            broker.publish(numbered(topic, range(50, 100)))
        before = list(subscription.receive(0.1))
    finally:
        service.start()
    published(broker, numbered(topic, range(50, 100)))
    expected = by_key(numbered(topic, range(100)))
    deadline = time.monotonic() + PATIENCE
    while by_key(before) != expected:
        assert time.monotonic() < deadline, by_key(before)
        before += subscription.receive(1.0)
    subscription.close()


def test_a_restart_in_the_middle_loses_nothing_and_keeps_the_order(
    service: Service, broker: NoticeBroker, topic: str
) -> None:
    subscription = broker.subscribe([topic])
    messages = numbered(topic, range(3_000))

    def publish_all() -> None:
        for first in range(0, len(messages), 20):
            published(broker, messages[first : first + 20])

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish_all)
        arrived = list(subscription.receive(PATIENCE))
        service.stop()
        service.start()
        expected = by_key(messages)
        deadline = time.monotonic() + PATIENCE
        while by_key(arrived) != expected:
            assert time.monotonic() < deadline or not publishing.done(), len(arrived)
            arrived += subscription.receive(1.0)
        publishing.result()
    subscription.close()


def test_kafka_tells_who_else_may_write_to_a_topic(services: Mapping[str, Service], topic: str) -> None:
    kafka = services["kafka"]
    assert isinstance(kafka, KafkaService)
    broker = kafka.connect()
    broker.publish(numbered(topic, range(1)))
    kafka.let_write("ann", topic)
    deadline = time.monotonic() + PATIENCE
    while "User:ann" not in kafka.others_who_write(topic):
        assert time.monotonic() < deadline
    broker.close()


def test_what_a_broker_took_without_an_answer_arrives_once(services: Mapping[str, Service], topic: str) -> None:
    """A broker on a loaded machine: it stands still for longer than is waited for, and goes on with all that it was
    sent. Whoever sends the same again through the same object, and more, sends nothing twice."""
    kafka = services["kafka"]
    assert isinstance(kafka, KafkaService)
    broker = kafka.connect_impatient(1.0)
    subscription = broker.subscribe([topic])
    published(broker, numbered(topic, range(10)))
    assert len(received(subscription, 10)) == 10
    with suspended(kafka.server.pid), pytest.raises(Unavailable):
        broker.publish(numbered(topic, range(10, 60)))
    published(broker, numbered(topic, range(10, 80)))
    published(broker, numbered(topic, range(80, 90)))
    assert by_key(received(subscription, 80)) == by_key(numbered(topic, range(10, 90)))
    assert not subscription.receive(1.0)
    subscription.close()
    broker.close()


@pytest.mark.parametrize("topics", TOPICS)
def test_threads_and_sockets_do_not_grow_with_the_topics(service: Service, topic: str, topics: int) -> None:
    broker = service.connect(partitions=1)
    one = broker.subscribe([topic])
    broker.publish(numbered(topic, range(1)))
    assert len(received(one, 1)) == 1
    one.close()
    threads, sockets = threads_and_sockets()
    names = [f"{topic}.{number}" for number in range(topics)]
    subscription = broker.subscribe(names)
    messages = [message for name in names for message in numbered(name, range(2))]
    broker.publish(messages)
    assert by_key(received(subscription, len(messages))) == by_key(messages)
    more_threads, more_sockets = threads_and_sockets()
    # Clients open connections to brokers and close them at times of their own: some more, but not one for each topic.
    assert more_threads < threads + topics / 2
    assert more_sockets < sockets + topics / 2
    subscription.close()
    broker.close()
