"""The functions for subscribers: they wait for sets of partitions that are done, and receive all that a channel
sends."""
