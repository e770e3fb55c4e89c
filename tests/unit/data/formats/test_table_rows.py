"""The rows of a table are in the order of time: where a clock, labels of episodes or copies of rows say
otherwise, the user is told."""

import numpy as np
import pytest

from format_logs import in_csv, in_parquet
from optimist.data import formats, open_dataset
from optimist.data.formats.parquet import rows as table_rows
from optimist.data.warnings import warnings
from optimist.errors import DataError

FORMAT = formats.find("parquet")
STEP = np.arange(60) % 10
EPISODE = ("episode",)
SWAPPED = [*range(24), 25, 24, *range(26, 60)]
INTERLEAVED = np.arange(60).reshape(3, 2, 10).swapaxes(1, 2).ravel()  # two episodes step by step


def log(order=range(60), without: tuple[str, ...] = (), **more) -> dict:
    """Six episodes of ten steps in this order of rows; every second one ends without a terminal step."""
    random = np.random.default_rng(0)
    table = {
        "x": random.normal(size=60),
        "action": random.integers(0, 3, 60),
        "reward": random.normal(size=60),
        "terminal": np.arange(60) % 20 == 9,
        "episode": np.arange(60) // 10,
        **more,
    }
    return {name: np.asarray(values)[list(order)] for name, values in table.items() if name not in without}


@pytest.fixture(params=[in_csv, in_parquet], ids=["csv", "parquet"])
def read(request, tmp_path, monkeypatch):
    """Import a table, in parts of five rows: their borders are looked at too."""
    monkeypatch.setattr(table_rows, "MOST_ROWS", 5)

    def imported(table, **options):
        path = request.param(table, tmp_path)
        out = tmp_path / f"data-{len(list(tmp_path.iterdir()))}"
        found = FORMAT.read(path, out, FORMAT.ReadOptions(**{"observations": "x", **options}))
        return open_dataset(out), found.lines()

    return imported


