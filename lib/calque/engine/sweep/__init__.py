"""The removal of directories, files and records that nothing needs any more."""
