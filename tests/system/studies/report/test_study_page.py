"""A study's page in a real browser, wide and narrow."""

import pytest

from browser import Browser
from made_study import (
    AGENTS,
    GAMES,
    PLAYER,
    RANDOM,
    SEEDS,
    empty_drawings,
    height,
    jobs,
    write_selections,
    write_study,
)
from optimist.studies.report import study_figures
from optimist.studies.report.study_report import write_findings
from optimist.studies.status import note_failure, write_jobs


@pytest.fixture(scope="module")
def browser():
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Studies and their pages, written once for all browsers' looks. Figures take seconds to draw."""
    folder = tmp_path_factory.mktemp("shown")
    said = {"figures": ("medians", "bars", "curves", "profiles")}
    write_findings(write_selections(write_study(folder / "first", said=said)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_figures, "drawings", empty_drawings)
        write_findings(write_study(folder / "parts", parts=("all", "half")))
        broken = write_study(folder / "broken")
        for job in jobs(games=GAMES[:1]):
            if job.label:
                (job.run_folder(broken) / "DONE").unlink()
                complaint = f"a long complaint about /a/folder/{'x' * 90} that must be broken"
                note_failure(job, broken, complaint)
        write_findings(broken)
    return folder


def test_the_same_runs_give_the_same_bytes(shown, monkeypatch):
    """Those of each figure are compared in test_figures."""
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    before = (shown / "parts" / "report.html").read_bytes()
    write_findings(shown / "parts")
    assert (shown / "parts" / "report.html").read_bytes() == before


def test_the_papers_numbers_stand_beside_whole_logs_only(shown):
    whole, half = ((shown / "parts/results" / part / "table.md").read_text() for part in ("all", "half"))
    assert "paper, 5X" in whole and "the paper's numbers" in whole
    assert "paper" not in half


@pytest.mark.parametrize("name", ["first", "parts", "broken"])
def test_no_page_and_no_table_is_wider_than_its_screen(browser, shown, name):
    for width in (1280, 390):
        browser.open(shown / name / "report.html", width=width)
        browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert browser.value("innerWidth") == width
        assert browser.value("document.documentElement.scrollWidth") <= width
        tables = browser.value(
            """[...document.querySelectorAll('table.sortable')].map((each) => [each.id, each.scrollWidth,
            each.parentElement.clientWidth, Math.max(...[...each.querySelectorAll('td')].map(
                (cell) => cell.getBoundingClientRect().right))])"""
        )
        assert len(tables) >= 2
        assert [each for each in tables if each[1] > each[2] or each[3] > width] == []
        small = """[...document.querySelectorAll('table.sortable td')].filter(
            (each) => parseFloat(getComputedStyle(each).fontSize) < 12).length"""
        assert browser.value(small) == 0
        # A box that is wider than its place must scroll by itself.
        cut = """[...document.querySelectorAll('main *')].filter((each) => !each.closest('svg') &&
            each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0 &&
            getComputedStyle(each).display !== 'inline' &&
            !['auto', 'scroll'].includes(getComputedStyle(each).overflowX))
            .map((each) => each.outerHTML.slice(0, 80))"""
        assert browser.value(cut) == []
        assert browser.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_last_best_cross_chosen_and_offline_chosen_are_side_by_side(browser, shown, width):
    browser.open(shown / "first/report.html", width=width)
    heads = browser.value(
        "[...document.querySelectorAll('#table th')].map((head) => head.textContent.trim())"
    )
    assert heads[:5] == ["agent", "best", "cross-chosen best", "chosen offline", "last"]
    rows = browser.value(
        "[...document.querySelectorAll('#table tbody tr')].map((row) => row.children.length)"
    )
    assert rows == [len(heads)] * len(AGENTS)
    seen = browser.value(
        "[...document.querySelectorAll('#verdict svg')].filter((each) => each.clientWidth)[0].textContent"
    )
    for title in ("last", "best of 4", "cross-chosen best", "chosen offline"):
        assert title in seen
    assert browser.complaints == []


def test_a_click_sorts_by_number_a_second_turns_it_round_and_empty_cells_stay_below(browser, shown):
    browser.open(shown / "first/report.html", width=1280)
    column = (
        """[...document.querySelectorAll('#per-game tbody tr')].map((row) => row.cells[{}].textContent)"""
    )
    heads = browser.value("[...document.querySelectorAll('#per-game th')].map((head) => head.textContent)")
    place = heads.index("last")
    before = [float(text) for text in browser.value(column.format(place))]
    click = f"document.querySelectorAll('#per-game th button')[{place}].click()"
    browser.value(click)
    assert [float(text) for text in browser.value(column.format(place))] == sorted(before, reverse=True)
    assert before != sorted(before, reverse=True)
    browser.value(click)
    assert [float(text) for text in browser.value(column.format(place))] == sorted(before)
    browser.value("document.querySelectorAll('#per-game th button')[1].click()")
    games = browser.value(column.format(1))
    assert games == sorted(games)
    assert browser.value("document.querySelectorAll('#per-game th[aria-sort]').length") == 1
    assert browser.complaints == []
    rows = "[...document.querySelectorAll('#aggregates tbody tr')]"
    for _ in range(2):
        browser.value("[...document.querySelectorAll('#aggregates th button')].at(-1).click()")
        shares = browser.value(f"{rows}.map((row) => row.lastElementChild.textContent)")
        assert shares[-6:] == [""] * 6 and all(shares[:-6])


def test_the_figures_are_in_the_page_and_readable(browser, shown):
    browser.open(shown / "first/report.html", width=390)
    sizes = browser.value(
        "[...document.querySelectorAll('figure svg')].map((each) => [each.clientWidth, each.clientHeight])"
    )
    shown_sizes = [size for size in sizes if size[0]]
    assert len(shown_sizes) == 3 + len(AGENTS)  # intervals, medians, profiles, and bars of each agent
    assert all(width > 280 and tall > 150 for width, tall in shown_sizes)
    assert browser.value("document.querySelector('.figures svg').textContent.includes('gradient updates')")


def test_the_page_opens_with_the_verdict_the_intervals_and_the_curves(browser, shown):
    browser.open(shown / "first/report.html", width=1280)
    tops = browser.value(
        """['.headline', '#verdict', '#chart', 'table.sortable'].map(
        (each) => document.querySelector(each).getBoundingClientRect().top)"""
    )
    assert tops == sorted(tops)
    assert tops[2] < 900  # without scrolling


FIRST_GAME = """(() => { const choice = document.querySelector('#chart select'); choice.selectedIndex = 1;
    choice.dispatchEvent(new Event('change')); })()"""
VALUES = """[...document.querySelectorAll('#chart .u-series')].filter((each) => each.offsetWidth).map(
    (each) => [each.querySelector('.u-label').textContent, each.querySelector('.u-value').textContent])"""


def test_the_curves_show_values_where_one_points(browser, shown):
    browser.open(shown / "first/report.html", width=1280)
    assert browser.value("document.querySelector('#chart select').options.length") == 1 + len(GAMES)
    browser.value(FIRST_GAME)
    browser.value(
        """(() => { const over = document.querySelector('#chart .u-over'), box = over.getBoundingClientRect();
        for (const kind of ['mouseenter', 'mousemove']) over.dispatchEvent(new MouseEvent(kind,
            { bubbles: true, clientX: box.right - 1, clientY: box.top + 5, view: window })); })()"""
    )
    browser.value("new Promise((resolve) => setTimeout(resolve, 100))")
    found = dict(browser.value(VALUES))
    mean = sum(height(GAMES[0], "REM", seed, 400) for seed in SEEDS) / len(SEEDS)
    assert found["gradient updates"] == "400"
    assert float(found["REM"]) == pytest.approx(mean, abs=0.01)
    assert found["random play"] == f"{RANDOM:g}" and found["best policy in the data"] == f"{PLAYER:g}"
    assert browser.complaints == []


def test_agents_and_seeds_of_the_curves_are_switched(browser, shown):
    browser.open(shown / "first/report.html", width=1280)
    browser.value(FIRST_GAME)
    press = """[...document.querySelectorAll('#chart button')].find(
        (each) => each.textContent === '{}').click()"""
    browser.value(press.format("QR-DQN"))
    browser.value(press.format("2"))
    names = {name for name, _ in browser.value(VALUES)}
    assert {"DQN (Nature)", "REM", "REM, seed 2"} <= names
    assert not any("QR-DQN" in name or "seed 0" in name for name in names)
    assert browser.value("document.querySelector('.static-curves').hidden") is True
    assert browser.complaints == []


def test_the_curves_stand_in_the_page_without_a_script_too(browser, shown):
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(shown / "first/report.html", width=1280)
        assert browser.value("document.getElementById('chart').offsetHeight") == 0
        drawn = "[...document.querySelectorAll('.static-curves svg')].map((each) => each.clientWidth > 280)"
        assert browser.value(drawn) == [True, True]  # on the way, and game by game
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)


ATTACK = "\"><script>document.title = 'mine'</script>"


def test_text_is_never_markup(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    study = write_study(tmp_path / "made")
    write_jobs(study, ATTACK, jobs(), command=ATTACK)
    write_findings(study)
    browser.open(study / "report.html", width=1280)
    assert browser.value("document.title") == ATTACK
    assert browser.value("document.querySelectorAll('script:not([type])').length") == 1
