"""Notices from a journal and from ledgers to a broker, with a position that never passes what is not sent."""
