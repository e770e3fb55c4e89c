"""Which of the kept policies to ship, if any, from the log alone."""

from optimist.training.selection.ranking import Ranked, Selection
from optimist.training.selection.selecting import UPDATES, select_policy

__all__ = ["UPDATES", "Ranked", "Selection", "select_policy"]
