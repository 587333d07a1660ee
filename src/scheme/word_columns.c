/* word_columns.c - decodes matrices of packed words whose columns are the rows of the result.
 *
 * A strip in memory: rows of words, `strip_stride` bytes apart, which is an odd multiple of a cache
 * line, so that the rows do not fall on each other in the cache; for each row, the zero points and
 * the scales of its groups; the band that is turned. */
#include "scheme/word_columns.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "scheme/code_tables.h"
#include "scheme/packed.h"

enum { WORD = 4, WORD_BITS = 32, LINE = 64, ROWS = 128, STRIP = 1 << 20 };

static uint64_t groups_of(const heft_decoding *d)
{
    return heft_decoding_dim(&d->part[HEFT_ROLE_SCALE], 1);
}

static float *zeros_of_row(const heft_decoder *r, uint64_t in_strip)
{
    uint8_t *floats = r->tile + r->strip_rows * r->strip_stride;
    return (float *)(void *)floats + in_strip * 2 * groups_of(r->d);
}

/* ---- strips ---- */

static bool reserve_strip(heft_decoder *r, uint64_t row_bytes, uint64_t rows)
{
    const heft_allocator *al = r->d->f->host->allocator;
    uint64_t bytes;
    bool fits = heft_mul(&bytes, row_bytes + HEFT_BAND * WORD, rows) && bytes <= SIZE_MAX;
    if (fits && bytes <= r->tile_capacity)
        return true;
    heft_free(al, r->tile, r->tile_capacity, LINE);
    r->tile = fits ? heft_alloc(al, (size_t)bytes, LINE) : NULL;
    r->tile_capacity = r->tile ? (size_t)bytes : 0;
    if (!r->tile)
        r->st = heft_error_no_memory(r->err, "to decode a quantised tensor");
    return r->tile;
}

static void put_word(uint8_t *to, uint32_t word)
{
    to[0] = (uint8_t)word;
    to[1] = (uint8_t)(word >> 8);
    to[2] = (uint8_t)(word >> 16);
    to[3] = (uint8_t)(word >> 24);
}

/* Turn a band: its columns are words `word` and following of the rows. */
static void turn_band(heft_decoder *r, const uint32_t *band, uint64_t word, size_t height)
{
    size_t rows = (size_t)r->strip_rows, lanes = r->d->by_column->lanes, in_lane = rows / lanes;
    uint8_t *to = r->tile + word * WORD;
    for (size_t i = 0; i < in_lane; i++)
        for (size_t k = 0; k < lanes; k++, to += r->strip_stride) {
            const uint32_t *from = band + k * in_lane + i;
            for (size_t h = 0; h < height; h++)
                put_word(to + h * WORD, from[h * rows]);
        }
}

static void read_words(heft_decoder *r, uint64_t words)
{
    uint32_t *band = (uint32_t *)(void *)zeros_of_row(r, r->strip_rows);
    size_t height;
    for (uint64_t word = 0; word < words && !r->st; word += height) {
        height = words - word < HEFT_BAND ? (size_t)(words - word) : HEFT_BAND;
        if (r->d->by_column->read_band(r, word, height, r->strip_first, (size_t)r->strip_rows,
                                       band))
            turn_band(r, band, word, height);
    }
}

static void read_groups(heft_decoder *r, uint64_t groups)
{
    const heft_decoding *d = r->d;
    float zero[ROWS], scale[ROWS];
    size_t rows = (size_t)r->strip_rows;
    for (uint64_t g = 0; g < groups; g++) {
        if (!d->by_column->read_zero_points(r, g, r->strip_first, rows, zero) ||
            !heft_decoder_floats(r, HEFT_ROLE_SCALE, g * d->rows + r->strip_first, rows, scale))
            return;
        for (size_t i = 0; i < rows; i++) {
            float *of_row = zeros_of_row(r, i);
            of_row[g] = zero[i];
            of_row[groups + g] = scale[i];
        }
    }
}

