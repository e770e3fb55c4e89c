"""How the pages of the documentation are run: what their reader has, what is made smaller, what is not run.

A page is one bash script in an empty folder, with a copy of docs/. Everything that is not in this table is
run as it is written.
"""

from dataclasses import dataclass, field

from documented import COMMANDS, PAGES, PYTHON, SHOWN, blocks

# Nothing is installed or downloaded here, and no cluster is started: `make release-check` installs the wheel
# in new environments, and tests/system/studies/engines start the daemons of Ray and SLURM.
PROGRAMS = """
set -eu
optimist() { "$PYTHON" -m optimist "$@"; }
python() { "$PYTHON" "$@"; }
pip() { echo "not run: pip $*"; }
make() { echo "not run: make $*"; }
ray() { echo "not run: ray $*"; }
"""
FILE = "mine.toml"  # what a page calls a study of the reader's own

# Pages that a test of the quick suite runs as a whole.
OWN_TESTS = {
    "docs/your-own-log.md": "tests/system/test_tutorials.py",
    "docs/choosing-a-policy.md": "tests/system/test_tutorials.py",
    "docs/growing-the-log.md": "tests/system/test_tutorials.py",
    "docs/extending.md": "tests/system/test_tutorials.py",
    "CONTRIBUTING.md": "tests/system/studies/engines/test_engines.py",
}


@dataclass(frozen=True)
class Reading:
    given: str = ""  # commands that come before the first block
    smaller: dict[str, str] = field(default_factory=dict)  # a part of the page: what is run instead
    not_run: dict[str, str] = field(
        default_factory=dict
    )  # how a line begins: why it is not run, or what it needs and what runs it
    afterwards: str = ""


def script(page: str) -> str:
    """The page as one bash script."""
    reading = READINGS[page]
    parts = [PROGRAMS, reading.given]
    for block in blocks(page):
        text = block.text.replace("\\\n", "") if block.kind == COMMANDS else block.text
        for old, new in reading.smaller.items():
            text = text.replace(old, new)
        if block.kind == COMMANDS:
            lines = [line for line in text.splitlines() if not line.startswith(tuple(reading.not_run))]
            parts += [f"echo '{block}'", *lines]
        elif block.kind != SHOWN:
            reader = "python -" if block.kind == PYTHON else f"cat > {FILE}"
            parts += [f"echo '{block}'", f"{reader} << 'END OF THE BLOCK'", f"{text}END OF THE BLOCK"]
    return "\n".join([*parts, reading.afterwards, ""])


DEMO = "--online-steps 600 --offline-steps 20 --evaluations 2 --episodes 2 --seeds 1"
GAME = "--steps 600 --lanes 4 --warm-up 100 --evaluate-every 300 --episodes 2 --network.torso mlp"
SMALL_REM = "--steps 20 --evaluate-every 10 --episodes 2 --columns 4 --network.torso mlp"
ATARI = "--steps 400 --lanes 4 --warm-up 160 --network.torso mlp"
ATARI_REM = (
    "--steps 2 --columns 4 --network.torso mlp --environment none"  # an evaluation plays whole episodes
)
CONTROL = "--steps 60 --lanes 2 --warm-up 20 --batch 8 --evaluate-every 30 --episodes 1 --network.hidden 8,8"
# Two real games by tiny networks, from the players to the table: two minutes on two cores.
TWO_GAMES = (
    "--steps 1600 --lanes 8 --agents rem:20,dqn_adam:20 --evaluations 2 --episodes 2 "
    "--player-evaluations 2 --apart 1 --feed memory --cores 2 --collected-by 600 --until 1800 "
    "--more '--precision float32 --max-steps 300 --network.torso mlp --network.hidden 16' "
    "--more-of-players '--precision float32 --max-steps 300 --network.torso mlp --network.hidden 16 "
    "--warm-up 200 --window 2000'"
)
OFFLINE_CONTROL = "--steps 4 --batch 8 --evaluate-every 4 --episodes 1 --network.hidden 8,8"

