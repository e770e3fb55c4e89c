"""Forged records: smaller files of runs and studies, and what logs of other programs say of themselves."""

import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from optimist.data import Dataset, formats
from optimist.data.disk.records import sealed
from optimist.data.formats._incoming import OURS
from optimist.studies.report.study_tables import chosen_by, first_alarm
from optimist.studies.results import logs
from optimist.training.loggers.wandb import FOLDER, Sent
from optimist.training.run import load_run
from optimist.training.storage import rows, run_folder, selected
from optimist.training.storage.checkpoint import kept_steps
from optimist.training.storage.configuration import fingerprint, read_versions
from optimist.training.storage.rows import METRICS, curves_of, read_metrics
from optimist.training.storage.run_folder import read_config
from torture.campaign import Campaign
from torture.files import folder_until_exit, forge, log, trained

POLICY = {"run": "run", "agent": "dqn", "step": 2, "seed": 0, "value": 1.5, "scores": {"fqe": None}}


def forge_a_record(random: np.random.Generator, folder: Path) -> None:
    """A value of a record is wrong, and its checksum is right; then the record is used."""
    run = Path(shutil.copytree(trained(), folder / "run"))
    RECORDS[int(random.integers(len(RECORDS)))](run, random)


def selection(run: Path, random: np.random.Generator) -> None:
    config = read_config(run)
    facts = {"fingerprint": fingerprint(config), "rule": "fqe", "updates": 50, "notes": ["a note"]}
    facts |= {"answer": "ship it"}
    chosen = {"run": "run", "step": 2, "seed": 0}
    record = {"version": selected.VERSION, **facts, "chosen": chosen, "candidates": [dict(POLICY)] * 2}
    record = json.loads(json.dumps(record))
    forge(record, random)
    (run / selected.NAME).write_text(sealed(record))
    assert kept_steps(run) == [2]
    load_run(run, step="chosen")
    found = selected.read_selection(run) or {}
    selected.chosen_steps(found, {POLICY["seed"]: {POLICY["step"]}})
    chosen_by([found])


def alarm(run: Path, random: np.random.Generator) -> None:
    record = {"0": {"step": 10, "healthy": 5, "value": 9.0, "bound": 3.0}}
    forge(record, random)
    (run / run_folder.ALARMS).write_text(sealed(record))
    found = run_folder.read_alarms(run)
    run_folder.write_alarms(run, found)
    if found:
        first_alarm(found)


def told(run: Path, random: np.random.Generator) -> None:
    Sent(run).note(1, {"loss": 0.5}, seed=0)
    forged_in(run / FOLDER / "wandb.json", random)
    again = Sent(run)
    again.note(3, again.news(3, {"loss": 0.5}, seed=0), seed=0)


def versions(run: Path, random: np.random.Generator) -> None:
    forged_in(run / "versions.json", random)
    read_versions(run)


def remembered(run: Path, random: np.random.Generator) -> None:
    record = {"game": {"player": 1.0, "best": {"all": 2.0}, "average": {"all": 1.0}, "players": {"0": 1.5}}}
    (run / "logs.json").write_text(json.dumps(record))
    forged_in(run / "logs.json", random)
    logs._remembered(run / "logs.json")


def figures(run: Path, random: np.random.Generator) -> None:
    row = json.loads((run / METRICS).read_text().splitlines()[0])
    forge(row, random)
    (run / METRICS).unlink()
    rows.append(run / METRICS, [json.dumps(row)])
    for name in row:
        curves_of(read_metrics(run), name)


RECORDS = (selection, alarm, told, versions, remembered, figures)


def forged_in(file: Path, random: np.random.Generator) -> None:
    record = json.loads(file.read_text())
    forge(record, random)
    file.write_text(json.dumps(record))


@cache
def exported(kind: str) -> Path:
    """The same log in another format."""
    out = folder_until_exit("torture-foreign-") / f"log{FOREIGN[kind]}"
    formats.find(kind).write(Dataset.open(log(0)), out, formats.find(kind).WriteOptions())
    return out


FOREIGN = {"minari": "", "npz": ".npz", "parquet": ".parquet"}


def forge_a_foreign_log(random: np.random.Generator, folder: Path) -> None:
    """A value of what a log says of itself is wrong; then it is verified and imported."""
    kind = list(FOREIGN)[int(random.integers(len(FOREIGN)))]
    source, format = folder / exported(kind).name, formats.find(kind)
    (shutil.copytree if exported(kind).is_dir() else shutil.copy)(exported(kind), source)
    {"minari": in_minari, "npz": in_npz, "parquet": in_parquet}[kind](source, random)
    format.verify(source)
    format.read(source, folder / "data", format.ReadOptions(), None)


def in_minari(source: Path, random: np.random.Generator) -> None:
    file = source / "data" / "metadata.json"
    record = json.loads(file.read_text())
    spaces = {name: json.loads(record[name]) for name in ("observation_space", "action_space")}
    which = [record, *spaces.values()][int(random.integers(3))]
    forge(which, random)
    if which is not record:
        record |= {name: json.dumps(space) for name, space in spaces.items()}
    file.write_text(json.dumps(record))


def in_npz(source: Path, random: np.random.Generator) -> None:
    with np.load(source) as archive:
        arrays = dict(archive)
    record = json.loads(str(arrays[OURS]))
    forge(record, random)
    np.savez(source, **{**arrays, OURS: np.array(json.dumps(record))})


def in_parquet(source: Path, random: np.random.Generator) -> None:
    """Either the description of the whole table or that of a column."""
    table, key = pq.read_table(source), OURS.encode()
    record = json.loads(table.schema.metadata[key])
    if random.random() < 0.5:
        forge(record, random)
        return pq.write_table(table.replace_schema_metadata({key: json.dumps(record)}), source)
    number = int(random.integers(len(table.schema)))
    holder: dict = {"shape": [5], "dtype": "float32"}
    forge(holder, random)
    metadata = {"shape": json.dumps(holder["shape"]), "dtype": str(holder["dtype"])}
    field = table.schema.field(number).with_metadata(metadata)
    return pq.write_table(table.cast(table.schema.set(number, field)), source)


CAMPAIGNS = (
    Campaign("a value of another record of a run is forged", 300, forge_a_record),
    Campaign("a value of the description of a foreign log is forged", 300, forge_a_foreign_log),
)
