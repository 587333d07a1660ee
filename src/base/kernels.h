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

enum { HEFT_KERNEL_BATCH = 32, HEFT_KERNEL_BLOCK = 256 };

/* Cast all n elements or whole blocks of HEFT_KERNEL_BLOCK elements, and return the number of
 * converted elements: 0 if there is no loop for the two types.  stops_at_loss: stop before a block
 * with an element that the cast may lose (heft_cast_loss). */
typedef size_t heft_cast_function(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                                  size_t n, bool stops_at_loss);

/* Decode `count` blocks to f32 in the byte order of the host; `from` is a type for which
 * heft_block_is_known() returns true. */
typedef void heft_decode_function(float *out, heft_dtype from, const uint8_t *blocks, size_t count);

struct heft_products; /* model/products.h */

typedef struct heft_kernels {
    const char *name; /* of the instruction set */
    /* Compute the chaining values of `count` whole chunks of BLAKE3 at p; `number` is the first
     * chunk's. */
    void (*blake3_chunks)(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number);
    /* Replace cv[i] by the parent node of cv[2 * i] and cv[2 * i + 1], for i < count. */
    void (*blake3_parents)(uint32_t (*cv)[8], size_t count);
    heft_cast_function *cast;
    heft_decode_function *decode_blocks;
    const struct heft_float_functions *floats; /* defined in simd/float_loops.h */
    const struct heft_fits *fits;              /* defined in model/encode_fits.h */
    const struct heft_packed_loops *packed;    /* defined in model/packed_loops.h */
    void (*products)(const struct heft_products *p);
} heft_kernels;

/* Return the kernels for the processor; never NULL.  Static. */
const heft_kernels *heft_kernels_now(void);

#endif
