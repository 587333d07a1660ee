/* delta_scan.h - blocks of a tensor, and the units of 1, 2, 4 or 8 bytes in them that differ.
 *
 * This folder makes deltas of two models, reads them, and applies them to a base as a source whose
 * bytes are computed when they are read. */
#ifndef HEFT_DELTA_SCAN_H
#define HEFT_DELTA_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEFT_DELTA_BLOCK = 65536 }; /* units of a block, so that a position fits into 16 bits */

typedef struct heft_delta_found { /* room for as many as the block has units */
    uint16_t *gaps; /* the first position, and of each further one the distance to the one before */
    uint8_t *old, *new; /* units */
} heft_delta_found;

/* Compare two blocks; return the number of units that differ. */
uint32_t heft_delta_scan(heft_delta_found *f, const uint8_t *a, const uint8_t *b, uint32_t units,
                         unsigned unit);
/* Write the values whose positions are among the `units` positions from `first` on. */
void heft_delta_put(uint8_t *to, uint64_t first, uint64_t units, const uint16_t *positions,
                    const uint8_t *values, uint32_t n, unsigned unit);
/* Make positions of gaps; return false unless they ascend below `units`.  Both may be the same
 * array. */
bool heft_delta_positions(uint16_t *to, const uint16_t *gaps, uint32_t n, uint32_t units);
void heft_delta_xor(uint8_t *to, const uint8_t *with, size_t len);

#endif
