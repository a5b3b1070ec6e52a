"""The statements about clusters, and the execution of other statements on one."""
