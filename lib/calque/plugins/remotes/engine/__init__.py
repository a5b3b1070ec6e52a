"""Links in a target's catalog, and catalogs without a log as sources."""
