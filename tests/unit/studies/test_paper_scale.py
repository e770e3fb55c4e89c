"""The paper's scale is the paper's: every value of the paper-scale studies against a table of its own, with
the place where each number stands.

"Table" is the paper's hyperparameter table, "code" its released code. "BCQ's code" and "TD3's code" are those
of Fujimoto et al. that the paper names, as they were before March 2020 and September 2019. "Ours" is a choice
or a deviation of this project. No value comes from the package: a changed default fails here, and so does a
new field until the table has it.
"""

import tomllib
from dataclasses import fields, replace
from importlib.resources import files
from itertools import product

import pytest

from optimist import agents
from optimist.data.transition import Spec
from optimist.envs import atari, available, make
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam, RmsProp
from optimist.networks import Convolution, DenseNetwork, LayeredTorso, Network
from optimist.studies import study_file
from optimist.studies.job import Job
from optimist.studies.plan import Study
from optimist.training.resolve import clipping


def whole(record, /, **values):
    """A record of this class; AssertionError if a field is left to the default of the package."""
    missing = {each.name for each in fields(record)} - values.keys()
    assert not missing, f"{record.__name__}: the table has no {', '.join(sorted(missing))}"
    return record(**values)


# --- The optimisers ---

REST_OF_ADAM = {
    "b1": 0.9,  # the default of TensorFlow and of PyTorch; no code changes it
    "b2": 0.999,  # likewise
    "head_epsilon": None,  # ours; none: not used
    "weight_decay": None,
}
NATURE = whole(RmsProp, learning_rate=2.5e-4, decay=0.95, epsilon=1e-5)  # code: dqn.gin; centred, no momentum
OFFLINE = whole(Adam, learning_rate=5e-5, epsilon=0.01 / 32, **REST_OF_ADAM)  # A.3: as online QR-DQN
TUNED = whole(Adam, learning_rate=5e-5, epsilon=0.001 / 32, **REST_OF_ADAM)  # A.3, "Online Agents"
C51_ADAM = whole(Adam, learning_rate=2.5e-4, epsilon=0.01 / 32, **REST_OF_ADAM)  # code: c51.gin
PYTORCH_ADAM = whole(Adam, learning_rate=1e-3, epsilon=1e-8, **REST_OF_ADAM)  # BCQ's and TD3's code: defaults

# --- The agents of Atari ---

ATARI = {
    "double": False,  # code: the target network chooses and values
    "target_period": 2_000,  # Table; code: 8,000 agent steps, with an update every 4
    "target_rate": 1.0,  # section 2: the target "parameters are updated to the current" ones
    "network": whole(Network, torso="auto", hidden="auto"),  # by the observations, which gives:
}
FRAMES = Spec((84, 84, 1), "uint8", actions=18, stack=4)  # Table: down-sampling, grey-scaling, frames stacked
Q_NETWORK = whole(
    LayeredTorso,
    convolutions=(  # Table: channels, filter size, stride; code: padding
        Convolution(32, 8, 4, "SAME"),
        Convolution(64, 4, 2, "SAME"),
        Convolution(64, 3, 1, "SAME"),
    ),
    hidden=(512,),  # Table
)
NOT_CLIPPED = {"target_limit": None}  # ours; none: targets are what the equation says
HUBER = {**NOT_CLIPPED, "huber_limit": 1.0}  # code: TensorFlow's default
HEADS = {
    **ATARI,
    **HUBER,
    "optimizer": OFFLINE,
    "columns": 200,  # Table: number of Q-heads
    "networks": 1,
    "initializer": "fan_in",  # code: MultiHeadQNetwork, variance scaling by 1/sqrt(3)
    "explore": "mean",  # section 4: acts by the average of the heads
    "spread": None,  # ours; none: "starting from different parameter initializations" (4.1)
}
GLOROT = {"initializer": "glorot"}  # code: NatureDQNNetwork; separate networks are such ones too

