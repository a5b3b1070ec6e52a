"""The statement `SHOW VERSIONS OF`."""
