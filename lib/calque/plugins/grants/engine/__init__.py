"""Privileges of databases and tables that a target's metastore has from the source's."""