DQN_NATURE = whole(agents.Dqn, **ATARI, **HUBER, **GLOROT, optimizer=NATURE, columns=1, networks=1)
DQN_ADAM = replace(DQN_NATURE, optimizer=OFFLINE)
ENSEMBLE = whole(agents.EnsembleDqn, **HEADS)
AVERAGED = whole(agents.AveragedEnsembleDqn, **HEADS)
UNIFORM = whole(
    Mixture,
    kind="uniform",  # 4.2: U(0, 1), divided by the sum
    concentration=1.0,  # of another kind; not used
    count=1,  # 4.2: one for each minibatch; code: num_convex_combinations
)
REM = whole(agents.Rem, **HEADS, mixture=UNIFORM)
QR_DQN = whole(
    agents.QrDqn,
    **ATARI,
    **NOT_CLIPPED,
    optimizer=OFFLINE,
    columns=200,  # code: num_atoms
    networks=1,
    initializer="fan_in",  # code: QuantileNetwork
    over_quantiles="sum",  # code, and Dabney et al. 2018, algorithm 1
)
C51 = whole(
    agents.C51,
    **ATARI,
    optimizer=C51_ADAM,
    columns=51,  # code: num_atoms
    low=-10.0,  # code: minus vmax
    high=10.0,  # code: vmax
    networks=1,
    initializer="fan_in",  # code: that of Dopamine's Rainbow
)
# Section 5.3: 4 separate networks. In each episode REM plays by a mixture of them, Bootstrapped-DQN by one.
ONLINE_REM = replace(REM, optimizer=TUNED, columns=4, networks=4, explore="uniform", **GLOROT)
BOOTSTRAPPED = whole(
    agents.BootstrappedDqn,
    **{**HEADS, **GLOROT, "optimizer": TUNED, "columns": 4, "networks": 4, "explore": "one_hot"},
)

# --- The agents of continuous control ---

CONTROL = {
    "optimizer": PYTORCH_ADAM,
    "target_period": 1,
    "target_rate": 0.005,  # BCQ's and TD3's code: tau
    "network": whole(DenseNetwork, hidden="400,300", torso=None),  # BCQ's and TD3's code
    "noise": 0.5,  # A.2: N(0, 0.5), when DDPG plays
    "critics": 2,
    "actor_period": 1,
    "actor_rate": None,  # none: that of the optimizer
    "critic_decay": None,
    "late_action": False,  # the action enters the critics at their first layer
    "layer_norm": False,
    **NOT_CLIPPED,
}
DDPG = whole(  # BCQ's code: DDPG.py
    agents.Ddpg,
    **{**CONTROL, "critics": 1, "actor_rate": 1e-4, "critic_decay": 1e-2, "late_action": True},
)
TD3_ADAM = replace(PYTORCH_ADAM, learning_rate=5e-4)  # A.2: for actor and critic
TD3 = whole(
    agents.Td3,
    **{**CONTROL, "optimizer": TD3_ADAM, "actor_period": 2, "target_period": 2},  # TD3's code: policy_freq
    blur=0.2,  # TD3's code: policy_noise
    blur_limit=0.5,  # TD3's code: noise_clip
)
BCQ = whole(  # BCQ's code: BCQ.py
    agents.Bcq,
    **CONTROL,
    caution=0.75,
    candidates=10,
    candidates_at_play=10,
    perturbation=0.05,
    vae_hidden="750,750",
)

# --- How agents learn and play ---