SHORT = np.datetime64("2026-03-01T10:00:00", "s") + STEP
BACK = 'the column "{0}" goes back in row {1}, within an episode: --order {0}'
CONTRADICTIONS = [
    (log(SWAPPED, step=STEP), {}, BACK.format("step", 25)),
    (log(SWAPPED, time=STEP), {}, BACK.format("time", 25)),
    (log(SWAPPED, timestamp=SHORT), {}, BACK.format("timestamp", 25)),
    (log(range(59, -1, -1), t=STEP), {}, BACK.format("t", 1)),
    # A clock that begins again at 0 cannot be told from an end that is not marked, so the user is asked.
    (log(time=(STEP + 18) % 24), {}, "a time of day that passes midnight, or has another meaning, .* time$"),
    (log(step=STEP, without=EPISODE), {"truncations": "no"}, '"step" goes back in row 20, .* or mark where'),
    # Before, such an end was taken for a truncation, whatever the user said.
    (log(), {"truncations": "no"}, "episode 1 ends in row 19 without a terminal step, but --truncations no"),
    (log(episode=np.arange(60) // 10 % 3), {}, "episode 0 appears again in row 30, and the others follow it"),
    (log(without=("terminal",)), {}, "--truncations no if every episode really ends with its last row"),
    (log(), {"terminals": "no", "truncations": "no"}, "--terminals no and --truncations no leave no kind"),
]


@pytest.mark.parametrize(("table", "options", "said"), CONTRADICTIONS)
def test_what_contradicts_the_order_or_the_ends_is_refused_in_one_line(read, table, options, said):
    with pytest.raises(DataError, match=said) as refused:
        read(table, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("clock", "options"), [("step", {"drop": "step"}), ("time", {"observations": "x,time"})]
)
def test_a_column_is_no_clock_if_the_user_says_so(read, clock, options):
    """By leaving it out, or as a feature."""
    data, _ = read(log(SWAPPED, **{clock: STEP}), **options)
    assert len(data) > 0 and data.spec.frame_shape == (options.get("observations", "x").count(",") + 1,)


@pytest.mark.parametrize(("option", "terminal"), [("truncations", STEP == 9), ("terminals", STEP < 0)])
def test_the_user_says_what_the_ends_of_episodes_are(read, option, terminal):
    data, lines = read(log(without=("terminal",)), **{option: "no"})
    assert f"terminals: {'none' if option == 'terminals' else 'the last row of every episode'}" in " ".join(
        lines
    )
    expected, _ = read(log(terminal=terminal))
    assert data.fingerprint == expected.fingerprint


def test_terminals_no_goes_with_a_column_of_truncations(read):
    cut = np.arange(60) % 15 == 14
    data, _ = read(log(without=("terminal", "episode"), truncated=cut), terminals="no")
    assert len(data) == 56 and not data.timeline.terminal.any()


def test_interleaved_episodes_without_a_column_of_episodes_are_told(read, caplog):
    read(log(INTERLEAVED, without=EPISODE, step=STEP, terminal=STEP == 9), truncations="no")
    assert [each.message for each in caplog.records] == [
        'the column "step" stays the same from row 0 to row 1, within an episode: give --episodes COLUMN and '
        "--order step, or mark where episodes end"
    ]


def test_rows_that_are_there_twice_are_counted(read):
    _, lines = read(log([*range(5), 4, *range(5, 32), 31, 31, *range(32, 60)], step=STEP))
    assert lines[-1] == (
        "3 of 63 rows equal the row before in every column that is read (first: row 5); if rows were written "
        "twice, remove them"
    )


NO_ENDS = {name: np.ones(60) for name in ("x", "reward")} | {"terminal": STEP < 0, "action": np.ones(60, int)}


TRANSITIONS = log(SWAPPED, without=EPISODE, step=STEP, truncated=np.ones(60, bool), x_next=np.ones(60))
HONEST = [
    (log(**NO_ENDS, step=STEP), {}),  # equal play in other steps
    (log(step=[np.nan, *range(59)]), {}),
    (log(time=np.arange(60) // 3 % 24 * 1.0), {"observations": "x,time"}),  # a time that stands still
    (TRANSITIONS, {"next_observations": "x_next"}),  # rows that are whole transitions
]


@pytest.mark.parametrize(("table", "options"), HONEST)
def test_honest_rows_are_taken_without_a_remark(read, caplog, table, options):
    _, lines = read(table, **options)
    assert not any("equal the row" in line for line in lines) and not caplog.records


@pytest.mark.parametrize("option", [{"truncations": "no"}, {"terminals": "no"}], ids=str)
def test_a_mark_of_ends_that_nothing_uses_is_named_with_its_options(read, caplog, option):
    """`--truncations no` made every last row terminal, whatever the column said, without a word."""
    table = log(without=("terminal",), session_over=STEP == 4, weekend=np.arange(60) % 2)
    data, _ = read(table, **option)
    said = 'the column "session_over" is left out and is 1 in 6 rows (first: row 4): if these are ends, '
    both = "--terminals session_over takes them as terminal steps, --truncations session_over as time limits"
    assert caplog.messages == [said + both] and said + both in warnings(data)
    caplog.clear()
    read(log(done=STEP == 4))  # a column marks them
    read(log(without=("terminal",), done=STEP == 9), truncations="no")  # the same ends
    read(log(without=("terminal",), done=np.arange(60)), **option)  # no flags
    assert not caplog.messages


def test_who_sorted_by_time_is_not_told_to(read, caplog):
    read(log(SWAPPED, step=STEP, terminal=STEP == 4), order="step")
    (said,) = caplog.messages
    assert (
        said.startswith("episode 0 goes on after row 4, which is marked as an end") and "--order" not in said
    )
    assert said.endswith("if they are not, correct the mark")


def test_numbers_that_never_occur_are_said_to_be_actions(read, caplog):
    """A shop's discounts of 10, 20 and 50 percent became 51 actions in silence."""
    table = log(action=np.array([10, 20, 50])[np.arange(60) % 3])
    data, _ = read(table)
    (said,) = caplog.messages
    assert data.spec.actions == 51
    assert said.startswith(
        "only 3 of the 51 numbers from 0 to 50 occur as actions, and all 51 become actions: "
    )
    assert "--action-names 10,20,50 (action_names=) makes actions of those that occur" in said
    data, _ = read(table, action_names="10,20,50")
    assert data.spec.action_names == (10, 20, 50) and len(caplog.messages) == 1
    read(log(action=np.array([0, 1, 3])[np.arange(60) % 3]))
    assert len(caplog.messages) == 1
