"""Remote tables: links to tables of other catalogs, which targets show as their own.

A catalog may be another Hive metastore, also over SSH, AWS Glue's, Iceberg's, or one that a package brings.
"""
