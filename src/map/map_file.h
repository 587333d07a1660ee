/* map_file.h - a map while it is applied to a file. */
#ifndef HEFT_MAP_FILE_H
#define HEFT_MAP_FILE_H
#include "map/map_match.h"

typedef struct heft_map_row { /* describes the result with the same number */
    heft_str name;
    uint64_t dims[HEFT_MAP_RANK];
    uint32_t rank, rule;
    uint32_t place;   /* the first input, in whose place it is; HEFT_NONE: at the end */
    bool is_left_out; /* tied to another result */
} heft_map_row;

typedef struct heft_map_new_name { /* for a tensor that is not rearranged */
    heft_str name;
    uint32_t rule; /* HEFT_NONE: it keeps its name */
} heft_map_new_name;

typedef struct heft_map_run {
    const heft_map *m;
    const heft_file *f;
    heft_map_options opt;
    heft_map_numbers numbers;
    heft_map_matches_of matches;
    heft_map_work work;
    heft_map_gather gather;
    heft_vec rows;                  /* heft_map_row */
    const heft_map_result *results; /* numbered as the rows; in the source */
    heft_map_new_name *names;       /* by tensor of f */
    uint32_t *order;                /* numbers of the rows, by place */
    uint32_t next_row;              /* in order */
    uint32_t *rule_of;              /* by tensor of out: its rule, or HEFT_NONE */
    heft_file *out;
    uint32_t shard; /* number of the source */
    heft_error *err;
} heft_map_run;

/* Compute the results of all rules: rows, and tensors that only have another name. */
heft_status heft_map_add_groups(heft_map_run *a);
/* Refuse tensors of a GGUF model whose shapes contradict its metadata. */
heft_status heft_map_check_shapes(const heft_map_run *a);
/* Leave out results that the map ties to equal ones.  Called once the source is there. */
heft_status heft_map_tie_all(heft_map_run *a);

#endif
