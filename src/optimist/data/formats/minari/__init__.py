"""Minari datasets: an id in the local store, or a folder. They are read and written without a loss."""

from optimist.data.formats.minari.reading import ReadOptions, detect, open, verify
from optimist.data.formats.minari.writing import WriteOptions, write

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "verify", "write"]
