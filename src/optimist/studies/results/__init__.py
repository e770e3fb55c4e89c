"""The results of a study, read from its run folders alone."""
