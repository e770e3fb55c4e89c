"""What runs are worth: scores, what they are measured by, and statistics over seeds and games."""
