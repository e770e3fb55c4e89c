"""Tables are imported by the names of their columns, and what pyarrow and pandas write comes in as it was."""

import json
import re
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from format_logs import SPECS, assert_equal_steps, in_csv, in_parquet, recorded
from optimist.cli.main import main
from optimist.data import formats, from_arrays, open_dataset
from optimist.data.formats.parquet import tables
from optimist.data.look import Look
from optimist.data.warnings import warnings
from optimist.errors import DataError, UsageError

FORMAT = formats.find("parquet")
NOISE = np.random.default_rng(0).normal(size=60)
CATEGORIES = pa.array(["home", "away"] * 30).dictionary_encode()
TIMES = pa.array(range(60), pa.timestamp("ms", tz="Europe/Berlin"))


def columns(steps: int = 60) -> dict:
    """A log as a data frame has it: one number in a column, and a column of episodes."""
    random = np.random.default_rng(0)
    return {
        "x": random.normal(size=steps).astype(np.float32),
        "y": random.integers(0, 50, steps),
        "is_new": random.random(steps) < 0.5,
        "action": random.integers(0, 3, steps),
        "reward": random.normal(size=steps),
        "terminal": np.arange(steps) % 20 == 9,
        "episode": np.arange(steps) // 10,
        "name": [f"customer {number}" for number in range(steps)],
    }


def read(path, out, **options):
    return FORMAT.read(path, out, FORMAT.ReadOptions(**options))


def expected(table: dict):
    features = np.stack([table["x"], table["y"], table["is_new"]], axis=1)
    columns = (table[name] for name in ("action", "reward", "terminal"))
    return from_arrays(features, *columns, episodes=table["episode"])


def uuid(number):
    return bytes([number]) * 16


def in_feather(table, path):
    feather.write_feather(pa.table(table), path / "log.feather")
    return path / "log.feather"


def in_a_folder(table, path):
    """Twelve files, whose numbers are ordered by value: part-2 comes before part-10."""
    (path / "parts").mkdir()
    for number in range(12):
        pq.write_table(pa.table(table).slice(number * 5, 5), path / "parts" / f"part-{number}.parquet")
    (path / "parts" / "_SUCCESS").touch()
    return path / "parts"


