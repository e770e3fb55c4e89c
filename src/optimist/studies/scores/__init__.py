"""Scores of runs: normalisation, and statistics over seeds and games."""
