"""Logged experience: recording it, storing it, and sampling transitions from it."""

from optimist.data.dataset import Dataset, open_dataset
from optimist.data.recorder import Recorder
from optimist.data.sampling import Rows, Sampler, transitions
from optimist.data.timeline import Timeline
from optimist.data.transition import Spec, Transition
from optimist.data.views import Episode, Episodes

from_arrays = Dataset.from_arrays

__all__ = [
    "Dataset",
    "Episode",
    "Episodes",
    "Recorder",
    "Rows",
    "Sampler",
    "Spec",
    "Timeline",
    "Transition",
    "from_arrays",
    "open_dataset",
    "transitions",
]
