"""The client of a Kafka cluster: connections, topics, what is refused and what is tried again."""