ITERATION = 62_500  # gradient steps: 250,000 agent steps, an update every 4 (Table)
COMMON = {
    "batch": 32,  # Table
    "gamma": 0.99,  # Table
    "clip_rewards": 1.0,  # Table
    "reward_scale": 1.0,  # ours; 1: not used
    "precision": "tf32",  # ours; a P100 (Table) has no tf32, results/precision has the difference
    "evaluation_steps": 125_000,  # Table
    "episodes": 20,  # not used beside evaluation_steps
}
# What every offline run on Atari shares.
TRAINING = {
    **COMMON,
    "evaluate_every": ITERATION,  # A.3: "online every training iteration"
    "evaluation_epsilon": 0.001,  # Table: evaluation epsilon
    "n_step": 1,  # code: update_horizon
    "observations": "none",  # not scaled; the network divides frames by 255 (code)
    "hold_out": 0.0,  # ours; 0: learns from every episode
    "hold_out_last": None,
    "on_divergence": "continue",  # ours; continue: nothing is done
    "sampling": "uniform",  # Table: replay scheme; the code's is another (docs/atari.md)
    "data_per_seed": "own",  # section 5: "one per dataset"
}
# How each log is played, and how online agents learn: 200 million frames (sections 5 and 5.3).
COLLECTION = {
    **COMMON,
    "steps": 50_000_000,
    "lanes": 16,  # ours; the paper plays one game at a time, docs/atari.md has what differs
    "window": 1_000_000,  # Table: replay memory size
    "warm_up": 20_000,  # Table: min replay size for sampling
    "epsilon_start": 1.0,  # the paper's warm-up is random
    "epsilon": 0.01,  # Table: training epsilon
    "epsilon_decay": 250_000,  # Table
    "update_period": 4,  # Table
    "mix": 0.0,  # ours; 0: learns from its own play only
    "evaluate_every": 250_000,  # Table: training steps per iteration
    "evaluation_epsilon": 0.001,  # Table
}
# A.3: the score of random play. It learns nothing, so most of this has no effect.
RANDOM = whole(agents.Random, optimizer=OFFLINE, target_period=2_000, target_rate=1.0)
RANDOM_PLAY = {
    **TRAINING,
    "steps": 1,
    "evaluate_every": 1,
    "evaluation_steps": None,
    "episodes": 100,  # ours; code: random.gin has 125,000 steps
    "data_per_seed": "whole",
}
CONTINUOUS = {
    "batch": 100,  # BCQ's and TD3's code
    "clip_rewards": None,  # BCQ's and TD3's code
    "evaluation_steps": None,
    "episodes": 10,  # BCQ's and TD3's code
}
CONTROL_TRAINING = {
    **TRAINING,
    **CONTINUOUS,
    "steps": 1_000_000,  # BCQ's code
    "evaluate_every": 5_000,  # BCQ's code
    "evaluation_epsilon": 0.0,  # Figure 8: "evaluated without exploration noise"
}
CONTROL_COLLECTION = {
    **COLLECTION,
    **CONTINUOUS,
    "steps": 1_000_000,  # A.2
    "lanes": 16,  # ours; BCQ's code has one, docs/control.md has what differs
    "window": 1_000_000,  # BCQ's code: all that was played
    "warm_up": 1_000,  # BCQ's code: start_timesteps
    "epsilon": 0.0,  # explores by the agent's noise alone
    "epsilon_decay": 0,
    "update_period": 1,  # BCQ's code: as many updates as steps
    "evaluate_every": None,  # the players are chosen by their play
    "evaluation_epsilon": 0.0,
}
# Chosen for the machine: no result depends on them (training/storage/configuration.py).
MACHINE = {"feed", "memory_gib", "checkpoint_seconds", "keep_policies", "loggers"}

# --- The studies ---

FIVE = ("Asterix", "Breakout", "Pong", "Qbert", "Seaquest")  # Figures 3, 6 and 7
SIX = (*FIVE, "SpaceInvaders")  # the appendix, "separate Q-networks"
OFFLINE_STUDIES = {
    # Table 1 and Figure 1: 60 games, 5 runs, 1,000 iterations; 1X is read at 200.
    "asymptotic": {
        "games": 60,
        "runs": 5,
        "steps": 1_000 * ITERATION,
        "agents": {
            "DQN (Nature)": DQN_NATURE,
            "DQN (Adam)": DQN_ADAM,
            "Ensemble-DQN": ENSEMBLE,
            "Averaged Ensemble-DQN": AVERAGED,
            "QR-DQN": QR_DQN,
            "REM": REM,
        },
        "parts": {"all": {}},
        "read_at": {"1X": 200 * ITERATION, "5X": 1_000 * ITERATION},
    },
    # Figure 4 (60 games, 1X) and Figure 3 (C51, five of them).
    "dqn-vs-qr": {
        "games": 60,
        "runs": 5,
        "steps": 200 * ITERATION,
        "agents": {"DQN (Nature)": DQN_NATURE, "QR-DQN": QR_DQN, "C51": C51},
        "parts": {"all": {}},
        "read_at": {},
    },
    # Figure 6: "averaged over 5 runs", "5 Atari 2600 games for 5X gradient steps", trajectories at random.
    "dataset-size": {
        "games": FIVE,
        "runs": 5,
        "steps": 1_000 * ITERATION,
        "agents": {"QR-DQN": QR_DQN, "REM": REM},
        "parts": {f"{n}%": {"fraction": n / 100} for n in (1, 10, 20, 50)} | {"100%": {}},
        "read_at": {},
    },
    # Figure 7 and the last figure of the appendix: "averaged over 3 runs", "5X gradient steps", the first 20
    # of 200 million frames; QR-DQN and multi-head REM.
    "dataset-quality": {
        "games": 60,
        "runs": 3,
        "steps": 1_000 * ITERATION,
        "agents": {"QR-DQN": QR_DQN, "REM": REM},
        "parts": {"first tenth": {"first": 0.1}},
        "read_at": {},
    },
    # The appendix: 4 and 16 networks, and as many heads; 6 games, 5 runs, 500 iterations. Ours: 200 heads.
    "multi-network": {
        "games": SIX,
        "runs": 5,
        "steps": 500 * ITERATION,
        "agents": {
            "REM, 4 networks": replace(REM, columns=4, networks=4, **GLOROT),
            "REM, 4 heads": replace(REM, columns=4),
            "REM, 16 networks": replace(REM, columns=16, networks=16, **GLOROT),
            "REM, 16 heads": replace(REM, columns=16),
            "REM, 200 heads": REM,
            "QR-DQN": QR_DQN,
        },
        "parts": {"all": {}},
        "read_at": {},
    },
}
# Section 5.3 and Figure 5: 60 games, 5 runs.
ONLINE = {
    "DQN (Nature)": DQN_NATURE,
    "C51": C51,
    "QR-DQN": QR_DQN,
    "REM": ONLINE_REM,
    "Bootstrapped-DQN": BOOTSTRAPPED,
}
# Section 6, Figure 8 and A.2: 15 players, of which the 5 best are kept; "three standard MuJoCo" tasks, which
# the text does not name.
TASKS = ["mujoco/HalfCheetah", "mujoco/Hopper", "mujoco/Walker2d"]
FINAL_BUFFER = {"DDPG": DDPG, "TD3": TD3, "BCQ": BCQ}


