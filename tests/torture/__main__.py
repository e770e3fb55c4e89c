"""`python -m torture` runs the campaign, or continues it; `python -m torture quick` does a hundredth of it.

Other words choose campaigns by a part of their names.
"""

import logging
import os
import sys

from torture import files, machines, records
from torture.campaign import failures, run, table

MINUTES = float(os.environ.get("MINUTES", 80))


def main(words: list[str]) -> int:
    logging.getLogger("optimist").setLevel(logging.ERROR)  # each fault is a warning
    quick = "quick" in words
    words = [word for word in words if word != "quick"]
    every = (*files.CAMPAIGNS, *records.CAMPAIGNS, *machines.CAMPAIGNS)
    chosen = [each for each in every if not words or any(word in each.name for word in words)]
    run(chosen, seconds=60 * MINUTES, share=0.01 if quick else 1.0)
    print(table(chosen))
    return failures(chosen)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
