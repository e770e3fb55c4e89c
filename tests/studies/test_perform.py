"""What a study shows is made of its runs as they are now."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from optimist.studies import perform, study_file
from optimist.studies.report.study_report import FILM


@pytest.fixture
def filmed(monkeypatch):
    """The runs that were filmed, in order; a film takes no time."""
    runs = []

    def load_run(folder):
        runs.append(folder.name)
        shade = np.uint8(len(runs))
        return SimpleNamespace(pictures=lambda frames: [np.full((8, 8, 3), shade)])

    monkeypatch.setattr(perform, "load_run", load_run)
    return runs


def test_a_film_of_an_earlier_study_does_not_stay(filmed, tmp_path):
    study = study_file.load("demo", "tiny")
    labels = list(study.agents)[:2]
    films = []
    for label in (*labels, labels[0]):
        again = replace(study, film=label)
        perform._film(again, again.jobs(), tmp_path)
        films.append((tmp_path / FILM).read_bytes())
    assert filmed[0] == filmed[2] != filmed[1] and len(set(films)) == 3
    perform._film(replace(study, film=""), study.jobs(), tmp_path)
    assert not (tmp_path / FILM).exists()
