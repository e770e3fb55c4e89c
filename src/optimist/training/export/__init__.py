"""A trained policy as one file that needs neither this package nor JAX."""

from optimist.training.export.exporting import SUFFIXES, Exported, export_policy

__all__ = ["SUFFIXES", "Exported", "export_policy"]
