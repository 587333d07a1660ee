/* mag_types.c - element types by code, and the code that once meant another type. */
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

static uint64_t slot_bytes(uint64_t bytes)
{
    return (bytes + (ALIGN - 1)) & ~(uint64_t)(ALIGN - 1);
}

/* How the room before the next payload speaks: 1 for i32, -1 for u8, 0 for neither.  Magnetron
 * made its files larger than they had to be, by less than `slack`: the room of the last payload
 * says less. */
static int weigh_room(uint64_t elements, uint64_t room, bool is_last, uint64_t slack)
{
    if (elements > room / 4)
        return -1;
    uint64_t narrow = slot_bytes(elements), wide = slot_bytes(4 * elements);
    if (room == narrow)
        return narrow == wide ? 0 : -1;
    if (room == wide || room == 4 * elements)
        return 1;
    return is_last && room > wide && room - narrow > slack;
}

typedef struct evidence {
    uint32_t tensors[HEFT_MAG_PEEKS]; /* the first u8 tensors whose room says nothing */
    uint32_t count;
    bool is_u8, is_i32; /* a size or another code says so; is_u8 prevails */
} evidence;

static void weigh_sizes(evidence *e, const heft_index *x, const uint32_t *order,
                        uint64_t file_bytes)
{
    uint32_t count = heft_ix_tensors(x);
    uint64_t slack = ALIGN + (uint64_t)ALIGN * count + 8 * (uint64_t)x->values.len;
    for (uint32_t i = 0; i < count && !e->is_u8; i++) {
        uint32_t t = order ? order[i] : i, next = order && i + 1 < count ? order[i + 1] : i + 1;
        const heft_ix_part_row *part = part_of(x, t);
        if (part->dtype != HEFT_U8) { /* some codes are only in the later table */
            e->is_u8 = heft_mag_code(&heft_mag_layout_1, part->dtype) == HEFT_MAG_NO_CODE;
            continue;
        }
        bool is_last = i + 1 == count;
        uint64_t end = is_last ? file_bytes : part_of(x, next)->offset;
        uint64_t room = end > part->offset ? end - part->offset : 0;
        int vote = weigh_room(part->length, room, is_last, slack);
        e->is_u8 = vote < 0;
        e->is_i32 = e->is_i32 || vote > 0;
        if (!vote && e->count < HEFT_MAG_PEEKS)
            e->tensors[e->count++] = t;
    }
}

bool heft_mag_sizes_say_i32(const heft_index *x, uint64_t file_bytes)
{
    evidence e = { .count = 0 };
    weigh_sizes(&e, x, NULL, file_bytes);
    return e.is_i32 && !e.is_u8;
}

/* Whether some byte that pads a tensor if it is u8, but is data if it is i32, is not the 0xFF of every writer.  Asks
 * for all bytes that are missing before it ends with HEFT_AGAIN. */
static heft_status find_other_padding(bool *found, const evidence *e, heft_window *in,
                                      const heft_index *x)
{
    heft_status st = HEFT_OK;
    *found = false;
    for (uint32_t i = 0; i < e->count; i++) {
        const heft_ix_part_row *part = part_of(x, e->tensors[i]);
        uint64_t n = part->length, slot = slot_bytes(n), end = slot < 4 * n ? slot : 4 * n;
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
    evidence e = { .count = 0 };
    bool other_padding = false;
    weigh_sizes(&e, x, order, x->file_bytes);
    *out = e.is_u8 ? HEFT_MAG_U8 : e.is_i32 ? HEFT_MAG_I32_BY_SIZE : HEFT_MAG_U8;
    if (e.is_u8 || e.is_i32 || !e.count)
        return HEFT_OK;
    heft_status st = find_other_padding(&other_padding, &e, in, x);
    *out = other_padding ? HEFT_MAG_I32_BY_PADDING : HEFT_MAG_U8_PERHAPS;
    return st;
}

void heft_mag_u8_to_i32(heft_index *x)
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
