/* byte_survey.h - looks at all bytes of a file for traces of transfers as text and of unfinished
 * downloads. */
#ifndef HEFT_BYTE_SURVEY_H
#define HEFT_BYTE_SURVEY_H
#include "core/read/progress.h"

typedef struct heft_byte_survey {
    uint64_t crlf, lone_lf;     /* line feeds after a carriage return, and all the rest */
    uint64_t nul;               /* zero bytes */
    uint64_t replacements;      /* U+FFFD in UTF-8: EF BF BD */
    uint64_t first_crlf;        /* offsets, or HEFT_NOWHERE */
    uint64_t first_replacement; /* valid if replacements */
    bool is_utf8;               /* no byte contradicts UTF-8 */
} heft_byte_survey;

heft_status heft_byte_survey_run(heft_byte_survey *out, heft_source *s, const heft_allocator *al,
                                 heft_progress *progress, heft_error *err);
/* Return true if binary content has CR LF in place of every LF. */
bool heft_byte_survey_has_crlf(const heft_byte_survey *b);
/* Return true if a decoder has replaced binary content with U+FFFD. */
bool heft_byte_survey_has_replacements(const heft_byte_survey *b);

/* Set *from to the offset of the zeros at the end of the source, or to the size if the last byte is
 * not zero. */
heft_status heft_find_zero_tail(uint64_t *from, heft_source *s, const heft_allocator *al,
                                heft_error *err);

#endif
