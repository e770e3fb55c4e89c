"""`optimist scores`: from one table of scores to the paper's Table 1."""

from pathlib import Path

from optimist.errors import UsageError, did_you_mean
from optimist.options import Parser, whole_number

FORMAT = """FILE.csv has the columns game,agent,seed,score and, where there is more than one evaluation,
iteration or step. A normaliser of your own is a CSV file with the columns game,random,dqn: the scores of
random play and of the agent to be compared with, whose column may have another name."""


def scores(words: list[str]) -> None:
    from optimist.studies.scoring.normalisation import BUILT_IN, DEFAULT, normaliser
    from optimist.studies.scoring.score_files import complete, read_scores, told
    from optimist.studies.scoring.scores import RECENT

    parser = Parser(
        "optimist scores", description="The paper's Table 1 from one table of scores.", epilog=FORMAT
    )
    parser.add_argument("file", metavar="FILE.csv", type=Path, help="scores by game, agent and seed")
    parser.add_argument(
        "--normaliser",
        default=DEFAULT,
        metavar="NAME|CSV",
        help=f"what 0 and 100%% are: {', '.join(BUILT_IN)}, or a CSV file [{DEFAULT}]",
    )
    parser.add_argument(
        "--incomplete",
        default="refuse",
        metavar="name",
        help="games that lack an agent, seed or evaluation: refuse, or leave-out of every number [refuse]",
    )
    parser.add_argument(
        "--recent",
        type=whole_number,
        default=RECENT,
        metavar="int",
        help=f"mean of the last so many [{RECENT}]",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write table.md, table.csv, per_game.csv")
    options = parser.options(words)
    if options.incomplete not in ("refuse", "leave-out"):
        hint = did_you_mean(options.incomplete, ("refuse", "leave-out"))
        raise UsageError(f'incomplete games cannot be treated by "{options.incomplete}": {hint}')
    if options.recent < 1:
        raise UsageError(f"the mean of the last {options.recent} evaluations: it takes at least 1")
    by = normaliser(options.normaliser)
    asked = read_scores(options.file)
    chosen, left_out = complete(asked, leave_out=options.incomplete == "leave-out")
    passed_over = f"left out of every number: {told(left_out, len(asked.games))}" if left_out else ""
    _tell(chosen, by, options.recent, passed_over, options.out)


def _tell(scores, by, recent: int, passed_over: str, out: Path | None) -> None:
    from optimist.studies.scoring import table_one
    from optimist.tables import per_game_table, print_table, scores_table

    rows, games = table_one.table_one(scores, by, recent), table_one.per_game(scores, by, recent)
    notes = [*table_one.notes(rows, by), *([passed_over] if passed_over else [])]
    for agent, played in games.items():
        print_table(per_game_table(agent, played, by, recent))
    print_table(scores_table(rows, by, recent))
    print("\n".join(notes))
    if out:
        print("wrote " + " and ".join(map(str, table_one.write(out, rows, games, by, recent, notes))))
