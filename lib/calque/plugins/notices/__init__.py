"""Notices of what a source logged and what targets show, sent to a message broker, and read from there."""
