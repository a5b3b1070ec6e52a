"""The command `calque journal`: `events` prints captured events, `move` changes where they are kept."""

from calque.commands.journal.events import command

__all__ = ["command"]
