"""The catalog of a target with links in it, and catalogs without a log as sources."""
