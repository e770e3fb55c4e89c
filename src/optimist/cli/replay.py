"""`optimist data import`, `export`, and `verify` for logs in other people's formats."""

from pathlib import Path
from typing import TYPE_CHECKING

from optimist.cli.options import Parser, whole_number
from optimist.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from optimist.data.formats.dqn_replay.importing import Imported

FORMATS = ("dqn-replay",)


def import_logs(words: list[str]) -> None:
    parser = Parser(
        "optimist data import",
        description="Turn public DQN Replay logs into a dataset. The same command goes on after a stop.",
    )
    parser.add_argument("format", metavar="dqn-replay", help="the layout of the logs")
    parser.add_argument(
        "logs", metavar="PATH", help="a run's folder (.../Breakout/1), here or at an address such as gs://..."
    )
    parser.add_argument("--out", type=Path, metavar="DATA", help="the dataset's folder")
    parser.add_argument("--environment", metavar="name", help="the game, such as atari/Breakout [from PATH]")
    parser.add_argument(
        "--actions", type=whole_number, metavar="int", help="how many actions the game has [ask the game]"
    )
    options = parser.options(_with_format(words, parser.prog))
    if options.out is None:
        raise UsageError("say where to keep the data: --out DATA")
    from optimist.data.formats.dqn_replay.importing import import_dqn_replay
    from optimist.training.progress import Bar

    environment = options.environment if options.environment is not None else game_of(options.logs)
    actions = _actions_of(environment) if options.actions is None else options.actions
    bar: Bar | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        bar = bar or Bar("import", total, "entry", done).__enter__()
        bar.update(done)

    try:
        summary = import_dqn_replay(
            options.logs, options.out, environment=environment, actions=actions, progress=show
        )
    finally:
        if bar:
            bar.__exit__()
    _tell_import(summary, options.out, environment)


def _actions_of(environment: str) -> int | None:
    """What the game takes: a log need not hold every action, and one that the game lacks is an error."""
    from optimist import envs

    return envs.make(environment).spec.actions if environment else None


def _tell_import(summary: "Imported", out: Path, environment: str) -> None:
    windows = f"{summary.windows} windows" + (f" in {summary.lanes} stretches" if summary.lanes > 1 else "")
    print(f"{summary.steps:,} steps in {summary.episodes:,} episodes from {windows}: {out}")
    print(
        f"left out: {summary.padding_dropped:,} padding entries, {summary.steps_without_successor} last steps"
    )
    if summary.steps_with_unknown_past:
        print(f"{summary.steps_with_unknown_past} steps after a gap have black frames for their unknown past")
    for note in summary.notes:
        print(f"note: {note}")
    game = environment or "not known; import again elsewhere with --environment atari/<Game> to name it"
    print(f"environment: {game}")


def game_of(address: str) -> str:
    """atari/Breakout for .../Breakout/1 or .../Breakout/1/replay_logs, and nothing where that is a guess."""
    from optimist.envs.atari import games

    path = address.partition("://")[2] if "://" in address else str(Path(address).resolve())
    parts = [part for part in path.split("/") if part and part != "replay_logs"]
    if len(parts) > 1 and parts[-1].isdigit() and parts[-2] in games():
        return f"atari/{parts[-2]}"
    return ""


def export_logs(words: list[str]) -> None:
    from optimist.cli.data import add_views, view

    parser = Parser(
        "optimist data export",
        description="Write a dataset, or a view of it, as DQN Replay logs that the released readers open.",
    )
    parser.add_argument("format", metavar="dqn-replay", help="the layout of the logs")
    parser.add_argument("data", metavar="DATA", type=Path, help="a dataset's folder")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where replay_logs is made")
    parser.add_argument(
        "--capacity", type=whole_number, default=1_000_000, metavar="int", help="entries in a file [1000000]"
    )
    add_views(parser)
    options = parser.options(_with_format(words, parser.prog))
    if options.out is None:
        raise UsageError("say where to write the logs: --out FOLDER")
    from optimist.data.formats.dqn_replay.export import export_dqn_replay

    summary = export_dqn_replay(view(options), options.out, capacity=options.capacity)
    size = f"{summary.bytes / 2**20:,.1f} MiB"
    print(f"{summary.steps:,} steps in {summary.dumps} dumps, {size}: {options.out / 'replay_logs'}")
    for line in summary.losses():
        print(f"note: {line}")


def verify_logs(path: str) -> None:
    from optimist.cli.tables import replay_table
    from optimist.data.formats.dqn_replay.verify import verify_dqn_replay
    from optimist.studies.sheet import print_sheet

    report = verify_dqn_replay(path)
    print_sheet(replay_table(report, path))
    for problem in report.problems:
        print(problem)
    if report.problems:
        raise DataError(f"{path}: {len(report.problems)} problems; an import tells which of them matter")
    print(f"{path}: every file is whole, and in order")


def _with_format(words: list[str], prog: str) -> list[str]:
    """The words, if their first names a format; its spelling is told before anything else is."""
    named = next((word for word in words if not word.startswith("-")), None)
    if not {"-h", "--help"} & set(words):
        if named is None:
            raise UsageError(f"name a format: {', '.join(FORMATS)}; see {prog} --help")
        if words[0] not in FORMATS:
            raise UsageError(f'there is no format "{words[0]}": {did_you_mean(words[0], FORMATS)}')
    return words
