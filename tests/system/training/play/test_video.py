"""A film is a GIF that Pillow reads back, or an MP4 that ffmpeg does: frames, size, colours and time."""

import io
import subprocess
import sys

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from optimist import envs
from optimist.errors import StorageError, UsageError
from optimist.training.play.video import check_film, gif_bytes, write_film


def squares(count, size=20):
    """A white square that moves over a coloured ground."""
    frames = np.zeros((count, size, size, 3), np.uint8) + np.array([10, 60, 90], np.uint8)
    for time, frame in enumerate(frames):
        frame[time : time + 3, 2:5] = 255
    return list(frames)


def opened(film):
    with Image.open(io.BytesIO(film)) as image:
        frames, durations = [], []
        for index in range(image.n_frames):
            image.seek(index)
            frames.append(np.asarray(image.convert("RGB")))
            durations.append(image.info["duration"])
    return frames, durations


def test_a_film_comes_back_exactly_and_enlarged():
    frames = squares(12)
    read, durations = opened(gif_bytes(frames, fps=10))
    assert durations == [100] * 12
    for original, shown in zip(frames, read, strict=True):
        np.testing.assert_array_equal(shown, original.repeat(16, axis=0).repeat(16, axis=1))


@pytest.mark.parametrize(("width", "shown"), [(1, 320), (160, 320), (319, 638), (320, 320), (500, 500)])
def test_films_are_at_least_320_wide(width, shown):
    read, _ = opened(gif_bytes([np.zeros((3, width, 3), np.uint8)]))
    assert read[0].shape[1] == shown


def test_many_colours_are_reduced_with_little_loss():
    ramp = np.linspace(0, 255, 320).astype(np.uint8)
    red, green = np.meshgrid(ramp, ramp)
    frames = [np.stack([red, green, np.full_like(red, blue)], axis=-1) for blue in (0, 128, 255)]
    read, _ = opened(gif_bytes(frames))
    for original, shown in zip(frames, read, strict=True):
        assert np.abs(original.astype(int) - shown).mean() < 16


def test_equal_neighbours_are_shown_longer():
    still, moved = squares(2)
    _, durations = opened(gif_bytes([still, still, still, moved], fps=10))
    assert sum(durations) == 400 and len(durations) == 2


def test_a_hundred_frames_of_minatar_are_small():
    env, rng = envs.make("minatar/breakout"), np.random.default_rng(0)
    env.reset()
    frames = []
    for _ in range(100):
        env.step([rng.integers(3)])
        frames.append(env.render())
    assert len(gif_bytes(frames)) < 100_000


def test_writing_leaves_only_the_film(tmp_path):
    path = tmp_path / "videos" / "play.gif"
    for _ in range(2):  # the second replaces the first
        write_film(path, squares(3))
    assert [file.name for file in path.parent.iterdir()] == ["play.gif"]
    with Image.open(path) as image:
        assert (image.format, image.n_frames) == ("GIF", 3)


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        write_film(tmp_path / "file" / "play.gif", squares(1))


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [np.zeros((4, 4), np.uint8)],
        [np.zeros((4, 4, 3), np.float32)],
        [np.zeros((4, 0, 3), np.uint8)],
        [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 5, 3), np.uint8)],
    ],
)
def test_frames_that_make_no_film_are_refused(frames):
    with pytest.raises(UsageError):
        gif_bytes(frames)


def test_an_mp4_is_read_back_by_ffmpeg(tmp_path):
    path, frames = tmp_path / "play.mp4", squares(12, size=21)
    write_film(path, frames, fps=6)
    assert [file.name for file in tmp_path.iterdir()] == ["play.mp4"]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    read = subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-i", path, *raw], capture_output=True, check=True
    )
    about = read.stderr.decode()
    assert all(word in about for word in ("h264", "yuv420p", "336x336", "6 fps", "Duration: 00:00:02.00"))
    shown = np.frombuffer(read.stdout, np.uint8).reshape(12, 336, 336, 3)[:, 8::16, 8::16].astype(int)
    assert abs(shown - np.array(frames)).mean() < 8  # it loses little


def test_a_gif_is_written_by_its_suffix(tmp_path):
    write_film(tmp_path / "play.GIF", squares(2))
    with Image.open(tmp_path / "play.GIF") as image:
        assert image.format == "GIF"


def test_an_mp4_without_its_package_says_how_to_get_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UsageError) as caught:
        check_film("a.mp4")
    assert str(caught.value) == (
        'an MP4 needs imageio-ffmpeg: pip install "optimist-rl[video]", or name a .gif file with --out'
    )
