"""The products over the kernel: a folder for each, with the kernel's floors in small."""
