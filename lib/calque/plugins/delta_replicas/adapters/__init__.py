"""Tables of a target that are kept as Delta tables: their logs, over any storage, and the target's metastore, which has
them as Spark does. No data file is written here."""
