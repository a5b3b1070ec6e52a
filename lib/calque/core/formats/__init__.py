"""Formats of files and texts: directories (`layout`), Hive's types, Delta logs, Iceberg's metadata, Parquet's footers,
and every place that a definition names (`pointers`)."""
