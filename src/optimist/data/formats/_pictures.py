"""Pictures that a log holds as files: PNG, and JPEG with its loss."""

import io
import struct
import zlib

import numpy as np

from optimist.errors import DataError, in_one_line

LARGEST = 2**24  # pixels of a picture
DAMAGE = (OSError, SyntaxError, ValueError, EOFError, LookupError, struct.error, zlib.error)


def pixels(
    content: bytes, place: str, *, jpeg: bool = False, like: tuple[int, ...] | None = None
) -> np.ndarray:
    """The pixels of a PNG file, or of a JPEG file, (height, width) or (height, width, channels); DataError if
    the height and width are not those of `like`.

    Pillow knows 40 other formats, and starts Ghostscript for one of them: its readers of these two are called
    by name. The size in the header is checked before memory is taken for the pixels."""
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile

    kind = JpegImageFile if jpeg and content[:2] == b"\xff\xd8" else PngImageFile
    try:
        picture = kind(io.BytesIO(content))
        found = (picture.height, picture.width)
        if found == (like or found)[:2] and picture.height * picture.width <= LARGEST:
            return np.asarray(picture)
    except DAMAGE as problem:
        formats, reason = "PNG or JPEG" if jpeg else "PNG", in_one_line(problem)
        raise DataError(
            f"{place} holds a damaged image, or none of {formats} ({reason}); fetch it again"
        ) from None
    wanted = f"instead of {like[:2]}" if like else f"and at most {LARGEST:,} pixels are read"
    raise DataError(f"{place} holds an image of {found} pixels {wanted}; fetch it again")
