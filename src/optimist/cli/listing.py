"""`optimist agents`, `environments`, `bench` and `doctor`: what is there, how fast, and what is wrong."""

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from optimist.cli import index
from optimist.cli.words import help_width, shown

SHOWN = ("columns", "networks", "critics", "mixture.kind")  # settings in which presets differ


def agents() -> None:
    """List the agents by kind of action, with their presets."""
    known = index.agents()
    for actions, title in index.ACTIONS.items():
        print(f"{title}:")
        for name, entry in known.items():
            if entry["actions"] == actions:
                _print(name, entry["what"], entry["source"], *_presets(entry["presets"]))
    _print_others("agents")
    print("train one: optimist train AGENT DATA; its settings: optimist train AGENT --help")


def _presets(presets: dict[str, Any]) -> Iterator[str]:
    """A line for each preset."""
    for name, preset in presets.items():
        values = {field: value for field, (_, _, value) in preset["settings"].items()}
        parts = [f"{field.partition('.')[0]} {shown(values[field])}" for field in SHOWN if field in values]
        rate = f"{values['optimizer.learning_rate']:g}"
        yield f"--preset {name}: {', '.join([*parts, preset['optimizer']])} {rate}"


def environments() -> None:
    """List the families of environments with their games."""
    for family, entry in index.environments().items():
        _print(f"{family}/", entry["about"], ", ".join(entry["games"]))
    _print_others("environments")
    print("play one: optimist collect ENV --out DATA; its options: optimist collect ENV --help")


def _print_others(kind: str) -> None:
    """The names of plug-ins; a description would have to import them."""
    from optimist import plugins

    if names := plugins.names(kind):
        print(f"from other packages: {', '.join(names)}\n")


def _print(name: str, *paragraphs: str) -> None:
    """A name, and its description indented below."""
    print(f"  {name}")
    for text in paragraphs:
        print(textwrap.fill(text, help_width(), initial_indent=" " * 6, subsequent_indent=" " * 8))
    print()


def doctor(
    folders: Annotated[Sequence[Path], "a dataset, a run or a study to look at", "FOLDER ..."] = (),
) -> None:
    """Say what is wrong with the installation, the device, the disk or a folder, and how to mend it. A
    dataset and the files of a run are read to their last byte."""
    from optimist.studies.diagnosis import device, disk, folder, installation

    wrong = []
    findings = itertools.chain(installation(), device(), disk(Path()), *map(folder, folders))
    for finding in findings:
        mark = "wrong" if finding.problem else "note" if finding.note else "ok"
        print(f"{mark:6}{finding.text}")
        wrong += [finding.problem] if finding.problem else []
    if wrong:
        count = "1 problem" if len(wrong) == 1 else f"{len(wrong)} problems"
        raise wrong[0](f"{count} found; each line above that begins with wrong names its remedy")


def bench(
    *,
    quick: Annotated[bool, "fewer rows; about a minute"] = False,
    rounds: Annotated[int, "timings of each row"] = 3,
    seconds: Annotated[float, "length of one timing"] = 0.5,
    out: Annotated[Path, "the table", "FILE.csv"] = Path("bench.csv"),
) -> None:
    """Measure the speed of this machine: updates per second by agent, network, batch size and seeds, and
    steps per second of play. Close other programs first: they make the rates lower."""
    from optimist.studies.bench import Timing, measured, rounded, sheet
    from optimist.studies.sheet import as_csv, print_sheet

    rows = []
    for subject, rate in measured(quick, Timing(rounds, seconds)):
        rows.append((subject, rate))
        print(f"{subject.what} ({subject.network}): {rounded(rate)} {subject.unit}", flush=True)
        out.write_text(as_csv(sheet(rows)), "utf-8")  # whoever stops the measurement keeps these rows
    print_sheet(sheet(rows))
    print(f"wrote {out}")
