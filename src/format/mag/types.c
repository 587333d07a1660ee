/* types.c - element types by code, and the code that once meant another type. */
#include "format/mag/mag.h"

enum { ALIGN = HEFT_MAG_ALIGN };

static const heft_dtype types_1[] = { HEFT_F32, HEFT_F16, HEFT_BOOL, HEFT_I32 };
static const heft_dtype types_100[] = { HEFT_F32, HEFT_F16, HEFT_BOOL, HEFT_U8,  HEFT_I8, HEFT_U16,
                                        HEFT_I16, HEFT_U32, HEFT_I32,  HEFT_U64, HEFT_I64 };
const heft_mag_layout heft_mag_layout_1 = { "1", types_1, 4, 1, 255, 6 };
const heft_mag_layout heft_mag_layout_100 = { "100", types_100, 11, 1, 255, 8 };

uint32_t heft_mag_code(const heft_mag_layout *l, heft_dtype t)
{
    for (uint32_t i = 0; i < l->type_count; i++)
        if (l->types[i] == t)
            return i;
    return HEFT_MAG_NO_CODE;
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

bool heft_mag_code_3_is_i32(const heft_index *x, const uint32_t *order, uint64_t file_bytes)
{
    uint32_t count = heft_ix_tensors(x);
    uint64_t slack = ALIGN + (uint64_t)ALIGN * count + 8 * (uint64_t)x->values.len;
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = order ? order[i] : i, next = order && i + 1 < count ? order[i + 1] : i + 1;
        const heft_ix_part_row *part = part_of(x, t);
        if (heft_mag_code(&heft_mag_layout_1, part->dtype) == HEFT_MAG_NO_CODE &&
            part->dtype != HEFT_U8)
            return false; /* a code that only the later table has */
        if (part->dtype != HEFT_U8)
            continue;
        bool is_last = i + 1 == count;
        uint64_t end = is_last ? file_bytes : part_of(x, next)->offset;
        uint64_t room = end > part->offset ? end - part->offset : 0;
        int vote = weigh_room(part->length, room, is_last, slack);
        if (vote < 0)
            return false;
        found = found || vote > 0;
    }
    return found;
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
