/*
 * The program of deploy.rs in C: it launches a compiled kernel through the CUDA driver, which it loads at run time.
 *
 *   cc -std=c11 -I dsl-runtime/include examples/deploy.c -ldl -o deploy
 *   ./deploy examples/axpy.lwa          launches axpy on the first GPU
 *   ./deploy examples/axpy.lwa --list   shows what the artifact holds
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "lacewing_artifact.h"

/* Of cuda.h, what is called here. */
typedef int CUresult;
typedef int CUdevice;
typedef void *CUhandle;
typedef unsigned long long CUdeviceptr;

static void *driver;

static void *symbol(const char *name) {
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "error: the CUDA driver has no %s\n", name);
        exit(1);
    }
    return found;
}

#define CALL(name, parameters, ...)                                       \
    do {                                                                  \
        CUresult result = ((CUresult(*) parameters)symbol(#name))(__VA_ARGS__); \
        if (result != 0) {                                                \
            fprintf(stderr, "error: %s: CUDA error %d\n", #name, result); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

static void *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return NULL;
    long length = ftell(file);
    rewind(file);
    void *bytes = length > 0 ? malloc((size_t)length) : NULL;
    if (bytes && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    *size = bytes ? (size_t)length : 0;
    return bytes;
}

static void list(const void *bytes) {
    for (uint32_t i = 0; i < ((const lw_header *)bytes)->kernel_count; i++) {
        const lw_kernel *k = &lw_kernels(bytes)[i];
        printf("%s for %s: block %u x %u x %u, %u bytes shared, PTX %llu, code %llu\n",
               (const char *)lw_at(bytes, k->name), k->target, k->block[0], k->block[1], k->block[2], k->shared_bytes,
               (unsigned long long)k->ptx_bytes, (unsigned long long)k->code_bytes);
        const lw_parameter *parameters = (const lw_parameter *)lw_at(bytes, k->parameters);
        for (uint32_t p = 0; p < k->parameter_count; p++) {
            printf("  %s: kind %u, element %u, rank %u\n", (const char *)lw_at(bytes, parameters[p].name),
                   parameters[p].kind, parameters[p].element, parameters[p].rank);
        }
    }
}

int main(int argc, char **argv) {
    size_t size = 0;
    void *bytes = argc > 1 ? read_file(argv[1], &size) : NULL;
    if (!bytes) {
        fprintf(stderr, "error: name an artifact that can be read\n");
        return 2;
    }
    const char *wrong = lw_check(bytes, size);
    if (wrong) {
        fprintf(stderr, "error: %s: %s\n", argv[1], wrong);
        return 2;
    }
    if (argc > 2 && strcmp(argv[2], "--list") == 0) {
        list(bytes);
        return 0;
    }

    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "error: there is no CUDA driver on this machine: no libcuda.so.1 is found\n");
        return 1;
    }
    CUdevice device;
    CUhandle context, module, function;
    int major, minor;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (CUdevice *, int), &device, 0);
    CALL(cuDeviceGetAttribute, (int *, int, CUdevice), &major, 75, device);
    CALL(cuDeviceGetAttribute, (int *, int, CUdevice), &minor, 76, device);
    CALL(cuDevicePrimaryCtxRetain, (CUhandle *, CUdevice), &context, device);
    CALL(cuCtxSetCurrent, (CUhandle), context);

    /* Machine code for this very GPU, else PTX for sm_80, which the driver compiles for any later one. */
    const char *own = major == 9 ? "sm_90a" : major == 10 && minor == 0 ? "sm_100a" : "sm_80";
    const lw_kernel *k = lw_find(bytes, "axpy", own);
    const void *image = k && (major == 8 || strcmp(own, "sm_80") != 0) && k->code_bytes ? lw_at(bytes, k->code) : NULL;
    if (!image && (k = lw_find(bytes, "axpy", "sm_80")) && k->ptx_bytes) image = lw_at(bytes, k->ptx);
    if (!image || (k->flags & ~(uint64_t)LW_FLAG_WAITS_FOR_PREVIOUS) != 0) {
        fprintf(stderr, "error: the artifact has no axpy that this GPU runs (compute capability %d.%d)\n", major, minor);
        return 1;
    }
    CALL(cuModuleLoadData, (CUhandle *, const void *), &module, image);
    CALL(cuModuleGetFunction, (CUhandle *, CUhandle, const char *), &function, module,
         (const char *)lw_at(bytes, k->name));

    enum { N = 10000 };
    static float numbers[N];
    for (int i = 0; i < N; i++) numbers[i] = (float)i;
    CUdeviceptr x, y;
    CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &x, sizeof numbers);
    CALL(cuMemAlloc_v2, (CUdeviceptr *, size_t), &y, sizeof numbers);
    CALL(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), x, numbers, sizeof numbers);
    CALL(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), y, numbers, sizeof numbers);

    /* a, then address, extent and stride of x and of y. */
    float a = 2.0f;
    int32_t extent = N;
    int64_t stride = 1;
    void *arguments[] = {&a, &x, &extent, &stride, &y, &extent, &stride};
    unsigned grid = (N + k->block[0] - 1) / k->block[0];
    CALL(cuLaunchKernel,
         (CUhandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUhandle, void **, void **),
         function, grid, 1, 1, k->block[0], k->block[1], k->block[2], k->dynamic_shared_bytes, NULL, arguments, NULL);
    CALL(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), numbers, y, sizeof numbers);

    int mistakes = 0;
    for (int i = 0; i < N; i++) mistakes += numbers[i] != 3.0f * (float)i;
    printf("axpy by C: %d elements, %d wrong\n", N, mistakes);
    return mistakes != 0;
}
