"""The reading of what a target published, epoch by epoch, through the port."""
