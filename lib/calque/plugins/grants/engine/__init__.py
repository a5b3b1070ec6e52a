"""The privileges of databases and tables that a target's metastore takes over from the source's."""
