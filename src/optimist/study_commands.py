"""The commands that run studies, each a few calls into the floor of studies."""

from pathlib import Path

from optimist.errors import UsageError, did_you_mean
from optimist.options import Parser, add_fields, with_options


def study(words: list[str]) -> None:
    studies = {
        "final-buffer": _final_buffer,
        "proposition-1": _proposition,
        "random-scores": _random_scores,
    }
    if not words or words[0] in ("-h", "--help"):
        print("\n".join(f"usage: optimist study run {name} --out FOLDER" for name in studies))
    elif words[0] != "run":
        raise UsageError(f'there is no "study {words[0]}": {did_you_mean(words[0], ["run"])}')
    elif "".join(words[1:2]) not in studies:
        asked = "".join(words[1:2])
        raise UsageError(f'there is no study "{asked}": {did_you_mean(asked, studies)}')
    else:
        studies[words[1]](words[2:])


def _random_scores(words: list[str]) -> None:
    parser = Parser(
        "optimist study run random-scores",
        description="What random play scores on Atari with sticky actions, by the paper's protocol.",
    )
    parser.add_argument("--out", type=Path, default=Path("random-scores"), help="[random-scores]")
    from optimist.studies.random_scores import RandomStudy, run

    add_fields(parser, RandomStudy())
    options = parser.options(words)
    table = options.out / "scores.csv"
    rows = run(with_options(RandomStudy(), options), table)
    print(f"{len(rows)} games in {table}")


def _final_buffer(words: list[str]) -> None:
    parser = Parser(
        "optimist study run final-buffer",
        description="Figure 8: DDPG plays MuJoCo; DDPG, TD3 and BCQ learn from everything it did.",
    )
    parser.add_argument("--out", type=Path, default=Path("final-buffer"), help="[final-buffer]")
    from optimist.studies import final_buffer as study

    add_fields(parser, study.FinalBuffer())
    options = parser.options(words)
    asked = with_options(study.FinalBuffer(), options)
    _tell_final_buffer(study.run(asked, options.out), options.out)


def _tell_final_buffer(panels: list, out: Path) -> None:
    from optimist.data.files import write_whole
    from optimist.studies import figures
    from optimist.studies.final_buffer import mean_and_deviation, summaries, table
    from optimist.tables import print_table, results_table

    curves = [
        (
            panel.environment,
            {name: mean_and_deviation(run) for name, run in panel.runs.items()},
            panel.data_return,
        )
        for panel in panels
    ]
    figures.save_png(figures.final_buffer(curves), out / "figure8.png")
    write_whole(out / "figure8.csv", table(panels).encode())
    for panel in panels:
        print_table(results_table(summaries(panel), {"return_mean": panel.data_return}))
    print(f"wrote {out / 'figure8.png'} and {out / 'figure8.csv'}")


def _proposition(words: list[str]) -> None:
    parser = Parser("optimist study run proposition-1", description="Do the heads of REM become one, and Q*?")
    parser.add_argument("--out", type=Path, default=Path("proposition-1"), help="[proposition-1]")
    from optimist.studies.proposition import Proposition, run, write_results
    from optimist.tables import print_table, proposition_table

    add_fields(parser, Proposition())
    options = parser.options(words)
    readings = list(run(with_options(Proposition(), options)))
    print_table(proposition_table(readings))
    print("wrote " + " and ".join(map(str, write_results(options.out, readings))))
