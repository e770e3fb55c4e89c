"""Engines that run the jobs of a study: processes on this machine, or a Ray cluster."""
