"""Which files of tests begin first: one that takes a minute and began last would be waited for alone."""

LONGEST = (
    "tests/agents/test_learning.py",
    "tests/agents/test_agents.py",
    "tests/studies/engines/test_cluster.py",
    "tests/training/test_same_play.py",
    "tests/studies/report/test_study_page.py",
    "tests/studies/report/test_study_report.py",
    "tests/training/export/test_export.py",
    "tests/agents/test_actor_critic.py",
    "tests/choosing/test_selecting.py",
    "tests/studies/engines/test_engine.py",
    "tests/training/test_resume.py",
    "tests/studies/test_demo.py",
    "tests/studies/test_bench.py",
)


def place_of(test: str) -> int:
    """The place of a test by its file; the files that are not named here share the last."""
    file = test.partition("::")[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