def test_every_study_of_the_papers_scale_is_in_this_file():
    folder = files("optimist.studies").joinpath("catalog")
    tables = {name: folder.joinpath(f"{name}.toml").read_text("utf-8") for name in study_file.catalogue()}
    sizes = {name: list(tomllib.loads(table).get("scales", [])) for name, table in tables.items()}
    papers = {name for name, found in sizes.items() if any("paper" in size for size in found)}
    assert papers == {*OFFLINE_STUDIES, "online", "final-buffer"}
    assert all([size for size in sizes[name] if "paper" in size] == ["paper"] for name in papers)
    assert {name for name, found in sizes.items() if not found} == {"demo", "random-scores"}  # of one size


@pytest.mark.parametrize("name", OFFLINE_STUDIES)
def test_an_offline_study_has_the_papers_numbers(name):
    study, asked = study_file.load(name, "paper"), OFFLINE_STUDIES[name]
    games = every_game() if asked["games"] == 60 else [f"atari/{game}" for game in asked["games"]]
    assert study.normaliser == ""  # A.3: the scores of the DQN that was logged, and of random play
    assert (study.views, study.read_at) == (asked["parts"], asked["read_at"])
    logs, random, runs = divided(study)
    assert list(logs) == list(random) == games
    assert list(runs) == list(product(games, asked["parts"], asked["agents"]))
    seeds = tuple(range(asked["runs"]))
    for job in logs.values():
        check(job, DQN_NATURE, COLLECTION, seeds=seeds)
    for game, job in random.items():
        check(job, RANDOM, RANDOM_PLAY, seeds=(0,), data=logs[game].name)
    for (game, part, label), job in runs.items():
        settings = {**TRAINING, "steps": asked["steps"]}
        view = asked["parts"][part]
        check(job, asked["agents"][label], settings, seeds=seeds, data=logs[game].name, view=view)


def test_the_online_study_has_the_papers_numbers():
    study = study_file.load("online", "paper")
    assert (study.normaliser, study.read_at) == ("", {})
    logs, random, runs = divided(study)
    assert not logs and list(random) == every_game()
    assert list(runs) == list(product(every_game(), ["all"], ONLINE))
    for game, job in random.items():
        check(job, RANDOM, RANDOM_PLAY, seeds=(0,), data=runs[game, "all", "DQN (Nature)"].name)
    for (_, _, label), job in runs.items():
        check(job, ONLINE[label], COLLECTION, seeds=(0, 1, 2, 3, 4))


