"""What averaging networks at play gains on MinAtar: the committee.

    python docs/results/committee/run.py FOLDER --until 1400

Logs: in each game five DQN (Nature) players, 500,000 steps, recipe `mini`: the catalogue's standing logs.
Stages: 1X (125,000 updates, a policy kept every 5,000), 5X (625,000, every 25,000; goes on from 1X) and
`long` (250,000 updates on the 5 million steps of one player, every 10,000). Ten or five seeds learn from the
same log.

Primary measure, fixed before any run. Stage 1X, agents dqn (Adam), rem and c51, 25 logs: 75 cases (game, log,
agent). Regret = 1 - score(shipped) / score(oracle's pick), its mean over cases, for the values of five seeds
averaged at the last step (weight average 1) minus the last step of one seed. Scores are means over the seeds
or teams of a case. The oracle picks the best of the 25 kept policies of one run by 100 episodes; the pick is
scored by 100 fresh ones (both halves take both parts). 95% by the bootstrap over pairs (game, log), paired.
The committee is confirmed as the default if the interval of the difference is below zero.

Secondary: the same at 5X and on long logs; 2, 3, 4, 10 seeds; weights averaged over the last 5, 10, 12; other
agents; four and five DQNs at play against one REM with four networks (equal compute: networks times updates).

Several processes take tasks from one list, in its order. FOLDER/found is what to bring back; the same command
continues: a task without its file is done again.
"""

import argparse
import csv
import gzip
import io
import os
import pickle
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from work import Diary, share_the_device

from optimist import api, envs
from optimist.data.dataset import Dataset
from optimist.envs.minatar import GAMES
from optimist.training.feeding import feed_of
from optimist.training.guard import sizes
from optimist.training.interrupt import Interrupted
from optimist.training.learner import Learner, advance
from optimist.training.play.rollout import play_out_on_device
from optimist.training.probes import answers, probes_of
from optimist.training.resolve import resolve_training
from optimist.training.seed_logs import SeedLogs
from optimist.training.settling import settled_run

AGENTS = {
    "dqn": ("dqn", "adam"),
    "rem": ("rem", None),
    "c51": ("c51", None),
    "cloning": ("behaviour_cloning", None),
    "networks_4": ("rem", "networks-4"),
    "qr_dqn": ("qr_dqn", None),
    "cql": ("cql", None),
    "discrete_iql": ("discrete_iql", None),
}
PRIMARY = ("dqn", "rem", "c51")
TEAM = 5  # seeds of the committee; so many go on to 5X, and the oracle reads their kept policies
SIZES = (2, 3, 4, 5, 10)
MEMBERS = 10  # of the largest committee; smaller ones are filled up with weights of zero
LOOK_EVERY = 5  # seconds
PATIENCE = 60  # seconds for a process to leave; under MPS one that is killed can make the others fail
STARTS = 5  # of a process that fails
HEAD = ("stage", "game", "log", "agent", "kind", "seeds", "average", "step")
HEAD += ("first", "second", "deviation", "length")


class Task(NamedTuple):
    stage: str
    log: int
    agent: str
    game: str
    seeds: int

    @property
    def name(self) -> str:
        return f"{self.stage}-{self.log}-{self.agent}-{self.game}"


class Candidate(NamedTuple):
    """Something to ship: the places of its members in the bank of parameters."""

    kind: str
    seeds: tuple[int, ...]
    average: int
    step: int
    members: list[int]


@dataclass(frozen=True)
class Committee:
    """Acts by the weighted sum of its members' values; of logits for cloning."""

    agent: Any

    def action(self, spec, params, observation, key):
        values = jax.vmap(lambda q: self.agent.values(self.agent.table(spec)(q, observation)))(params["q"])
        return jnp.argmax((params["weight"][:, None] * values).sum(axis=0))


class OutOfTimeError(Exception):
    pass


def plan(asked) -> list[Task]:
    """All tasks, the most important first: the clock may end the list anywhere."""
    fewer, own, early = min(TEAM, asked.seeds), range(asked.logs), range(min(2, asked.logs))
    others = tuple(agent for agent in AGENTS if agent not in PRIMARY)
    parts = [
        ("1X", own, PRIMARY, asked.seeds),
        ("1X", own, others[:2], fewer),
        ("5X", early[:1], PRIMARY, fewer),
        ("long", range(1), (*PRIMARY, "cloning"), fewer),
        ("5X", early[1:], PRIMARY, fewer),
        ("1X", own, others[2:], fewer),
        ("5X", own[2:], PRIMARY, fewer),
    ]
    logs = [Task("log", 0, "dqn", game, asked.logs) for game in asked.games]
    return logs + [
        Task(stage, log, agent, game, seeds)
        for stage, chosen, agents, seeds in parts
        for log in chosen
        for agent in agents
        for game in asked.games
    ]


