"""Which files of tests begin first: one that takes a minute and began last would be waited for alone."""

LONGEST = (
    "tests/contract/agents/test_learning.py",
    "tests/contract/agents/test_agents.py",
    "tests/system/studies/engines/test_cluster.py",
    "tests/system/training/test_same_play.py",
    "tests/system/studies/report/test_study_page.py",
    "tests/system/studies/report/test_study_report.py",
    "tests/system/training/export/test_export.py",
    "tests/contract/agents/test_actor_critic.py",
    "tests/contract/choosing/test_selecting.py",
    "tests/system/studies/engines/test_engine.py",
    "tests/contract/training/test_resume.py",
    "tests/system/studies/test_demo.py",
    "tests/contract/studies/test_bench.py",
)


def place_of(test: str) -> int:
    """The place of a test by its file; the files that are not named here share the last."""
    file = test.partition("::")[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
