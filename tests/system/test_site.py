"""The site has a page for every public name and command, and no broken link. `make site` builds it."""

import re

import pytest

import optimist
import optimist.data
from optimist import agents
from optimist.cli.main import COMMANDS
from publishing import pages, reference


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "docs"
    pages.write(folder)
    return folder


def test_every_link_of_every_page_leads_somewhere(site):
    assert list(pages.broken_links(site)) == []


def test_a_broken_link_is_found(tmp_path):
    text = "# A top, *of all* \n\n[one](nowhere.md) [two](#a-top-of-all) [three](page.md#end) [four](https://no.org)"
    (tmp_path / "page.md").write_text(text)
    assert list(pages.broken_links(tmp_path)) == ["page.md: nowhere.md", "page.md: page.md#end"]


def test_links_lead_to_every_page(site):
    assert pages.lost(site, pages.NAVIGATION) == []


def test_a_page_without_a_link_to_it_is_found(tmp_path):
    (tmp_path / "index.md").write_text("[one](one.md)")
    (tmp_path / "one.md").write_text("[home](index.md)")
    (tmp_path / "two.md").write_text("[home](index.md)")
    assert pages.lost(tmp_path, ["index.md"]) == ["two.md"]


def test_what_the_site_does_not_have_loses_its_link():
    text = pages.with_links(pages.DOCS / "architecture.md")
    assert "tests/unit/test_architecture.py walks the imports" in text
    assert "](decisions/003-discount-folding.md)" in text


def test_comments_stand_above_their_commands():
    text = pages.with_links(pages.DOCS / "guide.md")
    assert "\n# a film of one episode\noptimist play runs/rem --out rem.gif\n" in text
    assert "\nEvery command has its own help" in text  # prose stays as it is


def test_examples_and_notebooks_are_pages_with_their_code_and_outputs(site):
    assert "class DoubleDqn" in (site / "examples.md").read_text()
    notebook = (site / "notebooks" / "your-own-log.md").read_text()
    assert "optimist.train(" in notebook and "[4711, 4711, 90210, 90210]" in notebook
    assert "](../choosing-a-policy.md)" in notebook  # its links lead to pages of the site
    assert "data:image/png" in (site / "notebooks" / "the-paper-in-ten-minutes.md").read_text()


def test_the_reference_has_every_public_name():
    text = "\n".join(reference.pages().values())
    listed = [line.rpartition(".")[2] for line in text.splitlines() if line.startswith("::: ")]
    assert set(optimist.__all__) - {"agents"} <= set(listed)
    assert set(optimist.data.__all__) <= set(listed)
    assert {agents.agent_class(name).__name__ for name in agents.available()} <= set(listed)


def test_the_reference_has_every_command_with_its_options():
    text = reference.pages()["command-line.md"]
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert [name for name in COMMANDS if f"optimist {name}" not in headings] == []
    assert "| `--hold-out" in text
    assert "| `--engine" in text


def test_an_estimate_and_its_interval_are_never_on_two_lines(site):
    """Of all pages, in tables and in prose; a page of results has hundreds."""
    pattern = re.compile(r"\d%? \[[-+]?[\d.,]+,\s[-+]?[\d.,]+\](?!\()")
    for page in site.rglob("*.md"):
        prose = pages.CODE.sub("", page.read_text("utf-8"))
        assert pattern.findall(prose) == [], page
    assert (site / "claims.md").read_text("utf-8").count("\u00a0[") > 100


def test_only_the_spaces_of_intervals_are_kept_together():
    table = "| a | -4.86 [-6.63, -3.09] | 12% [-2, +4], and 1,200 [900, 1,300] |\n"
    kept = (
        "| a | -4.86\u00a0[-6.63,\u00a0-3.09] | 12%\u00a0[-2,\u00a0+4], and 1,200\u00a0[900,\u00a01,300] |\n"
    )
    assert pages.unbroken(table) == kept
    for text in ("`1 [0, 2]`", "```\n1 [0, 2]\n```", "see 3 [1, 2](page.md)", "the shape 4 [a, b]"):
        assert pages.unbroken(text) == text
    assert pages.unbroken("```\n1 [0, 2]\n```\n1 [0, 2]").endswith("```\n1\u00a0[0,\u00a02]")
