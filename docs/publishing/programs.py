"""The examples and the notebooks as pages: text, code, and what the notebooks printed and drew."""

import html
import json
from pathlib import Path
from typing import Any

LANGUAGES = {".py": "python", ".toml": "toml"}  # of the examples


def examples(page: Path) -> str:
    """The list of the examples, then each file."""
    files = sorted(file for file in page.parent.iterdir() if file.suffix in LANGUAGES)
    sections = [
        f"## {file.name}\n\n{_code(file.read_text('utf-8'), LANGUAGES[file.suffix])}" for file in files
    ]
    return "\n".join([page.read_text("utf-8"), *sections])


def notebook(file: Path) -> str:
    """The cells of a notebook with their outputs."""
    parts = []
    for cell in json.loads(file.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(_code(text, "python") if cell["cell_type"] == "code" else f"{text}\n")
        parts += map(_output, cell.get("outputs", []))
    return "\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    """What a cell printed or drew, as the page has it."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img src="data:image/png;base64,{picture}" alt="What this cell draws">\n'
    printed = "".join(output.get("text", data.get("text/plain", [])))
    return f'<pre class="printed">{html.escape(printed.rstrip())}</pre>\n'


def _code(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"
