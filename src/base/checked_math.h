/* checked_math.h - arithmetic on numbers from files; bool functions return false on overflow.
 *
 * heft_mul() multiplies 32-bit halves: __builtin_mul_overflow calls helpers (__multi3, __mulodi4)
 * that a freestanding build does not have, and clang compiles the division idiom to
 * __builtin_mul_overflow.
 */
#ifndef HEFT_CHECKED_MATH_H
#define HEFT_CHECKED_MATH_H
#include <stdbool.h>
#include <stdint.h>

#include <heft/heft.h>

static inline bool heft_mul(uint64_t *out, uint64_t a, uint64_t b)
{
    *out = a * b;
    if (!((a | b) >> 32))
        return true;
    uint64_t ah = a >> 32, bh = b >> 32, al = a & UINT32_MAX, bl = b & UINT32_MAX;
    /* The sum wraps only if ah and bh are both nonzero. */
    uint64_t cross = ah * bl + bh * al, low = al * bl;
    return !(ah && bh) && !(cross >> 32) && *out >= low;
}

static inline bool heft_add(uint64_t *out, uint64_t a, uint64_t b)
{
    *out = a + b;
    return *out >= a;
}

/* Return a / b without the helper __udivdi3, which 32-bit targets call; b must not be 0. */
static inline uint64_t heft_div(uint64_t a, uint64_t b)
{
    if (!((a | b) >> 32))
        return (uint32_t)a / (uint32_t)b;
    uint64_t quotient = 0, rest = 0;
    for (unsigned bit = 64; bit--;) {
        bool over = rest >> 63;
        rest = rest << 1 | (a >> bit & 1);
        if (over || rest >= b) {
            rest -= b;
            quotient |= UINT64_C(1) << bit;
        }
    }
    return quotient;
}

/* Return a / b, rounded up; b must not be 0. */
static inline uint64_t heft_div_up(uint64_t a, uint64_t b)
{
    return a ? heft_div(a - 1, b) + 1 : 0;
}

/* Round a up to a multiple of align, a power of two. */
static inline bool heft_align_up(uint64_t *out, uint64_t a, uint64_t align)
{
    bool fits = heft_add(out, a, align - 1);
    *out &= ~(align - 1);
    return fits;
}

/* Return true if the range lies within the first `size` bytes. */
static inline bool heft_range_in(heft_range r, uint64_t size)
{
    return r.offset <= size && r.length <= size - r.offset;
}

/* Compute the number of elements of a shape: 0 if any dimension is 0, however large the rest. */
static inline bool heft_product(uint64_t *out, const uint64_t *dims, uint32_t rank)
{
    bool fits = true;
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (!dims[i]) {
            *out = 0;
            return true;
        }
        fits = heft_mul(&n, n, dims[i]) && fits;
    }
    *out = n;
    return fits;
}

#endif
