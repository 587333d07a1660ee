/* byte_survey.c - counts line ends, replacement characters and zeros in a single pass. */
#include "core/check/diagnosis.h"

#include "base/error.h"
#include "core/read/file.h"

enum { CHUNK = 1 << 20 };

typedef struct survey {
    heft_byte_survey *out;
    uint32_t last;         /* the last three bytes, the latest in the lowest byte */
    uint32_t continuation; /* bytes that the UTF-8 sequence still needs */
} survey;

static void follow_utf8(survey *s, uint8_t c)
{
    if (s->continuation) {
        s->out->is_utf8 = s->out->is_utf8 && (c & 0xc0) == 0x80;
        s->continuation--;
    } else if (c >= 0x80) {
        s->out->is_utf8 = s->out->is_utf8 && c >= 0xc2 && c <= 0xf4;
        s->continuation = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    }
}

static void count_byte(survey *s, uint8_t c, uint64_t at)
{
    enum { REPLACEMENT = 0xefbfbd };
    heft_byte_survey *o = s->out;
    if (o->is_utf8)
        follow_utf8(s, c);
    if (c == '\n' && (s->last & 0xff) == '\r') {
        o->first_crlf = o->crlf++ ? o->first_crlf : at - 1;
    } else if (c == '\n') {
        o->lone_lf++;
    }
    s->last = (s->last << 8 | c) & 0xffffff;
    o->nul += !c;
    if (s->last == REPLACEMENT)
        o->first_replacement = o->replacements++ ? o->first_replacement : at - 2;
}

heft_status heft_byte_survey_run(heft_byte_survey *out, heft_source *s, const heft_allocator *al,
                                 heft_progress *progress, heft_error *err)
{
    survey v = { .out = out };
    heft_status st = HEFT_OK;
    uint8_t *buf = heft_alloc(al, CHUNK, 64);
    *out = (heft_byte_survey){ .is_utf8 = true, .first_crlf = HEFT_NOWHERE };
    if (!buf)
        return heft_error_no_memory(err, "to examine the bytes");
    for (uint64_t at = 0; at < s->size && !st && !heft_progress_halted(progress); at += CHUNK) {
        size_t n = s->size - at < CHUNK ? (size_t)(s->size - at) : CHUNK;
        st = s->ops->read(s, at, buf, n, err);
        for (size_t i = 0; i < n && !st; i++)
            count_byte(&v, buf[i], at + i);
        heft_progress_add(progress, n);
    }
    heft_free(al, buf, CHUNK, 64);
    return st ? st : heft_progress_end(progress, err);
}

/* Random bytes contain a lone LF every 256 bytes, so LF after CR eight times in a row is no
 * accident. */
bool heft_byte_survey_has_crlf(const heft_byte_survey *b)
{
    enum { ENOUGH = 8 };
    return b->nul && b->crlf >= ENOUGH && !b->lone_lf;
}

/* Binary numbers are hardly ever valid UTF-8 in a whole file. */
bool heft_byte_survey_has_replacements(const heft_byte_survey *b)
{
    return b->nul && b->is_utf8 && b->replacements;
}

heft_status heft_find_zero_tail(uint64_t *from, heft_source *s, const heft_allocator *al,
                                heft_error *err)
{
    heft_status st = HEFT_OK;
    uint8_t *buf = heft_alloc(al, CHUNK, 64);
    *from = s->size;
    if (!buf)
        return heft_error_no_memory(err, "to examine the bytes");
    while (*from && !st) {
        size_t n = *from < CHUNK ? (size_t)*from : CHUNK;
        st = s->ops->read(s, *from - n, buf, n, err);
        while (!st && n && !buf[n - 1]) {
            n--;
            --*from;
        }
        if (n)
            break;
    }
    heft_free(al, buf, CHUNK, 64);
    return st;
}
