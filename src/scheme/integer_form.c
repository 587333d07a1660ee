/* integer_form.c - what the schemes ask that take their numbers apart into integers and scales. */
#include "base/checked_math.h"
#include "scheme/encoding.h"

uint64_t heft_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a - heft_div(a, b) * b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t heft_integer_run(const heft_decoding *d)
{
    const heft_scale_grid *g = &d->grid;
    if (g->across > 1)
        return heft_common_divisor(g->width, d->columns);
    if (g->down == 1)
        return d->stack == 1 || !g->matrix ? 0 : d->rows * d->columns;
    return d->columns * heft_common_divisor(g->height, d->rows);
}

/* Compare the codes in n bytes of a line that has `left` codes from there on. */
static bool are_codes(const uint8_t *p, size_t n, uint64_t left, uint32_t bits, uint32_t code)
{
    const uint32_t mask = (1U << bits) - 1, in_byte = 8 / bits;
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < in_byte && left; k++, left--)
            ok = ok && ((uint32_t)p[i] >> k * bits & mask) == code;
    return ok;
}

bool heft_integer_zeros_are(const heft_decoding *d, heft_code_lines of, uint32_t code)
{
    enum { PIECE = 1024 };
    const heft_decoding_part *z = &d->part[HEFT_ROLE_ZERO_POINT];
    const uint64_t in_byte = 8 / of.bits;
    uint8_t piece[PIECE];
    heft_error err;
    for (uint64_t line = 0; line < of.lines; line++)
        for (uint64_t at = 0, n; at * in_byte < of.count; at += n) {
            n = of.stride - at < PIECE ? of.stride - at : PIECE;
            if (!n ||
                heft_part_read(piece, d->f, z->part, line * of.stride + at, (size_t)n, &err) ||
                !are_codes(piece, (size_t)n, of.count - at * in_byte, of.bits, code))
                return false;
        }
    return true;
}
