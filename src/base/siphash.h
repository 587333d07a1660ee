/* siphash.h - SipHash-1-3, a keyed hash. */
#ifndef HEFT_SIPHASH_H
#define HEFT_SIPHASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t heft_siphash13(const uint64_t key[2], const void *data, size_t len);

#endif
