"""One target over time: window after window, epoch after epoch, and what operators ask of it."""
