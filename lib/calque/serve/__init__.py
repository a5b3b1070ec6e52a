"""What a running process tells the outside: health, metrics, status over HTTP."""
