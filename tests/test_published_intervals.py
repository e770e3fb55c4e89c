"""The published intervals: each one on a page stands in a CSV file, and the CSV files agree with the scores."""

import csv
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "docs" / "results"
NUMBER = r"[-+]?\d[\d,]*\.?\d*"
INTERVAL = re.compile(rf"({NUMBER})(%?)\s+\[({NUMBER}),\s+({NUMBER})\]")
MADE_ELSEWHERE = {"pong": 0, "precision": 0, "first-frames": 0}
