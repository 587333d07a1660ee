/* listing_order.h - which tensors a listing shows, and in which order. */
#ifndef HEFT_CLI_LISTING_ORDER_H
#define HEFT_CLI_LISTING_ORDER_H
#include "models/model_view.h"
#include "options/opt.h"

typedef struct listing_order {
    const char *sort; /* --sort, or NULL */
    opt_list dtypes;  /* --dtype; empty: all */
    uint64_t limit;   /* --limit; 0: none */
} listing_order;

/* Refuse an unknown element type, unless a slash makes it that of a quantised tensor. Return an
 * exit code. */
int listing_order_check(const listing_order *l, const char *cmd);
/* Keep the tensors of the element types and sort them; apply no limit. Warn if no tensor is left.
 * Return false without memory, after an error line. */
bool listing_order_apply(selection *s, const listing_order *l, const model_view *v,
                         const char *path);

#endif
