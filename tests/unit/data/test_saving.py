"""A dataset, or a view of one, that is saved and opened again is the same."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from little import pixels, random_play, vectors
from optimist.cli.data import card_table
from optimist.cli.main import main
from optimist.data import Dataset, Recorder, Sampler, transitions
from optimist.data.look import card
from optimist.data.verify import verify
from optimist.errors import DataError

pytestmark = pytest.mark.usefixtures("quick_disk")


def everything(dataset, n_step=1):
    sampler = Sampler(dataset, gamma=0.5, n_step=n_step)
    return transitions(sampler, np.arange(len(dataset)), dataset.timeline.frames)


def assert_same(one, other):
    assert len(one) == len(other) and one.spec == other.spec
    before, after = everything(one, 2), everything(other, 2)
    for name, first, second in zip(before._fields, before, after, strict=True):
        np.testing.assert_array_equal(first, second, err_msg=name)


@st.composite
def logs(draw):
    """Random logs of every kind that from_arrays takes."""
    count = draw(st.integers(2, 30))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.sampled_from([(3,), (9, 8), (9, 8, 3), (2, 9, 8)]))
    dtype = draw(st.sampled_from(["uint8", "bool"] if len(shape) > 1 else ["uint8", "bool", "float32"]))
    observations = (random.random((count + 1, *shape)) * 5).astype(dtype)
    kinds = [random.integers(0, 4, count), random.choice(["a", "b"], count), random.normal(size=(count, 2))]
    actions = draw(st.sampled_from(kinds))
    terminals = random.random(count) < 0.2
    given = {
        "observations": observations[:-1],
        "actions": actions,
        "rewards": random.normal(size=count),
        "terminals": terminals,
        "truncations": (random.random(count) < 0.2) & ~terminals,
        "stack": draw(st.integers(1, 3)),
    }
    if draw(st.booleans()):
        given["next_observations"] = observations[1:]
    if draw(st.booleans()):
        given["probabilities"] = 1 - random.random(count)
    if actions.dtype.kind != "f" and draw(st.booleans()):
        number = len(np.unique(actions)) if actions.dtype.kind == "U" else int(actions.max()) + 1
        given["allowed_actions"] = np.ones((count, number), bool)
    return given


@settings(deadline=None, max_examples=40)
@given(arrays=logs())
def test_a_saved_log_is_the_log(arrays, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "log"
    try:
        made = Dataset.from_arrays(**arrays)
    except DataError as problem:
        assert "no transition is left" in str(problem)
        return
    saved = made.save(folder)
    assert verify(folder) == []
    assert_same(made, saved)
    np.testing.assert_array_equal(made.episodes.cut, saved.episodes.cut)
    for name, column in (("probability", "probabilities"), ("allowed", "allowed_actions")):
        before, after = getattr(made.timeline, name), getattr(saved.timeline, name)
        assert (before is None) == (after is None) == (column not in arrays)
        np.testing.assert_array_equal(before, after)


def test_lanes_their_time_and_their_open_ends_survive(tmp_path):
    images = pixels(tmp_path / "images")
    copy = images.save(tmp_path / "copy")
    assert verify(tmp_path / "copy") == []
    assert_same(images, copy)
    for name in ("lane", "time", "truncated", "terminal"):
        np.testing.assert_array_equal(getattr(images.timeline, name), getattr(copy.timeline, name))
    np.testing.assert_array_equal(images.episodes.cut, copy.episodes.cut)
    assert_same(images.first(50), copy.first(50))


@pytest.mark.parametrize(
    "choose", [lambda d: d.first(77), lambda d: d.last(50), lambda d: d.fraction(0.4), lambda d: d.best(0.3)]
)
def test_a_saved_view_is_what_it_shows_and_its_cuts_are_truncated(tmp_path, choose):
    data = vectors()
    view = choose(data)
    saved = view.save(tmp_path / "view")
    assert verify(tmp_path / "view") == []
    assert_same(view, saved)
    ended = saved.timeline.terminal | saved.timeline.truncated
    assert ended.sum() >= len(view.episodes) - 1  # only the end of the log itself has no end
    np.testing.assert_array_equal(saved.episodes.lengths, view.episodes.lengths)


def test_nobody_is_said_to_have_played_what_was_appended_to_the_recording_of_several(tmp_path):
    players = {"seeds": [3, 5], "collection": {"lanes": 1}}
    replace(vectors(50), provenance=players).save(tmp_path / "log")
    assert len(Dataset.open(tmp_path / "log").played_by(3)) == len(vectors(50))
    both = vectors(80).save(tmp_path / "log", append=True)
    with pytest.raises(DataError, match="appended to a recording of several players"):
        both.played_by(5)


def test_appending_adds_a_lane_and_needs_the_same_kind_of_steps(tmp_path):
    one, other = vectors(50), vectors(80)
    one.save(tmp_path / "log")
    both = other.save(tmp_path / "log", append=True)
    assert len(both) == len(one) + len(other) and verify(tmp_path / "log") == []
    np.testing.assert_array_equal(np.unique(both.timeline.lane), [0, 1])
    np.testing.assert_array_equal(both.timeline.reward, [*one.timeline.reward, *other.timeline.reward])
    np.testing.assert_array_equal(both.timeline.time, np.arange(len(both)))
    before = both.fingerprint
    with pytest.raises(DataError, match="holds a dataset already; choose a new folder, or append"):
        one.save(tmp_path / "log")
    with pytest.raises(DataError, match="those in .* have none, and these have probability"):
        vectors(60, probabilities=np.ones(60)).save(tmp_path / "log", append=True)
    assert Dataset.open(tmp_path / "log").fingerprint == before
    assert verify(tmp_path / "log") == []


def test_the_same_steps_are_appended_once(tmp_path):
    """A command that was run again doubled them, and nothing said so; also those that a folder began with."""
    one, other, third, log = vectors(50), vectors(80), vectors(30), tmp_path / "log"
    saved = one.save(log, append=True)
    assert "copy_of" not in saved.save(tmp_path / "elsewhere").provenance
    with pytest.raises(DataError, match="log is the log itself"):
        saved.save(log, append=True)
    for more in (other, third):
        both = more.save(log, append=True)
    for again in (one, other):
        with pytest.raises(DataError, match="log has these steps already: they were appended before"):
            again.save(log, append=True)
    assert Dataset.open(log).fingerprint == both.fingerprint and verify(log) == []
    assert len(other.first(20).save(log, append=True)) == len(both) + 20


def test_a_log_that_grew_since_it_was_appended_adds_its_new_steps_only(tmp_path, capsys):
    """Only an equal log was known, so the first steps of a longer one were doubled without a word. A shard
    that grows is written anew, and a recording that is opened again has new lanes."""
    vectors(40).save(tmp_path / "log")
    more, log, spec = str(tmp_path / "more"), str(tmp_path / "log"), vectors(20).spec

    def recorded(rows, *, anew):
        with Recorder(more, spec, lanes=2) as recorder:
            assert anew or recorder.go_on(0)
            for step in random_play(spec, rows=rows, lanes=2, seed=rows if anew else 10):
                recorder.add(*step)

    recorded(10, anew=True)
    assert main(["data", "append", more, "--to", log]) == 0
    for rows, anew, rest, whole in ((25, False, 30, 50), (7, True, 14, 64)):
        recorded(rows, anew=anew)
        assert main(["data", "append", more, "--to", log]) == DataError.exit_code
        said = capsys.readouterr().err
        assert f"has {whole - rest} of these {whole} steps already, because the log grew after" in said
        assert f"with --last {rest} (in Python: data.last({rest}))" in said and said.count("\n") == 1
        assert main(["data", "append", more, "--last", str(rest), "--to", log]) == 0
        assert main(["data", "append", more, "--last", str(rest), "--to", log]) == DataError.exit_code
        assert "log has these steps already: they were appended before" in capsys.readouterr().err
    rewards = Dataset.open(more).timeline.reward
    np.testing.assert_array_equal(np.sort(Dataset.open(log).timeline.reward[-64:]), np.sort(rewards))


def test_equal_actions_and_rewards_alone_are_no_equal_steps(tmp_path):
    """The longer log begins with the actions, rewards and first observation of the shorter one."""

    def log(steps, second):
        seen, zeros = np.insert(np.arange(steps - 1.0), 1, second), np.zeros(steps)
        return Dataset.from_arrays(seen[:, None], zeros.astype(int), zeros, zeros, truncations=zeros)

    log(6, 0.5).save(tmp_path / "log")
    assert len(log(10, 0.6).save(tmp_path / "log", append=True)) == 5 + 9
    with pytest.raises(DataError, match="has 9 of these 10 steps already"):
        log(11, 0.6).save(tmp_path / "log", append=True)


def test_a_copy_of_a_log_is_not_appended_to_it(tmp_path):
    """It was, because its folder was another one, and all steps were there twice."""
    one = vectors(50).save(tmp_path / "log")
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    with pytest.raises(DataError, match="log has all of these steps already; append others"):
        Dataset.open(tmp_path / "copy").save(tmp_path / "log", append=True)
    assert Dataset.open(tmp_path / "log").fingerprint == one.fingerprint


def test_a_view_of_a_log_that_grew_may_lack_what_was_appended(tmp_path):
    one, other = vectors(50), vectors(80)
    one.save(tmp_path / "log")
    grown = other.save(tmp_path / "log", append=True)
    cut = grown.first(len(one)).save(tmp_path / "cut")
    assert len(other.save(tmp_path / "cut", append=True)) == len(cut) + len(other)


def test_a_log_of_ones_own_can_be_saved_with_its_names_and_its_origin(tmp_path):
    made = vectors(50, action_names=["skip", "buy"], provenance={"source": "shop"})
    saved = made.save(tmp_path / "shop")
    assert saved.provenance == made.provenance and made.provenance["source"] == "shop"
    assert saved.action_name(1) == "buy"
    assert card(saved)["action_names"] == ["skip", "buy"] and "skip" in card(saved)["spec"]
    assert "2 actions (skip, buy)" in repr(saved)


def test_thousands_of_action_names_fit_on_the_terminal(tmp_path):
    rows = np.arange(3000)
    made = Dataset.from_arrays(np.zeros((3000, 1)), rows * 517, np.zeros(3000), np.ones(3000))
    shown = dict(card_table(card(made), "shop").rows)
    names = shown["action names"]
    assert names.startswith("0, 517, 1034, ") and names.endswith("and 2980 more")
    assert len(shown["action frequency"]) < 300


def test_forged_probabilities_and_masks_are_refused(tmp_path):
    made = vectors(50, probabilities=np.full(50, 0.5), allowed_actions=np.ones((50, 2), bool))
    made.timeline.probability[7] = 2
    made.timeline.allowed.bits[9] = 0
    with pytest.raises(DataError, match="holds a probability that is not above 0 and at most 1 in row 7"):
        made.save(tmp_path / "log")
    problems = verify(tmp_path / "log")
    assert len(problems) == 2 and "rows 7: a probability" in problems[0] and "rows 9" in problems[1]


def test_episodes_show_what_was_logged_beside_the_actions():
    masks = np.ones((50, 2), bool)
    made = vectors(50, probabilities=np.linspace(0.1, 1, 50), allowed_actions=masks)
    episode = made.episodes[1]
    np.testing.assert_allclose(
        episode.probabilities, np.linspace(0.1, 1, 50)[episode.start :][: len(episode)], rtol=1e-6
    )
    assert episode.allowed_actions.shape == (len(episode), 2)
    assert vectors(50).episodes[0].probabilities is None and vectors(50).episodes[0].allowed_actions is None
