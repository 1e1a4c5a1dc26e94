#!/usr/bin/env python3
"""Attention of few rows to many keys against its peers on one Hopper GPU, interleaved: ours, FlashAttention-3, PyTorch's cuDNN.

    cargo build --release
    python3 benches/peers/decode.py [--csv FILE] [--parts N,..]

Needs what attention.py needs, and is used as it is: `--compile-to DIR` on a machine with a compiler, `--compiled DIR` on the one
with the GPU. Before a shape is timed, O and LSE of all rows of the first and the last key head are compared with attention in
f64, and a second run with the first one, bit for bit.

Times are medians of --rounds rounds on the GPU alone; in each, every contestant runs --launches times in a row, in an order
drawn anew. Launches go in turn through copies of Q, K and V that are together larger than the L2 cache, as layers of a model
do. FlashAttention-3 is called as for a cache of keys (`flash_attn_with_kvcache`), with the number of parts that it takes by
itself; cuDNN is called through SDPA, where that has the mask. TB/s count Q, K, V and O once; `share` is the part of 4.8 TB/s.

With --parts, ours runs with each of these numbers of parts too, in columns of their own.
"""

import math
import os
import sys

import common

# batch, query heads, key heads, queries, keys, head dimension, causal. A single query sees all keys: no mask.
SHAPES = [
    (1, 64, 8, 1, 4096, 128, False),
    (1, 64, 8, 1, 16384, 128, False),
    (1, 64, 8, 1, 131072, 128, False),
    (4, 64, 8, 1, 8192, 128, False),
    (8, 64, 8, 1, 4096, 128, False),
    (8, 64, 8, 1, 32768, 128, False),
    (32, 32, 8, 1, 2048, 128, False),
    (2, 32, 32, 1, 16384, 128, False),
    (1, 64, 8, 16, 16384, 128, True),
    (4, 64, 8, 1, 32768, 64, False),
    (2, 16, 2, 1, 65536, 256, False),
    (1, 8, 8, 128, 16384, 128, True),
    (1, 8, 8, 512, 16384, 128, True),
    (1, 8, 8, 256, 16384, 64, True),
]
BANDWIDTH = 4.8e12
# More than the L2 cache holds.
COLD_BYTES = 256 << 20
# As `Cut::choose` and `Joining::new` in kernels/src/fmha/split.rs.
KEYS_OF_A_PART, MOST_PARTS, ROWS, GROUPS, AT_ONCE = 256, 256, 64, 8, 4


