"""The parts of a running process that follow links: their capture, and the watch for links that begin, change and
end."""
