/* detect.c - recognises a format by content: the format that matches the most bits wins. */
#include "core/read/file.h"
#include "core/read/foreign.h"

/* Return eight bits for each character of the first magic that the file begins with, or 0. */
static int magic_bits(const char *magics, const uint8_t *head, size_t head_len)
{
    for (size_t len; magics && *magics; magics += len + (magics[len] == ' ')) {
        for (len = 0; magics[len] && magics[len] != ' ';)
            len++;
        if (len <= head_len && !memcmp(head, magics, len))
            return 8 * (int)len;
    }
    return 0;
}

const heft_format *heft_detect(const uint8_t *head, size_t head_len, const uint8_t *tail,
                               size_t tail_len, uint64_t size)
{
    const heft_format *best = NULL;
    int best_bits = 0;
    for (size_t i = 0; i < heft_registry_count(); i++) {
        const heft_format *f = heft_registry_at(i);
        int bits = magic_bits(f->magics, head, head_len);
        if (!bits && f->probe)
            bits = f->probe(head, head_len, tail, tail_len, size);
        if (bits > best_bits) {
            best_bits = bits;
            best = f;
        }
    }
    return best;
}

heft_status heft_detect_foreign(const uint8_t *head, size_t head_len, const uint8_t *tail,
                                size_t tail_len, uint64_t size, heft_error *err)
{
    enum { SHOWN = 8 };
    const char *rule = "heft/unknown-format";
    const heft_foreign_kind *kind = heft_foreign_find(head, head_len, tail, tail_len);
    if (!size)
        heft_error_plain(err, HEFT_E_FORMAT, "the file is empty");
    else if (kind)
        heft_error_plain(err, HEFT_E_FORMAT, "the file is %s; %s", kind->description, kind->advice);
    else
        heft_error_plain(err, HEFT_E_FORMAT,
                         "unknown format: the file begins with %q; 'heft formats' lists the "
                         "supported formats",
                         (heft_str){ (const char *)head, head_len < SHOWN ? head_len : SHOWN });
    return heft_error_rule(err, HEFT_E_FORMAT, rule);
}
