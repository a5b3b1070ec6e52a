"""The rules of Delta replicas: which tables fit, what the metastore and the log say of a table, and what its files say
of their columns."""
