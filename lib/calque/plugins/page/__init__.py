"""The operator's page: what it shows, and what is done from there."""
