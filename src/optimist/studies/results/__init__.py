"""What a study found, read from its run folders alone."""