def test_the_study_of_continuous_control_has_the_papers_numbers():
    study = study_file.load("final-buffer", "paper")
    assert (study.normaliser, study.read_at) == ("", {})
    logs, random, runs = divided(study)
    assert list(logs) == list(random) == TASKS
    assert list(runs) == list(product(TASKS, ["all"], FINAL_BUFFER))
    for job in logs.values():
        check(job, DDPG, CONTROL_COLLECTION, seeds=tuple(range(15)))
    for task, job in random.items():
        settings = {**RANDOM_PLAY, "batch": 100, "clip_rewards": None, "evaluation_epsilon": 0.0}
        check(job, RANDOM, settings, seeds=(0,), data=logs[task].name)
    for (task, _, label), job in runs.items():
        log, seeds = logs[task].name, (0, 1, 2, 3, 4)
        check(job, FINAL_BUFFER[label], CONTROL_TRAINING, seeds=seeds, data=log, kept=5)


def test_random_play_is_scored_by_the_papers_protocol():
    """The study `random-scores` measures 0% of the normaliser `dqn-random`."""
    settings = {**COLLECTION, "steps": 16, "warm_up": 0, "evaluate_every": 16}  # nothing is learned
    logs, random, runs = divided(study_file.load("random-scores"))
    assert not logs and not random
    assert list(runs) == list(product(every_game(), ["all"], ["random play"]))
    for job in runs.values():
        check(job, RANDOM, settings, seeds=(0,))


def test_the_games_are_played_as_in_the_paper():
    """An environment without options in its name has these; tests/contract/envs compares every frame."""
    assert atari.Options() == whole(
        atari.Options,
        sticky=0.25,  # Table
        episodic_life=False,  # Table: terminal condition, game over
        no_ops=0,  # code: no random start
        full_action_set=False,  # code: the game's minimal set
        max_steps=27_000,  # Table: 108,000 frames
    )
    assert atari.FRAME_SKIP == 4  # Table
    assert replace(make("atari/Breakout").spec, actions=18) == FRAMES


def test_every_field_of_a_study_and_of_a_job_is_compared_or_has_no_effect():
    of_study = {"environments", "views", "read_at", "normaliser"}
    in_jobs = {"seeds", "agents", "recipe", "training", "collect", "data", "play"}
    of_report = {"name", "size", "title", "figures", "film", "select", "selects"}
    assert {each.name for each in fields(Study)} == of_study | in_jobs | of_report
    of_job = {"environment", "label", "part", "seeds", "data", "view", "share", "kept"}
    in_agent_and_settings = {"agent", "preset", "recipe", "options", "settings"}
    of_engine = {"name", "needs", "restart", "resolved"}
    assert {each.name for each in fields(Job)} == of_job | in_agent_and_settings | of_engine


def every_game() -> list[str]:
    games = [game for game in available() if game.startswith("atari/")]
    assert len(games) == 60  # Table 1
    return games


def divided(study) -> tuple[dict, dict, dict]:
    """A study's jobs: logs and random plays by environment, and runs by environment, part and label."""
    jobs = study.jobs()
    runs = {(job.environment, job.part, job.label): job for job in jobs if job.label}
    logs = {job.environment: job for job in jobs if job.collects}
    random = {job.environment: job for job in jobs if not job.label and not job.collects}
    assert len(runs) + len(logs) + len(random) == len(jobs)
    return logs, random, runs


def check(job, agent, settings: dict, *, seeds, data=None, view=None, kept: int = 0) -> None:
    """The job is of this agent, these settings and this data, and of nothing else."""
    built = job.built_agent()
    assert built.settled() == agent, job.name
    if isinstance(built, agents.TableAgent):
        assert built.torso(FRAMES) == Q_NETWORK, job.name
    assert settings_of(job) == settings, job.name
    found = job.seeds, job.data, job.view, job.share, job.kept
    assert found == (seeds, data, view or {}, {}, kept), job.name


def settings_of(job) -> dict:
    """The settings of a run on which its results depend, with the value of each that is "auto"."""
    clip = clipping({}, job.environment)
    decided = {"clip_rewards": clip, "reward_scale": 1.0, "observations": "none", "hold_out": 0.0}
    found = job.expected({"training": decided})["training"]
    return {each.name: found.get(each.name) for each in fields(job.record()) if each.name not in MACHINE}
