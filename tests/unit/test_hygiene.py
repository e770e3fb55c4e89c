"""What surrounds the code agrees with it: versions, the changelog, the metadata of the package, workflows."""

import re
import tomllib
from pathlib import Path

import pytest

import optimist
from publishing.changelog import FILE, part
from publishing.metadata import description

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_version_is_the_same_everywhere():
    assert f"version: {optimist.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert part(FILE.read_text("utf-8"), optimist.__version__)


def test_a_version_without_a_changelog_is_refused():
    with pytest.raises(SystemExit, match=r"no heading for version 0\.2"):
        part("## 0.20 (then)\n\nOther.\n", "0.2")
    assert part("## 0.2 (now)\n\nThis.\n\n## 0.1\n\nThat.\n", "0.2") == "This."


def test_the_extras_that_messages_name_exist():
    extras = set(PROJECT["optional-dependencies"])
    texts = [
        path.read_text("utf-8")
        for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
    ]
    named = {
        extra
        for text in texts
        for found in re.findall(r'"optimist-rl\[([\w,]+)\]', text)
        for extra in found.split(",")
    }
    assert named
    assert named - {"NAME"} <= extras
    code = [found for text in texts for found in re.findall(r'extra="(\w+)"', text)]
    assert set(code) <= extras


def test_the_extra_all_has_what_does_not_exclude_each_other():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    named = set(everything.partition("[")[2].rstrip("]").split(","))
    assert set(PROJECT["optional-dependencies"]) - named == {
        "all",
        "cuda12",
        "cuda13",
        "dev",
        "bench",
    }


def test_the_readme_shows_its_pictures_outside_the_repository():
    """On the package's page a relative link leads nowhere."""
    readme = (ROOT / "README.md").read_text("utf-8")
    known = description(readme, "https://example.org/us/it", "v1")
    assert "](https://example.org/us/it/raw/v1/docs/rem.gif)" in known
    assert "](https://example.org/us/it/blob/v1/docs/guide.md)" in known
    assert "](https://example.org/us/it/tree/v1/docs/decisions)" in known
    for text in (known, description(readme, "", "v1")):
        assert re.findall(r"\]\((?!https?://)", text) == []


def test_continuous_integration_runs_what_people_run():
    assert ".ci/run" in (ROOT / ".github/workflows/test.yml").read_text("utf-8")
    assert "make test" in (ROOT / ".ci/run").read_text("utf-8")


def test_no_two_files_of_tests_have_the_same_name():
    """pytest imports them by their names, and would leave one out with an error."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_a_result_without_a_difference_is_said_in_plain_words():
    """They say that no difference is shown, because there may still be one. One old statement is quoted."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
    assert sum(page.read_text("utf-8").count("told apart") for page in pages) == 1
