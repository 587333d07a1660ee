/* name_pattern.h - the regular expressions by which settings name modules, as Python's re.match()
 * understands them: from the beginning of the name on, not necessarily to its end.
 *
 * Known are characters, `.`, escapes (\d \w \s \D \W \S and punctuation), classes, groups without
 * names, `|`, `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, their lazy forms, `^`, `$`, `\A` and `\Z`.
 * Assertions, references and flags are not. */
#ifndef HEFT_NAME_PATTERN_H
#define HEFT_NAME_PATTERN_H
#include "base/arena.h"

enum { HEFT_PATTERN_STEPS = 384, HEFT_PATTERN_SETS = 48 };

typedef struct heft_pattern_step {
    uint8_t kind, value; /* see name_pattern.c */
    int16_t next, other; /* relative to this step */
} heft_pattern_step;

typedef struct heft_name_pattern {
    heft_pattern_step step[HEFT_PATTERN_STEPS];
    uint32_t count, set_count;
    uint32_t set[HEFT_PATTERN_SETS][8]; /* a bit for each byte */
} heft_name_pattern;

/* Compile the expression; return false if it is wrong, too long, or not understood. */
bool heft_pattern_compile(heft_name_pattern *out, heft_str text);
/* Match the beginning of a name.  `work` is what may be spent, in steps, and is reduced; once it is
 * spent the result is false. */
bool heft_pattern_matches(const heft_name_pattern *p, heft_str name, uint64_t *work);

#endif
