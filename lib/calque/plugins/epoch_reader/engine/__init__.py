"""Reading what a target published, epoch by epoch, through the port."""
