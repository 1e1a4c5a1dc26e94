#!/usr/bin/env python3
"""Decoding with sequences of unequal length on one Hopper GPU: keys in even parts of all, in parts of each row block, and FlashAttention-3.

    cargo build --release
    python3 benches/peers/unequal.py [--csv FILE]

Used as decode.py is, and timed as it is. Lengths are drawn between 128 and the largest, equally often in each octave; `equal` has all
sequences at the largest. Each contestant gets the same lengths, FlashAttention-3 as `cache_seqlens`. TB/s count the valid keys and values,
Q and O once.
"""

import math
import os
import random
import sys

import common
import decode

# batch, query heads, key heads, queries, most keys, head dimension, causal; whether lengths are equal.
SHAPES = [
    ((8, 64, 8, 1, 32768, 128, False), False),
    ((32, 64, 8, 1, 32768, 128, False), False),
    ((64, 32, 8, 1, 16384, 128, False), False),
    ((32, 16, 2, 1, 32768, 128, False), False),
    ((16, 64, 8, 1, 32768, 64, False), False),
    ((8, 16, 2, 1, 32768, 256, False), False),
    ((16, 32, 8, 4, 16384, 128, True), False),
    ((4, 16, 4, 128, 16384, 128, True), False),
    ((4, 64, 8, 1, 8192, 128, False), True),
    ((8, 64, 8, 1, 4096, 128, False), True),
    ((8, 64, 8, 1, 32768, 128, False), True),
    ((32, 32, 8, 1, 2048, 128, False), True),
    ((4, 64, 8, 1, 32768, 64, False), True),
    ((2, 16, 2, 1, 65536, 256, False), True),
]


