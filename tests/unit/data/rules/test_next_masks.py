"""What could be chosen after the last step of a truncated episode is kept: dropped rows, cuts and people say
it. A log that does not need it is as it was before there was a column for it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.data import Dataset, Sampler, Spec, formats, from_arrays, open_dataset, transitions
from optimist.data.disk import manifest as manifests
from optimist.data.formats.parquet import rows as table_rows
from optimist.data.intake import Intake
from optimist.data.verify import verify
from optimist.data.warnings import warnings
from optimist.errors import DataError

pytestmark = pytest.mark.usefixtures("quick_disk")
LOSSLESS = [("npz", {}), ("parquet", {}), ("hdf5", {"layout": "d4rl"})]
ENDS = ("terminals", "truncations")


def log(count=12, actions=3, seed=0, successors=True, terminals=None, truncations=None):
    """The columns of a log whose masks all differ from row to row."""
    random = np.random.default_rng(seed)
    chosen = random.integers(0, actions, count + 1)
    masks = random.random((count + 1, actions)) < 0.4
    masks[np.arange(count + 1), chosen] = True
    frames = np.arange(count + 1, dtype=np.float32)[:, None] + 100 * seed
    rows = np.arange(count)
    columns = {
        "observations": frames[:-1],
        "actions": chosen[:-1],
        "rewards": random.normal(size=count).astype(np.float32),
        "terminals": rows % 5 == 2 if terminals is None else terminals,
        "truncations": rows % 4 == 3 if truncations is None else truncations,
        "allowed_actions": masks[:-1],
    }
    return {**columns, "next_observations": frames[1:]} if successors else columns


def with_next(columns, seed=1):
    """The log with masks that a person knows: those of the next rows, and others where episodes end."""
    random, masks = np.random.default_rng(seed), columns["allowed_actions"]
    known = np.roll(masks, -1, axis=0)
    ends = columns["terminals"] | columns["truncations"]
    ends[-1] = True
    known[ends] = random.random((int(ends.sum()), masks.shape[1])) < 0.5
    known[np.arange(len(masks)), random.integers(0, masks.shape[1], len(masks))] |= ends
    known[columns["terminals"]] = False
    return {**columns, "next_allowed_actions": known}


def by_hand(columns):
    """For each kept row: its number, whether it is terminal, the mask after it, and whether that is known."""
    masks, kept = columns["allowed_actions"], []
    for row, mask in enumerate(masks):
        is_last = row == len(masks) - 1
        ends = columns["truncations"][row] or is_last
        if columns["terminals"][row]:
            kept.append((row, True, mask, True))
        elif not ends:
            kept.append((row, False, masks[row + 1], True))
        elif "next_observations" not in columns:
            continue  # dropped: its successor is not known
        elif "next_allowed_actions" in columns:
            kept.append((row, False, columns["next_allowed_actions"][row], True))
        else:
            kept.append((row, False, mask, False))
    return kept


def found_in(data, n_step=1):
    return transitions(Sampler(data, n_step=n_step), np.arange(len(data)), data.timeline.frames)


def assert_as_by_hand(data, kept):
    """The successors of terminal steps are not used."""
    found = found_in(data)
    assert len(data) == len(kept)
    after = data.timeline.allowed_after(data.steps())
    for position, (_, is_terminal, mask, is_known) in enumerate(kept):
        if not is_terminal:
            np.testing.assert_array_equal(found.next_allowed[position], mask, f"position {position}")
            assert after[position].any() == is_known, f"position {position}"
    unknown = sum(not is_known for *_, is_known in kept)
    lines = [line for line in warnings(data) if "what could be chosen after them is not known" in line]
    assert [line.split(" of ")[0] for line in lines] == ([str(unknown)] if unknown else [])


def assert_same(one, other):
    for n_step in (1, 3):
        for before, after in zip(found_in(one, n_step), found_in(other, n_step), strict=True):
            np.testing.assert_array_equal(before, after)
    known = [data.timeline.allowed_after(data.steps()) for data in (one, other)]
    np.testing.assert_array_equal(*known)


@st.composite
def logs(draw):
    """Logs with and without successors and with and without known masks after their ends."""
    count = draw(st.integers(2, 25))
    flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    kinds = (st.sampled_from([2, 3, 8, 9]), st.integers(0, 99), st.booleans(), flags, flags)
    columns = log(count, *map(draw, kinds))
    columns["truncations"] &= ~columns["terminals"]
    return with_next(columns) if "next_observations" in columns and draw(st.booleans()) else columns


def made_of(columns):
    """The dataset, or None if no transition is left."""
    count = columns["allowed_actions"].shape[1]
    return from_arrays(**columns, actions_count=count) if by_hand(columns) else None


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_way_in_gives_the_mask_after_every_step(data, tmp_path_factory):
    """From arrays, saved, and in any parts and shards through an intake: as the loop says."""
    columns, folder = data.draw(logs()), tmp_path_factory.mktemp("logs")
    made, kept = made_of(columns), by_hand(columns)
    if made is None:
        return
    assert_as_by_hand(made, kept)
    assert_as_by_hand(made.save(folder / "saved"), kept)
    count = len(columns["rewards"])
    cuts = sorted({0, count, *data.draw(st.lists(st.integers(0, count), max_size=4))})
    with Intake(folder / "parts", made.spec, shard_steps=data.draw(st.integers(1, 9))) as intake:
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
            intake.add({name: column[start:stop] for name, column in columns.items()})
    assert_as_by_hand(open_dataset(folder / "parts"), kept)
    assert verify(folder / "saved") == verify(folder / "parts") == []


@settings(deadline=None, max_examples=40)
@given(columns=logs(), data=st.data())
def test_a_saved_part_and_its_saved_part_know_what_the_log_knows(columns, data, tmp_path_factory):
    made, folder = made_of(columns), tmp_path_factory.mktemp("parts")
    if made is None:
        return
    kept = by_hand(columns)
    for name, choose in (("first", Dataset.first), ("last", Dataset.last)):
        part = choose(made, data.draw(st.integers(1, len(made)), name))
        saved = part.save(folder / name)
        assert_same(part, saved)
        assert_as_by_hand(saved, [kept[step] for step in part.steps()])
        again = saved.first(data.draw(st.integers(1, len(saved)), f"{name} again"))
        assert_same(again, again.save(folder / f"{name} again"))
        assert verify(folder / name) == []


@settings(deadline=None, max_examples=30)
@given(columns=logs(), data=st.data(), way=st.sampled_from([*LOSSLESS, ("minari", {})]))
def test_a_format_gives_back_what_is_known_and_what_is_not(columns, data, way, tmp_path_factory):
    made, folder, (name, options) = made_of(columns), tmp_path_factory.mktemp("formats"), way
    if made is None:
        return
    part = made.first(data.draw(st.integers(1, len(made))))
    found = formats.find(name)
    found.write(part, folder / "out", found.WriteOptions(**options))
    (file,) = (folder / "out").iterdir()
    assert found.verify(file).problems == []
    found.read(file, folder / "again")
    assert_same(part, open_dataset(folder / "again"))


def test_a_format_without_masks_says_that_they_are_lost(tmp_path):
    found = formats.find("hdf5")
    summary = found.write(from_arrays(**with_next(log())), tmp_path / "out")
    assert "note: left out: allowed actions and next allowed actions" in summary.lines()


@pytest.mark.parametrize(("name", "options"), LOSSLESS)
def test_a_file_holds_the_masks_only_if_the_end_of_an_episode_needs_them(tmp_path, name, options):
    found = formats.find(name)
    for number, made in enumerate((from_arrays(**log()), from_arrays(**with_next(log())))):
        found.write(made, tmp_path / str(number), found.WriteOptions(**options))
        (file,) = (tmp_path / str(number)).iterdir()
        assert (b"next_allowed_actions" in file.read_bytes()) == bool(number)


def columns_in(folder):
    """The names of the columns of each steps file."""
    return [set(pa.ipc.open_file(file).schema.names) for file in sorted(folder.glob("steps-*"))]


def test_steps_are_appended_whether_or_not_a_log_knows_the_masks_after_its_ends(tmp_path):
    """Folders of before have no such column, and can be appended to; a column appears where it is needed."""
    plain, known, more = log(12, seed=3), with_next(log(12, seed=4)), with_next(log(12, seed=5))
    for name, order in (("plain", [plain, known]), ("known", [known, plain, more])):
        for number, columns in enumerate(order):
            with Intake(tmp_path / name, Spec((1,), "float32", actions=3), append=bool(number)) as intake:
                intake.add(columns)
        assert verify(tmp_path / name) == []
        kept = [row for columns in order for row in by_hand(columns)]
        assert_as_by_hand(open_dataset(tmp_path / name), kept)
        assert manifests.read(tmp_path / name).columns == ("allowed", "next_allowed")
        has = ["next_allowed" in names for names in columns_in(tmp_path / name)]
        assert has == ["next_allowed_actions" in columns for columns in order]
        copy = open_dataset(tmp_path / name).save(tmp_path / f"{name} copy")
        assert_as_by_hand(copy, kept)
        for way, options in LOSSLESS:  # in one file some are known, and some are not
            found, out = formats.find(way), tmp_path / f"{name} {way}"
            found.write(copy, out, found.WriteOptions(**options))
            (file,) = out.iterdir()
            assert found.verify(file).problems == []
            found.read(file, out / "again")
            np.testing.assert_array_equal(
                *(np.asarray(each.timeline.next_allowed) for each in (copy, open_dataset(out / "again")))
            )
    made = from_arrays(**plain).save(tmp_path / "saved")
    from_arrays(**known).save(tmp_path / "saved", append=True)
    assert len(made) == 12
    assert_as_by_hand(open_dataset(tmp_path / "saved"), by_hand(plain) + by_hand(known))


def test_a_log_has_the_column_only_if_it_needs_it(tmp_path):
    ends = {"terminals": np.arange(40) % 10 == 9, "truncations": np.zeros(40, bool)}
    columns = log(40, successors=False, **ends)
    saved = from_arrays(**columns).save(tmp_path / "ends")
    assert saved.timeline.next_allowed is None and manifests.read(saved.path).columns == ("allowed",)
    with Intake(tmp_path / "shards", Spec((1,), "float32", actions=3), shard_steps=7) as intake:
        intake.add(columns)  # the shards cut episodes, and the next shard has the mask
    assert manifests.read(tmp_path / "shards").columns == ("allowed",)
    assert saved.first(3).save(tmp_path / "part").timeline.next_allowed is not None  # it cuts an episode
    assert saved.first(20).save(tmp_path / "whole").timeline.next_allowed is None


def test_what_follows_a_truncated_end_is_the_mask_of_the_dropped_row():
    columns = log(6, successors=False, terminals=np.zeros(6, bool), truncations=np.arange(6) == 3)
    made, masks = from_arrays(**columns), columns["allowed_actions"]
    np.testing.assert_array_equal(made.stops, [3, 4])  # rows 3 and 5 are dropped
    assert not (masks[3] == masks[2]).all() and not (masks[5] == masks[4]).all()
    np.testing.assert_array_equal(found_in(made).next_allowed, masks[[1, 2, 3, 5]])
    np.testing.assert_array_equal(made.timeline.next_allowed[[2, 3]], masks[[3, 5]])
    assert not np.asarray(made.timeline.next_allowed)[:2].any()  # the next rows say it
    assert found_in(made, n_step=3).next_allowed[:3].tolist() == [masks[3].tolist()] * 3


KNOWN = with_next(log())


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda masks, row: masks & (row != 3), "the next_allowed_actions in row 3 allow nothing"),
        (lambda masks, row: masks ^ (row == 5), "of row 5 are not the allowed_actions of row 6"),
        (None, "every part of a log must have next_allowed_actions, or none may"),
    ],
)
def test_wrong_masks_are_named_by_their_rows_in_a_log_that_comes_row_by_row(tmp_path, spoil, said):
    given = dict(KNOWN)
    if spoil:
        given["next_allowed_actions"] = spoil(given["next_allowed_actions"], np.arange(12)[:, None])
    spec = Spec((1,), "float32", actions=3)
    with pytest.raises(DataError, match=said), Intake(tmp_path / "log", spec) as intake:
        for row in range(12):
            if spoil is None and row == 6:
                del given["next_allowed_actions"]
            intake.add({name: column[row : row + 1] for name, column in given.items()})


@pytest.mark.parametrize("row", [None, 3, 5])
def test_a_table_with_final_observations_is_checked_where_its_parts_meet_too(tmp_path, monkeypatch, row):
    monkeypatch.setattr(table_rows, "MOST_ROWS", 6)
    found = formats.find("parquet")
    found.write(from_arrays(**KNOWN), tmp_path / "ours")
    table = pq.read_table(tmp_path / "ours" / "log.parquet").drop_columns(["episode"])
    table = table.replace_schema_metadata({})  # now it is anybody's
    masks = np.array(table["next_allowed_actions"].to_pylist())
    if row is not None:
        masks[row] = [False] * 3 if row == 3 else ~masks[row]
    place = table.schema.get_field_index("next_allowed_actions")
    table = table.set_column(place, "next_allowed_actions", pa.array(masks.tolist()))
    pq.write_table(table, tmp_path / "log.parquet")
    problems = found.verify(tmp_path / "log.parquet").problems
    if row is None:
        assert problems == []
        found.read(tmp_path / "log.parquet", tmp_path / "log")
        assert_as_by_hand(open_dataset(tmp_path / "log"), by_hand(KNOWN))
        return
    said = {3: "in row 3 allow nothing", 5: "of row 5 are not the allowed_actions of row 6"}[row]
    assert [said in problem for problem in problems] == [True]
    with pytest.raises(DataError, match=said):
        found.read(tmp_path / "log.parquet", tmp_path / "log")


def test_a_forged_mask_of_the_next_state_is_refused(tmp_path):
    made = from_arrays(**KNOWN)
    assert made.timeline.next_allowed is not None
    made.timeline.next_allowed.bits[3] = 0b00010000  # there are three actions
    with pytest.raises(DataError, match="a mask of the next state that allows an action outside the spec in"):
        made.save(tmp_path / "log")
    (problem,) = verify(tmp_path / "log")
    assert "rows 3: a mask of the next state" in problem
    manifest = manifests.read(from_arrays(**KNOWN).save(tmp_path / "other").path)
    manifest.columns = ("next_allowed",)
    manifest.write(tmp_path / "other")
    with pytest.raises(DataError, match="damaged .*masks of next states without those of the states"):
        open_dataset(tmp_path / "other")
