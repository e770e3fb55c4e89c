"""The bytes of a safetensors file, in parts, so that writing a large state needs no second copy of it.

The library's own writer copies the arrays twice, and no other thread of the interpreter runs meanwhile.
"""

import json

import numpy as np

TYPES = {  # numpy's names and the file's, in the order in which the library writes arrays
    **{"uint64": "U64", "int64": "I64", "float64": "F64", "float32": "F32", "uint32": "U32", "int32": "I32"},
    **{"float16": "F16", "uint16": "U16", "int16": "I16"},
    **{"int8": "I8", "uint8": "U8", "bool": "BOOL"},
}
ALIGNMENT = 8  # bytes; the header is padded with spaces


def parts(arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> list[bytes | memoryview]:
    """The header, then each array without a copy; joined, they equal `safetensors.numpy.save`."""
    order = list(TYPES)
    names = sorted(arrays, key=lambda name: (order.index(arrays[name].dtype.name), name))
    header: dict[str, dict] = {"__metadata__": metadata} if metadata else {}
    content, place = list[bytes | memoryview](), 0
    for name in names:
        array = np.asarray(arrays[name], order="C")  # not ascontiguousarray: a scalar would become a vector
        end = place + array.nbytes
        kind = TYPES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [place, end]}
        content.append(array.reshape(-1).view(np.uint8).data)
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return [len(text).to_bytes(8, "little") + text, *content]