def long_logs(asked) -> list[Task]:
    return [Task("longlog", 0, "dqn", game, 1) for game in asked.games]


def needs(task: Task, folder: Path) -> Path:
    """The file without which a task cannot begin."""
    if task.stage == "5X":
        return folder / "states" / f"{task._replace(stage='1X').name}.pickle"
    before = "longlog" if task.stage == "long" else "log"
    return folder / "tasks" / f"{Task(before, 0, 'dqn', task.game, 0).name}.csv"


def collect(task: Task, asked) -> list[tuple]:
    """Play the log of a game. Its rows have the mean returns of each player, whole and last tenth."""
    steps = asked.long_steps if task.stage == "longlog" else asked.steps
    out, game = asked.folder / f"{task.stage}s" / task.game, f"minatar_jax/{task.game}"
    how: dict[str, Any] = {"recipe": "mini", "keep_policies": 0, "loggers": "jsonl", "steps": steps}
    data = api.collect(game, out=out, agent="dqn", preset="nature", seeds=range(task.seeds), **how)
    rows = []
    for player in range(task.seeds):
        episodes = data.played_by(player).episodes
        returns = episodes.returns[episodes.complete]
        late = returns[-max(1, len(returns) // 10) :]
        figures = (returns.mean(), late.mean(), returns.std(), episodes.lengths.mean())
        rows.append((task.stage, task.game, player, "dqn", "player", player, 1, steps, *figures))
    return rows


def learn(task: Task, asked, seconds: dict[str, float]) -> list[tuple]:
    """The scores of everything that could be shipped of one agent on one log."""
    data = Dataset.open(asked.folder / ("longlogs" if task.stage == "long" else "logs") / task.game)
    name, preset = AGENTS[task.agent]
    found = resolve_training(data.spec, name, preset=preset, recipe="mini")
    seeds = tuple(range(task.seeds))
    logs = SeedLogs(data, found.settings, seeds, lambda log: log.played_by(task.log))
    game = f"minatar_jax/{task.game}"
    agent, training = settled_run(found.agent, found.settings, logs, data, game, {}, "")
    learner = Learner(agent, data.spec, precision=training.precision)
    feed = feed_of(logs.samplers(training, agent.reads_next_action), "device")
    clock = time.monotonic()
    seconds["read"] = clock - seconds.pop("began")

    chunk = asked.updates // asked.kept
    length, every = {"1X": (1, 1), "5X": (5, 5), "long": (2, 2)}[task.stage]
    last, every = length * asked.updates, every * chunk
    state = learner.init(seeds)
    if task.stage == "5X":
        state = jax.tree.map(jnp.asarray, pickle.loads(needs(task, asked.folder).read_bytes()))
    kept, step = {}, int(state.step)
    items = feed.items(step, chunk)
    while step < last:
        state, _ = advance(learner, state, feed.minibatch, feed.resident, items)
        step += chunk
        items = feed.items(step, chunk)  # while the device learns
        if step % every == 0:
            kept[step] = jax.tree.map(jnp.copy, state.params["q"])
            jax.block_until_ready(state)
            in_time(asked)
    seconds["learn"] = time.monotonic() - clock
    if task.stage == "1X" and task.agent in PRIMARY:
        keep_state(state, needs(task._replace(stage="5X"), asked.folder))
    rows = evaluated(task, learner, kept, asked, training.epsilon)
    if agent.has_values:
        rows += estimates(task, learner, state, logs, training)
    seconds["evaluate"] = time.monotonic() - clock - seconds["learn"]
    return rows


def estimates(task: Task, learner: Learner, state, logs: SeedLogs, training) -> list[tuple]:
    """What the guard compares at the last step: the size of each seed's values, and the log's returns."""
    probes = probes_of(logs.samplers(training, next_actions=False))
    values = answers(learner, task.seeds, state.params, probes).values
    largest, step = logs.logged_values(training)[0].largest, int(state.step)
    what = (task.stage, task.game, task.log, task.agent, "estimate")
    return [(*what, seed, 1, step, size, largest, "", "") for seed, size in enumerate(sizes(values))]


def keep_state(state, file: Path) -> None:
    """The first seeds of a state, to go on from."""
    few = jax.tree.map(lambda leaf: leaf[:TEAM], state._replace(step=state.step[None]))._replace(
        step=state.step
    )
    file.parent.mkdir(exist_ok=True)
    replace(file, pickle.dumps(jax.device_get(few)))


def replace(file: Path, content: bytes) -> None:
    part = file.with_name(file.name + ".part")
    part.write_bytes(content)
    part.replace(file)


def in_time(asked) -> None:
    if time.time() > asked.ends:
        raise OutOfTimeError


def candidates(steps: list[int], seeds: int) -> list[Candidate]:
    """The bank has every kept policy, step by step, and then the averages of the last 5, 10 and 12."""
    last, team = steps[-1], min(TEAM, seeds)
    lengths = averages(len(steps))

    def place(seed: int, average: int = 1, ago: int = 0) -> int:
        row = len(steps) - 1 - ago if average == 1 else len(steps) + lengths.index(average)
        return row * seeds + seed

    found = [
        Candidate("policy", (seed,), 1, step, [place(seed, ago=len(steps) - 1 - row)])
        for row, step in enumerate(steps)
        for seed in range(seeds)
        if seed < team or step == last
    ]
    found += [
        Candidate("weights", (seed,), average, last, [place(seed, average)])
        for average in lengths
        for seed in range(seeds)
    ]
    found += [
        Candidate("values", part, average, last, [place(seed, average) for seed in part])
        for size in SIZES
        for average in ((1, *lengths) if size == team else (1,))
        for part in parts_of(seeds, size)
    ]
    ten = range(min(10, len(steps)))
    return found + [
        Candidate("steps", (seed,), len(ten), last, [place(seed, ago=ago) for ago in ten])
        for seed in range(team)
    ]


def averages(kept: int) -> list[int]:
    """How many of the last kept policies are averaged; the last is half of 25, rounded down."""
    return sorted({length for length in (5, 10, kept // 2 if kept < 20 else 12) if 1 < length <= kept})


def parts_of(seeds: int, size: int) -> list[tuple[int, ...]]:
    """Disjoint parts of this size."""
    return [tuple(range(first, first + size)) for first in range(0, seeds - size + 1, size)]


def evaluated(task: Task, learner: Learner, kept: dict, asked, epsilon: float) -> list[tuple]:
    """Plays every candidate."""
    policies = jax.tree.map(lambda *leaves: jnp.stack(leaves), *kept.values())
    means = [jax.tree.map(lambda leaf: leaf[-k:].mean(axis=0), policies) for k in averages(len(kept))]  # noqa: B023
    bank = jax.tree.map(lambda leaf, *more: jnp.concatenate([*leaf, *more]), policies, *means)
    found = candidates(list(kept), task.seeds)
    rows = []
    for several, together in ((False, asked.singles), (True, asked.committees)):
        some = [each for each in found if (len(each.members) > 1) == several]
        for first in range(0, len(some), together):
            group = some[first : first + together]
            rows += played(task, learner, bank, group, together, asked, epsilon)
            in_time(asked)
    return rows


def played(task: Task, learner: Learner, bank, group: list[Candidate], together: int, asked, epsilon):
    """The rows of some candidates, which play in one program; it is filled up with the last of them."""
    filled = group + [group[-1]] * (together - len(group))
    if len(group[0].members) == 1:
        places = jnp.array([each.members[0] for each in filled])
        params = {"q": jax.tree.map(lambda leaf: leaf[places], bank)}
    else:
        # A place without a member has a copy of one that is there: zero times another's NaN would be NaN.
        places = jnp.array([(each.members + each.members[:1] * MEMBERS)[:MEMBERS] for each in filled])
        shares = [[(n < len(each.members)) / len(each.members) for n in range(MEMBERS)] for each in filled]
        params = {"q": jax.tree.map(lambda leaf: leaf[places], bank), "weight": jnp.array(shares)}
        learner = Learner(Committee(learner.agent), learner.spec)  # type: ignore[arg-type]
    stream = zlib.crc32(f"{task.name} {group[0]}".encode())
    play = envs.make(f"minatar_jax/{task.game}", lanes=together * 2 * asked.episodes, seed=stream)
    key = jax.random.PRNGKey(stream)
    scored = play_out_on_device(play, learner, params, together, epsilon, key)
    for each, episodes in zip(group, scored, strict=False):
        returns, lengths = np.array(episodes).T
        halves = (returns[: asked.episodes].mean(), returns[asked.episodes :].mean())
        what = (each.kind, "-".join(map(str, each.seeds)), each.average, each.step)
        figures = (*halves, returns.std(), lengths.mean())
        yield (task.stage, task.game, task.log, task.agent, *what, *(f"{x:.5g}" for x in figures))


def perform(task: Task, asked) -> None:
    """Do a task and write its file."""
    began, seconds = time.time(), {"began": time.monotonic()}
    rows = collect(task, asked) if task.stage.endswith("log") else learn(task, asked, seconds)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    replace(asked.folder / "tasks" / f"{task.name}.csv", text.getvalue().encode())
    seconds.pop("began", None)
    parts = [f"{part} {value:.1f}" for part, value in seconds.items()]
    with (asked.folder / "found" / "times.csv").open("a") as file:
        file.write(
            f"{task.name},{began - asked.starts:.1f},{time.time() - asked.starts:.1f},{' '.join(parts)}\n"
        )
    print(task.name, f"{time.time() - began:.1f} s", *parts, flush=True)


def attempt(task: Task, asked) -> bool:
    """Do a task unless it is done, or another process does it, or it failed often."""
    file = asked.folder / "tasks" / f"{task.name}.csv"
    tries = file.with_suffix(".tries")
    ready = task.stage.endswith("log") or needs(task, asked.folder).exists()
    if file.exists() or not ready or (tries.exists() and tries.stat().st_size >= 3):
        return False
    try:
        with filelock.FileLock(file.with_suffix(".lock"), timeout=0):
            if file.exists():
                return False
            with tries.open("a") as mark:
                mark.write("x")
            perform(task, asked)
            tries.unlink()
            return True
    except filelock.Timeout:
        return False
    except (OutOfTimeError, Interrupted, KeyboardInterrupt):
        tries.unlink()
        raise


def work(asked) -> None:
    """Take the first task that can be done, again and again."""
    tasks = [*long_logs(asked), *plan(asked)] if asked.role == "long" else plan(asked)
    try:
        while time.time() < asked.ends and not all(
            (asked.folder / "tasks" / f"{t.name}.csv").exists() for t in tasks
        ):
            if not any(attempt(task, asked) for task in tasks):
                time.sleep(1)
    except (OutOfTimeError, Interrupted, KeyboardInterrupt):
        pass


def pack(folder: Path) -> None:
    """All rows in one compressed file."""
    rows = b"".join(file.read_bytes() for file in sorted((folder / "tasks").glob("*.csv")))
    table = ",".join(HEAD).encode() + b"\n" + rows
    replace(folder / "found" / "evaluations.csv.gz", gzip.compress(table, mtime=0))
    said = b"".join(file.read_bytes()[-20_000:] for file in sorted(folder.glob("worker-*.txt")))
    replace(folder / "found" / "workers.txt", said)


def run(asked) -> None:
    """Keep the processes running until they are done or the time is up."""
    share_the_device()
    diary = Diary(asked.folder / "found" / "diary.jsonl")
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NPROC": "2"}
    running: dict[int, subprocess.Popen] = {}
    names, starts = range(asked.workers + 1), dict.fromkeys(range(asked.workers + 1), 0)
    while True:
        for name in names:
            ended = name in running and running[name].poll() is not None
            if name not in running or (ended and running[name].returncode and starts[name] < STARTS):
                starts[name] += 1
                role = "long" if name == asked.workers else "learn"
                words = [
                    sys.executable,
                    __file__,
                    *sys.argv[1:],
                    "--role",
                    role,
                    "--starts",
                    str(asked.starts),
                ]
                with (asked.folder / f"worker-{name}.txt").open("ab") as said:
                    running[name] = subprocess.Popen(words, stdout=said, stderr=said, env=environment)
        pack(asked.folder)
        late = time.time() - asked.ends
        left = [each for each in running.values() if each.poll() is None]
        if not left or late > PATIENCE:
            break
        if late > 0:
            names = range(0)
            for each in left:
                each.send_signal(signal.SIGINT)
        time.sleep(LOOK_EVERY)
    for each in left:
        each.kill()
    pack(asked.folder)
    done = len(list((asked.folder / "tasks").glob("*.csv")))
    diary.add(
        f"{done} of {len(plan(asked)) + len(asked.games)} tasks are done; {len(left)} processes were killed"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=float, default=1400, help="seconds")
    parser.add_argument("--workers", type=int, default=8, help="and one that first plays the long logs")
    parser.add_argument("--games", type=lambda text: text.split(","), default=list(GAMES))
    parser.add_argument("--logs", type=int, default=5, help="players of a game")
    parser.add_argument("--steps", type=int, default=500_000, help="of a player")
    parser.add_argument("--long-steps", type=int, default=5_000_000)
    parser.add_argument("--updates", type=int, default=125_000, help="1X")
    parser.add_argument("--kept", type=int, default=25, help="policies")
    parser.add_argument("--seeds", type=int, default=10, help="of the primary agents")
    parser.add_argument("--episodes", type=int, default=100, help="of each half of an evaluation")
    parser.add_argument("--singles", type=int, default=80, help="policies that play in one program")
    parser.add_argument("--committees", type=int, default=13, help="the same; all logs and stages share it")
    parser.add_argument("--role", default="", help="of a process that this script starts")
    parser.add_argument("--starts", type=float, default=time.time())
    asked = parser.parse_args()
    asked.ends = asked.starts + asked.until
    for name in ("tasks", "found"):
        (asked.folder / name).mkdir(parents=True, exist_ok=True)
    if asked.role:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        work(asked)
        return
    run(asked)


if __name__ == "__main__":
    main()
