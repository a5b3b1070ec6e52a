"""The log of our own over catalogs that have none: a file of SQLite in the state folder."""
