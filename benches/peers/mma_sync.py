"""Yardsticks for kernels that multiply by mma.sync: what the instruction reaches, and Triton's product for sm_80.

Both run on any NVIDIA chip from sm_80 on. On Hopper, Triton as it comes would use wgmma: here its code for sm_80 is compiled by the
driver for the chip at hand.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile

import torch

import common

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mma_ceiling.cu")
# Rows, columns and inner elements of a tile, warps, stages: the best of nine tried on an H200 for large and small products.
TILINGS = ((128, 128, 32, 4, 4), (64, 128, 64, 4, 4))
GROUP = 8


def ceiling():
    """TFLOP/s of independent products in registers, in bf16; None where there is no nvcc."""
    if not shutil.which("nvcc"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "mma_ceiling")
        major, minor = torch.cuda.get_device_capability()
        chip = f"-gencode=arch=compute_{major}{minor},code=sm_{major}{minor}"
        subprocess.run(["nvcc", "-O3", chip, "-o", program, SOURCE], check=True, capture_output=True)
        return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def compiled(driver):
    """The kernel for each tiling: a function of the driver, and how to launch it."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    globals()["tl"] = tl

    @triton.jit
    def product(a, b, c, M, N, K, row_a, row_b, row_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
        tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
        group = tl.program_id(0) // (G * tiles_n)
        rows = min(tiles_m - group * G, G)
        inside = tl.program_id(0) % (G * tiles_n)
        m, n = group * G + inside % rows, inside // rows
        at_m, at_n, at_k = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN), tl.arange(0, BK)
        from_a = a + (at_m % M)[:, None] * row_a + at_k[None, :]
        from_b = b + at_k[:, None] * row_b + (at_n % N)[None, :]
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(0, tl.cdiv(K, BK)):
            sums = tl.dot(tl.load(from_a), tl.load(from_b), sums)
            from_a += BK
            from_b += BK * row_b
        to = c + at_m[:, None] * row_c + at_n[None, :]
        tl.store(to, sums.to(tl.bfloat16), mask=(at_m[:, None] < M) & (at_n[None, :] < N))

    kinds = ["*bf16"] * 3 + ["i32"] * 6 + ["constexpr"] * 4
    signature = dict(zip(product.arg_names, kinds))
    kernels = {}
    for m, n, k, warps, stages in TILINGS:
        source = ASTSource(
            product,
            signature,
            constexprs=dict(BM=m, BN=n, BK=k, G=GROUP),
            attrs={(at,): [["tt.divisibility", 16]] for at in range(9)},
        )
        built = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=dict(num_warps=warps, num_stages=stages))
        function = common.load_function(driver, built.asm["ptx"].encode(), "product", built.metadata.shared)
        kernels[f"{m}x{n}x{k}"] = (function, m, n, warps * 32, built.metadata.shared)
    return kernels


KERNELS = {}


def triton_products(a, b, c):
    """C = A B as calls by name, for matrices whose extents are multiples of 16 and whose rows are contiguous; K one of 64."""
    driver = common.load_driver()
    if not KERNELS:
        KERNELS.update(compiled(driver))
    (m, k), n = a.shape, b.shape[1]
    calls = {}
    for name, (function, rows, columns, threads, shared) in KERNELS.items():
        values = [ctypes.c_uint64(tensor.data_ptr()) for tensor in (a, b, c)]
        values += [ctypes.c_int32(value) for value in (m, n, k, k, n, n)] + [ctypes.c_uint64(0)] * 2
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        grid = -(-m // rows) * -(-n // columns)

        def launch(function=function, grid=grid, threads=threads, shared=shared, pointers=pointers, keep=(values, a, b, c)):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            driver("cuLaunchKernel", function, grid, 1, 1, threads, 1, 1, shared, stream, pointers, None)

        calls[f"Triton for sm_80, {name}"] = launch
    return calls