class Even:
    """The kernels for even parts."""

    def __init__(self, driver, folder, shape):
        even, joins = paths(folder, shape)
        self.shape = shape
        self.even = common.Kernel(driver, even)
        self.joins = {groups: common.Kernel(driver, path) for groups, path in joins.items()}
        self.block_m = (self.even.threads // 128 - 1) * decode.ROWS

    def prepare(self, torch, blocks, q, k, v, kv_len, o, lse, scale):
        batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim, _ = self.shape
        per_kv = heads_q // heads_kv
        rows = seqlen_q * per_kv
        row_blocks = -(-rows // self.block_m) * heads_kv * batch
        places, room = blocks + row_blocks, min(rows, self.block_m)
        partial_o = torch.empty(places, 1, room, head_dim, device="cuda")
        weights = torch.empty(places, 1, room, 2, device="cuda")
        edges = torch.empty(row_blocks, 2, device="cuda", dtype=torch.int32)
        of_k, of_v = self.even.boxes[:2]
        part = self.even.prepare(torch, blocks, [q, (k, of_k), (v, of_v), kv_len, partial_o, weights, edges, per_kv,
                                                   seqlen_kv, scale])
        groups = decode.groups_of(-(-places // row_blocks))
        grid = -(-heads_kv * batch * rows * groups // decode.GROUPS)
        join = self.joins[groups].prepare(torch, grid, [partial_o, weights, edges, o, lse, per_kv, scale])
        return lambda: (part(), join())


def paths(folder, shape):
    """The kernel for even parts, and those that join one, two, four or eight groups of parts."""
    part, _, _ = decode.paths(folder, shape)
    even = part.replace("part_", "even_")
    return even, {n: f"{even}_join_{n}" for n in (1, 2, 4, 8)}


def compile_kernels(program, folder, shapes):
    decode.compile_kernels(program, folder, shapes)
    made = set()
    for shape in shapes:
        _, heads_q, heads_kv, seqlen_q, _, head_dim, causal = shape
        settings = {"dtype": "bf16", "head_dim": head_dim, "causal": str(causal).lower(), "even": "true"}
        settings["seqlen"] = heads_q // heads_kv * seqlen_q
        even, joins = paths(folder, shape)
        for groups, path in [(0, even), *joins.items()]:
            if path not in made:
                common.compile_kernel(program, "fmha_fwd", settings | {"join": decode.AT_ONCE * groups}, path)
                made.add(path)


def measure(torch, driver, folder, shape, equal, rounds, launches):
    try:
        import fa3_fwd_interface as fa3
    except ImportError:
        fa3 = None
    batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim, causal = shape
    scale, chance = 1 / math.sqrt(head_dim), random.Random(1)
    drawn = [int(128 * (seqlen_kv / 128) ** chance.random()) for _ in range(batch)]
    lengths = [seqlen_kv] * batch if equal else drawn
    kv_len = torch.tensor(lengths, device="cuda", dtype=torch.int32)
    bytes_kv = 4 * heads_kv * sum(lengths) * head_dim
    room = 4 * batch * heads_kv * seqlen_kv * head_dim
    copies = max(1, min(8, -(-decode.COLD_BYTES // bytes_kv), (32 << 30) // room))
    new = lambda *sizes: torch.randn(batch, *sizes, head_dim, device="cuda", dtype=torch.bfloat16)
    sets = [(new(seqlen_q, heads_q), new(seqlen_kv, heads_kv), new(seqlen_kv, heads_kv)) for _ in range(copies)]
    o = torch.empty_like(sets[0][0]).transpose(1, 2)
    lse = torch.empty(batch, heads_q, seqlen_q, device="cuda")
    views = [tuple(tensor.transpose(1, 2) for tensor in tensors) for tensors in sets]
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    parts, even = decode.Ours(driver, folder, shape), Even(driver, folder, shape)
    by_itself = parts.parts(processors)
    resident = 2 if even.block_m == decode.ROWS and head_dim <= 128 else 1
    contestants = {"parts": [parts.prepare(torch, by_itself, *view, kv_len, o, lse, scale) for view in views]}
    for blocks in range(1, resident + 1):
        runs = [even.prepare(torch, blocks * processors, *view, kv_len, o, lse, scale) for view in views]
        contestants[f"even_{blocks}"] = runs
    wanted = None
    for name, runs in contestants.items():
        o.fill_(math.nan), lse.fill_(math.nan)
        runs[0]()
        first = o.clone(), lse.clone()
        runs[0]()
        if not (torch.equal(o, first[0]) and torch.equal(lse, first[1])):
            raise SystemExit(f"{shape}: a second run of {name} differs")
        wanted = wanted or first
        error = max((first[at].double() - wanted[at].double()).abs().max().item() for at in (0, 1))
        if not error <= 0.01:
            raise SystemExit(f"{shape}: {name} is off by {error}")
    contestants = {name: decode.in_turn(runs) for name, runs in contestants.items()}
    if fa3:
        contestants["fa3"] = decode.in_turn([
            lambda tensors=tensors: fa3.flash_attn_with_kvcache(*tensors, cache_seqlens=kv_len, causal=causal) for tensors in sets
        ])
    times = decode.medians(torch, contestants, rounds, launches)
    row = dict(zip(("batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_kv", "head_dim"), shape), causal=int(causal))
    row |= dict(equal=int(equal), valid=sum(lengths), parts=by_itself)
    moved = bytes_kv + 4 * batch * heads_q * seqlen_q * head_dim
    best = min(time for name, time in times.items() if name.startswith("even"))
    row |= dict(ratio=round(times["parts"] / best, 4), share=round(moved / best * 1e3 / decode.BANDWIDTH, 4))
    names = ("parts", "even_1", "even_2", "fa3")
    return row | {f"{name}_us": round(times[name] * 1e3, 2) if name in times else "" for name in names}


def main():
    parser = common.options_of(__doc__, "unequal.csv", "numbers of shapes, as 0,3,11", 7)
    parser.add_argument("--launches", type=int, default=8)
    options = parser.parse_args()
    chosen = SHAPES if not options.only else [SHAPES[int(number)] for number in options.only.split(",")]
    folder = common.kernels(options, lambda program, to: compile_kernels(program, to, [shape for shape, _ in chosen]))
    if not folder:
        return
    torch, driver = common.start()
    rows = []
    for shape, equal in chosen:
        rows.append(measure(torch, driver, folder, shape, equal, options.rounds, options.launches))
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        torch.cuda.empty_cache()
    common.write_table(options.csv, rows)


if __name__ == "__main__":
    sys.exit(main())
