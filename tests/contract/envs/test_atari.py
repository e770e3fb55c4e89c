"""Atari equals Dopamine's preprocessing, rewritten here on a single emulator, frame by frame."""

import hashlib
import logging
import shutil
from pathlib import Path

import ale_py
import cv2
import numpy as np
import pytest
from ale_py import roms

from optimist import envs
from optimist.envs import atari, lane_seeds
from optimist.errors import UsageError

DIFFERENT_ROMS = 29  # of the 60 in ale-py differ from those of the public data


class Dopamine:
    """Dopamine's preprocessing (Castro et al. 2018): repeat the action for 4 emulator frames, sum their
    rewards, keep the brighter of the last two grey screens, and resize it by area. Screens before the second
    one of an episode are black."""

    def __init__(self, game: str, seed: int, sticky: float = 0.25):
        self._ale = ale_py.ALEInterface()
        self._ale.setInt("random_seed", seed)
        self._ale.setFloat("repeat_action_probability", sticky)
        self._ale.setInt("frame_skip", 1)
        self._ale.loadROM(str(atari._rom(ale_py, game)))
        self.actions = self._ale.getMinimalActionSet()

    def reset(self) -> np.ndarray:
        self._ale.reset_game()
        screen = self._ale.getScreenGrayscale()
        return self._resized([screen, np.zeros_like(screen)])

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        reward, screens = 0.0, []
        for _ in range(4):
            reward += self._ale.act(self.actions[action])
            screens.append(self._ale.getScreenGrayscale())
            if self._ale.game_over():
                break
        return self._resized(screens[-2:]), reward, self._ale.game_over()

    @staticmethod
    def _resized(screens: list[np.ndarray]) -> np.ndarray:
        brighter = np.maximum.reduce(screens)
        return cv2.resize(brighter, (84, 84), interpolation=cv2.INTER_AREA)[..., None]


def emulator_seed(seed: int) -> int:
    return lane_seeds(seed, 1)[0] >> 1


# A ROM takes long to load, so that every fifth game stands for the others in the quick suite.
EVERY_GAME = [
    pytest.param(game, marks=() if place % 5 == 0 else pytest.mark.slow)
    for place, game in enumerate(atari.games())
]


@pytest.mark.parametrize("game", EVERY_GAME)
def test_frames_and_rewards_are_those_of_the_paper(game):
    ours, theirs = envs.make(f"atari/{game}", seed=3), Dopamine(game, emulator_seed(3))
    assert ours.spec.actions == len(theirs.actions)
    random = np.random.default_rng(0)
    assert np.array_equal(ours.reset()[0], theirs.reset())
    for _ in range(150):
        action = random.integers(ours.spec.actions)
        taken = ours.step(np.array([action]))
        frame, reward, over = theirs.step(action)
        assert (taken.reward[0], taken.terminal[0], taken.truncated[0]) == (reward, over, False)
        if over:
            # The screen at the end differs from game to game; it is not used in training.
            frame = theirs.reset()
        assert np.array_equal(taken.observation[0], frame)


def test_the_successor_of_a_last_step_is_the_end_of_its_own_episode():
    play, single = envs.make("atari/Breakout", seed=0), Dopamine("Breakout", emulator_seed(0))
    play.reset(), single.reset()
    for turn in range(2_000):
        taken = play.step(np.array([turn % 4]))
        frame, _, over = single.step(turn % 4)
        if over:
            assert np.array_equal(taken.next_observation[0], frame)
            assert not np.array_equal(taken.next_observation[0], taken.observation[0])
            return
    raise AssertionError("no episode of Breakout ended in 2,000 steps")


def test_the_games_and_their_settings_are_the_papers():
    assert len(set(atari.games())) == 60
    assert atari.Options() == atari.Options(0.25, False, no_ops=0, full_action_set=False, max_steps=27_000)


def test_a_lost_life_can_end_an_episode():
    def ends(name: str) -> int:
        play = envs.make(name, seed=2)
        play.reset()
        return sum(int(play.step(np.array([turn % 4])).terminal[0]) for turn in range(400))

    assert ends("atari/Breakout?episodic_life=yes") > 2 * ends("atari/Breakout") > 0


