"""RL Unplugged's Atari logs (TFRecords), for reading; built from the schema and untried on originals."""

from optimist.data.formats.rlds.reading import ReadOptions, detect, read, verify

__all__ = ["ReadOptions", "detect", "read", "verify"]
