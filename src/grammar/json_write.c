/* json_write.c - writes JSON strings and numbers. */
#include "grammar/json.h"
#include "grammar/json_scan.h"

void heft_json_put_str(heft_out *o, heft_str s)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t high = 0;
    heft_out_u8(o, '"');
    for (size_t at = 0; at < s.len;) {
        const char *p = s.ptr + at, *stop = heft_json_find_stop(p, s.ptr + s.len, &high);
        heft_out_bytes(o, p, (size_t)(stop - p));
        at += (size_t)(stop - p);
        if (at == s.len)
            break;
        uint8_t c = (uint8_t)s.ptr[at++];
        char control[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
        char quoted[2] = { '\\', (char)c };
        heft_out_bytes(o, c < ' ' ? control : quoted, c < ' ' ? sizeof control : sizeof quoted);
    }
    heft_out_u8(o, '"');
}

void heft_json_put_u64(heft_out *o, uint64_t v)
{
    heft_out_decimal(o, v, 1);
}

void heft_json_put_i64(heft_out *o, int64_t v)
{
    if (v < 0)
        heft_out_u8(o, '-');
    heft_json_put_u64(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
