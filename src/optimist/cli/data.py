"""`optimist data ...`: describe, check, import, export and share datasets. Nothing here needs JAX."""

import json as json_text
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optimist.cli import index
from optimist.cli.words import CommandLine, in_columns, setting_words
from optimist.errors import DataError, UsageError, command_line, in_one_line, some_of

if TYPE_CHECKING:
    from optimist.data.dataset import Dataset
    from optimist.studies.sheet import Sheet

Data = Annotated[Path, "a dataset's folder", "DATA"]
Out = Annotated[Path, "the dataset's folder", "DATA"]
Repository = Annotated[str, "its name on the Hub, user/name", "USER/NAME"]


@dataclass(frozen=True)
class Part:
    """a part of the data; several are taken in this order."""

    first: Annotated[int | None, "only this many steps from the start"] = None
    last: Annotated[int | None, "only this many steps from the end"] = None
    fraction: Annotated[float | None, "only this share of the trajectories, at random"] = None
    best: Annotated[float | None, "only this share of the trajectories, the best"] = None

    def of(self, dataset: "Dataset") -> "Dataset":
        for name, value in self.chosen().items():
            dataset = getattr(dataset, name)(value)
        return dataset

    def chosen(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def opened(self, folder: Path) -> "Dataset":
        """This part of the dataset in a folder."""
        from optimist.data.dataset import Dataset

        return self.of(Dataset.open(folder))


def info(data: Data, part: Part, *, json: Annotated[bool, "print all facts as JSON"] = False) -> None:
    """Describe a dataset, or a part of it, and warn of what may hinder learning from it."""
    refuse_logs(data)
    from optimist.data.look import card
    from optimist.data.warnings import warnings
    from optimist.studies.sheet import print_sheet

    dataset = part.opened(data)
    facts, warned = card(dataset), warnings(dataset)
    if json:
        print(json_text.dumps({**facts, "warnings": warned}, indent=2))
        return
    print_sheet(card_table(facts, str(data)))
    for line in warned:
        print(f"warning: {line}")


def card_table(card: dict[str, Any], title: str) -> "Sheet":
    """The facts about a dataset, one per line. Of action names and the like, of which there may be thousands,
    it has the first; of the provenance the environment: --json has all."""
    from optimist.studies.sheet import Sheet, in_words, listed

    def briefly(values: list[Any]) -> str:
        return some_of([in_words(v) if isinstance(v, float) else in_one_line(v, 40) for v in values], 20)

    rows, long = list[list[Any]](), ("action_names", "action_frequency")
    for name, value in card.items():
        if name == "return_per_tenth":  # fewer than two returns show no course
            returns = value or []
            missing = " (-: no episode ended there)" if None in returns else ""
            shown = listed(["-" if each is None else in_words(each) for each in returns])
            value = f"{shown}{missing}" if len(returns) - returns.count(None) > 1 else None
        if name != "provenance" and value is not None:
            rows.append([name.replace("_", " "), briefly(value) if name in long else in_words(value)])
    origin = card.get("provenance", {}).get("environment")
    return Sheet(title, ("", ""), [*rows, *([["environment", origin]] if origin else [])])


def refuse_logs(path: Path) -> None:
    """Raise DataError for logs of another program, which have to be imported first."""
    from optimist.data import formats

    if name := formats.detected(path):
        line = command_line("data", "import", name, path, "--out", "DATA")
        raise DataError(f"{path} holds {name} logs; import them first: {line}")


def report(
    data: Data,
    part: Part,
    *,
    out: Annotated[Path, "the page, an HTML file", "PAGE"],
    command: str,
) -> None:
    """Write one page about a dataset, or a part of it: what to know before training."""
    refuse_logs(data)
    if out.is_dir():
        raise UsageError(f"{out} is a folder: name a file, as in --out {out / 'page.html'}")
    from optimist.studies.report.data_report import write_data_report

    words = [word for name, value in part.chosen().items() for word in (f"--{name}", str(value))]
    title = f"{data.resolve().name}{f' ({chr(32).join(words)})' if words else ''}"
    warned = write_data_report(part.opened(data), out, title=title, command=command)
    print(f"wrote {out}")
    for each in warned:
        print(f"warning: {each}")


def verify(data: Annotated[str, "a dataset's folder, or logs (also at gs://...)", "PATH"]) -> None:
    """Check every byte of a dataset, or of logs in a known format."""
    from optimist.data import formats
    from optimist.data.verify import verify as problems_in
    from optimist.studies.sheet import Sheet, print_sheet

    if name := formats.detected(data):
        report = formats.find(name).verify(data)
        if report.rows:
            print_sheet(Sheet(data, report.heads, report.rows))
        problems, remedy = report.problems, "optimist data import reports which of them matter"
    else:
        problems, remedy = problems_in(Path(data)), "restore those files from a copy"
    for problem in problems:
        print(problem)
    if problems:
        raise DataError(f"{data}: {len(problems)} problems; {remedy}")
    print(f"{data}: no damage found")


def append(
    data: Annotated[Path, "a dataset's folder", "MORE"],
    part: Part,
    *,
    to: Annotated[Path, "the dataset that grows", "DATA"],
) -> None:
    """Append the steps of a dataset, or a part of it, to another one of the same observations and actions."""
    more = part.opened(data)
    whole = more.save(to, append=True)
    print(f"{len(more):,} steps appended; {to} has {len(whole):,} steps")


def import_words(line: CommandLine) -> None:
    """Add the format, which is detected from the logs if it is left out, and its settings."""
    typed = line.arguments()
    known = _add_formats(line, "read")
    if len(typed) == 2 and typed[0] not in known and Path(typed[0]).exists():
        right = command_line("data", "import", typed[0], "--out", typed[1])
        raise UsageError(f"{typed[0]} is no format; the dataset's folder follows --out: {right}")
    if len(typed) == 1 and typed[0] not in known:
        from optimist.data import formats

        typed = [formats.detect(typed[0])]
        line.typed.insert(0, typed[0])
    _add_settings(line, typed[:1], "read")


def import_logs(
    format: Annotated[str, "a format, which is detected from the logs if left out", "FORMAT"],
    address: Annotated[str, "the logs: a path, or an address such as gs://...", "ADDRESS"],
    *,
    out: Out,
    restart: Annotated[bool, "discard an import that was interrupted"] = False,
    settings: dict[str, Any],
) -> None:
    """Convert logs of another program into a dataset."""
    from optimist.data import formats
    from optimist.training.terminal import Bar

    module = formats.find(format)
    options = module.ReadOptions(**settings)
    if hasattr(options, "environment") and options.environment is None:
        options = replace(options, environment=game_of(address) or None)
    environment = getattr(options, "environment", None)
    if environment and getattr(options, "actions_count", 0) is None:
        from optimist import envs

        # All actions of the game: a log may not contain each of them.
        options = replace(options, actions_count=envs.spec_of(environment).actions or None)
    if restart:
        from optimist.data.intake import discard_unfinished

        discard_unfinished(out)
    with ExitStack() as stack:
        bars = list[Any]()

        def show(done: int, total: int) -> None:
            """The length is known once something is read."""
            if not bars:
                bars.append(stack.enter_context(Bar("import", total, "entry", done)))
            bars[0].update(done)

        summary = module.read(address, out, options, show)
    first, *more = summary.lines()
    print(f"{first}: {out}", *more, sep="\n")
    if hasattr(options, "environment"):
        named = getattr(summary, "environment", None) or options.environment
        print(f"environment: {named or 'unknown; --environment names one, such as gym/CartPole-v1'}")


def game_of(address: str) -> str:
    """atari/Breakout for .../Breakout/1, .../Breakout/1/replay_logs and RL Unplugged's .../Breakout/run_1-...
    or .../Breakout_run_1/..., "" for any other address."""
    from optimist.envs import atari  # alone: a look-up of all families would need JAX

    path = address.partition("://")[2] if "://" in address else str(Path(address).resolve())
    parts = [part for part in path.split("/") if part and part != "replay_logs"]
    games = atari.games()
    for place, part in enumerate(parts):
        game, _, run = part.partition("_run_")
        after = parts[place + 1] if place + 1 < len(parts) else ""
        is_run = after.startswith("run_") or (after.isdigit() and place + 2 == len(parts))
        is_run |= not after and any(Path(address).glob("run_*-of-*"))
        if game in games and (run.isdigit() or is_run):
            return f"atari/{game}"
    return ""


def export_words(line: CommandLine) -> None:
    """Add the settings of the format."""
    typed = line.arguments()
    known = _add_formats(line, "write")
    if len(typed) == 2 and typed[0] not in known and typed[1] in known and Path(typed[0]).exists():
        right = command_line("data", "export", typed[1], typed[0])
        raise UsageError(f"the format comes first, then the dataset: {right}")
    _add_settings(line, typed[:1], "write")


def export_logs(
    format: Annotated[str, "a format", "FORMAT"],
    data: Data,
    part: Part,
    *,
    out: Annotated[Path, "a folder for the logs", "FOLDER"],
    settings: dict[str, Any],
) -> None:
    """Write a dataset, or a part of it, in a format that other programs read."""
    from optimist.data import formats

    module = formats.find(format)
    module.check_can_write()
    summary = module.write(part.opened(data), out, module.WriteOptions(**settings))
    first, *more = summary.lines()
    print(f"{first}: {out}", *more, sep="\n")


def _add_formats(line: CommandLine, action: str) -> list[str]:
    """Add the list of the formats that can do this to the help; return their names."""
    known = {name: entry["about"] for name, entry in index.formats().items() if entry[action] is not None}
    line.after = f"formats:\n{in_columns(known)}"
    words = line.groups["arguments"]
    words[0] = words[0]._replace(help=f"a format: {', '.join(known)}{words[0].help.removeprefix('a format')}")
    return list(known)


def _add_settings(line: CommandLine, named: list[str], action: str) -> None:
    """Add the options of the named format, or of all formats if none is named."""
    entries = [index.format(name) for name in named] or list(index.formats().values())
    for entry in entries:
        hidden = entry is not entries[0]
        line.add("options", setting_words(entry[action] or {}, "settings", is_hidden=hidden))


def push(
    data: Data,
    repository: Repository,
    *,
    private: Annotated[bool, "only you may see it"] = False,
    license: Annotated[str, "on its card, such as cc-by-4.0 [none]"] = "",
) -> None:
    """Send a dataset to the Hugging Face Hub, with a card made from its facts."""
    from optimist.data import hub

    print(f"sent {data} to {hub.push_data(data, repository, private=private, license=license)}")


def pull(repository: Repository, *, out: Out) -> None:
    """Bring a dataset from the Hugging Face Hub and check every byte of it."""
    from optimist.data import hub

    dataset = hub.pull_data(repository, out)
    print(f"{len(dataset):,} steps in {out}; see {command_line('data', 'info', out)}")
