"""What averaging networks at play gains on MinAtar: the committee.

    python -m results.committee.run FOLDER --until 1400

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
import shutil
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

from optimist import api, envs
from optimist.data.dataset import Dataset
from optimist.envs.minatar import GAMES
from optimist.training.evaluation import play_out_on_device
from optimist.training.feeding import feed_of
from optimist.training.guard import answers, probes_of, sizes
from optimist.training.learner import Learner, advance
from optimist.training.resolve import resolve_for_log, resolve_training
from optimist.training.terminal import Interrupted

PRIMARY, OTHERS = ("dqn", "rem", "c51"), ("qr_dqn", "cql", "discrete_iql")
AGENTS = {name: (name, None) for name in (*PRIMARY[1:], *OTHERS)}
AGENTS |= {
    "dqn": ("dqn", "adam"),
    "networks_4": ("rem", "networks-4"),
    "cloning": ("behaviour_cloning", None),
}
TEAM = 5  # seeds of the committee; so many go on to 5X, and the oracle reads their kept policies
SIZES = (2, 3, 4, 5, 10)
MEMBERS = 10  # of the largest committee; smaller ones are filled up with weights of zero
AVERAGED = (5, 10, 12)  # of the last kept policies; 12 are half of them
STAGES = {"1X": 1, "5X": 5, "long": 2}  # times the updates of 1X, and times the distance of kept policies
PATIENCE = 60  # seconds for a process to leave; under MPS one that is killed can make the others fail
HEAD = "stage,game,log,agent,kind,seeds,average,step,first,second,deviation,length\n"


class Task(NamedTuple):
    stage: str
    log: int
    agent: str
    game: str
    seeds: int

    def file(self, folder: Path, stage: str = "", kind: str = "csv") -> Path:
        return folder / "tasks" / f"{stage or self.stage}-{self.log}-{self.agent}-{self.game}.{kind}"

    def needs(self, folder: Path) -> Path:
        """The file without which this task cannot begin."""
        if self.stage == "5X":
            return self.file(folder, "1X", "state")
        before = Task("longlog" if self.stage == "long" else "log", 0, "player", self.game, 0)
        return folder if self.agent == "player" else before.file(folder)


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
    few, own = min(TEAM, asked.seeds), range(asked.logs)
    parts = [
        ("log", own[:1], ("player",), asked.logs),
        ("1X", own, PRIMARY, asked.seeds),
        ("1X", own, ("networks_4", "cloning"), few),
        ("5X", own[:1], PRIMARY, few),
        ("long", own[:1], (*PRIMARY, "cloning"), few),
        ("5X", own[1:2], PRIMARY, few),
        ("1X", own, OTHERS, few),
        ("5X", own[2:], PRIMARY, few),
    ]
    if asked.others:  # only what the first machines did not reach
        parts = [parts[0], parts[4], parts[6]]
    if asked.role == "long":
        parts.insert(0, ("longlog", own[:1], ("player",), 1))
    return [
        Task(stage, log, agent, game, seeds)
        for stage, logs, agents, seeds in parts
        for log in logs
        for agent in agents
        for game in asked.games
    ]


def collect(task: Task, asked) -> list[tuple]:
    """Play the log of a game. Its rows have the mean returns of each player, whole and last tenth."""
    steps = asked.long_steps if task.stage == "longlog" else asked.steps
    out, game = asked.folder / task.stage / task.game, f"minatar_jax/{task.game}"
    how: dict[str, Any] = {"recipe": "mini", "keep_policies": 0, "loggers": "jsonl", "steps": steps}
    data = api.collect(game, out=out, agent="dqn", preset="nature", seeds=range(task.seeds), **how)
    rows = []
    for player in range(task.seeds):
        episodes = data.played_by(player).episodes
        returns = episodes.returns[episodes.complete]
        late = returns[-max(1, len(returns) // 10) :]
        figures = (returns.mean(), late.mean(), returns.std(), episodes.lengths.mean())
        rows.append((task.stage, task.game, player, "player", "log", player, 1, steps, *figures))
    return rows


def learn(task: Task, asked) -> list[tuple]:
    """The scores of everything that could be shipped of one agent on one log."""
    data = Dataset.open(asked.folder / ("longlog" if task.stage == "long" else "log") / task.game)
    (name, preset), seeds = AGENTS[task.agent], tuple(range(task.seeds))
    found = resolve_training(data.spec, name, preset=preset, recipe="mini", settings={"hold_out": 0.0})
    part, game = (lambda log: log.played_by(task.log)), f"minatar_jax/{task.game}"
    agent, training, logs = resolve_for_log(found.agent, found.settings, data, seeds, part, game)
    learner = Learner(agent, data.spec, precision=training.precision)
    samplers = logs.samplers(training, agent.reads_next_action)
    feed, state = feed_of(samplers, "device"), learner.init(seeds)
    if task.stage == "5X":
        state = jax.tree.map(jnp.asarray, pickle.loads(task.needs(asked.folder).read_bytes()))
    chunk, clock = asked.updates // asked.kept, time.monotonic()
    kept, step, every = {}, int(state.step), STAGES[task.stage] * chunk
    items = feed.items(step, chunk)
    while step < every * asked.kept:
        state, _ = advance(learner, state, feed.minibatch, feed.resident, items)
        step += chunk
        items = feed.items(step, chunk)  # while the device learns
        if step % every == 0:
            kept[step] = jax.tree.map(jnp.copy, state.params["q"])
            jax.block_until_ready(state)
            in_time(asked)
    learned = time.monotonic()
    if task.stage == "1X" and task.agent in PRIMARY:
        few = jax.tree.map(lambda leaf: leaf[:TEAM], state._replace(step=()))._replace(step=state.step)
        replace(task.file(asked.folder, kind="state"), pickle.dumps(jax.device_get(few)))
    rows = evaluated(task, learner, kept, asked, training.evaluation_epsilon)
    if agent.has_values:  # what the guard compares: the size of each seed's values, and the log's returns
        values = answers(learner, task.seeds, state.params, probes_of(samplers)).values
        largest, what = logs.logged_values(training)[0].largest, (task.stage, task.game, task.log, task.agent)
        rows += [
            (*what, "estimate", seed, 1, step, size, largest, 0, 0) for seed, size in enumerate(sizes(values))
        ]
    print(f"learned {learned - clock:.1f} s, evaluated {time.monotonic() - learned:.1f} s;", end=" ")
    return rows


def replace(file: Path, content: bytes) -> None:
    part = file.with_name(file.name + ".part")
    part.write_bytes(content)
    part.replace(file)


def in_time(asked) -> None:
    if time.time() > asked.ends:
        raise OutOfTimeError


def candidates(steps: list[int], seeds: int) -> list[Candidate]:
    """The bank has every kept policy, step by step, and then the averages of the last ones."""
    last, team = steps[-1], min(TEAM, seeds)
    lengths = [each for each in AVERAGED if each <= len(steps)]
    rows = {1: len(steps) - 1, **{average: len(steps) + row for row, average in enumerate(lengths)}}
    found = [
        Candidate("policy", (seed,), 1, step, [row * seeds + seed])
        for row, step in enumerate(steps)
        for seed in range(seeds)
        if seed < team or step == last
    ]
    found += [
        Candidate("weights", (seed,), each, last, [rows[each] * seeds + seed])
        for each in lengths
        for seed in range(seeds)
    ]
    for size in SIZES:
        for first in range(0, seeds - size + 1, size):
            part = tuple(range(first, first + size))
            for average in rows if size == team else (1,):
                members = [rows[average] * seeds + seed for seed in part]
                found.append(Candidate("values", part, average, last, members))
    ten = range(max(0, len(steps) - 10), len(steps))
    return found + [
        Candidate("steps", (seed,), len(ten), last, [row * seeds + seed for row in ten])
        for seed in range(team)
    ]


def evaluated(task: Task, learner: Learner, kept: dict, asked, epsilon: float) -> list[tuple]:
    """Play every candidate, in two programs that all logs and stages of a game share."""
    policies = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *kept.values())

    def averaged(leaf):
        by_step = leaf.reshape(len(kept), task.seeds, *leaf.shape[1:])
        return jnp.concatenate(
            [leaf, *(by_step[-each:].mean(axis=0) for each in AVERAGED if each <= len(kept))]
        )

    bank, found, rows = jax.tree.map(averaged, policies), candidates(list(kept), task.seeds), []
    for several, together in ((False, asked.together), (True, asked.together // 6)):
        some = [each for each in found if (len(each.members) > 1) == several]
        for first in range(0, len(some), together):
            rows += played(
                task, learner, bank, some[first : first + together], together, asked.episodes, epsilon
            )
            in_time(asked)
    return rows


def played(task: Task, learner: Learner, bank, group: list[Candidate], together: int, episodes: int, epsilon):
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
    stream = zlib.crc32(f"{task} {group[0]}".encode())
    play: Any = envs.make(f"minatar_jax/{task.game}", lanes=together * 2 * episodes, seed=stream)
    scored = play_out_on_device(play, learner, params, together, epsilon, jax.random.PRNGKey(stream))
    for each, one in zip(group, scored, strict=False):
        returns, lengths = np.array(one).T
        figures = (returns[:episodes].mean(), returns[episodes:].mean(), returns.std(), lengths.mean())
        what = (each.kind, "-".join(map(str, each.seeds)), each.average, each.step)
        yield (task.stage, task.game, task.log, task.agent, *what, *(f"{x:.5g}" for x in figures))


def attempt(task: Task, asked) -> bool:
    """Do a task and write its file, unless another process does it, or it failed three times."""
    file, tries = task.file(asked.folder), task.file(asked.folder, kind="tries")
    failed = tries.exists() and tries.stat().st_size >= 3
    if file.exists() or failed or not task.needs(asked.folder).exists():
        return False
    try:
        with filelock.FileLock(task.file(asked.folder, kind="lock"), timeout=0):
            if file.exists():
                return False
            with tries.open("a") as mark:
                mark.write("x")
            began, text = time.time(), io.StringIO()
            rows = collect(task, asked) if task.agent == "player" else learn(task, asked)
            csv.writer(text, lineterminator="\n").writerows(rows)
            replace(file, text.getvalue().encode())
            print(
                f"{file.stem}: from {began - asked.starts:.1f} to {time.time() - asked.starts:.1f} s",
                flush=True,
            )
            tries.unlink()
            return True
    except filelock.Timeout:
        return False
    except (OutOfTimeError, Interrupted, KeyboardInterrupt):
        tries.unlink()
        raise


def work(asked) -> None:
    """Take the first task that can be done, again and again."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tasks = plan(asked)
    try:
        while time.time() < asked.ends and not all(task.file(asked.folder).exists() for task in tasks):
            if not any(attempt(task, asked) for task in tasks):
                time.sleep(1)
    except (OutOfTimeError, Interrupted, KeyboardInterrupt):
        print("the time is up", flush=True)


