/* copy_metadata.h - copy attributes of tensors to the planned model; keep numbers in a format's
 * number map. */
#ifndef HEFT_COPY_METADATA_H
#define HEFT_COPY_METADATA_H
#include "core/write/plan/plan.h"

/* Copy everything known about a tensor besides type and shape.  cast: the element type changes,
 * so that attributes of the stored type are dropped.  identity: replaces the identity of the
 * source; NULL: keep that identity. */
heft_status heft_copy_attributes(heft_planner *p, const heft_index *from, uint32_t id,
                                 uint32_t source, bool cast, const heft_identity *identity);

/* number_map.c.  Return true if `key` has the form MAP.NAME for the format's number map; for a
 * value, if the value can also move into the map. */
bool heft_is_in_number_map(const heft_format *f, heft_str key, heft_str *name);
bool heft_is_map_number(const heft_format *f, const heft_value *v, heft_str *name);
/* HEFT_E_ARGUMENT: the key has the form MAP.NAME, but the value cannot move into the map. */
heft_status heft_check_map_number(const heft_format *f, const heft_value *v, heft_error *err);
/* Move top-level numbers with keys MAP.NAME into the map; the last number of a name wins. */
heft_status heft_planner_nest_numbers(heft_planner *p);

/* Return true if the kind of a value is known, all strings are UTF-8, the length fits the kind,
 * and numbers are not complex: no format has metadata of complex numbers. */
bool heft_is_metadata_value(const heft_value *v);
/* Return the index after value i of the caller's metadata and its children. */
static inline size_t heft_set_next(const heft_value *set, size_t i)
{
    return heft_value_nests(&set[i]) ? set[i].as.container.end : i + 1;
}
/* Return HEFT_E_ARGUMENT unless the metadata are scalars, and lists that precede their scalars. */
heft_status heft_set_check(const heft_value *set, size_t count, heft_error *err);
/* Append value i of the caller's metadata, which may be a list, as `first`: the value itself, or
 * with another kind. */
heft_status heft_set_add(heft_index *x, const heft_value *set, size_t i, heft_value first);

#endif