# Files of the DQN Replay Dataset, made from a log of ours.
REPLAY = f"""
optimist collect atari/Breakout --preset dqn-nature --out played {ATARI}
optimist data export dqn-replay played --out dqn/Breakout/1 --capacity 150
"""
TABLE = """
python - << 'END'
import numpy as np, pyarrow, pyarrow.parquet
random, rows = np.random.default_rng(0), 400
columns = {"observations": random.normal(size=(rows, 3)).tolist(), "actions": random.integers(2, size=rows)}
columns |= {"rewards": random.normal(size=rows), "terminals": np.arange(rows) % 20 == 19}
columns["truncations"] = np.zeros(rows, bool)
pyarrow.parquet.write_table(pyarrow.table(columns), "log.parquet")
END
"""
ARRAYS = """
import numpy as np
random = np.random.default_rng(0)
observations, rewards = random.normal(size=(400, 3)), random.normal(size=400)
actions = random.integers(2, size=400)
terminals, truncations = np.arange(400) % 20 == 19, np.zeros(400, bool)
"""
SCORES = """
cat > scores.csv << 'END'
game,agent,seed,iteration,score
Pong,DQN (Nature),0,1,10
Pong,REM,0,1,12
END
"""
LITTLE_STUDY = """
cat > mine.toml << 'END'
title = "A little study"
recipe = "small"
seeds = 1
environments = ["gym/CartPole-v1"]
collect.agent = "dqn"
collect.settings = { steps = 400, lanes = 4, warm_up = 50, evaluate_every = 200, episodes = 2 }
training = { steps = 20, evaluate_every = 10, episodes = 1 }
[agents]
"DQN" = { agent = "dqn", options = { network = { torso = "mlp" } } }
END
"""
# The Hub is a stand-in, and there are a dataset and a run to send.
HUB = f"""
"$PYTHON" -m tests.hub_standin > hub-address &
trap "kill $!" EXIT
until [ -s hub-address ]; do sleep 0.1; done
export HF_ENDPOINT="$(cat hub-address)" HF_TOKEN=hf_somebody HF_HOME="$PWD/hub" HF_HUB_DISABLE_XET=1
optimist collect gym/CartPole-v1 --agent random --steps 400 --lanes 4 --out data/breakout
optimist train rem data/breakout --out runs/rem {SMALL_REM}
"""
A_STUDY = {"run asymptotic --scale tiny": "run mine.toml --out studies/asymptotic-tiny"}

# The studies of the results took up to hours on a GPU: here each is checked and its list of runs is written.
PREPARED = {"optimist study run ": "optimist study run --prepare "}
QUALITY_LOGS = {" --logs studies/dataset-quality-mini": ""}  # no log has been collected here
ON_A_GPU = "minutes to hours on a GPU; what it gave is on the page"
MINUTES = "many minutes on two cores; what it gave is on the page"
# Figure 8 by tiny networks, from the players to the table; without BCQ, which takes a minute to compile.
TASKS = ("HalfCheetah", "Hopper", "Walker2d")
THREE_TASKS = """
cat > three-small.toml << 'END'
title = "small tasks"
figures = ["spread"]
environments = ["mujoco/HalfCheetah", "mujoco/Hopper", "mujoco/Walker2d"]
recipe = "control"
training = { steps = 20, evaluate_every = 10, episodes = 1 }
[collect]
agent = "ddpg"
preset = "2019"
seeds = 2
kept = 2
options = { network = { hidden = "8,8" } }
settings = { steps = 300, lanes = 2, warm_up = 250, evaluate_every = 150, episodes = 1 }
[agents]
"TD3" = { agent = "td3", options = { network = { hidden = "8,8" } } }
"DDPG" = { agent = "ddpg", preset = "2019", options = { network = { hidden = "8,8" } } }
END
"""

