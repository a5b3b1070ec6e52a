"""The pages by which a running process tells of itself: health, metrics and status over HTTP."""
