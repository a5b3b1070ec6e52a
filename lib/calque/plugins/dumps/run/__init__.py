"""REPL LOAD: a dump drives a replica, without Spark."""
