/* mag_types.c - element types by code, and the detection of old files where code 3 means i32. */
#include "format/mag/mag.h"

enum { ALIGN = HEFT_MAG_ALIGN };

static const heft_dtype types_1[] = { HEFT_F32, HEFT_F16, HEFT_BOOL, HEFT_I32 };
static const heft_dtype types_100[] = { HEFT_F32, HEFT_F16, HEFT_BOOL, HEFT_U8,  HEFT_I8, HEFT_U16,
                                        HEFT_I16, HEFT_U32, HEFT_I32,  HEFT_U64, HEFT_I64 };
const heft_mag_layout heft_mag_layout_1 = { "1", types_1, 4, 1, 255, 6 };
const heft_mag_layout heft_mag_layout_100 = { "100", types_100, 11, 1, 255, 8 };

uint32_t heft_mag_code(const heft_mag_layout *l, heft_dtype t)
{
    uint32_t code = heft_dtype_code(t, l->types, l->type_count);
    return code < l->type_count ? code : HEFT_MAG_NO_CODE;
}

static const heft_ix_part_row *part_of(const heft_index *x, uint32_t tensor)
{
    return heft_ix_part_row_at(x, heft_ix_row(x, tensor)->first_part);
}

static uint64_t padded_bytes(uint64_t bytes)
{
    return (bytes + (ALIGN - 1)) & ~(uint64_t)(ALIGN - 1);
}

/* Decide from the distance in bytes to the next payload, or to the end of the file: 1 for i32, -1
 * for u8, 0 for undecided.  Magnetron made its files up to `slack` bytes larger than necessary, so
 * only a larger excess after the last payload counts. */
static int type_from_distance(uint64_t elements, uint64_t distance, bool is_last, uint64_t slack)
{
    if (elements > distance / 4)
        return -1;
    uint64_t u8_bytes = padded_bytes(elements), i32_bytes = padded_bytes(4 * elements);
    if (distance == u8_bytes)
        return u8_bytes == i32_bytes ? 0 : -1;
    if (distance == i32_bytes || distance == 4 * elements)
        return 1;
    return is_last && distance > i32_bytes && distance - u8_bytes > slack;
}

typedef struct evidence {
    uint32_t
        undecided[HEFT_MAG_PADDING_SAMPLES]; /* the first u8 tensors that sizes do not decide */
    uint32_t undecided_count;
    bool is_u8, is_i32; /* proved by a size or by another code; is_u8 takes precedence */
} evidence;

static void collect_evidence(evidence *e, const heft_index *x, const uint32_t *order,
                             uint64_t file_bytes)
{
    uint32_t count = heft_ix_tensors(x);
    uint64_t slack = ALIGN + (uint64_t)ALIGN * count + 8 * (uint64_t)x->values.len;
    for (uint32_t i = 0; i < count && !e->is_u8; i++) {
        uint32_t t = order ? order[i] : i, next = order && i + 1 < count ? order[i + 1] : i + 1;
        const heft_ix_part_row *part = part_of(x, t);
        if (part->dtype != HEFT_U8) { /* a type unknown to version 1 proves the later code table */
            e->is_u8 = heft_mag_code(&heft_mag_layout_1, part->dtype) == HEFT_MAG_NO_CODE;
            continue;
        }
        bool is_last = i + 1 == count;
        uint64_t end = is_last ? file_bytes : part_of(x, next)->offset;
        uint64_t distance = end > part->offset ? end - part->offset : 0;
        int type = type_from_distance(part->length, distance, is_last, slack);
        e->is_u8 = type < 0;
        e->is_i32 = e->is_i32 || type > 0;
        if (!type && e->undecided_count < HEFT_MAG_PADDING_SAMPLES)
            e->undecided[e->undecided_count++] = t;
    }
}

bool heft_mag_sizes_imply_i32(const heft_index *x, uint64_t file_bytes)
{
    evidence e = { .undecided_count = 0 };
    collect_evidence(&e, x, NULL, file_bytes);
    return e.is_i32 && !e.is_u8;
}

/* Set *found if a byte that would be padding after u8 data, but data of an i32 tensor, differs from
 * the padding byte of all writers.  Request the missing bytes of all tensors before returning
 * HEFT_AGAIN. */
static heft_status find_non_padding(bool *found, const evidence *e, heft_window *in,
                                    const heft_index *x)
{
    heft_status st = HEFT_OK;
    *found = false;
    for (uint32_t i = 0; i < e->undecided_count; i++) {
        const heft_ix_part_row *part = part_of(x, e->undecided[i]);
        uint64_t n = part->length, padded = padded_bytes(n), end = padded < 4 * n ? padded : 4 * n;
        heft_cur c = heft_cur_whole(in, part->offset + n, end - n, "the padding of a tensor");
        const uint8_t *p = heft_cur_take(&c, end - n);
        if (c.st && c.st != HEFT_AGAIN)
            return c.st;
        st = c.st ? c.st : st;
        for (uint64_t k = 0; p && k < end - n; k++)
            *found = *found || p[k] != HEFT_MAG_PADDING;
    }
    return st;
}

heft_status heft_mag_guess_code_3(heft_mag_code_3 *out, heft_window *in, const heft_index *x,
                                  const uint32_t *order)
{
    evidence e = { .undecided_count = 0 };
    bool has_non_padding = false;
    collect_evidence(&e, x, order, x->file_bytes);
    *out = e.is_u8 ? HEFT_MAG_U8 : e.is_i32 ? HEFT_MAG_I32_BY_SIZE : HEFT_MAG_U8;
    if (e.is_u8 || e.is_i32 || !e.undecided_count)
        return HEFT_OK;
    heft_status st = find_non_padding(&has_non_padding, &e, in, x);
    *out = has_non_padding ? HEFT_MAG_I32_BY_PADDING : HEFT_MAG_U8_UNDECIDED;
    return st;
}

void heft_mag_retype_u8_as_i32(heft_index *x)
{
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        heft_ix_tensor_row *row = heft_ix_row(x, t);
        if (row->dtype != HEFT_U8)
            continue;
        heft_ix_part_row *part = heft_ix_part_row_at(x, row->first_part);
        row->dtype = part->dtype = HEFT_I32;
        part->length *= 4;
        part->stored = part->length;
    }
}
