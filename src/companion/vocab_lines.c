/* vocab_lines.c - reads a vocabulary from a text with a token per line, separated by LF or CR
 * LF. */
#include "base/error.h"
#include "base/text.h"
#include "companion/companion_text.h"
#include "model/vocab.h"

/* Take the line at *at and advance; return false at the end of the text. */
static bool take_line(heft_str text, size_t *at, heft_str *line)
{
    if (*at >= text.len)
        return false;
    const char *begin = text.ptr + *at;
    size_t len = 0, left = text.len - *at;
    while (len < left && begin[len] != '\n')
        len++;
    *at += len + 1;
    if (len && begin[len - 1] == '\r')
        len--;
    *line = (heft_str){ begin, len };
    return true;
}

heft_status heft_vocab_parse_lines(heft_vocab **out, heft_str text, const heft_host *host,
                                   heft_error *err)
{
    const heft_allocator *al = heft_companion_allocator(&host, err);
    heft_vocab *v;
    heft_str line;
    *out = NULL;
    if (!al)
        return HEFT_E_ARGUMENT;
    size_t valid = heft_utf8_valid(text.ptr, text.len);
    if (valid < text.len)
        return heft_error_set(err, HEFT_E_FORMAT, valid, "the vocabulary is not UTF-8");
    uint64_t count = 0;
    for (size_t at = 0; take_line(text, &at, &line);)
        count++;
    HEFT_TRY(heft_vocab_begin(&v, al, count, text.len, err));
    if (host->entropy)
        host->entropy(v->key, sizeof v->key);
    for (size_t at = 0; take_line(text, &at, &line);)
        heft_vocab_add(v, line);
    heft_status st = heft_vocab_end(v, true, err);
    if (st)
        heft_vocab_close(v);
    else
        *out = v;
    return st;
}
