"""Which of the kept policies to ship, from the log alone."""

from optimist.training.selection.selecting import Selection, select_policy

__all__ = ["Selection", "select_policy"]