def groups_of(parts):
    groups = 1
    while groups < min(-(-parts // AT_ONCE), GROUPS):
        groups *= 2
    return groups


def paths(folder, shape):
    """The kernel for parts, the one for all keys, and those that join one, two, four or eight groups of parts."""
    _, heads_q, heads_kv, seqlen_q, _, head_dim, causal = shape
    few = heads_q // heads_kv * seqlen_q <= ROWS
    tiles = f"{head_dim}_{'few' if few else 'many'}_{'causal' if causal else 'full'}"
    part, whole = (os.path.join(folder, f"{name}_{tiles}") for name in ("part", "whole"))
    return part, whole, {n: os.path.join(folder, f"join_{head_dim}_{n}") for n in (1, 2, 4, 8)}


def compile_kernels(program, folder, shapes):
    made = set()
    for shape in shapes:
        _, heads_q, heads_kv, seqlen_q, _, head_dim, causal = shape
        part, whole, joins = paths(folder, shape)
        settings = {"dtype": "bf16", "head_dim": head_dim}
        rows = heads_q // heads_kv * seqlen_q
        of_keys = settings | {"causal": str(causal).lower(), "seqlen": rows}
        wanted = [(part, of_keys | {"parts": 2}), (whole, of_keys | {"parts": 1})]
        wanted += [(path, settings | {"join": AT_ONCE * groups}) for groups, path in joins.items()]
        for path, of in wanted:
            if path not in made:
                common.compile_kernel(program, "fmha_fwd", of, path)
                made.add(path)


class Ours:
    """The kernels for a shape."""

    def __init__(self, driver, folder, shape):
        part, whole, joins = paths(folder, shape)
        self.shape = shape
        self.part = common.Kernel(driver, part)
        self.whole = common.Kernel(driver, whole)
        self.joins = {groups: common.Kernel(driver, path) for groups, path in joins.items()}

    def parts(self, multiprocessors):
        """What a launch takes by itself."""
        seqlen_kv = self.shape[4]
        return max(1, min(multiprocessors // self.row_blocks(), -(-seqlen_kv // KEYS_OF_A_PART), MOST_PARTS))

    def row_blocks(self):
        batch, heads_q, heads_kv, seqlen_q, _, _, _ = self.shape
        block_m = (self.part.threads // 128 - 1) * ROWS
        return -(-seqlen_q * (heads_q // heads_kv) // block_m) * heads_kv * batch

    def prepare(self, torch, parts, q, k, v, kv_len, o, lse, scale):
        """All are `[B, H, N, D]` views."""
        batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim, _ = self.shape
        per_kv = heads_q // heads_kv
        heads, rows = batch * heads_kv, seqlen_q * per_kv
        boxes = self.part.boxes
        if parts == 1:
            arguments = [q, (k, boxes[0]), (v, boxes[1]), kv_len, o, lse, per_kv, seqlen_kv, scale]
            return self.whole.prepare(torch, self.row_blocks(), arguments)
        partial_o = torch.empty(parts, heads, rows, head_dim, device="cuda")
        weights = torch.empty(parts, heads, rows, 2, device="cuda")
        arguments = [q, (k, boxes[0]), (v, boxes[1]), kv_len, partial_o, weights, per_kv, seqlen_kv, scale]
        part = self.part.prepare(torch, self.row_blocks() * parts, arguments)
        groups = groups_of(parts)
        grid = -(-heads * rows * groups // GROUPS)
        join = self.joins[groups].prepare(torch, grid, [partial_o, weights, o, lse, per_kv, scale])
        return lambda: (part(), join())


def in_turn(runs):
    """Calls the next of several functions at each call."""
    state = [0]

    def run():
        state[0] += 1
        return runs[state[0] % len(runs)]()

    return run


def exact(torch, shape, q, k, v, head_kv, scale):
    """O and LSE of the query heads of one key head, in f64."""
    _, heads_q, heads_kv, seqlen_q, seqlen_kv, _, causal = shape
    per_kv = heads_q // heads_kv
    mine = slice(head_kv * per_kv, (head_kv + 1) * per_kv)
    scores = q[:, mine].double() @ k[:, head_kv : head_kv + 1].double().transpose(-1, -2) * scale
    if causal:
        hidden = torch.ones(seqlen_q, seqlen_kv, dtype=torch.bool, device="cuda").triu(1 + seqlen_kv - seqlen_q)
        scores = scores.masked_fill(hidden, -math.inf)
    return mine, scores.softmax(-1) @ v[:, head_kv : head_kv + 1].double(), scores.logsumexp(-1)


def check(torch, shape, run, q, k, v, o, lse, scale):
    o.fill_(math.nan), lse.fill_(math.nan)
    run()
    first = o.clone(), lse.clone()
    for head_kv in {0, shape[2] - 1}:
        mine, right, right_lse = exact(torch, shape, q[:1], k[:1], v[:1], head_kv, scale)
        error = (o[:1, mine].double() - right).abs().max().item()
        error_lse = (lse[:1, mine].double() - right_lse).abs().max().item()
        if not (error <= 0.01 * max(1e-2, right.abs().max().item()) and error_lse <= 1e-3):
            raise SystemExit(f"{shape}: off by {error}, LSE by {error_lse}")
    o.fill_(math.nan)
    run()
    if not (torch.equal(o, first[0]) and torch.equal(lse, first[1])):
        raise SystemExit(f"{shape}: a second run differs")


def medians(torch, contestants, rounds, launches):
    """Milliseconds a launch, on the GPU alone."""
    for run in contestants.values():
        run(), run()
    torch.cuda.synchronize()

    def alone(run):
        # So long that calls from Python, too, reach the queue before the first one starts.
        torch.cuda._sleep(8_000_000)
        return common.elapsed(torch, run, launches, True)

    return {name: time for name, (time,) in common.medians(contestants, rounds, alone).items()}


def measure(torch, driver, folder, shape, more_parts, rounds, launches):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    try:
        import fa3_fwd_interface as fa3
    except ImportError:
        fa3 = None
    batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim, causal = shape
    scale = 1 / math.sqrt(head_dim)
    bytes_kv = 4 * batch * heads_kv * seqlen_kv * head_dim
    copies = max(1, min(16, -(-COLD_BYTES // bytes_kv)))
    random_tensor = lambda *sizes: torch.randn(batch, *sizes, head_dim, device="cuda", dtype=torch.bfloat16)
    sets = [
        (random_tensor(seqlen_q, heads_q), random_tensor(seqlen_kv, heads_kv), random_tensor(seqlen_kv, heads_kv))
        for _ in range(copies)
    ]
    o = torch.empty_like(sets[0][0]).transpose(1, 2)
    lse = torch.empty(batch, heads_q, seqlen_q, device="cuda")
    kv_len = torch.full((batch,), seqlen_kv, device="cuda", dtype=torch.int32)
    ours = Ours(driver, folder, shape)
    by_itself = ours.parts(torch.cuda.get_device_properties(0).multi_processor_count)
    views = [tuple(tensor.transpose(1, 2) for tensor in tensors) for tensors in sets]

    def with_parts(parts):
        runs = [ours.prepare(torch, parts, *view, kv_len, o, lse, scale) for view in views]
        check(torch, shape, runs[0], *views[0], o, lse, scale)
        return in_turn(runs)

    contestants = {"lacewing": with_parts(by_itself)}
    for parts in more_parts:
        if parts != by_itself:
            contestants[f"parts_{parts}"] = with_parts(parts)

    if not causal:
        def cudnn(q, k, v):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=heads_q != heads_kv)

        try:
            cudnn(*views[0])
            contestants["cudnn"] = in_turn([lambda view=view: cudnn(*view) for view in views])
        except RuntimeError as error:
            print(f"{shape}: cuDNN: {str(error).splitlines()[0]}", flush=True)
    if fa3:
        contestants["fa3"] = in_turn([
            lambda tensors=tensors: fa3.flash_attn_with_kvcache(*tensors, causal=causal) for tensors in sets
        ])
    times = medians(torch, contestants, rounds, launches)
    moved = bytes_kv + 4 * batch * heads_q * seqlen_q * head_dim
    seen = seqlen_kv - (seqlen_q - 1) / 2 if causal else seqlen_kv
    operations = 4 * batch * heads_q * seqlen_q * seen * head_dim
    row = dict(zip(("batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_kv", "head_dim"), shape), causal=int(causal))
    best = min((time for name, time in times.items() if name in ("cudnn", "fa3")), default=math.nan)
    row |= dict(parts=by_itself, ratio=round(best / times["lacewing"], 4))
    row |= dict(share=round(moved / times["lacewing"] * 1e3 / BANDWIDTH, 4))
    row |= dict(tflops=round(operations / times["lacewing"] / 1e9, 1))
    row |= {f"{name}_us": round(times[name] * 1e3, 2) if name in times else "" for name in ("lacewing", "cudnn", "fa3")}
    more = {name: round(time * 1e3, 2) for name, time in times.items() if name.startswith("parts_")}
    return row, more


def main():
    parser = common.options_of(__doc__, "decode.csv", "numbers of shapes, as 0,3,11", 7)
    parser.add_argument("--parts", default="", help="further numbers of parts, as 4,8,16")
    parser.add_argument("--launches", type=int, default=8)
    options = parser.parse_args()
    shapes = SHAPES if not options.only else [SHAPES[int(number)] for number in options.only.split(",")]
    folder = common.kernels(options, lambda program, to: compile_kernels(program, to, shapes))
    if not folder:
        return
    torch, driver = common.start()
    more_parts = [int(parts) for parts in options.parts.split(",") if parts]
    rows = []
    for shape in shapes:
        row, more = measure(torch, driver, folder, shape, more_parts, options.rounds, options.launches)
        rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in (row | more).items()), flush=True)
        torch.cuda.empty_cache()
    ratios = [row["ratio"] for row in rows if row["ratio"] == row["ratio"]]
    if ratios:
        print(f"geometric mean of the ratios {common.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    common.write_table(options.csv, rows)


if __name__ == "__main__":
    sys.exit(main())
