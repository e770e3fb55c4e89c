"""RL Unplugged's records, written here by an encoder of their own, are read without TensorFlow."""

import gzip
import io
import struct

import numpy as np
import pytest
from PIL import Image

from optimist.cli.main import main
from optimist.data import formats, open_dataset
from optimist.data.formats.rlds.records import crc32c, masked
from optimist.errors import UsageError

FORMAT = formats.find("rlds")
SIZE = (84, 84)


def slow_crc32c(content: bytes) -> int:
    """Bit by bit, as the polynomial is defined."""
    register = 0xFFFFFFFF
    for byte in content:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values) -> bytes:
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))
    if isinstance(values[0], float):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(3, field(1, b"".join(map(varint, values))))


def example(features: dict) -> bytes:
    pairs = (field(1, field(1, name.encode()) + field(2, feature(v))) for name, v in features.items())
    return field(1, b"".join(pairs))


def record(content: bytes) -> bytes:
    def masked(part):
        crc = slow_crc32c(part)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def png(frame: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(frame).save(stream, "PNG")
    return stream.getvalue()


def frames(count: int, seed: int = 0) -> np.ndarray:
    """Images of a few rectangles: small files, for a checksum that is slow here."""
    grey = np.random.default_rng(seed).integers(0, 256, (count, 4, 4)).astype(np.uint8)
    return np.kron(grey, np.ones((21, 21), np.uint8))


def episode(count: int, terminal: bool, seed: int, layout: str) -> dict:
    """`count` observations; what stands beside the last one has no meaning."""
    images = [png(frame) for frame in frames(count, seed)]
    actions, rewards = [(seed + step) % 4 for step in range(count)], [float(step) for step in range(count)]
    last = [0] * (count - 1) + [1]
    if layout == "TFDS":
        return {
            "steps/observation": images,
            "steps/action": actions,
            "steps/reward": rewards,
            "steps/discount": [1.0] * count,
            "steps/is_first": [1] + [0] * (count - 1),
            "steps/is_last": last,
            "steps/is_terminal": [flag * terminal for flag in last],
            "episode_id": [seed],
        }
    discounts = [1.0] * (count - 1) + [0.0 if terminal else 1.0]
    shared = {"observations": images, "actions": actions, "discounts": discounts, "episode_idx": [seed]}
    return {**shared, "unclipped_rewards": rewards, "clipped_rewards": [min(1.0, r) for r in rewards]}


def transition(step: int, images: np.ndarray, discount: float, number: int) -> dict:
    """Step `step` of an episode; stacks begin before its first image, with black ones."""
    black = np.concatenate([np.zeros((3, *SIZE), np.uint8), images])
    return {
        "o_t": [png(frame) for frame in black[step : step + 4]],
        "o_tp1": [png(frame) for frame in black[step + 1 : step + 5]],
        "a_t": [step % 3],
        "a_tp1": [0],
        "r_t": [float(step)],
        "d_t": [discount],
        "episode_id": [-number],  # published as uint64 in the bits of int64
        "episode_return": [1.0],
    }


def saved(path, examples, compressed=True):
    content = b"".join(record(example(features)) for features in examples)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if compressed else content)
    return path


def test_the_checksum_is_that_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720
    assert crc32c(bytes(32)) == 0x8A9136AA
    content = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8).tobytes()
    for size in (0, 1, 3, 127, 128, 129, 256, 1000):
        assert crc32c(content[:size]) == slow_crc32c(content[:size])


