// What mma.sync reaches when nothing else is done: independent products of random bf16 numbers in registers.
//
//     nvcc -O3 -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a -o mma_ceiling mma_ceiling.cu && ./mma_ceiling
//
// Prints TFLOP/s: the median of many launches, once the chip is warm, for the number of blocks at which it is highest.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <vector>

constexpr int ROUNDS = 4000, THREADS = 128, M = 4, N = 8, STEPS = 2;

__device__ void product(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers from -1 to 1: power, and with it the clock, depends on what is multiplied.
__device__ uint32_t pair(uint32_t& state) {
    uint32_t both = 0;
    for (int half = 0; half < 2; half++) {
        state = state * 1664525u + 1013904223u;
        float number = static_cast<int32_t>(state >> 8) / 8388608.0f - 1.0f;
        both |= static_cast<uint32_t>(__bfloat16_as_ushort(__float2bfloat16(number))) << (16 * half);
    }
    return both;
}

__global__ void __launch_bounds__(THREADS) products(float* out) {
    uint32_t state = threadIdx.x * 7919u + blockIdx.x * 104729u + 1u;
    uint32_t a[STEPS][M][4], b[STEPS][N][2];
    float sums[M][N][4] = {};
    for (auto& step : a) for (auto& atom : step) for (auto& value : atom) value = pair(state);
    for (auto& step : b) for (auto& atom : step) for (auto& value : atom) value = pair(state);
    for (int round = 0; round < ROUNDS; round++) {
#pragma unroll
        for (int k = 0; k < STEPS; k++)
#pragma unroll
            for (int m = 0; m < M; m++)
#pragma unroll
                for (int n = 0; n < N; n++) product(sums[m][n], a[k][m], b[k][n]);
    }
    float total = 0;
    for (auto& row : sums) for (auto& atom : row) for (float value : atom) total += value;
    out[blockIdx.x * THREADS + threadIdx.x] = total;
}

int main() {
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    double highest = 0;
    for (int blocks : {1, 2}) {
        float* out = nullptr;
        cudaMalloc(&out, sizeof(float) * processors * blocks * THREADS);
        cudaEvent_t start, end;
        cudaEventCreate(&start), cudaEventCreate(&end);
        std::vector<float> milliseconds;
        for (int run = 0; run < 60; run++) {
            float took = 0;
            cudaEventRecord(start);
            products<<<processors * blocks, THREADS>>>(out);
            cudaEventRecord(end), cudaEventSynchronize(end), cudaEventElapsedTime(&took, start, end);
            if (run >= 20) milliseconds.push_back(took);
        }
        if (cudaError_t error = cudaGetLastError()) return std::fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
        std::sort(milliseconds.begin(), milliseconds.end());
        double products_done = 1.0 * processors * blocks * (THREADS / 32) * ROUNDS * STEPS * M * N;
        highest = std::max(highest, products_done * 2 * 16 * 8 * 16 / milliseconds[milliseconds.size() / 2] / 1e9);
        cudaFree(out);
    }
    std::printf("%.1f\n", highest);
}
