"""Warnings above all numbers of a study's page, which the console prints too.

Among them: finished runs that diverged, and runs that were made by different versions.
"""

from collections.abc import Sequence
from pathlib import Path

from optimist.errors import some_of
from optimist.studies.job import Job
from optimist.studies.report.study_tables import rules
from optimist.studies.results import runs as results
from optimist.studies.results.findings import StudyResults
from optimist.studies.scores.normalisation import OWN
from optimist.studies.sheet import number
from optimist.training.storage.configuration import read_versions as versions_of_run
from optimist.training.storage.run_folder import Alarm, read_alarms
from optimist.training.storage.selected import NAME as SELECTION

BEYOND = 10  # times the difference of player and random play
NAMED = 3  # runs that a line about versions names; the others are counted
NAMED_DIVERGED = 5
OF_ITS_GAME = ("dataset", "rom_md5")  # these differ between games in any study
WARNED_GAMES = 5  # left-out games that a warning names; the notes below the tables name all


def warnings(study: StudyResults) -> list[str]:
    """Mixed versions, unfinished and diverged runs, unusual scales, games left out."""
    jobs, out = study.record.jobs, study.out
    versions = read_versions(study.done, out).items()
    mixed = "; ".join(_versions_in_words(name, runs) for name, runs in versions if len(runs) > 1)
    lines = [f"the runs have different versions: {mixed}"] if mixed else []
    if study.unfinished:
        failed = sum(each.state == "failed" for each in study.unfinished)
        some = f", {failed} of them failed" if failed else ""
        lines.append(
            f"{len(study.unfinished)} of {len(jobs)} runs are not finished and not in the numbers{some}"
        )
    if runs := diverged(study.done, out):
        lines.append(
            f"diverged, with values beyond the returns of their logs: {runs}; their scores are counted"
        )
    lines += _scales(study)
    if not study.record.selects and any((job.run_folder(out) / SELECTION).exists() for job in jobs):
        lines.append("policies that were chosen by the logs earlier are not shown, because of --no-select")
    if len(ways := rules(study.selections)) > 1:
        lines.append(f"the runs' policies were chosen offline in different ways: {'; '.join(ways)}")
    lines += study.empty_parts
    for finding in (each for each in study.findings if each.left_out):
        named = [f"{game} ({why})" for game, why in finding.left_out.items()]
        lines.append(f"left out of {finding.name}: {some_of(named, WARNED_GAMES)}")
    return lines


Versions = dict[str, dict[str, list[str]]]  # of each package or device its versions, each with its runs


def read_versions(done: Sequence[Job], out: Path) -> Versions:
    """The versions of every finished run, the most common first; "unknown" for runs without versions.json."""
    by_run = {job.name: versions_of_run(job.run_folder(out)) for job in done}
    names = dict.fromkeys(name for versions in by_run.values() for name in versions)
    runs_of: Versions = {name: {} for name in names if name not in OF_ITS_GAME}
    for name, runs in runs_of.items():
        for run, versions in by_run.items():
            if name in versions or not versions:
                runs.setdefault(versions.get(name, "unknown"), []).append(run)
    return {
        name: dict(sorted(runs.items(), key=lambda item: -len(item[1]))) for name, runs in runs_of.items()
    }


def _versions_in_words(name: str, runs: dict[str, list[str]]) -> str:
    """'jax 0.10.2 in 298 runs, 0.11.0 in 2 (runs/a, runs/b)'."""
    (usual, most), *others = runs.items()
    rare = [f"{version} in {len(names)} ({some_of(names, NAMED)})" for version, names in others]
    return f"{name} {', '.join([f'{usual} in {len(most)} runs', *rare])}"


def diverged(done: Sequence[Job], out: Path) -> str:
    """'runs/a (2 seeds, the first at step 104,750)' for every finished run with alarms; "" if there is
    none."""
    alarms_of = {job.name: read_alarms(job.run_folder(out)) for job in done}
    return some_of(
        [f"{name} ({first_alarm(alarms)})" for name, alarms in alarms_of.items() if alarms], NAMED_DIVERGED
    )


def first_alarm(alarms: dict[int, Alarm]) -> str:
    first = min(alarm.step for alarm in alarms.values())
    return f"{len(alarms)} seed{'s' * (len(alarms) > 1)}, the first at step {first:,}"


def _scales(study: StudyResults) -> list[str]:
    """The games in which 0 and 1 are exchanged, or so close that scores there say little."""
    by = study.by
    games = dict.fromkeys(game for finding in study.findings for game in finding.file.games)
    lines = []
    if worse := [game for game in games if by.yardstick_scores[game] < by.random_scores[game]]:
        lines.append(
            f"{study.yardstick} is worse than random play in {some_of(worse, WARNED_GAMES)}: there 1 is "
            "random play, and 0 is the player"
        )
    if close := _close_to_random(study):
        lines.append(
            f"{study.yardstick} is hardly better than random play in {some_of(close, WARNED_GAMES)}: "
            "scores there are divided by this small difference, so they say little"
        )
    return lines


def _close_to_random(study: StudyResults) -> list[str]:
    """The games in which the player gains less than episodes of random play differ among themselves, or so
    little that an agent's score is beyond ten times 0 to 1."""
    by, close = study.by, []
    played = results.random_returns(study.done, study.out) if by.name == OWN else {}
    for game, returns in played.items():
        if game not in by.yardstick_scores:
            continue
        random, player = by.random_scores[game], by.yardstick_scores[game]
        reached = [
            abs(score - random)
            for finding in study.findings
            for games in finding.file.agents.values()
            for curve in games.get(game, {}).values()
            for score in curve.values()
        ]
        if 0 < player - random < max(float(returns.std()), max(reached, default=0) / BEYOND):
            close.append(f"{game} ({number(player)} and {number(random)})")
    return close
