"""Tables as people have them come in as they are meant: rows in the order of time with customers interleaved,
masks as names, a week without a rare action. What would mix people up is refused."""

import numpy as np
import pandas as pd
import pytest

from format_logs import in_csv, in_parquet
from optimist.data import formats, open_dataset
from optimist.data.formats.parquet import rows as table_rows
from optimist.data.warnings import warnings
from optimist.errors import DataError

FORMAT = formats.find("parquet")
COUPONS = ("none", "free_ship", "pct5", "bogo")  # in the shop's order, which is not that of the alphabet
SORTED = [f"ok_{name}" for name in sorted(COUPONS)]
COLUMNS = {"observations": "visit,spent", "actions": "coupon", "rewards": "profit", "terminals": "left"}


def shop(customers: int = 40, seed: int = 0) -> pd.DataFrame:
    """A row for each visit in the order of time, as a warehouse exports it; the visits of a customer are not
    together."""
    random, rows = np.random.default_rng(seed), []
    for customer in range(customers):
        visits, time = int(random.integers(1, 8)), int(random.integers(0, 10**6))
        for visit in range(visits):
            allowed = np.append(True, random.random(3) < 0.6)
            chances = allowed / allowed.sum()
            coupon = int(random.choice(4, p=chances))
            row = {
                "customer_id": f"C{customer + 300}",
                "timestamp": pd.Timestamp("2026-03-01") + pd.Timedelta(seconds=time),
                "visit": visit + 1,
                "spent": float(len(rows)),  # tells the rows apart
                "coupon": COUPONS[coupon],
                "profit": float(random.integers(0, 50)),
                "left": int(visit == visits - 1),
                "propensity": float(chances[coupon]),
                "eligible": [COUPONS[number] for number in np.flatnonzero(allowed)],
            }
            rows.append(row | {f"ok_{name}": int(may) for name, may in zip(COUPONS, allowed, strict=True)})
            time += int(random.integers(1, 10**6))
    return pd.DataFrame(rows).sort_values("timestamp").reset_index(drop=True)


@pytest.fixture(params=[in_csv, in_parquet], ids=["csv", "parquet"])
def written(request, tmp_path):
    return lambda table: request.param(table, tmp_path)


def read(path, out, **options):
    return FORMAT.read(path, out, FORMAT.ReadOptions(**{**COLUMNS, **options}))


def grouped(table):
    """The rows of every customer together, customers in the order of their first visits."""
    first = table.groupby("customer_id")["timestamp"].transform("min")
    return table.assign(first=first).sort_values(["first", "customer_id", "timestamp"], kind="stable")


def spent(data):
    """The number that tells rows apart, of all steps in their order; no step is left out of this log."""
    steps = np.arange(len(data))
    return data.timeline.frames(steps + data.timeline.episode_of(steps))[:, 1].tolist()


def test_customers_that_would_be_mixed_up_are_refused(tmp_path, written):
    path = written(shop())
    said = r'"customer_id" changes in row 1, .* not marked .* --episodes customer_id --order timestamp keeps'
    with pytest.raises(DataError, match=f"{said}.*--drop customer_id"):
        read(path, tmp_path / "data", truncations="no")
    assert not (tmp_path / "data").exists()
    with pytest.raises(DataError, match="rows of different customers would become one episode"):
        read(path, tmp_path / "data")  # before it asks for truncations, whose answer would not help
    read(path, tmp_path / "data", truncations="no", drop="customer_id")  # meant so
    assert len(open_dataset(tmp_path / "data").episodes) == 40


@pytest.mark.parametrize("rows", [7, 1000])
def test_episodes_sort_by_themselves(tmp_path, written, monkeypatch, rows):
    """In sorted files of so many rows."""
    monkeypatch.setattr(table_rows, "MOST_ROWS", rows)
    table = shop()
    found = read(written(table), tmp_path / "data", episodes="customer_id", truncations="no")
    assert "the rows were sorted by customer_id" in found.notes
    data = open_dataset(tmp_path / "data")
    assert spent(data) == grouped(table)["spent"].tolist()
    assert data.episodes.terminal.all() and len(data.episodes) == 40


