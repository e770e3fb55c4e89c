"""Studies, from the files in `catalog` to the report pages.

Imports go one way: `engines` runs the jobs of a plan, `scores` computes statistics, `results` reads the run
folders with both, and `report` shows the results. `engines` and `scores` do not import each other.
"""
