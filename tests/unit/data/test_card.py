"""The card has the figures of a dataset, and None where there are no data for one."""

import json

import numpy as np
import pytest

from optimist.cli.data import card_table
from optimist.data import from_arrays, open_dataset
from optimist.data.intake import Intake
from optimist.data.look import card, mean_interval
from reference import SPECS, record


def test_the_card_sums_up_what_was_recorded(pristine):
    figures = card(open_dataset(pristine))
    assert (figures["steps"], figures["episodes"], figures["complete_episodes"]) == (120, 12, 12)
    assert figures["return_mean"] == figures["return_best_tenth"] == 10.0
    assert figures["return_per_tenth"] == [10.0] * 10
    assert figures["action_frequency"] == pytest.approx([1 / 3] * 3)
    assert figures["action_entropy"] == pytest.approx(np.log(3))
    assert figures["terminal_rate"] == 1.0 and figures["bytes_per_frame_raw"] == 144
    assert figures["bytes_on_disk"] == sum(path.stat().st_size for path in pristine.glob("*.arrow"))
    assert json.loads(json.dumps(figures)) == figures


def test_the_best_policy_is_the_best_stretch_of_play_not_the_best_episode():
    returns = np.zeros(400)
    returns[100] = 50
    returns[200:220] = 7
    rows = (np.zeros((400, 1), bool), np.zeros(400, int), returns, np.ones(400, bool))
    played = from_arrays(*rows, provenance={"environment": "gym/CartPole-v1"})
    assert card(played)["best_policy_return"] == 7.0
    grouped_by_customer = from_arrays(*rows)  # neighbours are not of one time
    assert card(grouped_by_customer)["best_policy_return"] is None


def test_the_mean_return_has_an_interval_over_episodes():
    """It holds the truth in 95 of 100 logs, to within the noise of 400 logs."""
    random, held = np.random.default_rng(0), 0
    for _ in range(400):
        low, high = mean_interval(random.normal(3.0, 2.0, 50))
        held += low < 3 < high
    assert 0.91 < held / 400 < 0.98
    assert mean_interval(np.ones(5)) is None  # too few to say


def test_the_card_says_that_probabilities_and_masks_were_logged():
    masks = np.array([[1, 1, 1], [1, 0, 0]] * 5, bool)
    more = {"probabilities": np.linspace(0.1, 1, 10), "allowed_actions": masks, "actions_count": 3}
    data = from_arrays(np.arange(10.0)[:, None], np.zeros(10, int), np.ones(10), np.ones(10, bool), **more)
    figures = card(data)
    assert figures["allowed_actions"] == {"mean": 2.0, "least": 1.0, "most": 3.0}
    assert figures["probabilities"] == pytest.approx({"mean": 0.55, "least": 0.1, "most": 1.0})
    assert card(data.first(1))["allowed_actions"]["mean"] == 3.0
    assert "allowed_actions" not in card(from_arrays(np.ones((2, 1)), [0, 1], [1, 1], [True, True]))


def test_the_card_of_unfinished_play_has_no_returns(tmp_path):
    record(tmp_path, SPECS["vectors"], rows=10, ends=0)
    figures = card(open_dataset(tmp_path))
    assert figures["return_mean"] is None and figures["complete_episodes"] == 0
    assert len(figures["action_mean"]) == 2


def test_the_card_says_which_steps_the_import_left_out(tmp_path):
    """Their rewards are missing in the returns of episodes that are called complete."""
    ends = np.arange(10) % 5 == 4
    given = {"observations": np.arange(10.0)[:, None], "actions": np.arange(10) % 2}
    given |= {"rewards": np.where(ends, 100.0, 1.0), "terminals": ends & False, "truncations": ends}
    data = from_arrays(**given)
    line = "2 last steps with an unknown successor, whose rewards sum to 200; lengths and returns lack them"
    assert card(data)["return_mean"] == 4.0 and card(data)["left_out"] == line
    assert card(data.save(tmp_path / "saved"))["left_out"] == line
    with Intake(tmp_path / "taken", data.spec) as intake:
        intake.add({**given, "observations": given["observations"].astype(np.float32)})
    assert card(open_dataset(tmp_path / "taken"))["left_out"] == line
    others = from_arrays(**{**given, "observations": given["observations"] + 10})
    grown = others.save(tmp_path / "taken", append=True)
    assert card(grown)["left_out"] == line.replace("2 last", "4 last").replace("200", "400")


