"""Which notices the journal and the ledgers give, their keys, topics and texts."""