READINGS = {
    "README.md": Reading(
        given=TABLE,
        smaller={
            "optimist demo ": f"optimist demo {DEMO} ",
            "import optimist\n": f"{ARRAYS}import optimist\n",
            "steps=10_000": "steps=20",
            "train cql log": "train cql log --steps 200 --evaluate-every 100",
            "select runs/cql": "select runs/cql --updates 20 --anyway",
        },
    ),
    "docs/install.md": Reading(smaller={"optimist demo ": f"optimist demo {DEMO} "}),
    "docs/guide.md": Reading(
        given=f"{SCORES}{REPLAY}{LITTLE_STUDY}",
        smaller={
            "--steps 500_000": GAME,
            "train rem data": f"train rem data {SMALL_REM}",
            "--episodes 100": "--episodes 2",
            "demo/logs/minatar-jax-breakout": "data",
            "steps=10_000": "steps=20",
            "--preset dqn-nature": f"--preset dqn-nature {ATARI}",
            "dqn/Breakout/1 --out breakout": "dqn/Breakout/1 --out imported",
            "train rem breakout --seeds 0,1,2,3,4": f"train rem breakout --seeds 0,1 {ATARI_REM}",
            "--agent td3": f"--agent td3 {CONTROL}",
            "train bcq cheetah": f"train bcq cheetah {OFFLINE_CONTROL}",
            "run final-buffer": "run final-buffer --prepare",
            **A_STUDY,
        },
    ),
    "docs/atari.md": Reading(
        given=f"""
{REPLAY}
optimist collect atari/Amidar --preset dqn-nature --out amidar {ATARI}
mkdir -p runs atari-py-0.2.5/atari_py && mv amidar/agent runs/amidar
python -c 'from pathlib import Path; import ale_py; print(Path(ale_py.__file__).parent / "roms")' > roms
cp -r "$(cat roms)" atari-py-0.2.5/atari_py/atari_roms
""",
        smaller={
            "--preset dqn-nature": f"--preset dqn-nature {ATARI}",
            "evaluate runs/amidar": "evaluate runs/amidar --steps 40 --epsilon 1",
            "dqn/Breakout/1 --out breakout": "dqn/Breakout/1 --out imported",
            "breakout --seeds 0,1,2,3,4": f"breakout --seeds 0,1 {ATARI_REM}",
            "--recipe paper-5x": f"--recipe paper-5x --out 5x {ATARI_REM}",
            "--sampling five-buffers": f"--sampling five-buffers --out five {ATARI_REM}",
            "qr_dqn breakout --first 5_000_000": f"qr_dqn breakout --first 300 {ATARI_REM}",
        },
    ),
    "docs/control.md": Reading(
        smaller={
            "run final-buffer": "run final-buffer --prepare",
            "--seeds 0-14 --lanes 16": f"--seeds 3,7,9 {CONTROL}",
            "train td3 cheetah": f"train td3 cheetah {OFFLINE_CONTROL}",
            "train bcq cheetah": f"train bcq cheetah {OFFLINE_CONTROL}",
        },
    ),
    "docs/studies.md": Reading(
        given=f"""
{LITTLE_STUDY}
echo '"Cloning" = {{ agent = "behaviour_cloning" }}' >> mine.toml
optimist study run mine.toml --out studies/a
cp -r studies/a studies/b
""",
        smaller={
            **A_STUDY,
            "run dataset-size": "run dataset-size --prepare",
            **QUALITY_LOGS,
        },
        afterwards="""
cp results/asymptotic/normaliser.csv .
optimist study run mine.toml --scale mine --dry-run
""",
    ),
    "docs/clusters.md": Reading(
        given=LITTLE_STUDY + HUB,
        smaller={
            "s3://": '"file://$PWD/"',
            "work mine --index 0": "work mine --index 0; optimist study work mine --index 1",
            "report mine": "work mine --index 2; optimist study report mine",
            "--index 7": "--index 2",
            "/local/disk": "scratch",
            "evaluate breakout-rem": "evaluate breakout-rem --episodes 2",
        },
        not_run={
            "optimist study run asymptotic --engine ray": "a cluster; test_cluster.py",
            "optimist study run asymptotic --engine slurm": "a cluster; test_slurm.py",
            "optimist study run mine.toml --engine ray": "a cluster; test_places.py",
        },
    ),
    "docs/performance.md": Reading(
        not_run={
            "optimist bench  ": "some minutes; the same program as with --quick, with more rows",
        },
    ),
    "results/agents/README.md": Reading(not_run={"JOBS=8 bash": ON_A_GPU}),
    "results/atari/README.md": Reading(not_run={"bash": ON_A_GPU}),
    "results/bcq-divergence/README.md": Reading(
        smaller={
            "--steps 600000": CONTROL,
            "--steps 140000 --evaluate-every 20000 --episodes 5": OFFLINE_CONTROL,
        },
    ),
    "results/d3rlpy/README.md": Reading(not_run={"OPTIMIST_PEERS": "needs d3rlpy and hours"}),
    "results/dataset-quality/README.md": Reading(smaller=PREPARED | QUALITY_LOGS),
    "results/dataset-size/README.md": Reading(smaller=PREPARED | QUALITY_LOGS),
    "results/exploration/README.md": Reading(smaller=PREPARED | {" --logs studies/exploration-mini": ""}),
    "results/multi-network/README.md": Reading(smaller=PREPARED | {" --logs studies/asymptotic-mini": ""}),
    "results/proposition-1/README.md": Reading(
        smaller={"100000 results/proposition-1": "40 again"}  # on another machine sums round otherwise
    ),
}
# Of the other results each study is prepared, and everything else is run as it is written.
for result in (page for page in PAGES if page.startswith("results/") and page not in READINGS):
    text = "".join(block.text for block in blocks(result) if block.kind != SHOWN)
    if text:
        prepared = PREPARED if "optimist study run " in text else {}
        READINGS[result] = Reading(smaller=prepared)
