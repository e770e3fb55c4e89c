"""Tables with a row for each step: Parquet, Arrow, Feather, CSV, and folders of Hugging Face datasets."""

from optimist.data.formats.parquet.reading import ReadOptions, detect, open, verify
from optimist.data.formats.parquet.writing import WriteOptions, write

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "verify", "write"]
