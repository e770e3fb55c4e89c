"""The speed of this machine in one table: learning, reading data and play, each with its limit."""
