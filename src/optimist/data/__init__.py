"""What was logged: recording it, keeping it, and turning it into transitions."""

from optimist.data.arrays import from_arrays
from optimist.data.dataset import Dataset, Episodes, Recorder, Timeline, open_dataset
from optimist.data.sampling import Rows, Sampler, stacked, transitions
from optimist.data.transition import Spec, Transition

__all__ = [
    "Dataset",
    "Episodes",
    "Recorder",
    "Rows",
    "Sampler",
    "Spec",
    "Timeline",
    "Transition",
    "from_arrays",
    "open_dataset",
    "stacked",
    "transitions",
]
