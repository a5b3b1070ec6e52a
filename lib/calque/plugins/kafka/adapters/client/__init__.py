"""The client of a Kafka cluster: connections, topics, and which errors are refusals and which are tried again."""