def test_order_sorts_a_shuffled_table_into_the_same_log(tmp_path, written):
    table, both = shop(), {"episodes": "customer_id", "truncations": "no"}
    read(written(table), tmp_path / "data", **both)
    read(written(table.sample(frac=1, random_state=3)), tmp_path / "again", **both, order="timestamp")
    assert open_dataset(tmp_path / "again").fingerprint == open_dataset(tmp_path / "data").fingerprint
    read(written(grouped(table)), tmp_path / "sorted", **both, order="timestamp")
    assert open_dataset(tmp_path / "sorted").fingerprint == open_dataset(tmp_path / "data").fingerprint


def test_times_that_go_back_are_told_the_order(tmp_path, written, caplog):
    shuffled, both = shop().sample(frac=1, random_state=3), {"episodes": "customer_id", "truncations": "no"}
    bought = shuffled.rename(columns={"timestamp": "bought"})  # a name that may mean anything
    with pytest.raises(DataError, match="goes on after row .* marked as an end.* sort the rows by time"):
        read(written(bought), tmp_path / "data", **both)
    assert 'the column "bought" is left out and goes back within episodes' in caplog.text
    assert "--order bought sorts them by it" in caplog.text


def test_rows_at_one_time_are_refused_only_where_their_order_is_unknown(tmp_path, written):
    table, both = grouped(shop()), {"episodes": "customer_id", "order": "day,hour", "truncations": "no"}
    day = (table["timestamp"] - pd.Timestamp("2026-03-01")).dt.days
    table = table.assign(day=day, hour=0).drop(columns=["timestamp", "first"])
    long = table["customer_id"].map(table["customer_id"].value_counts()) > 3
    one = table[long]["customer_id"].iloc[0]
    table.loc[table["customer_id"] == one, "day"] = 5  # rows of one time in the order of the file
    read(written(table), tmp_path / "data", **both)
    table.loc[np.flatnonzero(table["customer_id"] == one)[0], "day"] = 9  # and one that is not
    table = table.reset_index(drop=True)
    first = int(np.flatnonzero(table["customer_id"] == one)[0])
    table.loc[first, "day"] = 9
    said = f"rows {first + 1} and {first + 2} of episode {one} have the same day and hour"
    with pytest.raises(DataError, match=said):
        read(written(table), tmp_path / "other", **both)


