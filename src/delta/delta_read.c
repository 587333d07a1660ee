/* delta_read.c - reads the list of a delta. */
#include "base/error.h"
#include "delta/delta_open.h"
#include "delta/delta_pair.h"

static const char purpose[] = "to read a delta";

heft_status heft_delta_bad(heft_error *err, heft_str tensor, const char *what)
{
    heft_status st = heft_error_plain(err, HEFT_E_FORMAT, "the delta of tensor %q %s", tensor,
                                      what);
    return heft_error_input(err, st, HEFT_INPUT_SECOND);
}

heft_delta_item *heft_delta_add(heft_delta *d, heft_str name)
{
    heft_delta_item *item = heft_vec_push(&d->mem, &d->items, sizeof *item);
    if (item)
        *item = (heft_delta_item){ .row = { .name = name, .tensor = HEFT_NONE },
                                   .part = { HEFT_NONE, HEFT_NONE, HEFT_NONE } };
    return item;
}

/* ---- a row of the list ---- */

static bool read_change(heft_change *out, const heft_value *v)
{
    for (uint32_t c = 0; c < HEFT_CHANGES; c++)
        if (v->kind == HEFT_KIND_STR && heft_str_is(v->as.s, heft_change_name((heft_change)c))) {
            *out = (heft_change)c;
            return true;
        }
    return false;
}

static bool read_hash(heft_hash *out, bool *has, const heft_value *v)
{
    *has = v->kind == HEFT_KIND_STR && v->as.s.len == 2 * HEFT_HASH_BYTES &&
           heft_hex_read(out->bytes, HEFT_HASH_BYTES, v->as.s);
    return *has;
}

static bool read_field(heft_delta_item *item, bool *has_change, const heft_value *v)
{
    if (heft_str_is(v->key, "change"))
        return *has_change = read_change(&item->row.change, v);
    if (heft_str_is(v->key, "dtype"))
        return v->kind == HEFT_KIND_STR && (item->dtype = heft_dtype_find(v->as.s));
    if (heft_str_is(v->key, "base"))
        return read_hash(&item->row.base, &item->row.has_base, v);
    if (heft_str_is(v->key, "result"))
        return read_hash(&item->row.result, &item->row.has_result, v);
    if (heft_str_is(v->key, "replaced"))
        return read_hash(&item->replaced, &item->has_replaced, v);
    return false; /* an unknown value could change the result */
}

/* ---- the tensors ---- */

static bool find_part(uint32_t *out, const heft_delta *d, uint32_t tensor, const char *role,
                      heft_dtype type)
{
    *out = heft_part_find(d->f, tensor, heft_lit(role));
    return *out != HEFT_NONE && heft_part_at(d->f, *out).dtype == type;
}

static bool find_parts(heft_delta_item *item, const heft_delta *d)
{
    static const heft_dtype types[] = { HEFT_U8, HEFT_U16, HEFT_U32, HEFT_U64 };
    uint32_t t = item->row.tensor;
    if (item->row.change == HEFT_CHANGE_XOR) {
        item->coding = HEFT_DELTA_XORS;
        return heft_str_is(heft_ix_layout(&d->f->x, t), HEFT_DELTA_XOR) &&
               find_part(&item->part[0], d, t, "xor", HEFT_U8);
    }
    if (item->row.change == HEFT_CHANGE_SPARSE) {
        unsigned unit = heft_delta_unit(item->dtype);
        heft_dtype type = types[unit == 1 ? 0 : unit == 2 ? 1 : unit == 4 ? 2 : 3];
        item->coding = HEFT_DELTA_GAPS;
        return heft_str_is(heft_ix_layout(&d->f->x, t), HEFT_DELTA_SPARSE) &&
               find_part(&item->part[0], d, t, "counts", HEFT_U32) &&
               find_part(&item->part[1], d, t, "gaps", HEFT_U16) &&
               find_part(&item->part[2], d, t, "values", type);
    }
    const heft_ix_tensor_row *row = heft_ix_row(&d->f->x, t);
    item->part[0] = row->first_part;
    return row->layout == HEFT_DENSE && row->part_count == 1 && row->dtype == item->dtype;
}

static bool has_tensor(heft_change c)
{
    return c != HEFT_CHANGE_NONE && c != HEFT_CHANGE_REMOVED;
}

/* Return an error unless the row has the digests and the tensor that its change needs. */
static heft_status check_item(heft_delta *d, heft_delta_item *item, uint8_t *is_used,
                              heft_error *err)
{
    heft_delta_row *row = &item->row;
    bool is_added = row->change == HEFT_CHANGE_ADDED;
    bool ends = row->change == HEFT_CHANGE_NONE || row->change == HEFT_CHANGE_REMOVED;
    if (row->has_base == is_added || row->has_result == ends ||
        item->has_replaced != (row->change == HEFT_CHANGE_SPARSE))
        return heft_delta_bad(err, row->name, "lacks a digest, or has one too many");
    d->sums.tensors[row->change]++;
    if (!has_tensor(row->change))
        return HEFT_OK;
    row->tensor = heft_tensor_find(d->f, row->name);
    if (row->tensor == HEFT_NONE || is_used[row->tensor])
        return heft_delta_bad(err, row->name,
                              row->tensor == HEFT_NONE ? "is missing in the file"
                                                       : "is listed twice");
    is_used[row->tensor] = 1;
    if (!find_parts(item, d))
        return heft_delta_bad(err, row->name, "has other parts or types than its kind needs");
    uint32_t values = row->change == HEFT_CHANGE_SPARSE ? item->part[2] : item->part[0];
    uint64_t bytes = heft_part_at(d->f, values).length;
    d->sums.changed_bytes += bytes;
    if (row->change == HEFT_CHANGE_SPARSE)
        row->changed = heft_div(bytes, heft_delta_unit(item->dtype));
    return HEFT_OK;
}

