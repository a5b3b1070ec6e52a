"""REPL LOAD: a dump as the source of a replica, played without Spark."""
