/* share_crcs.c - numbers and CRCs in the records of shares. */
#include "share/share_crcs.h"

void heft_share_put_number(heft_out *o, bool *any, uint64_t v)
{
    heft_out_u8(o, *any ? ',' : '[');
    *any = true;
    heft_json_put_u64(o, v);
}

void heft_share_end_array(heft_out *o, bool any)
{
    heft_out_str(o, heft_lit(any ? "]" : "[]"));
}

void heft_share_crcs_put(heft_out *o, const heft_partial_crcs *s, uint32_t kinds)
{
    bool any = false;
    const heft_crc_segment *all = s->segments.ptr;
    for (uint32_t i = 0; i < s->segments.len; i++) {
        heft_share_put_number(o, &any, all[i].offset);
        heft_share_put_number(o, &any, all[i].len);
        for (uint32_t k = 0; k < kinds; k++)
            heft_share_put_number(o, &any, all[i].state[k]);
    }
    heft_share_end_array(o, any);
}

bool heft_share_next_number(heft_json *j, uint64_t *out)
{
    heft_json_kind kind = heft_json_next(j);
    if (kind == HEFT_JSON_NUMBER && heft_json_u64(out, j->text))
        return true;
    if (kind != HEFT_JSON_ARRAY_END)
        heft_json_fail(j, "a whole number is missing in the record of a share");
    return false;
}

bool heft_share_next_numbers(heft_json *j, uint64_t *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!heft_share_next_number(j, &out[i])) {
            heft_json_fail(j, "a list in the record of a share ends early");
            return false;
        }
    return true;
}

heft_status heft_share_damaged(heft_json *j)
{
    return heft_json_fail(j, "a number in the record of a share is out of range");
}

heft_status heft_share_crcs_read(heft_json *j, heft_partial_crcs *to, uint32_t kinds)
{
    uint64_t v[2 + HEFT_PARTIAL_CRC_KINDS], end;
    while (heft_share_next_number(j, v)) {
        heft_crc_segment segment = { .offset = v[0] };
        bool ok = heft_share_next_numbers(j, v + 1, 1 + kinds) && v[1] &&
                  heft_add(&end, v[0], v[1]);
        for (uint32_t i = 0; i < kinds && ok; i++) {
            ok = v[2 + i] <= UINT32_MAX;
            segment.state[i] = (uint32_t)v[2 + i];
        }
        segment.len = ok ? v[1] : 0;
        HEFT_TRY(ok ? heft_partial_crcs_put(to, &segment, j->err) : heft_share_damaged(j));
    }
    return j->st;
}
