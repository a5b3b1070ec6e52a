"""The page's data and actions in a running process, and its routes."""
