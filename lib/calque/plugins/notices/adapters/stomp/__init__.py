"""ActiveMQ, and what else speaks STOMP 1.2: topics of a message broker."""
