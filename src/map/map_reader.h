/* map_reader.h - what the files that read the text of a map share. */
#ifndef HEFT_MAP_READER_H
#define HEFT_MAP_READER_H
#include "map/map_rules.h"

typedef struct heft_map_words { /* words of both sides: "q_proj:attn_q o_proj:attn_output" */
    heft_str name, pairs;
} heft_map_words;

enum { HEFT_MAP_DEPTH = 4 };

typedef struct heft_map_reader {
    heft_map *m;
    heft_str text[HEFT_MAP_DEPTH + 1]; /* left to read: of the map, of one that it uses, ... */
    uint32_t line_of[HEFT_MAP_DEPTH + 1];
    uint32_t line;        /* number of the line that is being read */
    uint8_t depth;        /* depth of maps that are used */
    bool is_forward_only; /* the rule that is being read */
    heft_vec words;       /* heft_map_words */
    /* The captures of the rule that is being read. */
    heft_str captures[HEFT_MAP_CAPTURES];
    uint32_t capture_count;
    heft_error *err;
} heft_map_reader;

/* Set HEFT_E_FORMAT "line N of the map: WHAT 'where'", and return it. */
heft_status heft_map_fail(const heft_map_reader *r, const char *what, heft_str where);
heft_status heft_map_too_many(const heft_map_reader *r);
heft_status heft_map_no_memory(heft_error *err);
/* Return s without spaces at its ends. */
heft_str heft_map_trim(heft_str s);
/* Set *first, trimmed, to what precedes `at` in *rest, and *rest to what follows; without `at`, to
 * all of it, and return false. */
bool heft_map_cut(heft_str *rest, heft_str *first, const char *at);
/* Take the next word of *rest; empty: there is none. */
heft_str heft_map_word(heft_str *rest);
/* Return the text of the shipped map of that name; ptr NULL: there is none. */
heft_str heft_map_find_text(heft_str name);
/* Append a pattern; *slots are its captures, which are new unless the rule has them. */
heft_status heft_map_add_pattern(heft_map_reader *r, heft_str text, uint32_t *pattern,
                                 uint8_t *slots);
/* Append the rules of a line, one for each choice of words. */
heft_status heft_map_add_rules(heft_map_reader *r, heft_str left, heft_str rest);

#endif
