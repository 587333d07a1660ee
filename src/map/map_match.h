/* map_match.h - which tensors of a file each rule of a map matches. */
#ifndef HEFT_MAP_MATCH_H
#define HEFT_MAP_MATCH_H
#include "map/map_rules.h"

typedef struct heft_map_match {
    uint32_t tensor, rule;
    uint32_t pattern; /* number in its side of the rule, from 0 */
    bool is_again;    /* the tensor has a match of its own, too: it stands for a tied one */
    heft_map_captures captures;
} heft_map_match;

typedef struct heft_map_matches_of {
    const heft_map *m;
    const heft_file *f;
    const heft_map_options *opt;
    const heft_map_numbers *numbers;
    uint32_t side; /* the side of the rules that the input has: 0 left, 1 right */
    heft_memory mem;
    heft_vec all;     /* heft_map_match, by rule, by the captures of both sides, by pattern */
    uint8_t *is_kept; /* by tensor: it keeps its name */
    uint32_t unmatched, first_unmatched;
    heft_error *err;
} heft_map_matches_of;

/* Find the first rule from out->rule on that has the name on a side; set its pattern. */
bool heft_map_find_rule(const heft_map *m, uint32_t side, heft_str name, heft_map_match *out);
/* Find the tensors of all rules; the caller releases *w, after an error too. */
heft_status heft_map_match_all(heft_map_matches_of *w);
void heft_map_match_free(heft_map_matches_of *w);
/* Return the captures that both sides of a rule have, a bit for each. */
uint8_t heft_map_common(const heft_map_rule *r);
/* Return the capture that only the side has, which is stacked or unstacked; HEFT_MAP_CAPTURES:
 * none. */
uint32_t heft_map_own_capture(const heft_map_rule *r, uint32_t side);
/* Return true if both matches give the same tensors. */
bool heft_map_same_group(const heft_map_match *a, const heft_map_match *b, uint8_t common);

#endif
