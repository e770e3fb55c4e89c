"""The rules of a log: how the rows that somebody logged become the steps of a dataset."""