static heft_status read_item(heft_delta *d, uint32_t at, uint8_t *is_used, heft_error *err)
{
    const heft_index *x = &d->f->x;
    const heft_value *v = heft_ix_value(x, at);
    heft_delta_item *item = heft_delta_add(d, v->key);
    bool has_change = false;
    if (!item)
        return heft_error_no_memory(err, purpose);
    if (v->kind != HEFT_KIND_MAP)
        return heft_delta_bad(err, v->key, "is not described by a map");
    for (uint32_t i = at + 1; i < v->as.container.end; i = heft_ix_value_next(x, i))
        if (!read_field(item, &has_change, heft_ix_value(x, i)))
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "the delta of tensor %q has a value of %q that is not known",
                                    v->key, heft_ix_value(x, i)->key);
    if (!has_change)
        return heft_delta_bad(err, v->key, "does not say what changes");
    return check_item(d, item, is_used, err);
}

static heft_status read_items(heft_delta *d, uint32_t map, heft_error *err)
{
    const heft_index *x = &d->f->x;
    uint32_t all = heft_ix_tensors(x);
    uint8_t *is_used = heft_mem_alloc(&d->mem, (size_t)all + 1);
    if (!is_used)
        return heft_error_no_memory(err, purpose);
    memset(is_used, 0, (size_t)all + 1);
    heft_status st = HEFT_OK;
    uint32_t end = heft_ix_value(x, map)->as.container.end;
    for (uint32_t i = map + 1; i < end && !st; i = heft_ix_value_next(x, i))
        st = read_item(d, i, is_used, err);
    for (uint32_t i = 0; i < all && !st; i++)
        if (!is_used[i])
            st = heft_delta_bad(err, heft_ix_name(x, i), "is not in the list of the delta");
    heft_mem_free(&d->mem, is_used, (size_t)all + 1);
    return st;
}

/* ---- the list ---- */

static heft_status read_version(const heft_value *v, heft_error *err)
{
    uint64_t version = v && (v->kind == HEFT_KIND_INT || v->kind == HEFT_KIND_UINT) ? v->as.u : 0;
    if (version == HEFT_DELTA_VERSION)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "the delta has version %U, this Heft reads version %U", version,
                            (uint64_t)HEFT_DELTA_VERSION);
}

static uint32_t count_children(const heft_index *x, uint32_t at)
{
    return at == HEFT_NONE ? 0 : heft_ix_value(x, at)->as.container.count;
}

static heft_status read_list(heft_delta *d, uint32_t at, heft_error *err)
{
    const heft_index *x = &d->f->x;
    const heft_value *list = heft_ix_value(x, at), *version = NULL;
    uint32_t tensors = HEFT_NONE;
    for (uint32_t i = at + 1; i < list->as.container.end; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (heft_str_is(v->key, "version"))
            version = v;
        else if (heft_str_is(v->key, "tensors") && v->kind == HEFT_KIND_MAP)
            tensors = i;
        else if (heft_str_is(v->key, "set") && v->kind == HEFT_KIND_MAP)
            d->set = i;
        else if (heft_str_is(v->key, "unset") && v->kind == HEFT_KIND_LIST)
            d->unset = i;
        else
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "the delta has an entry %q that is not known", v->key);
    }
    HEFT_TRY(read_version(version, err));
    if (tensors == HEFT_NONE)
        return heft_error_plain(err, HEFT_E_FORMAT, "the delta lists no tensors");
    d->lists_all = true;
    d->sums.metadata = count_children(x, d->set) + count_children(x, d->unset);
    return read_items(d, tensors, err);
}

static heft_status read_any(heft_delta *d, heft_error *err)
{
    const heft_index *x = &d->f->x;
    bool is_known = false;
    HEFT_TRY(heft_file_is_complete(d->f, err));
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (heft_str_is(v->key, HEFT_DELTA_KEY) && v->kind == HEFT_KIND_MAP)
            return read_list(d, i, err);
    }
    HEFT_TRY(heft_delta_read_foreign(d, &is_known, err));
    return is_known
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_FORMAT,
                                  "it is not a delta: `heft delta OLD NEW -o DELTA` makes one");
}

heft_status heft_delta_open(heft_delta **out, const heft_file *f, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    const heft_allocator *al = f->host->allocator;
    heft_delta *d = heft_alloc(al, sizeof *d, 16);
    *out = d;
    if (!d)
        return heft_error_no_memory(err, purpose);
    *d = (heft_delta){ .f = f, .mem = { al, UINT64_MAX, 0 }, .set = HEFT_NONE, .unset = HEFT_NONE };
    heft_file_enter(f);
    heft_status st = heft_file_leave_after(f, read_any(d, err), err);
    if (st) {
        heft_delta_close(d);
        *out = NULL;
    }
    st = heft_error_input(err, st, 0); /* there is no base */
    return heft_error_end(err, st);
}

uint32_t heft_delta_count(const heft_delta *d)
{
    return d->items.len;
}

heft_delta_row heft_delta_at(const heft_delta *d, uint32_t i)
{
    return heft_delta_item_at(d, i)->row;
}

heft_delta_sums heft_delta_sum(const heft_delta *d)
{
    return d->sums;
}

void heft_delta_close(heft_delta *d)
{
    if (!d)
        return;
    const heft_allocator *al = d->mem.al;
    heft_vec_free(&d->mem, &d->items, sizeof(heft_delta_item));
    heft_free(al, d, sizeof *d, 16);
}
