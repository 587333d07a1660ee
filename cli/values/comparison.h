/* comparison.h - compare two models tensor by tensor: by name, then by content. */
#ifndef HEFT_CLI_COMPARISON_H
#define HEFT_CLI_COMPARISON_H
#include "models/model_view.h"
#include "options/renames.h"
#include "values/compare.h"

enum { CHANGED_DTYPE = 1, CHANGED_SHAPE = 2, CHANGED_LAYOUT = 4, CHANGED_VALUE = 8 };

typedef struct pair { /* two tensors with the same name */
    uint32_t a, b;
    uint32_t changes;
    bool has_values; /* the values are compared */
    difference d;
} pair;

typedef struct renamed { /* two tensors with different names and the same content */
    uint32_t a, b;
} renamed;

typedef struct lonely { /* tensors of a file without a partner of the same name */
    uint32_t *tensors, count;
    heft_hash *hashes; /* one per tensor */
} lonely;

#define COMPARISON_LEFT_OUT (HEFT_NONE - 1)

typedef struct comparison {
    const session *session;
    const model_view *view_a, *view_b;
    const heft_file *a, *b; /* the views of the models; set by comparison_run() */
    const char *path_a, *path_b;
    tolerance t;
    bool ignore_dtype;   /* do not report element types if all values are equal */
    bool trusts_digests; /* parts with equal stated digests are equal */
    renames rename;      /* rules for the names of A */
    char *const *globs;  /* patterns of the tensors to compare; glob_count 0: all */
    int glob_count;
    heft_str *names; /* names of the tensors of A after the renames */
    pair *pairs;     /* sorted by tensors of A */
    size_t count;
    renamed *renamed; /* sorted by tensors of A */
    size_t renamed_count;
    uint32_t *partner_a, *partner_b; /* partner_a[i]: partner of tensor i of A, or HEFT_NONE; or
                                        COMPARISON_LEFT_OUT, as no pattern matches */
    lonely lonely_a, lonely_b;       /* to be matched by hashes; both empty if one would be */
    size_t all_count;                /* tensors; partners count once */
    size_t equal_count, only_a, only_b;
    const char *left_out; /* content that is left out: "differs" or "unknown"; NULL: equal */
    bool equal;
    checks checks_a, checks_b;
} comparison;

/* Compare the models. The caller sets the session, views, paths, t, ignore_dtype, trusts_digests
 * and rename; the other fields are results. Return an exit code. */
int comparison_run(comparison *c);
/* Return whether the types of a pair with a quantised tensor differ, though the element types of
 * the numbers may not. */
bool comparison_changes_type(const comparison *c, const pair *p);
/* Return whether a tensor of the pair is quantised, or has a block type. */
bool comparison_is_lossy(const comparison *c, const pair *p);
void comparison_release(comparison *c);
/* Write "289 tensors: 280 equal, 9 differ". */
void comparison_put_summary(outbuf *o, const comparison *c);

#endif
