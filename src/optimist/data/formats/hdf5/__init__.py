"""HDF5 files: D4RL's layout of arrays, and the .h5 files of d3rlpy."""

from optimist.data.formats.hdf5.reading import ReadOptions, detect, open
from optimist.data.formats.hdf5.writing import WriteOptions, write

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "write"]