def test_a_part_says_how_many_steps_it_may_lack_at_most(tmp_path):
    """Where an import left out steps is not recorded; those of other episodes are not of the part."""
    ends = np.arange(40) % 5 == 4
    terminals = ends & (np.arange(40) < 10)  # the first two of eight episodes lack nothing
    rewards = np.where(ends, 100.0, np.arange(40) // 5)
    data = from_arrays(np.arange(40.0)[:, None], np.arange(40) % 2, rewards, terminals, ends & ~terminals)
    whole = "6 last steps with an unknown successor, whose rewards sum to 600; lengths and returns lack them"
    lines = {
        data.first(10): None,
        data.first(12): None,  # the third episode is cut before its end
        data.last(5): "at most 2 last steps with an unknown successor; lengths and returns lack them",
        data.best(0.375): "at most 1 last step with an unknown successor; lengths and returns lack them",
        data.first(100): whole,
    }
    for number, (part, line) in enumerate(lines.items()):
        assert card(part)["left_out"] == line
        assert card(part.save(tmp_path / f"{number}"))["left_out"] == line
    grown = data.save(tmp_path / "2", append=True)
    assert card(grown)["left_out"].startswith("at most 8 last steps with an unknown successor;")


@pytest.mark.parametrize("record", [None, [], {"steps": "x", "rewards": 1}, {"steps": 10**400}, {}])
def test_a_damaged_record_of_left_out_steps_says_nothing(record):
    columns = np.zeros((4, 1)), [0, 1, 0, 1], np.ones(4), np.ones(4)
    data = from_arrays(*columns, provenance={"left_out": record})
    assert card(data)["left_out"] is None


@pytest.mark.parametrize(
    ("episodes", "shown"),
    [
        (1, None),
        (2, "-, -, -, -, 15, -, -, -, -, 15 (-: no episode ended there)"),
        (30, ", ".join(["1"] * 10)),
    ],
)
def test_the_table_of_a_card_has_no_word_for_nothing(episodes, shown):
    ends = np.arange(30) % (30 // episodes) == 30 // episodes - 1
    data = from_arrays(np.zeros((30, 1)), np.zeros(30, int), np.ones(30), ends, truncations=False)
    rows = dict(card_table(card(data), "log").rows)
    assert rows.get("return per tenth") == shown
    assert not any("None" in str(value) for value in rows.values())


def test_one_episode_is_counted_in_the_singular(tmp_path):
    data = from_arrays(
        np.zeros((30, 1)), np.zeros(30, int), np.ones(30), np.arange(30) == 29, truncations=False
    )
    assert repr(data.episodes).startswith("1 episode, 1 of them complete")
    with Intake(tmp_path / "taken", data.spec) as intake:
        rows = {"observations": np.zeros((30, 1), data.spec.frame_dtype), "actions": np.zeros(30, int)}
        intake.add({**rows, "rewards": np.ones(30), "terminals": np.arange(30) == 29})
    assert intake.counts.lines() == ["30 steps in 1 episode"]


def test_large_returns_are_told_apart_in_the_table():
    """Their commas looked like those between them: "500, 1,500"."""
    rewards = np.repeat([500.0, 1500.0], 10)
    data = from_arrays(np.zeros((20, 1)), np.zeros(20, int), rewards, np.ones(20))
    rows = dict(card_table(card(data), "log").rows)
    assert rows["return per tenth"] == "; ".join(["500"] * 5 + ["1,500"] * 5)
