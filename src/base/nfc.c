/* nfc.c - detects text that is not in Unicode normalization form C: the quick check of UAX #15, and
 * pairs of characters that form C composes. */
#include "base/nfc.h"

#include "base/bisect.h"
#include "base/nfc_tables.h"
#include "base/text.h"

static const uint32_t NONE = UINT32_MAX;

/* Decode the character at *p and advance *p past the character.  The text is valid UTF-8, except
 * that the last character may be truncated. */
static uint32_t next_character(const uint8_t **p, const uint8_t *end)
{
    uint32_t lead = *(*p)++, more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t c = lead & (more ? 0x3Fu >> more : 0x7Fu);
    for (; more && *p < end; more--)
        c = c << 6 | (*(*p)++ & 0x3F);
    return c;
}

/* Return the run that contains the character, or NULL. */
static const nfc_run *find_run(const nfc_run *runs, uint32_t count, uint32_t c)
{
    heft_bisect b = { .end = count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, runs[b.mid].first <= c);
    const nfc_run *run = b.first ? &runs[b.first - 1] : NULL;
    return run && c - run->first < run->count ? run : NULL;
}

/* Return true for a leading consonant and a vowel, or a syllable without a trailing consonant and a
 * trailing consonant. */
static bool composes_hangul(uint32_t first, uint32_t second)
{
    enum { LEADS = 19, VOWELS = 21, TRAILS = 27, SYLLABLES = LEADS * VOWELS * (TRAILS + 1) };
    if (first - 0x1100 < LEADS)
        return second - 0x1161 < VOWELS;
    uint32_t syllable = first - 0xAC00;
    return syllable < SYLLABLES && syllable % (TRAILS + 1) == 0 && second - 0x11A8 < TRAILS;
}

/* Return true if form C replaces the two characters by one. */
static bool composes(uint32_t first, uint32_t second)
{
    heft_bisect b = { .end = sizeof marks / sizeof *marks - 1 };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, marks[b.mid].mark < second);
    if (marks[b.first].mark != second)
        return composes_hangul(first, second);
    uint32_t end = marks[b.first + 1].begin;
    b = (heft_bisect){ .first = marks[b.first].begin, .end = end };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, bases[b.mid] < first);
    return b.first < end && bases[b.first] == first;
}

bool heft_str_breaks_nfc(heft_str text)
{
    const uint8_t *p = (const uint8_t *)text.ptr, *end = text.len ? p + text.len : p;
    uint32_t starter = NONE; /* last character of combining class 0 */
    uint32_t previous_class = 0;
    while (p < end) {
        uint32_t c = next_character(&p, end);
        const nfc_run *run = find_run(classes, sizeof classes / sizeof *classes, c);
        uint32_t current_class = run ? run->combining_class : 0;
        if (find_run(never, sizeof never / sizeof *never, c) ||
            (current_class && previous_class > current_class))
            return true;
        /* A mark of the same class between the starter and c blocks the composition. */
        bool is_blocked = previous_class && previous_class >= current_class;
        if (starter != NONE && !is_blocked && composes(starter, c))
            return true;
        previous_class = current_class;
        starter = current_class ? starter : c;
    }
    return false;
}