def in_hugging_faces_folder(table, path):
    """What `datasets.Dataset.save_to_disk` writes: streams of Arrow, and their names in order."""
    folder = path / "hub" / "train"
    folder.mkdir(parents=True)
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for number, name in enumerate(names):
        part = pa.table(table).slice(number * 30, 30)
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, part.schema) as stream:
            stream.write_table(part, max_chunksize=7)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    (path / "hub" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    return path / "hub"


@pytest.mark.parametrize("saved", [in_parquet, in_csv, in_feather, in_a_folder, in_hugging_faces_folder])
def test_named_columns_become_the_log(tmp_path, saved):
    table = columns()
    path = saved(table, tmp_path)
    assert formats.detect(path) == "parquet"
    summary = read(path, tmp_path / "data", observations="x,y,is_new")
    assert "columns left out: name" in summary.lines()
    data = open_dataset(tmp_path / "data")
    assert_equal_steps(data, expected(table))
    assert data.spec == expected(table).spec
    assert FORMAT.verify(path).problems == []


def test_patterns_choose_columns_and_drop_leaves_some_out(tmp_path):
    table = {"f.b": np.zeros(8), "f.a": np.ones(8), "f.secret": np.full(8, 2.0), **columns(8)}
    path = in_parquet(table, tmp_path)
    read(path, tmp_path / "data", observations="f.*,x", drop="f.secret,name")
    np.testing.assert_array_equal(open_dataset(tmp_path / "data").timeline.frames(0)[:2], [0, 1])
    assert open_dataset(tmp_path / "data").spec.frame_shape == (3,)
    with pytest.raises(DataError, match="--drop leaves out every column of --observations"):
        read(path, tmp_path / "other", observations="f.secret", drop="f.*")


def test_features_are_called_by_the_names_of_their_columns(tmp_path):
    table = columns() | {"always_one": np.ones(60)}
    read(in_parquet(table, tmp_path), tmp_path / "data", observations="x,always_one,y")
    data = open_dataset(tmp_path / "data")
    assert [Look(data).feature(number) for number in range(3)] == ["x", "always_one", "y"]
    assert "feature always_one never changes: leave out what tells nothing" in warnings(data)
    data.provenance["features"] = ["a name of one column only"]
    assert Look(data).feature(2) == "2"


@pytest.mark.parametrize("encoded", [pa.array, lambda names: pa.array(names).dictionary_encode()])
def test_names_of_actions_are_kept(tmp_path, encoded):
    table = columns()
    names = np.array(["buy", "ask", "wait"])[table["action"]]
    path = in_parquet({**table, "action": encoded(names)}, tmp_path)
    read(path, tmp_path / "data", observations="x,y,is_new")
    data = open_dataset(tmp_path / "data")
    assert data.spec.action_names == ("ask", "buy", "wait")
    assert_equal_steps(data, expected({**table, "action": names}))


def test_lists_of_every_kind_are_vectors_or_images(tmp_path):
    table, pixels = columns(), np.random.default_rng(0).integers(0, 256, (60, 9, 8, 3)).astype(np.uint8)
    rest = {name: table[name] for name in ("action", "reward", "terminal", "episode")}
    kinds = {
        "nested": pa.array(pixels.tolist(), pa.list_(pa.list_(pa.list_(pa.uint8())))),
        "wide": pa.array(pixels.tolist()),  # int64, as pandas has it
        "bytes": pa.array([image.tobytes() for image in pixels]),
        "flat": pa.FixedSizeListArray.from_arrays(pixels.ravel(), 9 * 8 * 3),
    }
    for name, column in kinds.items():
        path = in_parquet({"obs": column, **rest}, tmp_path)
        read(path, tmp_path / name, shape="9,8,3" if name in ("bytes", "flat") else None)
        data = open_dataset(tmp_path / name)
        assert (data.spec.frame_shape, data.spec.frame_dtype) == ((9, 8, 3), "uint8")
        np.testing.assert_array_equal(data.timeline.frames(np.arange(5)), pixels[:5])
    with pytest.raises(DataError, match="bytes of an unknown shape; name it: --shape"):
        read(in_parquet({"obs": kinds["bytes"], **rest}, tmp_path), tmp_path / "other")


def test_columns_that_need_not_be_there_are_known_by_their_names(tmp_path):
    table = columns() | {"probability": np.full(60, 0.25), "allowed_actions": [[True] * 3] * 60}
    path = in_parquet(table | {"x2": np.roll(table["x"], -1), "truncated": np.arange(60) % 10 == 9}, tmp_path)
    read(path, tmp_path / "data", observations="x", next_observations="x2", drop="episode")
    data = open_dataset(tmp_path / "data")
    assert len(data) == 60 and np.asarray(data.timeline.allowed).all()
    np.testing.assert_array_equal(data.timeline.probability, np.float32(0.25))
    read(path, tmp_path / "private", observations="x", drop="probability")
    assert open_dataset(tmp_path / "private").timeline.probability is None


def changed(name, row, value):
    column = list(columns()[name])
    column[row] = value
    return {name: pa.array(column, from_pandas=False)}


WORDS = "make columns of 0 and 1 of it"
FEW, MANY = [[1.0]], [[1.0, 2.0]]
REFUSED = [  # what differs in the table, the options, and what is said
    (changed("x", 31, None), {}, 'the column "x" is empty in row 31'),
    (changed("x", 31, float("nan")), {}, r"observations hold NaN or infinity \(first in row 31\)"),
    ({"reward": 1e9 + NOISE}, {}, "rewards are near 1e.09, and float32 holds them in steps of 64"),
    (changed("y", 45, 2**30), {}, 'observations of "y" hold whole numbers.*first in row 45'),
    (changed("terminal", 14, None), {}, '"terminal" is empty in row 14; write 1 where it marks an end'),
    ({"terminal": ["no"] * 60}, {}, r'"terminal" holds words, not numbers \(no in row 0\); write 1 where'),
    ({"x": MANY * 60}, {"observations": "x", "shape": "3"}, "2 values in a row, .* not of shape .3,."),
    ({"x": FEW * 40 + MANY * 20}, {"observations": "x"}, "2 values in row 40 and 1 in row 0"),
    ({"x": FEW * 40 + [[None]] * 20}, {"observations": "x"}, "empty value in row 40"),
    ({"x": [b"ab"] * 9 + [b"abc"] * 51}, {"observations": "x", "shape": "2"}, "3 bytes in row 9"),
    ({"episode": np.arange(60) // 10 % 3}, {}, "episode 0 appears again in row 30, and the others"),
    ({}, {"observations": "x,name"}, rf'"name" holds words, .* \(customer 0 in row 0\); {WORDS}'),
    (
        {"name": ["1,234", "$ 5"] * 30},
        {"observations": "x,name"},
        f"1,234 in .*plainly, as 1234.5; .* {WORDS}",
    ),
    ({"name": CATEGORIES}, {"observations": "x,name"}, rf'"name" holds words, .* \(home in row 0\); {WORDS}'),
    ({"at": TIMES}, {"observations": "x,at"}, "holds timestamp.*, not numbers; make features"),
    ({}, {"observations": "xx,y"}, 'there is no column "xx"'),
    ({}, {"observations": "x", "drop": "nam"}, 'no column "nam": did you mean "name"'),
    ({}, {"rewards": "x,y"}, "--rewards names x, y: name one column"),
    ({}, {"observations": None}, "name it with --observations A,B,C; its columns are x, y, is"),
    ({}, {"episodes": "episode", "drop": "episode"}, "--drop leaves out every column of --episodes"),
    ({}, {"drop": "terminal"}, "with --terminals COLUMN, or say .* was cut there; its columns"),
    ({"done": [0] * 60}, {"drop": "terminal"}, "COLUMN; --terminals done if no time limit is among"),
    ({"episode": [[0, 0]] * 60}, {}, '"episode" holds list<.*>; name one of numbers or texts'),
    ({"reward": ["5 EUR"] * 60}, {}, r"not numbers \(5 EUR in row 0\); convert it, or name another"),
]


@pytest.mark.parametrize(("change", "options", "said"), REFUSED)
def test_wrong_tables_are_refused_in_one_line(tmp_path, change, options, said):
    path = in_parquet({**columns(), **change}, tmp_path)
    with pytest.raises(DataError, match=said) as refused:
        read(path, tmp_path / "data", **{"observations": "x,y,is_new", **options})
    assert "\n" not in str(refused.value) and not (tmp_path / "data").exists()


PLAIN = pd.DataFrame({"x": [0, 1], "action": [0, 1], "reward": [0, 1], "terminal": [0, 1]})
NAMED = PLAIN.assign(action="süd", name="Müller")
SEPARATED = "log.csv has one column, .*: its cells must be separated by commas"
NAMELESS = PLAIN.to_csv(index=False, header=False).encode()
CSV = {
    "semicolons": (PLAIN.to_csv(index=False, sep=";").encode(), SEPARATED),
    "tabs": (PLAIN.to_csv(index=False, sep="\t").encode(), SEPARATED),
    "decimal commas": (b"x;y;is_new\n" + b"1,5;2,5;0\n" * 5, SEPARATED),  # rows with more commas than names
    "and a long name": (b"a long name;of a column\n" + b"1,5;2,5\n" * 5, SEPARATED),
    "no names": (NAMELESS, 'two columns with the name "0": rename one'),
    "utf-16": (
        PLAIN.to_csv(index=False).encode("utf-16"),
        "is UTF-16, as spreadsheets save it: save it as UTF-8",
    ),
    "latin-1": (
        NAMED.to_csv(index=False).encode("latin-1"),
        r'is not UTF-8 \(column "action"\): save it as UTF-8',
    ),
    "no rows": (b"x,action,reward,terminal\n", "the log has no rows"),
}


@pytest.mark.parametrize(("content", "said"), CSV.values(), ids=CSV)
def test_other_files_of_text_are_told_what_is_wrong(tmp_path, content, said):
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        read(tmp_path / "log.csv", tmp_path / "data", observations="x", truncations="no")


def test_a_column_that_is_not_read_may_be_in_another_encoding(tmp_path):
    (tmp_path / "log.csv").write_bytes(NAMED.assign(action=0).to_csv(index=False).encode("latin-1"))
    read(tmp_path / "log.csv", tmp_path / "data", observations="x", truncations="no")


@pytest.mark.parametrize("name", ["log.tsv", "log.csv.gz", "log"])
def test_a_file_of_no_known_kind_is_refused_by_its_name(tmp_path, name):
    (tmp_path / name).write_text("x\ty\n")
    with pytest.raises(DataError, match=f"{name} is no table of a known kind: .*ends in .parquet, .*or .csv"):
        read(tmp_path / name, tmp_path / "data", observations="x")


@pytest.mark.parametrize("save", [in_parquet, in_csv])
@pytest.mark.parametrize("column", ["action", "episode"])
def test_an_empty_name_is_an_empty_cell(tmp_path, save, column):
    """An empty cell of a .csv file is an empty text: it became an action without a name."""
    table = columns() | {column: np.where(np.arange(60) == 7, "", "some name")}
    with pytest.raises(DataError, match=f'the column "{column}" is empty in row 7; fill it, or leave'):
        read(save(table, tmp_path), tmp_path / "data", observations="x,y")


@pytest.mark.parametrize(
    ("shape", "dtype"), [("5", ""), ('["a"]', ""), ("[-1]", ""), ("[2]", "object"), ("[2]", "many")]
)
def test_a_wrong_description_of_a_column_is_refused(tmp_path, shape, dtype):
    metadata = {"shape": shape, **({"dtype": dtype} if dtype else {})}
    said = f"has the {'dtype' if dtype else 'shape'} {re.escape(dtype or shape)}; write the file again"
    table = pa.table({**columns(), "x": pa.array([b"ab"] * 60)})
    field = table.schema.field("x").with_metadata(metadata)
    pq.write_table(table.cast(table.schema.set(0, field)), tmp_path / "log.parquet")
    with pytest.raises(DataError, match=said):
        read(tmp_path / "log.parquet", tmp_path / "data", observations="x")


def cut_short(folder):
    path = in_parquet(columns(), folder)
    path.write_bytes(path.read_bytes()[:200])
    return path


def of_two_kinds(folder):
    in_parquet(columns(), folder)
    return in_csv(columns(), folder).parent


def without_some_columns(folder):
    parts = in_a_folder(columns(), folder)
    pq.write_table(pa.table({"x": [1.0]}), parts / "part-3.parquet")
    return parts


def hub_without_a_file(folder):
    hub = in_hugging_faces_folder(columns(), folder)
    (hub / "train" / "data-00001-of-00002.arrow").unlink()
    return hub


def hub_of(name, content):
    def written(folder):
        hub = in_hugging_faces_folder(columns(), folder)
        (hub / name).write_text(content)
        return hub

    return written


LISTED = "state.json is not a readable list of files .*_data_files"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (cut_short, "is not a readable table"),
        (of_two_kinds, "holds csv and parquet files; name one kind"),
        (without_some_columns, 'part-3.parquet lacks the column "action" that part-0.parquet has'),
        (hub_without_a_file, "data-00001-of-00002.arrow is missing"),
        (hub_of("dataset_dict.json", '{"splits": ["train", "test"]}'), "the splits train, test; import one"),
        (hub_of("train/state.json", '{"_data_files": 5}'), LISTED),
        (hub_of("train/state.json", '{"_data_files": ["a"]}'), LISTED),
        (hub_of("train/state.json", '{"_data_files": [{}]}'), LISTED),
    ],
)
def test_damaged_and_mixed_files_are_refused(tmp_path, made, said):
    path = made(tmp_path)
    with pytest.raises(DataError, match=said):
        read(path, tmp_path / "data", observations="x")
    assert any(problem for problem in FORMAT.verify(path).problems)


def test_a_file_may_lack_a_column_that_is_not_read(tmp_path):
    (tmp_path / "parts").mkdir()
    table = pd.DataFrame(columns())
    table[:30].to_csv(tmp_path / "parts" / "a.csv", index=False)
    table[30:].drop(columns="y").to_csv(tmp_path / "parts" / "b.csv", index=False)
    assert read(tmp_path / "parts", tmp_path / "data", observations="x").counts.steps == 57


def test_fractions_may_follow_whole_numbers_in_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CSV_BLOCK", 400)  # bytes, from which the types are guessed
    table = columns()
    table |= {
        "reward": np.where(np.arange(60) < 50, 0, 0.5),
        "x": np.arange(60) * np.where(np.arange(60) < 50, 1, 0.5),
    }
    text = pd.DataFrame(table).to_csv(index=False).replace(".0,", ",")
    (tmp_path / "log.csv").write_text(text)
    read(tmp_path / "log.csv", tmp_path / "data", observations="x,y")
    assert open_dataset(tmp_path / "data").timeline.reward[-1] == 0.5
    assert open_dataset(tmp_path / "data").spec.actions == 3


def test_a_folder_of_other_things_with_a_csv_file_is_no_log(tmp_path):
    in_csv(columns(), tmp_path)
    assert FORMAT.detect(tmp_path)
    (tmp_path / "config.toml").touch()
    assert not FORMAT.detect(tmp_path)


def test_an_exported_table_is_what_a_user_of_pandas_expects(tmp_path):
    data = recorded(tmp_path / "data", SPECS["continuous"])
    FORMAT.write(data, tmp_path / "log.parquet")
    frame = pd.read_parquet(tmp_path / "log.parquet")
    assert list(frame) == [
        *("episode", "observation", "action", "reward", "terminal", "truncated", "final_observation")
    ]
    np.testing.assert_array_equal(np.stack(frame.action), data.timeline.action)
    np.testing.assert_allclose(frame.groupby("episode").reward.sum(), data.episodes.returns, atol=1e-5)
    ends = frame[frame.terminal | frame.truncated]
    assert frame.final_observation.notna().sum() == len(ends) == len(data.episodes)
    frames = data.timeline.frames(np.arange(len(data)) + data.timeline.episode_of(np.arange(len(data))))
    np.testing.assert_array_equal(np.stack(frame.observation), frames)
    first = int(data.episodes.lengths[0])
    np.testing.assert_array_equal(ends.final_observation.iloc[0], data.timeline.frames(first))


def test_what_an_exported_file_says_of_itself_cannot_be_said_otherwise(tmp_path):
    """Bounds that are given were left aside without a word."""
    observations, actions = np.zeros((6, 2), np.float32), np.linspace(-1, 1, 12).reshape(6, 2)
    log = from_arrays(observations, actions, np.ones(6), np.ones(6, bool), action_low=-1.0, action_high=1.0)
    path = tmp_path / "log.parquet"
    FORMAT.write(log, path)
    for number, same in enumerate(({}, {"action_low": -1.0}, {"action_high": (1.0, 1.0)})):
        read(path, tmp_path / f"log-{number}", **same)
        assert open_dataset(tmp_path / f"log-{number}").spec == log.spec
    others = (
        {"action_low": -300.0},
        {"action_high": (1.0, 2.0)},
        {"action_low": (-1.0,) * 3},
        {"channels": "first"},
    )
    for number, other in enumerate(others):
        with pytest.raises(DataError, match=f"leave --{next(iter(other)).replace('_', '-')} out"):
            read(path, tmp_path / f"other-{number}", **other)


def test_a_final_observation_belongs_to_the_end_of_an_episode(tmp_path):
    data = recorded(tmp_path / "data", SPECS["vectors"])
    FORMAT.write(data, tmp_path / "log.parquet", FORMAT.WriteOptions(compression="none"))
    table = pq.read_table(tmp_path / "log.parquet")
    finals = table["final_observation"].to_pylist()
    last = int(np.flatnonzero(data.timeline.truncated)[0])
    inside = int(np.flatnonzero(~(data.timeline.terminal | data.timeline.truncated))[0])
    for row, value, said in ((last, None, "is empty"), (inside, finals[last], "is filled")):
        wrong = [*finals[:row], value, *finals[row + 1 :]]
        other = table.set_column(6, table.schema.field(6), pa.array(wrong, table.schema.field(6).type))
        pq.write_table(other, tmp_path / "wrong.parquet")
        with pytest.raises(DataError, match=f'"final_observation" {said} in row {row}'):
            read(tmp_path / "wrong.parquet", tmp_path / "out")
    with pytest.raises(UsageError, match="--compression lzma: choose one of"):
        FORMAT.WriteOptions(compression="lzma")


@pytest.mark.parametrize("label", [Decimal, date.fromordinal, uuid], ids=["decimal", "date", "uuid"])
def test_episodes_have_labels_of_any_type(tmp_path, label):
    table = columns() | {"episode": [label(1 + row // 10) for row in range(60)]}
    table["terminal"] = np.arange(60) % 10 == 9
    read(in_parquet(table, tmp_path), tmp_path / "data", observations="x,y,is_new", truncations="no")
    assert_equal_steps(open_dataset(tmp_path / "data"), expected({**table, "episode": np.arange(60) // 10}))
    table["episode"] = [label(1 + row // 10 % 3) for row in range(60)]
    with pytest.raises(DataError, match="appears again in row 30, and the others follow") as refused:
        read(in_parquet(table, tmp_path), tmp_path / "other", observations="x,y")
    assert "\n" not in str(refused.value)


def test_the_numbers_of_rows_that_pandas_writes_have_no_name(tmp_path):
    pd.DataFrame(columns()).to_csv(tmp_path / "log.csv")
    lines = read(tmp_path / "log.csv", tmp_path / "data", observations="x,y,is_new").lines()
    assert "columns left out: (without a name), name" in lines


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    path = in_csv(columns(), tmp_path)

    def refused(*_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setitem(tables._SCHEMAS, "csv", refused)
    with pytest.raises(DataError, match="log.csv may not be read: Permission denied; change its rights"):
        read(path, tmp_path / "data", observations="x")


def test_the_command_takes_columns_as_options(tmp_path, capsys):
    words = ["data", "import", "parquet", str(in_csv(columns(), tmp_path)), "--out", str(tmp_path / "data")]
    assert main([*words, "--observations", "x,y", "--drop", "name,is_new"]) == 0
    said = capsys.readouterr().out
    assert "columns left out: is_new, name" in said and "observations from x, y" in said
    assert main([*words, "--obs", "x"]) == 2
    assert 'has no option "--obs": did you mean "--observations"' in capsys.readouterr().err
    assert main([*words, "--observations", "x", "--shape", "84x84"]) == 2
    assert "write the sizes of the axes, as in 84,84,1" in capsys.readouterr().err
