"""The pages of the site: those of docs/ and results/ with their links mended, and references from the code.

`make site` writes them and builds the site from them.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from publishing import programs, reference

ROOT = Path(__file__).resolve().parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
ABOVE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
    "notebooks/the-paper-in-ten-minutes.ipynb": "notebooks/the-paper-in-ten-minutes.md",
    "notebooks/your-own-log.ipynb": "notebooks/your-own-log.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(rf"({FENCE.pattern}|`[^`\n]*`)", FENCE.flags)
NUMBER = r"[-+\u2212]?[\d.,]*\d%?"
INTERVAL = re.compile(rf"{NUMBER} \[{NUMBER}, {NUMBER}\](?!\()")
TOGETHER = "\u00a0"  # a space at which no line ends
COMMENT = re.compile(r"^(\S.*?) +# (.*)$", re.MULTILINE)
SECTIONS: dict[str, list[tuple[str, str]]] = {
    "Start here": [
        ("Start here", "index.md"),
        ("Install", "install.md"),
        ("Guide", "guide.md"),
        ("Examples", "examples.md"),
        ("Glossary", "glossary.md"),
        ("Notebook: the paper in ten minutes", "notebooks/the-paper-in-ten-minutes.md"),
    ],
    "Your data": [
        ("Your own log", "your-own-log.md"),
        ("Notebook: your own log", "notebooks/your-own-log.md"),
        ("Choosing a policy", "choosing-a-policy.md"),
        ("Growing the log", "growing-the-log.md"),
    ],
    "The paper": [
        ("The paper's findings", "claims.md"),
        ("Atari", "atari.md"),
        ("Continuous control", "control.md"),
        ("What was measured", "results/index.md"),
    ],
    "At scale": [
        ("Write a study", "studies.md"),
        ("Clusters", "clusters.md"),
        ("Performance", "performance.md"),
        ("Reliability", "reliability.md"),
    ],
    "Extend": [
        ("Write an agent", "extending.md"),
        ("Architecture", "architecture.md"),
        ("Decisions", "decisions/index.md"),
        ("Contributing", "contributing.md"),
        ("Changelog", "changelog.md"),
    ],
    "Reference": [
        ("Python", "reference/python.md"),
        ("Data", "reference/data.md"),
        ("Agents", "reference/agents.md"),
        ("Parts to replace", "reference/parts.md"),
        ("Command line", "reference/command-line.md"),
        ("Environments, formats, engines, recipes", "reference/names.md"),
    ],
}
NAVIGATION = [path for pages in SECTIONS.values() for _, path in pages]


def write(folder: Path) -> None:
    """Write all pages into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("README.md", "publishing"))
    shutil.copytree(
        RESULTS, folder / "results", ignore=shutil.ignore_patterns("README.md", "*.py", "__pycache__")
    )
    for source in [*DOCS.rglob("*.md"), *RESULTS.rglob("*.md"), *(ROOT / name for name in ABOVE)]:
        target = folder / staged(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(unbroken(with_links(source)), "utf-8")
    (folder / "decisions" / "index.md").write_text(decisions(), "utf-8")
    shutil.copy(Path(__file__).with_name("site.css"), folder)
    for name, text in reference.pages().items():
        (folder / "reference").mkdir(exist_ok=True)
        (folder / "reference" / name).write_text(text, "utf-8")


def staged(source: Path) -> Path:
    """The place of a file on the site. A README is the index of its folder there."""
    if (name := _name(source)) in ABOVE:
        return Path(ABOVE[name])
    inside = source.relative_to(ROOT if source.is_relative_to(RESULTS) else DOCS)
    return inside.with_name("index.md") if source.name == "README.md" else inside


def _name(source: Path) -> str:
    """The path of a file inside the repository."""
    return source.relative_to(ROOT).as_posix() if source.is_relative_to(ROOT) else ""


def _text(source: Path) -> str:
    if source.suffix == ".ipynb":
        return programs.notebook(source)
    return programs.examples(source) if source.parent.name == "examples" else source.read_text("utf-8")


def with_links(source: Path) -> str:
    """The text of a page with its links as the site has them. What the site does not have loses its link."""
    text = FENCE.sub(_coloured, _text(source))
    begins = [match.span() for match in FENCE.finditer(text)]

    def mended(match: re.Match[str]) -> str:
        if any(begin <= match.start() < end for begin, end in begins):
            return match[0]
        address, hash, anchor = match[3].partition("#")
        if "://" in address or not address:
            return match[0]
        target = _page((source.parent / address).resolve())
        if target is None:
            return match[2]
        link = os.path.relpath(target, staged(source).parent)
        return f"{match[1]}[{match[2]}]({link}{hash}{anchor})"

    return LINK.sub(mended, text)


def unbroken(text: str) -> str:
    """The text with estimates and their intervals, "-4.86 [-6.63, -3.09]", that no cell of a table breaks.
    Code stays as it is: people copy it."""
    pieces = CODE.split(text)
    return "".join(
        piece if number % 2 else INTERVAL.sub(_in_one_piece, piece) for number, piece in enumerate(pieces)
    )


def _in_one_piece(match: re.Match[str]) -> str:
    return match[0].replace(" ", TOGETHER)


def _coloured(match: re.Match[str]) -> str:
    """A block of commands has each comment above its command: beside it the page would be too narrow."""
    if not match[0].startswith("```\n"):
        return match[0]
    return "```bash\n" + COMMENT.sub(r"# \2\n\1", match[0].removeprefix("```\n"))


def _page(target: Path) -> Path | None:
    """Where the site has this file or folder; None if it does not."""
    if target == DOCS / "decisions":
        return Path("decisions/index.md")
    if target.is_dir():
        target = target / "README.md"
    published = target.is_relative_to(DOCS) or (target.is_relative_to(RESULTS) and target.suffix != ".py")
    known = published or _name(target) in ABOVE
    return staged(target) if known and target.exists() else None


def decisions() -> str:
    """The list of decisions."""
    files = sorted((DOCS / "decisions").glob("*.md"))
    titles = [(file.name, file.read_text("utf-8").partition("\n")[0].lstrip("# ")) for file in files]
    lines = [f"- [{title}]({name})" for name, title in titles]
    return "\n".join(["# Decisions", "", "Choices that have a price, with their reasons.", "", *lines]) + "\n"


def broken_links(folder: Path) -> Iterator[str]:
    """Links and pictures of the written pages that lead nowhere, or to a heading that is not there."""
    for page in sorted(folder.rglob("*.md")):
        for address in links(page):
            path, _, anchor = address.partition("#")
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                yield f"{page.relative_to(folder)}: {address}"


def links(page: Path) -> list[str]:
    """The addresses of a written page that lead to the site itself."""
    prose = FENCE.sub("", page.read_text("utf-8"))
    return [address for _, _, address in LINK.findall(prose) if "://" not in address]


def anchors(page: Path) -> set[str]:
    """The names by which the site knows a page's headings, the named ones of the reference among them."""
    headings = re.findall(r"^#+ (.*)", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    named = [re.search(r"\{ #([\w-]+) \}", heading) for heading in headings]
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[\s-]+", "-", text) for text in plain} | {found[1] for found in named if found}


def lost(folder: Path, begin: list[str]) -> list[str]:
    """The written pages to which no chain of links leads from these."""
    open_pages = [folder / path for path in begin]
    found = set(open_pages)
    while open_pages:
        page = open_pages.pop()
        near = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        new = {path for path in near if path.suffix == ".md"} - found
        found |= new
        open_pages += new
    return sorted(str(page.relative_to(folder)) for page in set(folder.rglob("*.md")) - found)


def configuration() -> str:
    """zensical.toml."""
    sections = []
    for title, pages in SECTIONS.items():
        entries = ", ".join(f'{{"{name}" = "{path}"}}' for name, path in pages)
        sections.append(f'  {{"{title}" = [{entries}]}},')
    template = (Path(__file__).parent / "zensical.toml").read_text("utf-8")
    return template.replace("nav = []", "\n".join(["nav = [", *sections, "]"])).replace(
        "{source}", str(ROOT / "src")
    )


def main(folder: Path) -> int:
    folder = folder.resolve()
    write(folder / "docs")
    (folder / "zensical.toml").write_text(configuration(), "utf-8")
    wrong = [*broken_links(folder / "docs"), *lost(folder / "docs", NAVIGATION)]
    print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
