"""The page of a dataset shows what to know before training, in a real browser, wide and narrow; `data info`
and `train` print the same warnings."""

import base64
import html
import io
import json

import numpy as np
import pytest
from PIL import Image

from browser import Browser
from little import pixels, played
from optimist.cli.main import main
from optimist.data import Dataset, from_arrays
from optimist.data.look import Look, card, mean_interval
from optimist.data.warnings import warnings
from optimist.studies.report.data_report import (
    example_frames,
    feature_table,
    headline,
    pictures,
    write_data_report,
)
from optimist.studies.sheet import number


def narrow(**more) -> Dataset:
    """A discrete log of vectors with a constant feature, whose action follows from the observation."""
    seen = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    seen[:, 2] = 1
    ends = np.arange(400) % 7 == 6
    return from_arrays(seen, (seen[:, 0] > 0).astype(int), seen[:, 1], ends, truncations=False, **more)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of a discrete, a continuous and an image log, and how many figures each has."""
    folder = tmp_path_factory.mktemp("pages")
    logs = {
        "vector": narrow(provenance={"source": "<script>alert(1)</script>", "day": {"month": 5}}),
        "continuous": Dataset.open(played(folder / "c", game="gym/Pendulum-v1", rows=450, lanes=2)),
        "image": Dataset.open(played(folder / "m")),
    }
    for name, data in logs.items():
        write_data_report(data, folder / f"{name}.html", title=name, command=f"optimist data report {name}")
    return folder


@pytest.fixture(scope="module")
def browser():
    opened = Browser()
    yield opened
    opened.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["vector", "continuous", "image"])
def test_a_page_fits_a_screen_and_a_phone(name, width, pages, browser):
    browser.open(pages / f"{name}.html", width=width)
    assert browser.complaints == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.querySelectorAll('.figures svg').length") == 5
    hidden = "[...document.querySelectorAll('.figures .scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert max(browser.value(hidden)) <= 0  # every figure is seen whole
    images = browser.value("[...document.querySelectorAll('.examples img')].map(e => e.naturalWidth)")
    assert len(images) == (8 if name == "image" else 0) and all(size >= 160 for size in images)
    rows = browser.value("document.querySelectorAll('#features tbody tr').length")
    assert rows == {"vector": 3, "continuous": 3}.get(name, 0)


def test_the_warnings_stand_above_the_figures(pages, browser):
    browser.open(pages / "vector.html", width=1280)
    shown = browser.value("[...document.querySelectorAll('.warning li')].map(e => e.textContent)")
    assert shown == warnings(narrow()) and len(shown) == 2
    assert browser.value("document.querySelector('.headline').textContent").endswith("2 warnings:")
    top = "document.querySelector('{}').getBoundingClientRect().top"
    assert browser.value(f"{top.format('.warning')} < {top.format('.figures')}")


def test_text_of_the_log_is_only_text(pages, browser):
    browser.open(pages / "vector.html", width=1280)
    assert "<script>alert(1)</script>" in browser.value("document.body.textContent")
    assert browser.value("document.querySelectorAll('script').length") == 1


def test_a_script_that_is_not_the_pages_own_does_not_run(pages, browser, tmp_path):
    text = (pages / "vector.html").read_text()
    added = text.replace("</body>", "<script>document.title = 'mine'</script></body>")
    assert added != text
    (tmp_path / "page.html").write_text(added)
    browser.open(tmp_path / "page.html", width=1280)
    assert browser.value("document.querySelectorAll('script').length") == 2
    assert browser.value("document.title") != "mine"


def test_a_grey_image_is_shown_as_it_is(tmp_path):
    data = pixels(tmp_path)
    link = example_frames(Look(data))[0]
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(link.partition(",")[2]))))
    assert image.shape == (192, 160, 3)  # 6 x 5 pixels, enlarged
    np.testing.assert_array_equal(image[::32, ::32, 1], data.episodes[0].frames[0][..., 0])


def test_the_same_log_gives_the_same_bytes(pages, tmp_path):
    data = narrow(provenance={"source": "<script>alert(1)</script>", "day": {"month": 5}})
    write_data_report(data, tmp_path / "page.html", title="vector", command="optimist data report vector")
    assert (tmp_path / "page.html").read_bytes() == (pages / "vector.html").read_bytes()


def test_the_table_of_features_has_the_figures_of_the_log():
    data = narrow()
    table = feature_table(Look(data))
    seen = np.concatenate([episode.observations[:-1] for episode in data.episodes])
    for column, figures in enumerate(
        (seen.mean(axis=0), seen.std(axis=0), seen.min(axis=0), seen.max(axis=0))
    ):
        np.testing.assert_allclose([row[column + 1] for row in table.rows], figures, rtol=1e-5, atol=1e-6)
    assert [row[-1] for row in table.rows] == ["", "", "constant"]


def titles(dataset: Dataset) -> list[str]:
    return [drawn.title for drawn in pictures(Look(dataset))]


def test_only_a_log_of_play_has_returns_over_time(tmp_path):
    """The rows of a table may be grouped by customer."""
    assert titles(narrow())[0] == "Returns in the log's order"
    played_one = narrow(provenance={"environment": "gym/CartPole-v1"})
    assert titles(played_one)[0] == "Returns over time"
    assert not [title for title in titles(narrow().first(7)) if "order" in title]  # of one episode
    write_data_report(narrow(), tmp_path / "page.html", title="x", command="x")
    page = html.unescape((tmp_path / "page.html").read_text())
    assert "by time" not in page and "best policy" not in page
    assert "steps, in the log's order" in page


def test_the_mean_return_stands_with_its_interval():
    returns = narrow().episodes.returns[narrow().episodes.complete]
    low, high = mean_interval(returns)
    said = f"the mean return is {number(returns.mean())} [{number(low)}, {number(high)}], in the best tenth"
    assert said in headline(Look(narrow()), [])


def test_a_log_without_a_complete_episode_has_a_page(tmp_path, browser):
    data = from_arrays(
        np.eye(5), np.arange(5) % 2, np.ones(5), np.zeros(5, bool), truncations=np.zeros(5, bool)
    )
    assert card(data)["complete_episodes"] == 0
    write_data_report(data, tmp_path / "page.html", title="short", command="")
    browser.open(tmp_path / "page.html", width=390)
    assert browser.complaints == []


@pytest.fixture
def log(tmp_path):
    narrow().save(tmp_path / "log")
    return tmp_path / "log"


def test_the_command_writes_the_page_of_a_view(log, tmp_path, capsys):
    page = tmp_path / "new" / "page.html"
    assert main(["data", "report", str(log), "--best", "0.5", "--out", str(page)]) == 0
    text = page.read_text()
    best = Dataset.open(log).best(0.5)
    assert f"{len(best):,} steps in {len(best.episodes)} episodes" in text
    assert "--best 0.5" in text and "http" not in text.replace("http-equiv", "").replace(
        "http://www.w3.org", ""
    )
    assert capsys.readouterr().out.splitlines()[1:] == [f"warning: {line}" for line in warnings(best)]


def test_a_folder_is_no_page(log, tmp_path, capsys):
    assert main(["data", "report", str(log), "--out", str(tmp_path)]) == 2
    assert "is a folder: name a file" in capsys.readouterr().err


def test_info_prints_the_warnings_below_its_table(log, capsys):
    expected = warnings(Dataset.open(log))
    assert len(expected) == 2
    assert main(["data", "info", str(log)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [f"warning: {line}" for line in expected]
    assert main(["data", "info", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == expected


def test_train_prints_them_once_on_a_new_run(log, tmp_path, caplog):
    words = ["train", "random", str(log), "--batch", "4", "--hold-out", "0", "--out", str(tmp_path / "run")]
    for steps, times in (("4", 1), ("8", 0)):
        caplog.clear()
        assert main([*words, "--steps", steps, "--evaluate-every", "4"]) == 0
        said = [record.message for record in caplog.records]
        assert [said.count(line) for line in warnings(Dataset.open(log))] == [times] * 2