def pack(folder: Path) -> None:
    """All rows in one compressed file, and what the processes said in another."""
    rows = b"".join(file.read_bytes() for file in sorted((folder / "tasks").glob("*.csv")))
    replace(folder / "found" / "evaluations.csv.gz", gzip.compress(HEAD.encode() + rows, mtime=0))
    said = b"".join(file.read_bytes()[-20_000:] for file in sorted(folder.glob("worker-*.txt")))
    replace(folder / "found" / "workers.txt", said)


def run(asked) -> None:
    """Keep the processes running until they are done or the time is up."""
    if shutil.which("nvidia-cuda-mps-control"):  # kernels of several processes run side by side
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NPROC": "2"}
    running: list[subprocess.Popen | None] = [None] * (asked.workers + 1)
    told = False
    while (late := time.time() - asked.ends) < PATIENCE:
        for number, process in enumerate(running):
            if late < 0 and (process is None or process.poll()):  # new, or it failed
                role = "learn" if number < asked.workers else "long"
                words = [*sys.orig_argv, "--role", role, "--starts", str(asked.starts)]
                with (asked.folder / f"worker-{number}.txt").open("ab") as said:
                    running[number] = subprocess.Popen(words, stdout=said, stderr=said, env=environment)
        left = [process for process in running if process and process.poll() is None]
        if late > 0 and not told:
            told = True
            for process in left:
                process.send_signal(signal.SIGINT)
        pack(asked.folder)
        if not left:
            break
        time.sleep(5)
    for process in left:
        process.kill()
    pack(asked.folder)
    done = sum(task.file(asked.folder).exists() for task in plan(asked))
    print(f"{done} of {len(plan(asked))} tasks are done; {len(left)} processes were killed")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=float, default=1400, help="seconds")
    parser.add_argument("--workers", type=int, default=8, help="and one that first plays the long logs")
    parser.add_argument("--others", action="store_true", help="only other agents at 1X, and long logs")
    parser.add_argument("--games", type=lambda text: text.split(","), default=list(GAMES))
    parser.add_argument("--logs", type=int, default=5, help="players of a game")
    parser.add_argument("--steps", type=int, default=500_000, help="of a player")
    parser.add_argument("--long-steps", type=int, default=5_000_000)
    parser.add_argument("--updates", type=int, default=125_000, help="1X")
    parser.add_argument("--kept", type=int, default=25, help="policies of a run")
    parser.add_argument("--seeds", type=int, default=10, help="of the primary agents")
    parser.add_argument("--episodes", type=int, default=100, help="of each half of an evaluation")
    parser.add_argument(
        "--together", type=int, default=80, help="policies in one program; committees: a sixth"
    )
    parser.add_argument("--role", default="", help="of a process that this script starts")
    parser.add_argument("--starts", type=float, default=time.time())
    asked = parser.parse_args()
    asked.ends = asked.starts + asked.until
    for name in ("tasks", "found"):
        (asked.folder / name).mkdir(parents=True, exist_ok=True)
    work(asked) if asked.role else run(asked)


if __name__ == "__main__":
    main()
