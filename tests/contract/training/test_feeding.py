"""Wherever the data lives, training sees the same transitions and ends with the same bits."""

import tracemalloc
from dataclasses import replace

import jax
import numpy as np
import pytest

from little import GAME, PIXELS, pixels, random_play, small, vectors
from optimist import envs
from optimist.data import Dataset, Recorder, Sampler, transitions
from optimist.data.disk import reader as reading
from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError
from optimist.training import feeding as homes
from optimist.training.feeding import DeviceFeed, Gather, Join, StreamedFeed, Unpack, feed_of
from optimist.training.learner import Learner, advance
from optimist.training.play.acting import blank, pushed


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return pixels(tmp_path_factory.mktemp("pixels"))


VIEWS = {
    "all": lambda data: data,
    "first": lambda data: data.first(77),
    "last": lambda data: data.last(41),
    "fraction": lambda data: data.fraction(0.3),
    "best": lambda data: data.best(0.2),
    "fraction of first": lambda data: data.first(120).fraction(0.5),
}


def assert_same_bits(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def trained(home, learner, seeds, steps=24):
    state = learner.init(seeds)
    for first in range(0, steps, 8):
        state, _ = advance(learner, state, home.minibatch, home.resident, home.items(first, 8))
    return state


def batches(home, first, count):
    """What a home's items become inside the compiled program, (count, seeds, B, ...)."""
    each = jax.jit(jax.vmap(jax.vmap(home.minibatch, in_axes=(None, 0)), in_axes=(None, 0)))
    return each(home.resident, home.items(first, count))


def test_a_batch_of_the_dataset_is_the_one_that_training_sees(images):
    feed = DeviceFeed([Sampler(images, batch=8, gamma=0.9, n_step=2, clip=1.0, seed=5)])
    seen = jax.tree.map(lambda column: column[0, 0], batches(feed, 7, 1))
    assert_same_bits(images.batch(8, seed=5, step=7, gamma=0.9, n_step=2, clip=1.0), seen)


def test_an_observation_is_what_a_policy_takes(images):
    every = transitions(Sampler(images), np.arange(len(images)), images.timeline.frames).observation
    for position in (0, 1, 77, -1):
        np.testing.assert_array_equal(images.observation(position), every[position])
    with pytest.raises(IndexError):
        images.observation(len(images))


def test_every_home_trains_to_the_same_bits(images):
    seeds = (4, 5)
    learner = Learner(small("rem"), images.spec)
    samplers = [Sampler(images, batch=8, n_step=3, clip=1.0, seed=seed) for seed in seeds]
    on_device = trained(feed_of(samplers, "device"), learner, seeds)
    in_memory = trained(feed_of(samplers, "memory"), learner, seeds)
    some_frames = 50 * images.spec.frame_bytes
    compressed = trained(feed_of(samplers, "compressed", some_frames), learner, seeds)
    assert_same_bits(on_device, in_memory)
    assert_same_bits(on_device, compressed)
    assert_same_bits(on_device, trained(feed_of(samplers, "packed"), learner, seeds))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("view", VIEWS)
def test_the_device_gathers_what_the_host_would(images, view, n_step, packed):
    data = VIEWS[view](images)
    sampler = Sampler(data, gamma=0.9, n_step=n_step, clip=0.5)
    everything = np.arange(len(data))
    home = DeviceFeed([sampler], packed=packed)
    if not packed:  # it needs no more frames than it was chosen for
        needed, most = homes._frames_needed([sampler]), len(data) + images.spec.stack * len(data.starts)
        assert len(home.resident[0]) <= needed <= most
    gathered = jax.jit(home.minibatch)(home.resident, everything)
    expected = transitions(sampler, everything, images.timeline.frames)
    for here, there in zip(gathered[:5], expected[:5], strict=True):
        assert here.dtype == there.dtype
        np.testing.assert_array_equal(here, there)


def test_items_are_the_samplers_positions_seed_by_seed(images):
    samplers = [Sampler(images, batch=5, seed=seed) for seed in (3, 8)]
    on_device = DeviceFeed(samplers).items(250, 10)
    streamed = batches(StreamedFeed(samplers, kept=10), 250, 10)
    for place, sampler in enumerate(samplers):
        positions = sampler.positions(250, 10)
        np.testing.assert_array_equal(on_device[:, place], positions)
        expected = transitions(sampler, positions, images.timeline.frames)
        for here, there in zip(streamed[:5], expected[:5], strict=True):
            np.testing.assert_array_equal(here[:, place], there)


@pytest.mark.parametrize("kept", [0, 10, 10**6])
@pytest.mark.parametrize("n_step", [1, 2, 7])
def test_streamed_batches_do_not_depend_on_the_number_of_threads(tmp_path, monkeypatch, n_step, kept):
    pixels(tmp_path)
    monkeypatch.setattr(reading, "BYTES_WORTH_THREADS", 0)
    for threads in (1, 2, 4):
        monkeypatch.setattr(reading, "THREADS", threads)
        data = Dataset.open(tmp_path)
        sampler = Sampler(data, batch=6, n_step=n_step)
        expected = transitions(sampler, sampler.positions(7, 20), data.timeline.frames)
        streamed = batches(StreamedFeed([sampler], kept), 7, 20)
        assert_same_bits([column[:, 0] for column in streamed[:5]], list(expected[:5]))


def test_seeds_with_logs_of_their_own_are_given_those_alone(tmp_path):
    provenance = {"seeds": [5, 2], "collection": {"lanes": 2}}
    with Recorder(tmp_path, PIXELS, lanes=4, provenance=provenance) as recorder:
        for step in random_play(PIXELS, rows=40, lanes=4):
            recorder.add(*step)
    data = Dataset.open(tmp_path)
    samplers = [Sampler(data.played_by(seed), batch=16, seed=seed) for seed in (2, 5)]
    gathered = batches(DeviceFeed(samplers), 3, 5)
    for home in (DeviceFeed(samplers, packed=True), feed_of(samplers, "compressed", memory=100)):
        assert_same_bits(gathered, batches(home, 3, 5))
    for place, sampler in enumerate(samplers):
        mine = transitions(sampler, sampler.positions(3, 5), data.timeline.frames)
        for here, there in zip(gathered[:5], mine[:5], strict=True):
            np.testing.assert_array_equal(here[:, place], there)


def test_a_chunk_does_not_depend_on_what_was_asked_for_before(images):
    samplers = [Sampler(images, batch=5)]
    straight, jumping = StreamedFeed(samplers, kept=0), StreamedFeed(samplers, kept=0)
    for first, count in ((40, 8), (0, 8), (8, 8), (9, 3)):
        jumping.items(first, count)
    assert_same_bits(straight.items(16, 8), jumping.items(16, 8))


def test_a_view_takes_only_its_own_frames_to_the_device(images):
    few = images.fraction(0.1)
    frames, _ = DeviceFeed([Sampler(few)]).resident
    assert len(frames) == len(few) + len(few.starts)


def test_the_fastest_home_that_fits_is_chosen(images, monkeypatch):
    samplers = [Sampler(images)]
    with pytest.raises(UsageError, match='did you mean "memory"'):
        feed_of(samplers, "memroy")
    decoded = images.timeline.frame_count * images.spec.frame_bytes
    assert isinstance(feed_of(samplers, memory=decoded), DeviceFeed)
    compressed = feed_of(samplers, memory=decoded - 1)
    assert isinstance(compressed, StreamedFeed)
    assert len(compressed._decoded) == images.timeline.frame_count - 1
    monkeypatch.setattr(homes, "_device_bytes", lambda: decoded - 1)  # an accelerator smaller than its host
    in_memory = feed_of(samplers, memory=decoded)
    assert isinstance(in_memory, StreamedFeed)
    assert len(in_memory._decoded) == images.timeline.frame_count


def test_a_part_of_a_log_is_on_the_device_though_the_whole_would_not_fit(images):
    size, one, other = images.spec.frame_bytes, images.first(20), images.last(20)
    samplers = [Sampler(one), Sampler(one), Sampler(other)]
    needed = homes._frames_needed(samplers)
    assert 40 < needed < images.timeline.frame_count / 2
    assert isinstance(feed_of(samplers, memory=needed * size), DeviceFeed)
    assert isinstance(feed_of(samplers, memory=needed * size - 1), StreamedFeed)


def test_an_accelerator_packs_the_frames_that_do_not_fit_decoded(monkeypatch):
    steps = 600
    frames = np.zeros((steps, 16, 16, 1), np.uint8)
    frames[np.arange(steps), np.arange(steps) % 16, 3] = 255  # one moving point: nearly all is background
    log = Dataset.from_arrays(
        frames, np.arange(steps) % 2, np.ones(steps), np.arange(steps) % 50 == 49, truncations=False
    )
    samplers = [Sampler(log)]
    decoded, packed = log.timeline.frame_count * 256, homes.estimated_bytes(log.timeline)
    assert packed < decoded / 2

    def chosen(device, host):
        monkeypatch.setattr(homes, "device_bytes", lambda: device)
        return type(feed_of(samplers, memory=host).minibatch)

    assert chosen(device=2 * decoded, host=decoded) is Gather
    assert chosen(device=decoded, host=decoded) is Unpack  # data may take 60% of a device
    assert chosen(device=packed, host=decoded) is Join
    assert chosen(device=decoded, host=packed - 1) is Join  # the host holds the code while it is made
    assert chosen(device=None, host=decoded - 1) is Join  # on a CPU the packed home is the slowest


def test_a_chunk_stays_within_its_bytes_however_large_the_batch(images):
    for batch in (1, 32, 1000, 200_000):
        home = StreamedFeed([Sampler(images, batch=batch)], kept=0)
        per_step = batch * 2 * 4 * images.spec.frame_bytes
        assert home.steps_at_once == 1 or home.steps_at_once * per_step <= homes.STREAMED_BYTES


def test_streaming_does_not_grow(images):
    home = StreamedFeed([Sampler(images, batch=32)], kept=20)
    chunk = 8 * 32 * 2 * 4 * images.spec.frame_bytes
    held, peak = np.zeros((2, 90), int)
    tracemalloc.start()
    for number in range(90):
        home.items(8 * number, 8)
        held[number], peak[number] = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak.max() < 8 * chunk
    assert held[60:].max() < held[10:40].max() + chunk  # a chunk kept by mistake would be kept thirty times


def test_a_damaged_frame_is_an_error_in_every_home(tmp_path):
    pixels(tmp_path)
    file = tmp_path / "frames-000001.arrow"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    samplers = [Sampler(Dataset.open(tmp_path), batch=64)]
    for where in ("device", "packed", "memory"):
        with pytest.raises(DataError, match="frames-000001"):
            feed_of(samplers, where)


def test_arrays_in_memory_need_no_folder():
    data = vectors()
    samplers = [Sampler(data, batch=4)]
    on_device, streamed = DeviceFeed(samplers), feed_of(samplers, "compressed", memory=100)
    gathered = on_device.minibatch(on_device.resident, on_device.items(0, 1)[0, 0])
    for here, there in zip(gathered[:5], batches(streamed, 0, 1)[:5], strict=True):
        np.testing.assert_array_equal(here, there[0, 0])


def test_what_an_agent_saw_while_playing_is_what_sampling_gives(tmp_path):
    """Four stacked frames, three lanes, and a time limit that truncates."""
    lanes, rows = 3, 60
    play, random = envs.make(GAME, lanes=lanes, seed=1, max_steps=9), np.random.default_rng(1)
    spec = replace(play.spec, stack=4)
    observation, seen = blank(spec, lanes), []
    with Recorder(tmp_path, spec, lanes=lanes) as recorder:
        frame = play.reset()
        observation = pushed(observation, frame, np.ones(lanes, bool))
        for _ in range(rows):
            seen.append(observation)
            action = random.integers(spec.actions, size=lanes)
            taken = play.step(action)
            recorder.add(frame, action, taken.reward, taken.terminal, taken.truncated, taken.next_observation)
            ended = taken.terminal | taken.truncated
            frame, observation = taken.observation, pushed(observation, taken.observation, ended)
    data = Dataset.open(tmp_path)
    assert data.timeline.truncated.any() and data.timeline.terminal.any()
    sampled = transitions(Sampler(data), np.arange(len(data)), data.timeline.frames).observation
    lane_by_lane = np.stack(seen).swapaxes(0, 1).reshape(sampled.shape)
    np.testing.assert_array_equal(sampled, lane_by_lane)


def control_log(steps: int = 40) -> Dataset:
    """Action vectors that are all different; episodes of different lengths, which end in either way."""
    random = np.random.default_rng(0)
    return Dataset.from_arrays(
        random.normal(size=(steps, 3)),
        random.uniform(-1, 1, (steps, 2)),
        random.normal(size=steps),
        random.random(steps) < 0.1,
        truncations=random.random(steps) < 0.1,
    )


@pytest.mark.parametrize("n_step", [1, 3])
def test_the_next_action_is_the_one_logged_after_the_transition(n_step):
    data = control_log()
    for log in (data, data.first(25), data.fraction(0.5)):
        sampler = Sampler(log, n_step=n_step, next_actions=True)
        found = transitions(sampler, np.arange(len(log)), log.timeline.frames)
        starts, stops = log.starts.tolist(), log.stops.tolist()
        steps = [
            (step, stop) for start, stop in zip(starts, stops, strict=True) for step in range(start, stop)
        ]
        for row, (step, stop) in enumerate(steps):
            assert found.next_logged[row] == (step + n_step < stop)
            if step + n_step < stop:
                np.testing.assert_array_equal(found.next_action[row], log.timeline.action[step + n_step])


@pytest.mark.parametrize("where", ["device", "packed", "memory", "compressed"])
def test_every_feed_gives_the_next_action_to_an_agent_that_reads_it(where):
    data = control_log()
    samplers = [Sampler(data, batch=5, seed=seed, next_actions=True) for seed in (0, 1)]
    feed = feed_of(samplers, where)
    items = feed.items(0, 2)
    for seed, sampler in enumerate(samplers):
        item = jax.tree.map(lambda leaf, seed=seed: leaf[1, seed], items)
        found = jax.jit(feed.minibatch)(feed.resident, item)
        expected = transitions(sampler, sampler.positions(1, 1)[0], data.timeline.frames)
        assert found.next_logged is not None
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def stacked_by_hand(episode, depth):
    """The last `depth` frames of one lane's episode so far, joined with a plain loop."""
    frames = [np.zeros_like(episode[0])] * depth + episode
    return np.concatenate(frames[-depth:], axis=-1)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize(("shape", "dtype"), [((5, 4, 2), "uint8"), ((3,), "float32"), ((5, 4, 1), "bool")])
def test_stacks_equal_a_plain_loop(shape, dtype, depth):
    rng, lanes = np.random.default_rng(0), 3
    frames = rng.integers(0, 255, (20, lanes, *shape)).astype(dtype)
    ended = rng.random((20, lanes)) < 0.2
    seen = pushed(blank(Spec(shape, dtype, actions=2, stack=depth), lanes), frames[0], np.ones(lanes, bool))
    episodes = [[frame] for frame in frames[0]]
    kept = [(seen, [stacked_by_hand(episode, depth) for episode in episodes])]
    for now, over in zip(frames[1:], ended[1:], strict=True):
        episodes = [[f] if o else [*e, f] for e, f, o in zip(episodes, now, over, strict=True)]
        seen = pushed(seen, now, over)
        kept.append((seen, [stacked_by_hand(episode, depth) for episode in episodes]))
    for result, expected in kept:
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)
