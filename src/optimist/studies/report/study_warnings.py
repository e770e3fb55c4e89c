"""Warnings above all numbers of a study's page, which the console prints too."""

from optimist.errors import some_of
from optimist.studies.report.study_tables import rules
from optimist.studies.results import runs as results
from optimist.studies.results.findings import OWN, StudyResults
from optimist.studies.results.provenance import diverged, read_versions
from optimist.studies.sheet import number
from optimist.training.storage.selected import NAME as SELECTION

BEYOND = 10  # times the difference of player and random play
WARNED_GAMES = 5  # left-out games that a warning names; the notes below the tables name all


def warnings(study: StudyResults) -> list[str]:
    """Mixed versions, unfinished and diverged runs, unusual scales, games left out."""
    jobs, out = study.record.jobs, study.out
    mixed = "; ".join(each.in_words() for each in read_versions(study.done, out) if each.mixed)
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
    spreads = results.random_spreads(study.done, study.out) if by.name == OWN else {}
    for game, spread in spreads.items():
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
        if 0 < player - random < max(spread, max(reached, default=0) / BEYOND):
            close.append(f"{game} ({number(player)} and {number(random)})")
    return close
