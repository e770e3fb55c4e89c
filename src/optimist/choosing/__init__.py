"""Which of the kept policies of some runs to ship, if any, from the log alone."""
