"""Studies, from their files in `catalog` to their pages: running, scoring, finding, reporting.

Imports go one way: `running` and `scoring` know nothing of each other, `finding` reads the folders of runs
with both, `reporting` shows what was found. A file beside these folders is a command of its own.
"""
