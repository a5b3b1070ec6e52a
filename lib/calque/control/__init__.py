"""Small records in the state folder, through which commands and running processes speak to each other."""
