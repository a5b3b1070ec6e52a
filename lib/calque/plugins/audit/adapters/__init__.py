"""The relations over ledgers and journals that audit statements read, and the history that outlives ledgers and
journals."""
