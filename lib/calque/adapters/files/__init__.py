"""Directories of data, local and remote: the adapters of the port `ports.Storage`.

`FileStorage` does everything in this process, with threads. `SparkStorage` hands long copies and listings to Spark and
the rest to a `FileStorage`. What is particular to one kind of file system is behind the small interface in `system`.
"""

from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.spark import SparkStorage
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.system import Durability
from calque.adapters.files.systems import FileSystemSet

__all__ = ["CopyTerms", "Durability", "FileStorage", "FileSystemSet", "SparkStorage"]
