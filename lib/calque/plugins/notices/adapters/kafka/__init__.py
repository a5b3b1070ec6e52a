"""Notices on topics of Kafka."""
