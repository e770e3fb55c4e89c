"""Make the tables and the figures of published pages again, from their scores.

    python -m results PAGE ...          # the CSV files and the figures of these pages
    python -m results --tables PAGE ... # the CSV files only

`results/PAGE/analyse.py` has TABLES, rows or text by file, and FIGURES, functions that draw one.
"""

import argparse

from results.library.publish import PAGES, write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m results", description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="+", choices=PAGES, metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--tables", action="store_true", help="no figures")
    asked = parser.parse_args()
    for page in asked.pages:
        for path in write(page, with_figures=not asked.tables):
            print(path)


if __name__ == "__main__":
    main()
