/* nfc.c - Unicode's normalization form C: what the quick check of UAX #15 proves, and pairs that are joined. */
#include "base/nfc.h"

#include "base/bisect.h"
#include "base/nfc_tables.h"
#include "base/text.h"

enum { NONE = UINT32_MAX };

/* The character at *p, which moves behind it; the text is known to be UTF-8, but may be cut. */
static uint32_t next_character(const uint8_t **p, const uint8_t *end)
{
    uint32_t lead = *(*p)++, more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t c = lead & (more ? 0x3Fu >> more : 0x7Fu);
    for (; more && *p < end; more--)
        c = c << 6 | (*(*p)++ & 0x3F);
    return c;
}

/* The run that holds the character, or NULL. */
static const nfc_run *find_run(const nfc_run *runs, uint32_t count, uint32_t c)
{
    heft_bisect b = { .end = count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, runs[b.mid].first <= c);
    const nfc_run *run = b.first ? &runs[b.first - 1] : NULL;
    return run && c - run->first < run->count ? run : NULL;
}

/* Hangul: a leading consonant and a vowel, or a syllable of these and a trailing consonant. */
static bool joins_hangul(uint32_t first, uint32_t second)
{
    enum { LEADS = 19, VOWELS = 21, TRAILS = 27, SYLLABLES = LEADS * VOWELS * (TRAILS + 1) };
    if (first - 0x1100 < LEADS)
        return second - 0x1161 < VOWELS;
    uint32_t syllable = first - 0xAC00;
    return syllable < SYLLABLES && syllable % (TRAILS + 1) == 0 && second - 0x11A8 < TRAILS;
}

static bool joins(uint32_t first, uint32_t second)
{
    heft_bisect b = { .end = sizeof marks / sizeof *marks - 1 };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, marks[b.mid].mark < second);
    if (marks[b.first].mark != second)
        return joins_hangul(first, second);
    uint32_t end = marks[b.first + 1].begin;
    b = (heft_bisect){ .first = marks[b.first].begin, .end = end };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, bases[b.mid] < first);
    return b.first < end && bases[b.first] == first;
}

bool heft_str_breaks_nfc(heft_str text)
{
    const uint8_t *p = (const uint8_t *)text.ptr, *end = text.len ? p + text.len : p;
    uint32_t starter = NONE, before = 0; /* the last one of class 0; the class of what came last */
    while (p < end) {
        uint32_t c = next_character(&p, end);
        const nfc_run *run = find_run(classes, sizeof classes / sizeof *classes, c);
        uint32_t own = run ? run->combining_class : 0;
        if (find_run(never, sizeof never / sizeof *never, c) || (own && before > own))
            return true;
        /* A mark of the same class in between keeps the two apart. */
        if (starter != NONE && (!before || before < own) && joins(starter, c))
            return true;
        before = own;
        starter = own ? starter : c;
    }
    return false;
}
