"""The catalogs that links lead to, the ways to these catalogs, and the log that calque keeps for a catalog without
one."""
