"""Results of a campaign on disk, so that it continues where it was stopped."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "runs" / "torture"  # ignored by git


class Results:
    """Verdicts by the names of cases, one JSON line each; `known` has those of earlier runs too."""

    def __init__(self, name: str):
        self._file = FOLDER / f"{name}.jsonl"
        self.known: dict[str, str] = {}
        if self._file.exists():
            lines = self._file.read_text(encoding="utf-8").splitlines(keepends=True)
            for line in lines:
                if line.endswith("\n"):  # a kill may have cut off the last one
                    self.known |= json.loads(line)

    def add(self, name: str, verdict: str) -> None:
        self.known[name] = verdict
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({name: verdict}) + "\n")
