/* kernels.h - loops that have a faster form on some processors.
 *
 * The portable form in src/base or src/model is the specification: a kernel computes the same
 * bytes.  A member is NULL where only the portable form exists.  src/simd has the kernels and
 * chooses between instruction sets; a build without an operating system has none
 * (src/port_none). */
#ifndef HEFT_KERNELS_H
#define HEFT_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <heft/heft.h>

enum { HEFT_KERNEL_BATCH = 32 };

/* A cast of n elements, a multiple of HEFT_KERNEL_BATCH.  `convert` returns the number of converted
 * elements: `convert` stops before a batch with a NaN, or with an element that the cast would lose
 * (heft_cast_loss). */
typedef struct heft_cast_kernel {
    heft_dtype to, from;
    size_t (*convert)(uint8_t *dst, const uint8_t *src, size_t n);
} heft_cast_kernel;

typedef struct heft_kernels {
    const char *name; /* of the instruction set */
    /* Compute the chaining values of `count` whole chunks of BLAKE3 at p; `number` is the first
     * chunk's. */
    void (*blake3_chunks)(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number);
    /* Replace cv[i] by the parent node of cv[2 * i] and cv[2 * i + 1], for i < count. */
    void (*blake3_parents)(uint32_t (*cv)[8], size_t count);
    const heft_cast_kernel *casts; /* the last has no function */
} heft_kernels;

/* Return the kernels for the processor; never NULL.  Static. */
const heft_kernels *heft_kernels_now(void);

#endif
