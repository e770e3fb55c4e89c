"""The paper's scale is the paper's: every value of the paper-scale studies against a table of its own, with
the place where each number stands. "Table" is the paper's hyperparameter table, "code" its released code."""

import pytest

from optimist.envs import available
from optimist.equations.optimizers import Adam, RmsProp
from optimist.studies import study_file
from optimist.training import automatic

FIVE = ("Asterix", "Breakout", "Pong", "Qbert", "Seaquest")  # Figures 3, 6 and 7
SIX = (*FIVE, "SpaceInvaders")  # the appendix, "separate Q-networks"
ITERATION = 62_500  # gradient steps: 250,000 agent steps, an update every 4 (Table)
OFFLINE = Adam(learning_rate=5e-5, epsilon=0.01 / 32)  # Table; QR-DQN's are used for all offline agents
NATURE = RmsProp(learning_rate=2.5e-4, decay=0.95, epsilon=1e-5)  # Table and code

# What every offline run on Atari shares.
TRAINING = {
    "evaluate_every": ITERATION,  # "evaluation is done online every training iteration" (A.3)
    "evaluation_steps": 125_000,  # Table: evaluation steps
    "epsilon": 0.001,  # Table
    "batch": 32,  # Table
    "gamma": 0.99,  # Table
    "n_step": 1,  # code: update_horizon
    "clip_rewards": 1.0,  # code: the runner clips to [-1, 1]
    "data_per_seed": "own",  # A.3: five seeds of data collection; each run has the log of one online run
}
# How each log is played: DQN (Nature), 200 million frames (section 3).
COLLECTION = {
    "steps": 50_000_000,
    "window": 1_000_000,  # Table: replay capacity
    "warm_up": 20_000,  # Table: minimal replay history
    "epsilon": 0.01,  # Table
    "epsilon_decay": 250_000,  # Table
    "update_period": 4,  # Table
    "batch": 32,
    "gamma": 0.99,
    "clip_rewards": 1.0,
    "evaluate_every": 250_000,  # Table: an iteration
    "evaluation_steps": 125_000,
    "evaluation_epsilon": 0.001,
}
STUDIES = {
    # Table 1 and Figure 1: 60 games, 5 runs, 1,000 iterations; 1X is read at 200.
    "asymptotic": {
        "games": 60,
        "runs": 5,
        "steps": 1_000 * ITERATION,
        "agents": {
            "DQN (Nature)": (NATURE, 1, 1),
            "DQN (Adam)": (OFFLINE, 1, 1),
            "Ensemble-DQN": (OFFLINE, 200, 1),
            "Averaged Ensemble-DQN": (OFFLINE, 200, 1),
            "QR-DQN": (OFFLINE, 200, 1),
            "REM": (OFFLINE, 200, 1),
        },
        "parts": {"all": {}},
        "read_at": {"1X": 200 * ITERATION, "5X": 1_000 * ITERATION},
    },
    # Figure 4 (60 games, 1X) and Figure 3 (C51, five of them).
    "dqn-vs-qr": {
        "games": 60,
        "runs": 5,
        "steps": 200 * ITERATION,
        "agents": {
            "DQN (Nature)": (NATURE, 1, 1),
            "QR-DQN": (OFFLINE, 200, 1),
            "C51": (Adam(learning_rate=2.5e-4, epsilon=0.01 / 32), 51, 1),  # code: c51.gin
        },
        "parts": {"all": {}},
        "read_at": {},
    },
    # Figure 6: "averaged over 5 runs", "5 Atari 2600 games for 5X gradient steps", trajectories at random.
    "dataset-size": {
        "games": FIVE,
        "runs": 5,
        "steps": 1_000 * ITERATION,
        "agents": {"QR-DQN": (OFFLINE, 200, 1), "REM": (OFFLINE, 200, 1)},
        "parts": {f"{n}%": {"fraction": n / 100} for n in (1, 10, 20, 50)} | {"100%": {}},
        "read_at": {},
    },
    # Figure 7 and the last figure of the appendix: "averaged over 3 runs", "5X gradient steps", the first 20
    # of 200 million frames; QR-DQN and multi-head REM.
    "dataset-quality": {
        "games": 60,
        "runs": 3,
        "steps": 1_000 * ITERATION,
        "agents": {"QR-DQN": (OFFLINE, 200, 1), "REM": (OFFLINE, 200, 1)},
        "parts": {"first tenth": {"first": 0.1}},
        "read_at": {},
    },
    # The appendix: 4 and 16 networks, and as many heads; 6 games, 5 runs, 500 iterations.
    "multi-network": {
        "games": SIX,
        "runs": 5,
        "steps": 500 * ITERATION,
        "agents": {
            "REM, 4 networks": (OFFLINE, 4, 4),
            "REM, 4 heads": (OFFLINE, 4, 1),
            "REM, 16 networks": (OFFLINE, 16, 16),
            "REM, 16 heads": (OFFLINE, 16, 1),
            "REM, 200 heads": (OFFLINE, 200, 1),
            "QR-DQN": (OFFLINE, 200, 1),
        },
        "parts": {"all": {}},
        "read_at": {},
    },
}


