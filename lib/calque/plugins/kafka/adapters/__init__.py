"""Kafka's client, and the journal on its topics."""
