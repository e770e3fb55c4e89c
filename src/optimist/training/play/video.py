"""Films of play, as GIF or MP4 files."""

import importlib.util
import io
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from optimist.data.disk.files import write_whole
from optimist.errors import StorageError, UsageError, in_one_line

WIDTH = 320  # pixels; narrower films are enlarged by a whole factor to at least this
PALETTE = 256  # colours of a GIF, at most


def check_film(path: str | os.PathLike) -> None:
    """Raise UsageError if no film of this name can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise UsageError(f"a film is a .gif or an .mp4 file, not {Path(path).name}: choose another --out")
    if suffix == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise UsageError(
            'an MP4 needs imageio-ffmpeg: pip install "optimist-rl[video]", or name a .gif file with --out'
        )


def write_film(path: str | os.PathLike, frames: Sequence[np.ndarray], fps: float = 15) -> None:
    """Write a GIF or an MP4, by the suffix of the name."""
    check_film(path)
    film, path = (gif_bytes if str(path).lower().endswith(".gif") else mp4_bytes)(frames, fps), Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot write {path}: {problem.strerror}; choose another place") from problem
    write_whole(path, film)  # a reader never sees an incomplete file


def gif_bytes(frames: Sequence[np.ndarray], fps: float = 15) -> bytes:
    """A looping GIF of (H, W, 3) uint8 frames; equal consecutive frames become one longer frame."""
    _check(frames, fps)
    # Each colour as one number, (H, W, 3) -> (H, W).
    packed = [frame.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32) for frame in frames]
    index_of, palette = _palette(packed)
    factor = math.ceil(WIDTH / frames[0].shape[1])
    images = []
    for colours in packed:
        indices = index_of[colours].repeat(factor, axis=0).repeat(factor, axis=1)
        images.append(Image.fromarray(indices))
        images[-1].putpalette(palette.tobytes())
    hundredths = max(2, round(100 / fps))  # the format's unit of time; browsers slow down anything below 2
    film = io.BytesIO()
    images[0].save(
        film, "GIF", save_all=True, append_images=images[1:], duration=10 * hundredths, loop=0, optimize=False
    )
    return film.getvalue()


def mp4_bytes(frames: Sequence[np.ndarray], fps: float = 15) -> bytes:
    """An H.264 film of (H, W, 3) uint8 frames."""
    import imageio_ffmpeg  # of the extra `video`

    _check(frames, fps)
    factor = math.ceil(WIDTH / frames[0].shape[1])
    # H.264 needs an even height and width: the last row or column is repeated.
    large = [
        np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")
        for frame in (frame.repeat(factor, axis=0).repeat(factor, axis=1) for frame in frames)
    ]
    height, width = large[0].shape[:2]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(fps), "-i", "-"]
    # A browser needs this layout of colours, and plays such a file before all of it is loaded.
    made = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        words = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *raw, *made, str(film)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
            _, complaint = ffmpeg.communicate(b"".join(frame.tobytes() for frame in large))
        if ffmpeg.returncode:
            reason = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            raise UsageError(f"ffmpeg made no MP4 ({in_one_line(reason[0])}): name a .gif file with --out")
        return film.read_bytes()


def _check(frames: Sequence[np.ndarray], fps: float) -> None:
    if not len(frames) or not fps > 0:
        raise UsageError(
            f"a film of {len(frames)} frames at {fps} per second: choose at least 1 frame and a rate above 0"
        )
    height, width = frames[0].shape[:2] if frames[0].ndim == 3 else (0, 0)
    for frame in frames:
        if frame.shape != (height, width, 3) or frame.dtype != np.uint8 or not frame.size:
            raise UsageError(
                f"a frame of {frame.shape} {frame.dtype}: a film needs uint8 frames of one shape (H, W, 3)"
            )


def _palette(packed: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """One palette for the whole film, exact if 256 colours are enough: (2^24,) indices, (256, 3) colours."""
    index_of = np.zeros(1 << 24, np.uint8)
    for colours in packed:
        index_of[colours] = 1
    seen = np.flatnonzero(index_of)
    colours = np.stack([seen >> 16, seen >> 8 & 255, seen & 255], axis=-1).astype(np.uint8)
    if len(seen) <= PALETTE:
        index_of[seen] = np.arange(len(seen))
        return index_of, colours
    reduced = Image.fromarray(colours[None]).quantize(PALETTE)
    index_of[seen] = np.asarray(reduced)[0]
    return index_of, np.array(reduced.getpalette(), np.uint8).reshape(-1, 3)
