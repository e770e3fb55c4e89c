"""The description and the addresses of the package, made while it is built.

On the package's page a relative link leads nowhere. Where the repository's address is known, links and
pictures lead there, at the version that is built: GitHub's runners know it, or OPTIMIST_REPOSITORY has it.
Elsewhere links become plain text, and pictures are left out.
"""

import os
import re
from pathlib import Path

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # tests use `description` alone
    MetadataHookInterface = object  # type: ignore[assignment, misc]

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+://|#)([^)\s]+)\)")


def repository() -> str:
    """The repository's address, or "" if it is not known."""
    runner = (os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", ""))
    return os.environ.get("OPTIMIST_REPOSITORY", "").rstrip("/") or ("/".join(runner) if all(runner) else "")


def description(text: str, address: str, version: str) -> str:
    """The README for a page outside the repository."""

    def absolute(match: re.Match[str]) -> str:
        picture, label, path = match.groups()
        if not address:
            return "" if picture else label
        view = "raw" if picture else "tree" if "." not in path.rpartition("/")[2] else "blob"
        return f"{picture}[{label}]({address}/{view}/{version}/{path})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(absolute, text))


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict) -> None:
        address, version = repository(), os.environ.get("GITHUB_REF_NAME") or f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text, address, version)}
        if address:
            metadata["urls"] = {
                "Homepage": address,
                "Documentation": f"{address}/tree/{version}/docs",
                "Changelog": f"{address}/blob/{version}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
