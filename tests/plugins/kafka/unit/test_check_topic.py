"""What `calque check` says of the topics of a journal, whatever the cluster is like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from calque.engine.check.findings import Findings
from calque.errors import Unavailable
from calque.plugins.kafka.checks.topics import check_topics
from calque.ports.services import RequiredTopic, TopicInfo

WEEK = 7 * 86_400.0
EVENTS, POSITIONS = RequiredTopic("hq.events", 1, False, WEEK), RequiredTopic("hq.events.positions", 2, True, 0.0)
GOOD = TopicInfo(
    "hq.events",
    1,
    3,
    {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "min.insync.replicas": "2",
        "max.message.bytes": "1048588",
        "unclean.leader.election.enable": "false",
    },
)


@dataclass
class Cluster:
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    size: int = 3
    problem: Unavailable | None = None

    def brokers(self) -> int:
        if self.problem is not None:
            raise self.problem
        return self.size

    def topic(self, name: str) -> TopicInfo | None:
        return self.topics.get(name)


def findings(found: TopicInfo, wanted: RequiredTopic = EVENTS, brokers: int = 3) -> list[tuple[str, str]]:
    looked = Findings()
    check_topics(Cluster({wanted.name: found}, brokers), [wanted], looked)
    return [(each.severity.value, each.what) for each in looked.entries[1:]]


def with_settings(**settings: str) -> TopicInfo:
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    return replace(GOOD, settings={**GOOD.settings, **changed})


def test_a_topic_as_calque_makes_it_is_as_it_should_be() -> None:
    assert findings(GOOD) == [("info", "Topic hq.events is as it should be")]


def test_a_topic_that_keeps_everything_is_as_good() -> None:
    assert findings(with_settings(retention_ms="-1")) == [("info", "Topic hq.events is as it should be")]


@pytest.mark.parametrize(
    ("found", "severity", "what"),
    [
        (replace(GOOD, partitions=2), "error", "has 2 partitions instead of 1"),
        (with_settings(cleanup_policy="compact"), "error", "has cleanup.policy = compact"),
        (with_settings(retention_ms="604799999"), "error", "keeps records for 7 days, and [journal] retention is 7 d"),
        (with_settings(retention_bytes="1000"), "warning", "keeps at most 1000 bytes"),
        (with_settings(min_insync_replicas="4"), "error", "has 3 copies, and min.insync.replicas is 4"),
        (with_settings(min_insync_replicas="3"), "warning", "has min.insync.replicas = 3, as many as it has copies"),
        (with_settings(min_insync_replicas="1"), "warning", "has min.insync.replicas = 1"),
        (replace(GOOD, copies=1, settings={}), "warning", "has one copy"),
        (with_settings(unclean_leader_election_enable="true"), "warning", "has unclean.leader.election.enable = true"),
        (with_settings(max_message_bytes="5000"), "warning", "takes messages of at most 5000 bytes"),
    ],
)
def test_each_flaw_is_told(found: TopicInfo, severity: str, what: str) -> None:
    assert [(level, said[: len(what) + len("Topic hq.events ")]) for level, said in findings(found)] == [
        (severity, f"Topic hq.events {what}")
    ]


def test_what_the_user_may_not_do_is_told() -> None:
    assert findings(replace(GOOD, denied=("WRITE", "READ"))) == [
        ("error", "The user may not read or write topic hq.events")
    ]


def test_two_copies_of_which_one_must_confirm_are_what_two_brokers_can_give() -> None:
    found = replace(with_settings(min_insync_replicas="1"), copies=2)
    assert findings(found, brokers=2) == [("info", "Topic hq.events is as it should be")]


def test_positions_are_compacted_and_nothing_else() -> None:
    settings = {**GOOD.settings, "cleanup.policy": "compact", "retention.ms": "1"}
    positions = TopicInfo("hq.events.positions", 2, 3, settings)
    assert findings(positions, POSITIONS) == [("info", "Topic hq.events.positions is as it should be")]
    kept = replace(positions, settings={**settings, "cleanup.policy": "delete"})
    assert findings(kept, POSITIONS) == [("error", "Topic hq.events.positions has cleanup.policy = delete")]


def test_a_missing_topic_is_no_error_as_it_is_made() -> None:
    looked = Findings()
    check_topics(Cluster(size=1), [EVENTS], looked)
    assert [each.what for each in looked.entries] == ["Kafka answers; it has 1 broker", "There is no topic hq.events"]
    assert looked.ok


def test_brokers_that_do_not_answer_are_unreachable() -> None:
    looked = Findings()
    check_topics(Cluster(problem=Unavailable("nobody answers", "it is off", "wait")), [EVENTS], looked)
    assert (looked.unreachable, looked.ok) == (True, False)


def test_who_else_may_write_to_a_topic_is_told() -> None:
    as_it_should_be = ("info", "Topic hq.events is as it should be")
    others = replace(GOOD, writers=("User:ann", "User:bob"))
    assert findings(others) == [as_it_should_be, ("warning", "User:ann, User:bob may write to topic hq.events, too")]
    many = replace(GOOD, writers=tuple(f"User:u{number}" for number in range(7)))
    assert findings(many)[1][1].endswith("User:u4 and 2 more may write to topic hq.events, too")
    everybody = ("info", "Everybody who reaches Kafka may write to topic hq.events")
    assert findings(replace(GOOD, is_open=True)) == [as_it_should_be, everybody]
