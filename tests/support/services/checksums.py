"""Writes `checksums.txt` of the services of tests anew: `python -m support.services.checksums`."""

from calque.resources import cache_folder
from calque.sandbox.checksums import write
from support.services import manifest
from support.services.install import CHECKSUMS

if __name__ == "__main__":
    write(CHECKSUMS, (*manifest.OF_SERVICES, *manifest.OF_INTEROP), cache_folder())