@pytest.mark.parametrize(("layout", "compressed"), [("published", True), ("TFDS", False)])
def test_episodes_are_read_in_both_layouts(tmp_path, layout, compressed):
    folder = tmp_path / "Asterix"
    saved(folder / "run_1-00000-of-00002", [episode(4, True, 1, layout)], compressed)
    saved(folder / "run_1-00001-of-00002", [episode(3, False, 2, layout)] * 1, compressed)
    assert formats.detect(folder) == "rlds" and formats.detect(folder / "run_1-00000-of-00002") == "rlds"
    assert FORMAT.verify(folder).problems == []
    options = FORMAT.ReadOptions(environment="atari/Asterix", actions_count=9)
    summary = FORMAT.read(folder, tmp_path / "data", options, None)
    assert summary.lines()[0] == "5 steps in 2 episodes"
    assert "not tried on the original files" in summary.lines()[1]
    data = open_dataset(tmp_path / "data")
    assert data.spec.in_words() == "84x84x1 uint8 frames, 4 stacked; 9 actions"
    images = np.concatenate([frames(4, 1), frames(3, 2)])
    np.testing.assert_array_equal(data.timeline.decoded()[..., 0], images)
    assert data.timeline.reward.tolist() == [0, 1, 2, 0, 1]
    assert data.timeline.action.tolist() == [1, 2, 3, 2, 3]
    assert data.timeline.terminal.tolist() == [False, False, True, False, False]
    assert data.timeline.truncated.tolist() == [False, False, False, False, True]


def test_transitions_keep_their_own_successors_in_any_order(tmp_path):
    images = frames(5)
    steps = [transition(step, images, 0.0 if step == 3 else 1.0, number=7) for step in range(4)]
    saved(tmp_path / "run_1-00000-of-00001", [steps[number] for number in (2, 3, 0, 1)])
    summary = FORMAT.read(tmp_path, tmp_path / "data", FORMAT.ReadOptions(actions_count=3))
    assert summary.lines()[0] == "4 steps in 2 episodes"  # 2 leads to 3, and 0 to 1
    data = open_dataset(tmp_path / "data")
    assert data.spec.observation_shape == (84, 84, 4)
    assert data.timeline.reward.tolist() == [2, 3, 0, 1]
    assert data.timeline.terminal.tolist() == [False, True, False, False]
    assert data.timeline.truncated.tolist() == [False, False, False, True]
    stacked = np.moveaxis(np.concatenate([np.zeros((3, *SIZE), np.uint8), images])[2:6], 0, -1)
    np.testing.assert_array_equal(data.timeline.frames(0), stacked)


def flipped(place):
    return lambda whole: whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


HUGE = struct.pack("<Q", 2**40)  # a gzipped file of a megabyte may hold a gigabyte
BROKEN = episode(3, True, 1, "published")
BROKEN["observations"][1] = b"no image"
DAMAGE = [
    (flipped(3), "checksum of its length"),
    (flipped(500), "its checksum differs"),
    (lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]), "checksum differs"),
    (lambda whole: whole[:-100], "ends within record 0"),
    (lambda whole: gzip.compress(whole)[:-50], "cannot be read after record"),
    (lambda whole: record(b"\x0f\x0f\x0f"), "record 0 is no tf.train.Example"),
    (lambda whole: record(example({"pixels": [1], "label": [2]})), "its records hold label, pixels"),
    (lambda whole: record(example(BROKEN)), "record 0 holds a damaged image"),
    (lambda whole: HUGE + struct.pack("<I", masked(HUGE)) + bytes(100), "at most 1,073,741,824 are read"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=[said for _, said in DAMAGE])
def test_every_damage_is_found(tmp_path, capsys, damage, said):
    path = saved(tmp_path / "run_1-00000-of-00001", [episode(3, True, 1, "published")], compressed=False)
    path.write_bytes(damage(path.read_bytes()))
    (problem,) = FORMAT.verify(path).problems
    assert said in problem and "\n" not in problem
    assert main(["data", "import", "rlds", str(path), "--out", str(tmp_path / "data")]) == 3
    assert said in capsys.readouterr().err and not (tmp_path / "data").exists()


def test_they_are_not_written(capsys):
    with pytest.raises(UsageError, match='the format "rlds" can only be read'):
        formats.find("rlds").check_can_write()
    assert main(["data", "export", "--help"]) == 0
    assert "rlds" not in capsys.readouterr().out
