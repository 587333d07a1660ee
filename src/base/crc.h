/* crc.h - portable CRC-32 (IEEE 802.3, as in zlib) and CRC-32C (Castagnoli); every build has these
 * functions. */
#ifndef HEFT_CRC_H
#define HEFT_CRC_H
#include <stddef.h>
#include <stdint.h>

/* Extend `crc`, 0 at the start, by more bytes.  The result is a final CRC, which may be extended
 * again. */
uint32_t heft_crc32(uint32_t crc, const void *data, size_t len);
uint32_t heft_crc32c(uint32_t crc, const void *data, size_t len);
/* Return the CRC of the concatenation of two byte sequences with the CRCs a and b; b_len is the
 * length of the second sequence in bytes. */
uint32_t heft_crc32_join(uint32_t a, uint32_t b, uint64_t b_len);
uint32_t heft_crc32c_join(uint32_t a, uint32_t b, uint64_t b_len);

#endif
