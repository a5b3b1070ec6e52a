"""Kafka: its client, and a journal whose events and evidence are topics there."""