def test_no_ops_begin_an_episode_at_another_place():
    plain, delayed = (
        envs.make(name, lanes=4).reset() for name in ("atari/Seaquest", "atari/Seaquest?no_ops=30")
    )
    assert all(np.array_equal(plain[0], frame) for frame in plain)
    assert len({frame.tobytes() for frame in delayed}) > 1


def test_the_full_action_set_has_18_actions():
    assert envs.make("atari/Pong").spec.actions == 6
    assert envs.make("atari/Pong?full_action_set=yes").spec.actions == 18


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ms_pacman", "MsPacman"),
        ("MSPACMAN", "MsPacman"),
        ("BreakoutNoFrameskip-v4", "Breakout"),
        ("Q*bert", "Qbert"),
        ("up-n-down", "UpNDown"),
        ("Brekout", "Breakout"),
    ],
)
def test_another_spelling_is_answered_with_the_right_one(written, meant):
    with pytest.raises(UsageError, match=f'did you mean "{meant}"'):
        envs.make(f"atari/{written}")


OPTIONS = ("sticky=2", "no_ops=-1", "max_steps=0", "full_action_set=1", "noop=3", "no_ops")


@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(UsageError, match=options.partition("=")[0]):
        envs.make(f"atari/Pong?{options}")


def test_options_travel_in_the_name():
    name = "atari/Pong?no_ops=30&full_action_set=yes"
    assert envs.options_of(name) == atari.Options(no_ops=30, full_action_set=True)
    assert envs.named("atari/Pong", envs.options_of(name)) == name
    assert envs.named(name, atari.Options()) == envs.base_name(name) == "atari/Pong"
    assert envs.options_of("minatar/breakout") is None


def test_the_rom_is_recorded():
    rom = Path(roms.get_rom_path("pong")).read_bytes()
    versions = envs.make("atari/Pong").versions()
    assert versions["rom_md5"] == hashlib.md5(rom).hexdigest() == "60e0ea3cbe0913d39803477945e9e5ec"
    assert versions["ale_py"]


@pytest.fixture
def warnings(caplog):
    atari._warn_of_another_rom.cache_clear()
    with caplog.at_level(logging.WARNING, "optimist"):
        yield caplog


def test_a_rom_that_is_not_the_public_datas_is_mentioned_once(warnings):
    for game in atari.games():
        md5 = hashlib.md5(atari._rom(ale_py, game).read_bytes()).hexdigest()
        atari._warn_of_another_rom(game, md5)
    said = [record.message for record in warnings.records if "differs from that of" in record.message]
    assert len(said) == DIFFERENT_ROMS
    envs.make("atari/Amidar")  # one of them
    assert len(warnings.records) == DIFFERENT_ROMS


def test_a_folder_of_ones_own_roms_is_taken(tmp_path, monkeypatch, warnings):
    changed = bytearray(Path(roms.get_rom_path("pong")).read_bytes())
    changed[-1] ^= 1
    (tmp_path / "pong.bin").write_bytes(changed)
    shutil.copy(roms.get_rom_path("breakout"), tmp_path / "breakout.bin")
    monkeypatch.setenv(atari.ROMS, str(tmp_path))
    assert envs.make("atari/Pong").versions()["rom_md5"] == hashlib.md5(changed).hexdigest()
    assert "atari/Pong: this ROM differs" in warnings.text
    warnings.clear()
    envs.make("atari/Breakout")
    assert not warnings.records
    with pytest.raises(UsageError, match=r"seaquest\.bin is missing or empty"):
        envs.make("atari/Seaquest")


def test_pictures_are_of_the_same_game_in_colour():
    play = envs.make("atari/Breakout", seed=1)
    play.reset()
    play.step(np.array([0]))
    with pytest.raises(UsageError, match="before the first step"):
        play.render()
    play = envs.make("atari/Breakout", seed=1)
    play.reset()
    pictures = [play.render()]
    for turn in range(260):
        taken = play.step(np.array([turn % 4]))
        pictures.append(play.render())
        grey = cv2.resize(
            cv2.cvtColor(pictures[-1], cv2.COLOR_RGB2GRAY), (84, 84), interpolation=cv2.INTER_AREA
        )
        # The emulator computes grey slightly differently; a missing ball or brick would differ more.
        assert np.abs(grey.astype(int) - taken.observation[0, ..., 0]).max() < 24
    assert pictures[0].shape == (210, 160, 3)
