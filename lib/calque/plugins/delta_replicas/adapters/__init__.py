"""The Delta tables of a target: their logs, over any storage, and the target's metastore, which has them as Spark does.
No data file is written here."""
