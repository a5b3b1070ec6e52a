"""The brokers that notices go to: Kafka, and those that speak STOMP."""
