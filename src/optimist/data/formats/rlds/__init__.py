"""RL Unplugged's Atari logs (TFRecords), for reading; built from the schema and untried on originals."""

from optimist.data.formats.rlds.reading import ReadOptions, WriteOptions, detect, read, verify, write

__all__ = ["ReadOptions", "WriteOptions", "detect", "read", "verify", "write"]
