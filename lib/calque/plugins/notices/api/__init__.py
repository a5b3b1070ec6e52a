"""What subscribers get: notices of sets of partitions that are done, and all that a channel sends."""
