#!/usr/bin/env python3
"""starter_blobs - writes the safetensors files of the starter dataset to blob/. The files have the same bytes on every
machine.

    tools/starter_blobs.py            writes the files
    tools/starter_blobs.py --check    exits with status 1 if a file differs from this script's output

The tensors are synthetic, but resemble real tensors of the models that the definitions name. Uniform noise would not
resemble them. A few channels of the residual stream are tens of times larger than the others, and the values of the
first token of a sequence are even larger. Norm weights are positive and uneven, with some channels close to zero. The
script computes only with random integers and sums, and calls no function of libm, so that the bits are the same on
every platform.
"""

import json
import pathlib
import random
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def bfloat16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def float16(value):
    return struct.pack("<e", value)


def int32(value):
    return struct.pack("<i", value)


FORMATS = {"BF16": bfloat16, "F16": float16, "I32": int32}


def bell(source):
    """Returns the sum of twelve uniform numbers in [0, 1), minus 6. The distribution of this sum is nearly normal, with
    mean 0 and variance 1."""
    return sum(source.getrandbits(20) for _ in range(12)) / 2**20 - 6


def residual_stream(source, rows, columns):
    """Returns rows of hidden states that have not been normalised. The first row is the first token of a sequence."""
    outliers = set(source.sample(range(columns), max(1, columns // 512)))
    scales = [40.0 if column in outliers else 0.5 + source.getrandbits(8) / 256 for column in range(columns)]
    for row in range(rows):
        for scale in scales:
            yield bell(source) * scale * (8 if row == 0 and scale == 40.0 else 1)


def norm_weight(source, columns, centre):
    """Returns the weights of a norm. A few of them are close to zero."""
    for _ in range(columns):
        uneven = centre * (1 + bell(source) / 8)
        yield uneven / 64 if source.getrandbits(7) == 0 else uneven


def projection_input(source, rows, columns):
    """Returns the input of a projection: normalised hidden states, most of which are small."""
    for _ in range(rows * columns):
        value = bell(source)
        yield value * abs(value) / 2


# Three sequences of 40, 0 and 17 keys in pages of 16 keys. The third sequence begins with the same page as the first
# sequence.
SHARED_PREFIX = {"kv_indptr": [0, 3, 3, 5], "kv_indices": [6, 1, 4, 6, 0], "kv_last_page_len": [8, 0, 1]}

# The files, with paths relative to blob/workloads. Each has tensors {name: (dtype, shape, function that returns the
# values)}.
FILES = [
    (
        "rmsnorm/rmsnorm_h4096/prefill.safetensors",
        {
            "hidden_states": ("BF16", [4, 4096], lambda source: residual_stream(source, 4, 4096)),
            "weight": ("BF16", [4096], lambda source: norm_weight(source, 4096, 0.45)),
        },
    ),
    (
        "rmsnorm/rmsnorm_h128/query_norm.safetensors",
        {
            "hidden_states": ("BF16", [64, 128], lambda source: residual_stream(source, 64, 128)),
            "weight": ("BF16", [128], lambda source: norm_weight(source, 128, 1.75)),
        },
    ),
    (
        "rmsnorm/fused_add_rmsnorm_h5120/decode.safetensors",
        {
            "hidden_states": ("BF16", [1, 5120], lambda source: residual_stream(source, 1, 5120)),
            "residual": ("BF16", [1, 5120], lambda source: residual_stream(source, 1, 5120)),
            "weight": ("BF16", [5120], lambda source: norm_weight(source, 5120, 1.1)),
        },
    ),
    (
        "gemm/gemm_bf16_n128_k2048/router.safetensors",
        {"A": ("BF16", [6, 2048], lambda source: projection_input(source, 6, 2048))},
    ),
    (
        "gemm/gemm_n1024_k4096/key_projection.safetensors",
        {"A": ("F16", [3, 4096], lambda source: projection_input(source, 3, 4096))},
    ),
    (
        "gqa_paged/gqa_paged_decode_h40_kv8_d128_ps16/shared_prefix.safetensors",
        {name: ("I32", [len(values)], lambda _, values=values: values) for name, values in SHARED_PREFIX.items()},
    ),
]


def safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, maker) in tensors.items():
        source = random.Random(f"{path}:{name}")
        encoded = b"".join(FORMATS[dtype](value) for value in maker(source))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(encoded)]}
        data += encoded
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    check = sys.argv[1:] == ["--check"]
    wrong = []
    for path, tensors in FILES:
        place = ROOT / "blob" / "workloads" / path
        content = safetensors(path, tensors)
        if place.exists() and place.read_bytes() == content:
            continue
        wrong.append(place.relative_to(ROOT))
        if not check:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    for path in wrong:
        print(f"{path}: {'differs from the output of tools/starter_blobs.py' if check else 'written'}")
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
