#!/usr/bin/env python3
"""The time that Triton's interpreter takes for a small attention forward, as `cargo bench --bench emulator` takes it for ours.

Needs Python with torch (CPU is enough) and triton; no GPU. Each shape runs once to compare with torch, then several times:

    python3 benches/peers/triton_interpreter.py [--rounds 5] [--csv FILE]

The interpreter checks nothing; Lacewing's emulator makes its default checks in the times that it is compared with.
"""

import argparse
import os
import statistics
import sys
import time

# Read when triton is imported.
os.environ["TRITON_INTERPRET"] = "1"
# Two cores, as for the emulator.
os.environ.setdefault("OMP_NUM_THREADS", "2")

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

# Heads, length, head dimension: those of the emulator's benchmark.
SHAPES = [(2, 256, 64), (9, 106, 64), (2, 512, 128)]


@triton.jit
def forward(q, k, v, o, scale, length: tl.constexpr, dim: tl.constexpr, rows: tl.constexpr, keys: tl.constexpr):
    """One block of rows of one head; loop bounds are constants, which the interpreter needs with a recent numpy."""
    head = tl.program_id(1)
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, dim)
    base = head * length * dim
    q_tile = tl.load(q + base + row[:, None] * dim + column[None, :], mask=row[:, None] < length, other=0.0)
    largest = tl.full([rows], float("-inf"), tl.float32)
    total = tl.zeros([rows], tl.float32)
    sums = tl.zeros([rows, dim], tl.float32)
    for start in tl.static_range(0, length, keys):
        key = start + tl.arange(0, keys)
        inside = key < length
        at = base + key[:, None] * dim + column[None, :]
        k_tile = tl.load(k + at, mask=inside[:, None], other=0.0)
        v_tile = tl.load(v + at, mask=inside[:, None], other=0.0)
        scores = tl.dot(q_tile, tl.trans(k_tile)) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(weights, 1)
        sums = sums * shrink[:, None] + tl.dot(weights.to(tl.float16), v_tile)
        largest = larger
    sums = sums / total[:, None]
    tl.store(o + base + row[:, None] * dim + column[None, :], sums.to(tl.float16), mask=row[:, None] < length)


def launch(q, k, v, o):
    """Tiles of 64 x 64, as ours."""
    heads, length, dim = q.shape
    scale = dim**-0.5 * 1.4426950408889634
    forward[(triton.cdiv(length, 64), heads)](q, k, v, o, scale, length, dim, 64, 64)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each shape; the median counts")
    parser.add_argument("--csv", help="write the table to this file too")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(1)
    lines = ["heads,length,head_dim,median_ms,least_ms,largest_error"]
    print(f"triton {triton.__version__}, torch {torch.__version__}, python {sys.version.split()[0]}", file=sys.stderr)
    for heads, length, dim in SHAPES:
        q, k, v = (torch.randn(heads, length, dim, dtype=torch.float16) for _ in range(3))
        o = torch.empty_like(q)
        launch(q, k, v, o)
        right = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
        error = (o.double() - right).abs().max().item()
        if not error < 5e-3:
            sys.exit(f"wrong at {heads} x {length} x {dim}: off by {error}")
        times = []
        for _ in range(arguments.rounds):
            start = time.perf_counter()
            launch(q, k, v, o)
            times.append((time.perf_counter() - start) * 1e3)
        lines.append(f"{heads},{length},{dim},{statistics.median(times):.1f},{min(times):.1f},{error:.1e}")
        print(lines[-1], file=sys.stderr)
    print("\n".join(lines))
    if arguments.csv:
        with open(arguments.csv, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
