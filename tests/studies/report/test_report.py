"""The report is one page that stands alone, says what the run folders say, and trusts no text it is given."""

import base64
from html.parser import HTMLParser

import numpy as np
import pytest

from optimist.data.arrays import from_arrays
from optimist.data.card import card
from optimist.errors import StorageError, UsageError
from optimist.studies.report.report import write_report

HEADER = "step,seed,episode,return,length"
TWO_SEEDS = ["0,0,0,1,9", "10,0,0,5,9", "20,0,0,4,9", "0,1,0,3,9", "10,1,0,9,9", "20,1,0,6,9"]
ONE_SEED = ["0,0,0,1,9", "10,0,0,2,9"]
GIF = b"GIF89a, more or less"
CARD = {
    "steps": 12345,
    "episodes": 67,
    "episode_length": {"mean": 71.25, "longest": 900.0},
    "return_mean": 2.5,
    "best_policy_return": 4.5,
    "return_per_tenth": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "action_frequency": [0.25, 0.75],
    "provenance": {"environment": "minatar/breakout", "settings": {"sticky": 0.1}},
    "fingerprint": "c0ffee",
}


class Page(HTMLParser):
    """What a browser would see: the references, the table's cells, all text; it checks that tags nest."""

    VOID = {"meta", "br", "img", "link", "input", "hr"}

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open += [] if tag in self.VOID else [tag]
        self.cells += [""] if tag == "td" else []
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open = self.open[: None if tag in self.VOID else -1]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text += text
        if "td" in self.open:
            self.cells[-1] += text


@pytest.fixture
def report(tmp_path):
    """report(label=rows, ...) writes the run folders and the page, and returns its text."""

    def write(rows: dict[str, list[str]], **changes) -> str:
        for index, lines in enumerate(rows.values()):
            (tmp_path / str(index)).mkdir(exist_ok=True)
            (tmp_path / str(index) / "episodes.csv").write_text("\n".join([HEADER, *lines]))
            (tmp_path / str(index) / "config.toml").write_text("updates = 20")
        runs = {label: tmp_path / str(index) for index, label in enumerate(rows)}
        given = {
            "title": "A title",
            "card": CARD,
            "versions": {"jax": "0.11.2"},
            "commands": ["optimist train rem"],
        }
        write_report(tmp_path / "report.html", runs=runs, **given | changes)
        return (tmp_path / "report.html").read_text("utf-8")

    return write


def test_the_table_holds_the_numbers_computed_by_hand(report):
    page = Page(report({"REM": TWO_SEEDS, "DQN": ONE_SEED}))
    # Last: 4 and 6. Best: 5 and 9. All three: 10/3 and 6. Ratio: 5 / 2.5.
    assert page.cells[:7] == ["REM", "5.0 ± 1.4", "4.7 ± 1.9", "7.0 ± 2.8 of 3", "2.00", "2", "CSV"]
    assert page.cells[7:] == ["DQN", "2.0", "1.5", "2.0 of 2", "0.80", "1", "CSV"]


def test_the_headline_is_computed(report):
    assert (
        "Trained on the log alone, REM ends at 5.0 ± 1.4 (2 seeds); "
        "the log's average behaviour scored 2.5, its best policy 4.5."
    ) in Page(report({"REM": TWO_SEEDS})).text


def test_one_seed_is_called_one_seed(report):
    assert "REM ends at 2.0 (one seed);" in Page(report({"REM": ONE_SEED})).text


def test_several_agents_share_the_headline(report):
    text = Page(report({"REM": TWO_SEEDS, "DQN": ONE_SEED, "C51": ONE_SEED})).text
    assert "REM ends at 5.0 ± 1.4, DQN at 2.0 and C51 at 2.0 (1 to 2 seeds);" in text


def test_the_best_of_many_agents_is_called_that(report):
    agents = {name: ONE_SEED for name in ("a", "b", "c")} | {"REM": TWO_SEEDS}
    assert "alone, REM, the best of 4 agents, ends at 5.0 ± 1.4" in Page(report(agents)).text


def test_the_page_stands_alone(report):
    page = Page(report({"REM": TWO_SEEDS}, video_gif=GIF))
    assert page.links
    assert [link for link in page.links if not link.startswith(("data:", "#"))] == []
    assert not page.tags & {"script", "link", "iframe", "object", "embed"}
    assert "@import" not in page.text
    assert "url(" not in page.text


def test_the_episodes_and_the_film_travel_with_the_page(report):
    page = Page(report({"REM": TWO_SEEDS}, video_gif=GIF))
    contents = [base64.b64decode(link.partition("base64,")[2]) for link in page.links if link[0] != "#"]
    assert contents == ["\n".join([HEADER, *TWO_SEEDS]).encode(), GIF]


def test_the_same_runs_give_the_same_bytes(report):
    assert report({"REM": TWO_SEEDS}) == report({"REM": TWO_SEEDS})


ATTACK = "\"><script>alert('x')</script><img src=http://x onerror=y>&$\\"


def test_text_is_never_markup(report):
    attacked = {
        "title": ATTACK,
        "notes": ATTACK,
        "commands": [ATTACK],
        "versions": {ATTACK: ATTACK},
        "card": CARD | {"fingerprint": ATTACK, "provenance": {ATTACK: {ATTACK: ATTACK}}},
    }
    page = Page(report({ATTACK: TWO_SEEDS}, **attacked))
    assert not page.tags & {"script", "img"}
    assert page.text.count(ATTACK) >= 6


def test_the_card_is_shown(report):
    text = Page(report({"REM": TWO_SEEDS})).text
    said = ["12,345", "67", "c0ffee", "mean 71.25, longest 900", "minatar/breakout", "sticky 0.1", "75.0%"]
    said += ["optimist train rem", "0.11.2", "updates = 20"]
    assert [words for words in said if words not in text] == []


def test_the_card_of_a_dataset_is_understood(report):
    rewards = np.arange(40, dtype=np.float32)
    data = from_arrays(
        observations=np.zeros((40, 3), np.float32),
        actions=np.arange(40) % 2,
        rewards=rewards,
        terminals=np.ones(40, bool),
        provenance={"environment": "made up"},
    )
    text = Page(report({"REM": TWO_SEEDS}, card=card(data))).text
    said = [
        "average behaviour scored 19.5",
        "its best policy 29.5",
        "tenth of the logged experience",
        "50.0%",
    ]
    said += ["made up", "bytes per frame, stored", "episode length", data.fingerprint]
    assert [words for words in said if words not in text] == []


@pytest.mark.parametrize("sparse", [{}, {key: None for key in CARD}, {"steps": 3, "surprise": object()}])
def test_a_sparse_card_is_enough(report, sparse):
    assert "REM ends at 5.0 ± 1.4 (2 seeds)." in Page(report({"REM": TWO_SEEDS}, card=sparse)).text


@pytest.mark.parametrize("average", [0.0, -3.0])
def test_no_ratio_to_nothing(report, average):
    assert Page(report({"REM": TWO_SEEDS}, card={"return_mean": average})).cells[4] == "–"


def test_no_runs_no_report(tmp_path):
    with pytest.raises(UsageError, match="at least one run"):
        write_report(tmp_path / "r.html", title="", runs={}, card={}, versions={}, commands=[])


def test_an_unwritable_place_is_named(report, tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        report({"REM": TWO_SEEDS})
    assert not list(tmp_path.glob("*.partial"))
