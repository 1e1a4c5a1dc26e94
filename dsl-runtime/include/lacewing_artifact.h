/*
 * Lacewing artifacts, version 1: compiled kernels in one file.
 *
 * The form is described in the book (docs/src/reference/artifacts.md). All numbers are little-endian, and so must the
 * host be. Offsets count from the start of the file. Every text and every image is followed by a zero byte that its length
 * does not count, so that texts are strings of C and PTX can be given to cuModuleLoadData where it lies.
 *
 * This header needs nothing but the C library, and allocates nothing. Keep the bytes of the file at an address that is a
 * multiple of 8.
 */
#ifndef LACEWING_ARTIFACT_H
#define LACEWING_ARTIFACT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LW_ARTIFACT_VERSION 1

typedef struct lw_header {
    char magic[8];         /* "LACEWING" */
    uint32_t version;      /* LW_ARTIFACT_VERSION */
    uint32_t kernel_count; /* records that follow the header */
    uint64_t file_bytes;   /* size of the whole file */
    uint64_t reserved;
    uint8_t digest[32]; /* BLAKE3 of the file without these 32 bytes */
} lw_header;

/* One kernel for one target. */
typedef struct lw_kernel {
    char target[16];               /* "sm_90a", "gfx942", ..; padded with zeros */
    uint32_t name, name_bytes;     /* symbol of the function in its image */
    uint32_t block[3];             /* threads of a block */
    uint32_t cluster[3];           /* blocks of a cluster; zeros for none */
    uint32_t shared_bytes;         /* shared memory of a block */
    uint32_t dynamic_shared_bytes; /* what of it the launch must ask for, and allow first if it is over 48 KiB */
    uint32_t min_blocks, max_regs, waves_per_eu; /* wishes of the source; 0 for none */
    uint32_t parameter_count;
    uint64_t parameters;                    /* offset of as many lw_parameter */
    uint64_t ptx, ptx_bytes;                /* 0, 0 where there is none */
    uint64_t code, code_bytes;              /* cubin, or code object for AMD; 0, 0 where there is none */
    uint64_t settings, settings_bytes;      /* "name=value\n" for each compile-time parameter */
    uint64_t flags;                         /* LW_FLAG_..; a loader refuses those that it does not know */
    uint8_t reserved[24];
} lw_kernel;

/* The kernel calls griddepcontrol.wait: it may be launched with programmatic stream serialization. May be ignored. */
#define LW_FLAG_WAITS_FOR_PREVIOUS 1

enum lw_kind { LW_SCALAR = 0, LW_TENSOR = 1, LW_TENSOR_MUT = 2 };

enum lw_element {
    LW_BOOL = 0,
    LW_I8 = 1,
    LW_I16 = 2,
    LW_I32 = 3,
    LW_I64 = 4,
    LW_U8 = 5,
    LW_U16 = 6,
    LW_U32 = 7,
    LW_U64 = 8,
    LW_F16 = 9,
    LW_BF16 = 10,
    LW_F32 = 11,
    LW_F64 = 12,
    LW_F8E4M3 = 13,
    LW_F8E5M2 = 14
};

/*
 * One parameter of the source, and the parameters of the function that it becomes:
 *   scalar   its bytes; a bool is one byte, 0 or 1
 *   tensor   the address of element 0; then `rank` extents, int32_t each, outermost first; then `rank` strides, int64_t
 *            each, in elements. A tensor that is written may not overlap itself or any other argument.
 */
typedef struct lw_parameter {
    uint32_t name, name_bytes;
    uint8_t kind;    /* enum lw_kind */
    uint8_t element; /* enum lw_element */
    uint8_t rank;
    uint8_t reserved;
    uint32_t alignment; /* bytes that a tensor's address must be a multiple of; 1 for a scalar */
    uint8_t reserved_too[32];
} lw_parameter;

/* What is wrong with an artifact; NULL when nothing is. The digest is not checked: that needs BLAKE3. */
static inline const char *lw_check(const void *bytes, size_t size) {
    const lw_header *header = (const lw_header *)bytes;
    if (size < sizeof(lw_header) || memcmp(header->magic, "LACEWING", 8) != 0) return "it is no Lacewing artifact";
    if (header->version != LW_ARTIFACT_VERSION) return "the artifact is of another version";
    if (header->file_bytes > size) return "the artifact is truncated";
    if (header->file_bytes < size) return "bytes follow the artifact";
    if (header->kernel_count > (size - sizeof(lw_header)) / sizeof(lw_kernel)) return "the artifact is malformed";
    const lw_kernel *kernels = (const lw_kernel *)(header + 1);
    for (uint32_t i = 0; i < header->kernel_count; i++) {
        const lw_kernel *k = &kernels[i];
        /* Each end and the zero behind it lie inside. */
        if (k->target[15] != 0 || k->name >= size || k->name_bytes >= size - k->name || k->ptx >= size ||
            k->ptx_bytes >= size - k->ptx || k->code >= size || k->code_bytes >= size - k->code || k->settings >= size ||
            k->settings_bytes >= size - k->settings || k->parameters > size || k->parameters % 8 != 0 ||
            k->parameter_count > (size - k->parameters) / sizeof(lw_parameter)) {
            return "the artifact is malformed";
        }
        const lw_parameter *parameters = (const lw_parameter *)((const char *)bytes + k->parameters);
        for (uint32_t p = 0; p < k->parameter_count; p++) {
            if (parameters[p].name >= size || parameters[p].name_bytes >= size - parameters[p].name) {
                return "the artifact is malformed";
            }
        }
    }
    return NULL;
}

/* The kernels of an artifact that lw_check found well; kernel_count of the header says how many. */
static inline const lw_kernel *lw_kernels(const void *bytes) {
    return (const lw_kernel *)((const lw_header *)bytes + 1);
}

/* What lies at an offset. */
static inline const void *lw_at(const void *bytes, uint64_t offset) { return (const char *)bytes + offset; }

/* A kernel for a target; NULL when there is none. */
static inline const lw_kernel *lw_find(const void *bytes, const char *name, const char *target) {
    const lw_header *header = (const lw_header *)bytes;
    const lw_kernel *kernels = lw_kernels(bytes);
    for (uint32_t i = 0; i < header->kernel_count; i++) {
        if (strcmp(kernels[i].target, target) == 0 && strcmp((const char *)lw_at(bytes, kernels[i].name), name) == 0) {
            return &kernels[i];
        }
    }
    return NULL;
}

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(lw_header) == 64, "the header has 64 bytes");
_Static_assert(sizeof(lw_kernel) == 160, "a record has 160 bytes");
_Static_assert(sizeof(lw_parameter) == 48, "a parameter has 48 bytes");
#endif

#endif
