"""Which of the kept policies to ship, if any, from the log alone."""