@pytest.mark.parametrize("name", STUDIES)
def test_an_offline_study_has_the_papers_numbers(name):
    study, asked = study_file.load(name, "paper"), STUDIES[name]
    every = [game for game in available() if game.startswith("atari/")]
    games = every if asked["games"] == 60 else [f"atari/{game}" for game in asked["games"]]
    assert len(every) == 60 and list(study.environments) == games
    assert (study.views, study.read_at) == (asked["parts"], asked["read_at"])
    jobs = study.jobs()
    logs = [job for job in jobs if job.collects]
    runs = [job for job in jobs if job.label]
    assert len(logs) == len(games)
    assert len(runs) == len(games) * len(asked["agents"]) * len(asked["parts"])
    seeds = tuple(range(asked["runs"]))
    for job in logs:
        check(job, COLLECTION)
        assert job.seeds == seeds and job.built_agent().optimizer == NATURE, job.name
        assert job.built_agent().target_period == 2_000, job.name
    for job in runs:
        check(job, {**TRAINING, "steps": asked["steps"]})
        agent = job.built_agent()
        found = agent.optimizer, agent.columns, agent.networks
        assert found == asked["agents"][job.label], job.name
        assert agent.target_period == 2_000, job.name  # Table: 8,000 agent steps, an update every 4
        assert job.seeds == seeds and not job.share, job.name


def test_the_online_study_has_the_papers_numbers():
    """Section 5.3, Figure 5: 60 games, 200 million frames, 5 runs; REM and Bootstrapped-DQN have an epsilon
    that was tuned for them."""
    online = Adam(learning_rate=5e-5, epsilon=0.001 / 32)
    expected = {
        "DQN (Nature)": (NATURE, 1, 1),
        "C51": (Adam(learning_rate=2.5e-4, epsilon=0.01 / 32), 51, 1),
        "QR-DQN": (OFFLINE, 200, 1),
        "REM": (online, 4, 4),
        "Bootstrapped-DQN": (online, 4, 4),
    }
    jobs = [job for job in study_file.load("online", "paper").jobs() if job.label]
    assert len(jobs) == 60 * len(expected)
    for job in jobs:
        agent = job.built_agent()
        assert (agent.optimizer, agent.columns, agent.networks) == expected[job.label]
        assert job.seeds == (0, 1, 2, 3, 4)
        check(job, COLLECTION)


def test_the_study_of_continuous_control_has_the_papers_numbers():
    """Section 6 and appendix A.2: DDPG for a million steps with noise N(0, 0.5), 15 seeds of which the 5 best
    are kept; TD3 by 0.0005. DDPG and BCQ as their authors' code of 2019, which the paper most likely used."""
    study = study_file.load("final-buffer", "paper")
    assert study.environments == ("mujoco/HalfCheetah", "mujoco/Hopper", "mujoco/Walker2d")
    common = {"batch": 100, "gamma": 0.99, "clip_rewards": None}
    for job in study.jobs():
        if job.agent == "random":
            continue
        agent = job.built_agent()
        assert (agent.network.hidden, agent.target_rate) == ("400,300", 0.005)
        if job.collects:
            assert (job.agent, job.seeds, agent.noise) == ("ddpg", tuple(range(15)), 0.5)
            check(job, {**common, "steps": 1_000_000, "warm_up": 1_000, "update_period": 1})
        else:
            assert job.kept == 5
            more = {
                "steps": 1_000_000,
                "evaluate_every": 5_000,
                "episodes": 10,
                "epsilon": 0.0,
                "data_per_seed": "own",
            }
            check(job, {**common, **more})
        rates = {"DDPG": (1e-4, 1e-3), "TD3": (5e-4, 5e-4), "BCQ": (1e-3, 1e-3)}[job.label or "DDPG"]
        assert tuple(agent.optimizer_of(each).learning_rate for each in ("actor", "critic")) == rates
        if job.agent == "ddpg":
            assert agent.optimizer_of("critic").weight_decay == 1e-2 and agent.late_action
        if job.agent == "bcq":
            assert (agent.candidates, agent.candidates_at_play, agent.caution) == (10, 10, 0.75)


def check(job, expected: dict) -> None:
    """The job's settings have these values, once the environment decides about clipping."""
    record = vars(job.record())
    found = {**record, **automatic.values(record, {"clip_rewards": automatic.clipping({}, job.environment)})}
    for field, value in expected.items():
        assert found[field] == value, f"{job.name}: {field}"
