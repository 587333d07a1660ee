/* test_bytes.h - numbers in the byte order of files, on every machine. */
#ifndef TEST_BYTES_H
#define TEST_BYTES_H
#include <stddef.h>
#include <stdint.h>

/* Make `count` numbers of `size` bytes little-endian, from the byte order of the host, or the
 * reverse. */
static inline void heft_test_le(void *numbers, size_t count, size_t size)
{
    uint8_t *p = numbers;
    bool is_little = *(const uint8_t *)&(uint16_t){ 1 };
    for (size_t i = 0; !is_little && i < count; i++, p += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t byte = p[k];
            p[k] = p[size - 1 - k];
            p[size - 1 - k] = byte;
        }
}

/* Store a number little-endian in `size` bytes. */
static inline void heft_test_put(void *to, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)(number >> 8 * i);
}

/* Store numbers little-endian in eight bytes each. */
static inline void heft_test_put_u64(void *to, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        heft_test_put((uint8_t *)to + 8 * i, numbers[i], 8);
}

/* Return a pseudo-random number below `below`; the same sequence in each run. */
uint32_t heft_test_random(uint64_t *state, uint32_t below);

#endif
