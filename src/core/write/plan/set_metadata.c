/* set_metadata.c - metadata that the caller adds or replaces: scalars, and lists of scalars. */
#include "base/error.h"
#include "core/write/plan/plan.h"

bool heft_is_metadata_value(const heft_value *v)
{
    const heft_dtype_info *d = v->kind == HEFT_KIND_ARRAY ? heft_dtype_get(v->as.array.dtype)
                                                          : NULL;
    if (v->kind > HEFT_KIND_MAP || !heft_value_is_text(v))
        return false;
    if (v->kind == HEFT_KIND_ID128)
        return v->as.s.len == 16;
    return v->kind != HEFT_KIND_ARRAY ||
           (d && d->block_elems == 1 && !heft_dtype_is_complex(v->as.array.dtype));
}

static bool is_scalar(const heft_value *v)
{
    return v->kind != HEFT_KIND_ARRAY && !heft_value_nests(v) && !v->key.len &&
           heft_value_is_text(v);
}

/* at: the index of the list among `count` values. */
static bool is_list_of_scalars(const heft_value *list, size_t at, size_t count)
{
    uint64_t end = list->as.container.end;
    bool is = list->kind == HEFT_KIND_LIST && end > at && end <= count &&
              end - at - 1 == list->as.container.count;
    for (size_t k = 1; is && k < end - at; k++)
        is = is_scalar(&list[k]);
    return is;
}

heft_status heft_set_check(const heft_value *set, size_t count, heft_error *err)
{
    for (size_t i = 0; i < count; i = heft_set_next(set, i)) {
        bool is_text = heft_value_is_text(&set[i]);
        if (is_text && heft_value_nests(&set[i]) && !is_list_of_scalars(&set[i], i, count))
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "metadata %q: maps, and lists of anything but scalars, cannot "
                                    "be set",
                                    set[i].key);
        if (!is_text)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "metadata %q: its text is not UTF-8",
                                    set[i].key);
    }
    return HEFT_OK;
}

heft_status heft_set_add(heft_index *x, const heft_value *set, size_t i, heft_value first)
{
    size_t end = heft_set_next(set, i);
    bool is_list = heft_value_nests(&first);
    HEFT_TRY(heft_ix_meta(x, first));
    for (size_t k = i + 1; is_list && k < end; k++)
        HEFT_TRY(heft_ix_meta(x, set[k]));
    if (is_list)
        heft_ix_meta_end(x);
    return HEFT_OK;
}