def test_numbers_that_begin_again_are_not_one_episode(tmp_path, written):
    """Two weeks whose episodes count from 0: a sort would join two episodes into one."""
    week = pd.DataFrame({"x": np.arange(60.0), "run": np.arange(60) // 10, "at": np.arange(60) % 10})
    week = week.assign(coupon=np.arange(60) % 3, profit=1.0, left=0)
    both, options = pd.concat([week, week]), {"observations": "x", "episodes": "run"}
    with pytest.raises(DataError, match="episode 0 appears again in row 60, and the others follow it"):
        read(written(both), tmp_path / "data", **options)
    with pytest.raises(DataError, match="rows 0 and 60 of episode 0 have the same at"):
        read(written(both), tmp_path / "data", **options, order="at")
    panel = week.sort_values(["at", "run"])  # day after day all of them: rows of one episode
    read(written(panel), tmp_path / "data", **options)
    assert len(open_dataset(tmp_path / "data").episodes) == 6


def test_errors_name_the_row_of_the_file(tmp_path, written):
    table = shop()
    table.loc[57, "profit"] = np.inf
    with pytest.raises(DataError, match=r"rewards hold NaN or infinity \(first in row 57\)"):
        read(written(table), tmp_path / "data", episodes="customer_id", truncations="no")
    table = shop().assign(left=0)
    last = table["customer_id"].where(table["customer_id"] == table["customer_id"][0]).last_valid_index()
    said = f"episode {table['customer_id'][0]} ends in row {last} without a terminal"
    with pytest.raises(DataError, match=said):
        read(written(table), tmp_path / "data", episodes="customer_id", truncations="no")


def table_of(steps: int = 60, **more) -> pd.DataFrame:
    """Six episodes of ten steps, whose ends are marked."""
    made = {"visit": np.arange(steps) % 10, "spent": np.arange(steps) * 0.5, "coupon": np.arange(steps) % 3}
    return pd.DataFrame({**made, "profit": np.arange(steps) % 7, "left": np.arange(steps) % 10 == 9, **more})


NUMBER = np.arange(60)
ORDINARY = [
    {"customer_id": NUMBER // 10},  # changes only where episodes end
    {"email": [f"{number}@mail.org" for number in range(60)]},  # tells rows apart, not people
    {"id": NUMBER},
    {"user": np.linspace(0, 1, 60)},  # a measurement, such as the share of a processor
    {"new_customer": NUMBER % 2, "customer": NUMBER % 2},  # a flag
    {"user_segment": list("abc") * 20, "session_length": NUMBER % 9, "patient_age": NUMBER % 7},
    {"paid": NUMBER % 4, "bid": NUMBER % 5, "valid": NUMBER % 3, "android": NUMBER % 3},
    {"lead_time": NUMBER % 5, "reaction_time": NUMBER % 3},
    {"step": NUMBER % 10, "timestamp": pd.date_range("2026-03-01", periods=60)},
]


@pytest.mark.parametrize("more", ORDINARY, ids=lambda more: "-".join(more))
def test_ordinary_columns_are_no_identity(tmp_path, written, caplog, more):
    read(written(table_of(**more)), tmp_path / "data", truncations="no")
    assert not [each for each in caplog.messages if "column" in each]
    assert not [line for line in warnings(open_dataset(tmp_path / "data")) if "left out" in line]


@pytest.mark.parametrize(
    "name", ["customer", "CustomerID", "patient_no", "user_id", "icustay_id", "session", "hadm_id"]
)
def test_names_of_people_are_known(tmp_path, written, name):
    with pytest.raises(DataError, match=f'the column "{name}" changes in row 1, .* --episodes {name} keeps'):
        read(written(table_of(**{name: np.arange(60) % 5})), tmp_path / "data", truncations="no")


def test_rows_that_know_their_successors_cannot_be_mixed_up(tmp_path, written):
    bandit = table_of(customer_id=np.arange(60) % 5, left=1)
    read(written(bandit), tmp_path / "bandit", truncations="no")
    assert len(open_dataset(tmp_path / "bandit").episodes) == 60
    known = table_of(customer_id=np.arange(60) % 5, truncated=1, visit2=0, spent2=0)
    read(written(known), tmp_path / "known", next_observations="visit2,spent2")
    assert len(open_dataset(tmp_path / "known")) == 60


def test_what_may_be_an_identity_is_said_at_the_import_and_by_data_info(tmp_path, written, caplog):
    read(written(table_of(store_id=np.arange(60) // 4)), tmp_path / "data", truncations="no")
    said = (
        'the column "store_id" is left out and changes within episodes, in 12 rows (first: row 4): if each '
    )
    said += "of its values is an episode, give --episodes store_id"
    assert said in caplog.messages and said in warnings(open_dataset(tmp_path / "data"))


def test_all_missing_roles_are_named_at_once_with_all_columns(tmp_path, written):
    path, table = written(shop()), shop()
    with pytest.raises(DataError) as caught:
        FORMAT.read(path, tmp_path / "data")
    said = str(caught.value)
    assert "for the observations, actions, rewards, terminals: name them with --observations A,B,C " in said
    assert said.endswith(f"its columns are {', '.join(table.columns)}")
    found = read(path, tmp_path / "data", episodes="customer_id", truncations="no")
    left = ", ".join(f"ok_{name}" for name in COUPONS)
    assert f"columns left out: timestamp, propensity, eligible, {left}" in found.notes


MASKS = {
    "columns": {"allowed_actions": "ok_*"},
    "columns in any order": {"allowed_actions": "ok_bogo,ok_none,ok_pct5,ok_free_ship"},
    "names": {"allowed_actions": "eligible"},
}


@pytest.mark.parametrize("options", MASKS.values(), ids=MASKS)
def test_masks_are_matched_by_name(tmp_path, written, options):
    table = shop()
    read(written(table), tmp_path / "data", episodes="customer_id", truncations="no", **options)
    data = open_dataset(tmp_path / "data")
    assert data.spec.action_names == tuple(sorted(COUPONS))
    expected = grouped(table)[SORTED].to_numpy(bool)
    np.testing.assert_array_equal(np.asarray(data.timeline.allowed), expected)


@pytest.mark.parametrize("texts", [";".join, ", ".join, str, lambda names: str(np.array(names))])
def test_a_cell_may_list_names_in_many_ways(tmp_path, texts):
    table = shop()
    path = in_csv(table.assign(eligible=table["eligible"].map(texts)), tmp_path)
    read(path, tmp_path / "data", episodes="customer_id", truncations="no", allowed_actions="eligible")
    expected = grouped(table)[SORTED].to_numpy(bool)
    np.testing.assert_array_equal(np.asarray(open_dataset(tmp_path / "data").timeline.allowed), expected)


def test_lists_of_numbers_are_masks_or_actions_as_they_look(tmp_path, written):
    table = shop()
    flags = table[SORTED].to_numpy()
    numbers = table["coupon"].map(sorted(COUPONS).index)
    which = [[str(number) for number in np.flatnonzero(row)] for row in flags]
    shown = {"flags": [[str(each) for each in row] for row in flags], "which": which}
    for name, lists in shown.items():
        path = written(table.assign(eligible=lists, coupon=numbers))
        read(path, tmp_path / name, episodes="customer_id", truncations="no", allowed_actions="eligible")
        expected = grouped(table)[SORTED].to_numpy(bool)
        np.testing.assert_array_equal(np.asarray(open_dataset(tmp_path / name).timeline.allowed), expected)


def rare(table):
    """The week in which nobody got bogo, although some could have."""
    return table[table["coupon"] != "bogo"].reset_index(drop=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"allowed_actions": "ok_*"}, 'the column "ok_bogo" of allowed_actions is that of no action'),
        ({"allowed_actions": "eligible"}, "the allowed_actions in row [0-9]+ name bogo, which is not among"),
    ],
)
def test_a_week_without_a_rare_action_is_told_how_to_name_it(tmp_path, written, options, said):
    path, both = written(rare(shop())), {"episodes": "customer_id", "terminals": "no", **options}
    with pytest.raises(DataError, match=f"{said}.*--action-names bogo,free_ship,none,pct5$"):
        read(path, tmp_path / "week", **both)
    read(path, tmp_path / "week", **both, action_names="bogo,free_ship,none,pct5")
    read(written(shop(seed=1)), tmp_path / "before", **both)
    data = open_dataset(tmp_path / "week")
    assert data.spec == open_dataset(tmp_path / "before").spec and np.asarray(data.timeline.action).all()
    data.save(tmp_path / "before", append=True)


def test_an_append_with_other_actions_is_told_the_option(tmp_path, written):
    both = {"episodes": "customer_id", "terminals": "no"}
    read(written(shop()), tmp_path / "all", **both)
    read(written(rare(shop())), tmp_path / "few", **both)
    with pytest.raises(DataError, match="import the new log with --action-names bogo,free_ship,none,pct5$"):
        open_dataset(tmp_path / "few").save(tmp_path / "all", append=True)
    with pytest.raises(DataError, match="import both with --action-names free_ship,none,pct5,bogo$"):
        open_dataset(tmp_path / "all").save(tmp_path / "few", append=True)


def test_masks_of_numbered_actions_are_matched_too(tmp_path, written):
    table = table_of(can_2=1, can_0=np.arange(60) % 3 == 0, can_1=1)
    read(written(table), tmp_path / "data", truncations="no", allowed_actions="can_*")
    allowed = np.asarray(open_dataset(tmp_path / "data").timeline.allowed)
    expected = np.stack([np.arange(60) % 3 == 0, np.ones(60), np.ones(60)], axis=1)
    np.testing.assert_array_equal(allowed, expected)
    with pytest.raises(DataError, match="allowed_actions have no column for 2 among can_0, can_1"):
        read(written(table), tmp_path / "other", truncations="no", allowed_actions="can_0,can_1")


def test_wrong_probabilities_are_said_at_the_import(tmp_path, written):
    both = {"episodes": "customer_id", "truncations": "no", "probabilities": "propensity"}
    many = shop(customers=400)
    right = read(written(many), tmp_path / "right", **both, allowed_actions="ok_*")
    assert not any("probabilities cannot" in note for note in right.notes)
    wrong = read(written(many.assign(propensity=0.9)), tmp_path / "wrong", **both)
    (line,) = [note for note in wrong.notes if "probabilities cannot be right" in note]
    assert "1,5" in line and line.startswith("warning: ")
    assert line.removeprefix("warning: ") in warnings(open_dataset(tmp_path / "wrong"))
