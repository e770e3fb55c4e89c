"""The pages of the site: those of docs/ with their links mended, and the references made from the code.

`make site` writes them and builds the site from them.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from publishing import reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ABOVE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SECTIONS: dict[str, list[tuple[str, str]]] = {
    "Start here": [("Start here", "index.md"), ("Guide", "guide.md")],
    "Your data": [
        ("Your own log", "your-own-log.md"),
        ("Choosing a policy", "choosing-a-policy.md"),
        ("Growing the log", "growing-the-log.md"),
        ("Sharing logs and runs", "sharing.md"),
    ],
    "The paper": [
        ("The paper reproduced", "claims.md"),
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
        ("Environments, formats, recipes", "reference/names.md"),
    ],
}


def write(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Write all pages into a new folder; return the navigation, without pages that docs/ does not have."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("README.md", "publishing"))
    for source in [*DOCS.rglob("*.md"), *(ROOT / name for name in ABOVE)]:
        target = folder / staged(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_links(source), "utf-8")
    (folder / "decisions" / "index.md").write_text(decisions(), "utf-8")
    for name, text in reference.pages().items():
        (folder / "reference").mkdir(exist_ok=True)
        (folder / "reference" / name).write_text(text, "utf-8")
    found = {
        title: [page for page in pages if (folder / page[1]).exists()] for title, pages in SECTIONS.items()
    }
    return {title: pages for title, pages in found.items() if pages}


def staged(source: Path) -> Path:
    """The place of a file on the site. A README is the index of its folder there."""
    if source.name in ABOVE and source.parent == ROOT:
        return Path(ABOVE[source.name])
    inside = source.relative_to(DOCS)
    return inside.with_name("index.md") if source.name == "README.md" else inside


def with_links(source: Path) -> str:
    """The text of a page with its links as the site has them. What the site does not have loses its link."""
    text = source.read_text("utf-8")
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


def _page(target: Path) -> Path | None:
    """Where the site has this file or folder; None if it does not."""
    if target == DOCS / "decisions":
        return Path("decisions/index.md")
    if target.is_dir():
        target = target / "README.md"
    known = target.is_relative_to(DOCS) or (target.parent == ROOT and target.name in ABOVE)
    return staged(target) if known and target.exists() else None


def decisions() -> str:
    """The list of decisions."""
    files = sorted((DOCS / "decisions").glob("*.md"))
    titles = [(file.name, file.read_text("utf-8").partition("\n")[0].lstrip("# ")) for file in files]
    lines = [f"- [{title}]({name})" for name, title in titles]
    return "\n".join(["# Decisions", "", "Choices that have a price, with their reasons.", "", *lines]) + "\n"


def broken_links(folder: Path) -> Iterator[str]:
    """Links and pictures of the written pages that lead nowhere."""
    for page in sorted(folder.rglob("*.md")):
        prose = FENCE.sub("", page.read_text("utf-8"))
        for _, _, address in LINK.findall(prose):
            path = address.partition("#")[0]
            if path and "://" not in path and not (page.parent / path).exists():
                yield f"{page.relative_to(folder)}: {address}"


def configuration(navigation: dict[str, list[tuple[str, str]]]) -> str:
    """zensical.toml."""
    sections = []
    for title, pages in navigation.items():
        entries = ", ".join(f'{{"{name}" = "{path}"}}' for name, path in pages)
        sections.append(f'  {{"{title}" = [{entries}]}},')
    template = (Path(__file__).parent / "zensical.toml").read_text("utf-8")
    return template.replace("nav = []", "\n".join(["nav = [", *sections, "]"])).replace(
        "{source}", str(ROOT / "src")
    )


def main(folder: Path) -> int:
    navigation = write(folder / "docs")
    (folder / "zensical.toml").write_text(configuration(navigation), "utf-8")
    wrong = list(broken_links(folder / "docs"))
    print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
