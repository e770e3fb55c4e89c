"""The speed of this machine in one table: learning, the data path and play, each beside its limit."""
