"""Chooses among the kept policies of a study's runs by their logs alone, if the study asks for it."""

import logging
from pathlib import Path
from typing import Any

from optimist.choosing.estimators import USUAL
from optimist.choosing.selecting import UPDATES, select_policy
from optimist.studies.job import Job
from optimist.training.storage.checkpoint import kept_steps
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.run_folder import read_config
from optimist.training.storage.selected import is_of_all, read_selection

log = logging.getLogger("optimist")


def choose_policies(jobs: list[Job], out: Path, settings: dict[str, Any]) -> None:
    """Select among all agents that learned from the same log and the same part of it, by this part alone.
    Runs that were already selected with the same settings are left as they are."""
    groups: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        if job.label and not job.plays:
            groups.setdefault((job.environment, job.part, str(job.data)), []).append(job)
    for mine in groups.values():
        folders = [job.run_folder(out) for job in mine]
        among = sorted(fingerprint(read_config(folder)) for folder in folders)
        if not all(_is_selected(folder, settings, among) for folder in folders):
            log.warning("selecting among the policies of %s", mine[0].environment)
            first = mine[0]
            select_policy(folders, data=first.data_folder(out), part=first.part_of, **settings).write()


def _is_selected(folder: Path, settings: dict[str, Any], among: list[str]) -> bool:
    """Was this run selected with these settings, among the runs with these fingerprints and all of its
    policies? The notes compare the policies with each other."""
    found = read_selection(folder)
    if found is None or found.get("fingerprint") != fingerprint(read_config(folder)):
        return False
    if not is_of_all(found, kept_steps(folder)):
        return False
    usual = {"rule": USUAL, "updates": UPDATES, "steps": None}
    asked = {**usual, "among": among, **settings}
    return all(found.get(name) == value for name, value in asked.items())
