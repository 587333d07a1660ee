/* open_values.h - the lists and maps that are open while values in depth-first order are shown: a
 * list or map is followed by its items. Begin with depth 0. */
#ifndef HEFT_CLI_OPEN_VALUES_H
#define HEFT_CLI_OPEN_VALUES_H
#include <heft/heft.h>

typedef struct open_value {
    uint32_t remaining, shown; /* items to come, and shown */
    size_t mark;               /* number that the walk stores when the list or map opens */
    bool is_list;
} open_value;

typedef struct open_values {
    uint32_t depth;
    open_value level[256]; /* heft_limits.depth is at most 256 */
} open_values;

static inline bool open_values_is_container(const heft_value *v)
{
    return v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP;
}

/* Count an item of the innermost list or map; return that list or map, or NULL. */
static inline const open_value *open_values_count(open_values *o)
{
    open_value *top = o->depth ? &o->level[o->depth - 1] : NULL;
    if (top) {
        top->remaining--;
        top->shown++;
    }
    return top;
}

/* Open `v` if it is a list or map; return true if so. */
static inline bool open_values_enter(open_values *o, const heft_value *v, size_t mark)
{
    if (!open_values_is_container(v) || o->depth == sizeof o->level / sizeof *o->level)
        return false;
    o->level[o->depth++] = (open_value){ v->as.container.count, 0, mark,
                                         v->kind == HEFT_KIND_LIST };
    return true;
}

/* Close the innermost list or map if no items remain; return the closed one, or NULL. */
static inline const open_value *open_values_leave(open_values *o)
{
    if (!o->depth || o->level[o->depth - 1].remaining)
        return NULL;
    return &o->level[--o->depth];
}

#endif