/* An index names the group of each column; usually groups are runs of columns all the same. */
static void check_index(heft_decoder *r, uint64_t groups)
{
    const heft_decoding *d = r->d;
    r->has_plain_groups = true;
    if (!heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_GROUP_INDEX, 0, (size_t)d->columns * WORD);
    for (uint64_t i = 0, plain = 0, into = 0; p && i < d->columns && !r->st; i++, into++) {
        plain += into == d->group;
        into = into == d->group ? 0 : into;
        uint32_t group = heft_word_at(p + i * WORD);
        r->has_plain_groups = r->has_plain_groups && group == plain;
        if (group >= groups)
            r->st = heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX,
                                         "names a group that does not exist", r->err);
    }
}

/* Turn the rows from `row` on, as many as a strip has; strips of one tensor meet at multiples. */
static void fill_strip(heft_decoder *r, uint64_t row)
{
    enum { TOGETHER = 8 };
    const heft_decoding *d = r->d;
    uint64_t words = heft_div_up(d->columns * d->bits, WORD_BITS);
    uint64_t groups = groups_of(d), stride = ((words * WORD + LINE - 1) / LINE | 1) * LINE;
    uint64_t row_bytes = stride + 2 * groups * sizeof(float);
    uint64_t rows = heft_div(STRIP, row_bytes) / TOGETHER * TOGETHER;
    rows = rows < TOGETHER ? TOGETHER : rows < ROWS ? rows : ROWS;
    r->strip_rows = 0;
    if (!reserve_strip(r, row_bytes, rows))
        return;
    r->strip_first = row / TOGETHER * TOGETHER;
    rows -= r->strip_first - heft_div(r->strip_first, rows) * rows;
    r->strip_rows = rows < d->rows - r->strip_first ? rows : d->rows - r->strip_first;
    r->strip_stride = (size_t)stride;
    check_index(r, groups);
    if (!r->st)
        read_words(r, words);
    if (!r->st)
        read_groups(r, groups);
    r->strip_rows = r->st ? 0 : r->strip_rows;
}

/* ---- rows ---- */

bool heft_find_word_row(heft_decoder *r, uint64_t row, heft_word_row *out)
{
    if (row < r->strip_first || row - r->strip_first >= r->strip_rows)
        fill_strip(r, row);
    if (r->st)
        return false;
    uint64_t in_strip = row - r->strip_first;
    *out = (heft_word_row){ r->tile + in_strip * r->strip_stride, zeros_of_row(r, in_strip), NULL };
    out->scale = out->zero + groups_of(r->d);
    return true;
}

/* Each column names its group. */
static void scale_by_index(heft_decoder *r, const heft_word_row *s, uint64_t column, size_t count,
                           float *out)
{
    const uint8_t *index = heft_decoder_bytes(r, HEFT_ROLE_GROUP_INDEX, column * WORD,
                                              count * WORD);
    for (size_t i = 0; index && i < count; i++) {
        uint32_t g = heft_word_at(index + i * WORD);
        out[i] = (out[i] - s->zero[g]) * s->scale[g];
    }
}

heft_status heft_decode_word_columns(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                                     float *out)
{
    const heft_decoding *d = r->d;
    uint64_t bit = column * d->bits, group = heft_div(column, d->group);
    heft_word_row s;
    if (!heft_find_word_row(r, row, &s))
        return r->st;
    heft_bits_unpack(out, s.words + bit / 8, bit % 8, d->bits, count);
    if (!r->has_plain_groups) {
        scale_by_index(r, &s, column, count, out);
        return r->st;
    }
    for (size_t i = 0, end; i < count; i = end, group++) {
        uint64_t left = (group + 1) * d->group - column;
        end = left < count ? (size_t)left : count;
        heft_packed_now()->group(out + i, s.zero[group], s.scale[group], end - i);
    }
    return HEFT_OK;
}

bool heft_look_up_word_columns(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                               heft_dtype as, uint8_t *out)
{
    const heft_decoding *d = r->d;
    uint64_t group = heft_div(column, d->group);
    heft_coded_run run = heft_coded_run_of(column, d->group, count);
    heft_word_row s;
    if (d->bits != 4 || !heft_coded_run_fits(&run) || !heft_find_word_row(r, row, &s) ||
        !r->has_plain_groups)
        return false;
    run.codes = s.words + column / 2;
    heft_look_up_scaled(&run, s.zero + group, s.scale + group, as, out);
    return true;
}
