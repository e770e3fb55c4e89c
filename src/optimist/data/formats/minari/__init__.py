"""Minari datasets: an id in the local store, or a folder. They are read and written without a loss."""

from optimist.data.formats.minari.minari_log import ReadOptions
from optimist.data.formats.minari.reading import detect, read, verify
from optimist.data.formats.minari.writing import WriteOptions, write

__all__ = ["ReadOptions", "WriteOptions", "detect", "read", "verify", "write"]
