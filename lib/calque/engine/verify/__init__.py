"""Compares a target with its source, and changes nothing."""
