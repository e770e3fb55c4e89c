"""Studies, from the files in `catalog` to the report pages.

Imports go one way: `engines` runs the jobs of a plan, and `scores` computes statistics; neither imports the
other. `results` computes the scores of the run folders, and `report` shows them.
"""
