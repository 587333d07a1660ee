/* json_write.c - writes JSON strings and numbers. */
#include "grammar/json.h"

/* Emit the escape of a character that needs one. */
static void put_escape(heft_out *o, uint8_t c)
{
    static const char letters[' '] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    char letter = c < ' ' ? letters[c] : (char)c;
    char escaped[6] = { '\\', letter ? letter : 'u', '0', '0' };
    heft_hex_text(escaped + 4, &c, 1);
    heft_out_bytes(o, escaped, letter ? 2 : sizeof escaped);
}

void heft_json_put_str(heft_out *o, heft_str s)
{
    uint64_t high = 0;
    heft_out_u8(o, '"');
    for (size_t at = 0; at < s.len;) {
        const char *p = s.ptr + at, *stop = heft_json_find_stop(p, s.ptr + s.len, &high);
        heft_out_bytes(o, p, (size_t)(stop - p));
        at += (size_t)(stop - p);
        if (at == s.len)
            break;
        put_escape(o, (uint8_t)s.ptr[at++]);
    }
    heft_out_u8(o, '"');
}

void heft_json_put_hex(heft_out *o, const uint8_t *bytes, size_t len)
{
    heft_out_u8(o, '"');
    for (size_t i = 0; i < len; i++) {
        char digits[2];
        heft_hex_text(digits, &bytes[i], 1);
        heft_out_bytes(o, digits, sizeof digits);
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
