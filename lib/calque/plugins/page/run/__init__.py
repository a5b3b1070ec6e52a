"""What the page shows of a process that runs, and its routes."""
