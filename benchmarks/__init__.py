"""Measures every speed, size and memory figure that this project states: `python -m benchmarks`."""
