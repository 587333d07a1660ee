/* fuzz_repair.h - makes mutated models consistent, so that mutations get past the checksums. */
#ifndef HEFT_FUZZ_REPAIR_H
#define HEFT_FUZZ_REPAIR_H
#include "fuzz.h"

/* Store the right checksums in a model that opens despite wrong ones.  The library says for every
 * format which bytes a checksum covers and which value is stored, so that the stored value is found
 * by content.  Return the number of checksums that were changed. */
uint32_t fuzz_repair(uint8_t *data, size_t size);

#endif
