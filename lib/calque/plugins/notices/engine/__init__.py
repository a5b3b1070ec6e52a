"""The sending of notices, from a journal and from ledgers to a broker. A channel's position never passes a notice that
is not sent."""
