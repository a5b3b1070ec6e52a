"""Statements over clusters, and statements that run on one."""
