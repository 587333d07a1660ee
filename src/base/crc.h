/* crc.h - CRC-32 (IEEE 802.3, as in zlib) and CRC-32C (Castagnoli): the floor for every build. */
#ifndef HEFT_CRC_H
#define HEFT_CRC_H
#include <stddef.h>
#include <stdint.h>

/* Start with 0; what comes back is final and can be passed in again for the bytes that follow. */
uint32_t heft_crc32(uint32_t crc, const void *data, size_t len);
uint32_t heft_crc32c(uint32_t crc, const void *data, size_t len);
/* CRC of a followed by b, from the CRC of each and the length of b. */
uint32_t heft_crc32_join(uint32_t a, uint32_t b, uint64_t b_len);
uint32_t heft_crc32c_join(uint32_t a, uint32_t b, uint64_t b_len);

#endif
