"""The notebooks: `python tests/release/notebooks.py` runs each as a script in a new folder, cell after cell.

`--write` runs them in Jupyter and keeps the outputs in the files; it needs nbclient and ipykernel.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
PROGRESS = re.compile(r", [\d,]+ s left  ")  # a line of a loop that goes on


def script(notebook: Path) -> str:
    """The code of all cells."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def check(notebook: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", script(notebook)]
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"error: {notebook.name} does not run:\n{ended.stderr[-3000:]}")


def write(notebook: Path) -> None:
    import nbclient
    import nbformat

    content = nbformat.read(notebook, 4)
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(content, timeout=3600, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in content.cells:
        cell.metadata.clear()  # times and places of this machine
        if cell.cell_type == "code":
            cell.outputs = condensed(cell.outputs)
    nbformat.write(content, notebook)


def condensed(outputs: list) -> list:
    """The outputs of a cell, without the lines that only told how far a loop was."""
    kept = []
    for output in outputs:
        if output.output_type == "stream":
            lines = output.text.splitlines(keepends=True)
            output.text = "".join(line for line in lines if not PROGRESS.search(line))
        if output.output_type != "stream" or output.text:
            kept.append(output)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the outputs in the files")
    parser.add_argument("names", nargs="*", help="the notebooks; all of them if none is named")
    options = parser.parse_args()
    for notebook in [FOLDER / name for name in options.names] or sorted(FOLDER.glob("*.ipynb")):
        print(notebook.name, flush=True)
        (write if options.write else check)(notebook)


if __name__ == "__main__":
    main()
