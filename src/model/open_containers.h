/* open_containers.h - the containers that are open while a flat list of values is walked, in which
 * a list or map precedes its children.  A walk shows each value with heft_open_value(), then calls
 * heft_open_leave() until no container is complete.  Uses no memory but the struct. */
#ifndef HEFT_OPEN_CONTAINERS_H
#define HEFT_OPEN_CONTAINERS_H
#include "model/index.h"

typedef struct heft_open_containers {
    uint32_t depth;                /* 0 before a walk; levels past depth are not initialised */
    uint32_t left[HEFT_MAX_DEPTH]; /* children that have not been shown */
    uint8_t kind[HEFT_MAX_DEPTH];  /* heft_kind, or what the walk stores */
} heft_open_containers;

/* Show a value that has no children: one child less is left in the innermost container. */
static inline void heft_open_leaf(heft_open_containers *o)
{
    if (o->depth)
        o->left[o->depth - 1]--;
}

/* Show a container.  The caller has checked that depth is below HEFT_MAX_DEPTH. */
static inline void heft_open_enter(heft_open_containers *o, uint32_t children, uint32_t kind)
{
    heft_open_leaf(o);
    o->kind[o->depth] = (uint8_t)kind;
    o->left[o->depth++] = children;
}

/* Show a value of either sort. */
static inline void heft_open_value(heft_open_containers *o, const heft_value *v)
{
    if (heft_value_nests(v))
        heft_open_enter(o, v->as.container.count, v->kind);
    else
        heft_open_leaf(o);
}

/* Close the innermost container if all its children have been shown; return true if so. */
static inline bool heft_open_leave(heft_open_containers *o)
{
    bool is_complete = o->depth && !o->left[o->depth - 1];
    o->depth -= is_complete;
    return is_complete;
}

/* Return the kind of the innermost container, or `outside` if none is open. */
static inline uint32_t heft_open_kind(const heft_open_containers *o, uint32_t outside)
{
    return o->depth ? o->kind[o->depth - 1] : outside;
}

#endif
