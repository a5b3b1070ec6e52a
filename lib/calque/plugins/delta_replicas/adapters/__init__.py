"""The Delta tables of a target: their logs, over any storage, and the target's metastore, which has them as Spark does.
Of data files those with rows of ACID tables are written here."""
