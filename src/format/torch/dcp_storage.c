/* dcp_storage.c - the files and ranges of a distributed checkpoint, from storage_data.
 *
 * Keys are MetadataIndex: fqn, offset, and a hint that does not count.  An object that is not a
 * tensor has no offset. Values are _StorageInfo: relative_path, offset, length, and the names of
 * transforms, in the order in which a reader undoes them. */
#include "base/bisect.h"
#include "base/path_risk.h"
#include "base/sort.h"
#include "format/torch/dcp.h"
#include "model/boxes.h"

/* ---- order: by name, then by offsets ---- */

static int order_offsets(const heft_pickle *p, uint32_t a, uint32_t b)
{
    uint32_t m = a == HEFT_NONE ? 0 : heft_pickle_at(p, a)->as.items.count + 1;
    uint32_t n = b == HEFT_NONE ? 0 : heft_pickle_at(p, b)->as.items.count + 1;
    if (m != n)
        return m < n ? -1 : 1;
    for (uint32_t i = 0; i + 1 < m; i++) {
        uint64_t one = 0, other = 0;
        (void)heft_pickle_u64(&one, p, heft_pickle_item(p, a, i));
        (void)heft_pickle_u64(&other, p, heft_pickle_item(p, b, i));
        if (one != other)
            return one < other ? -1 : 1;
    }
    return 0;
}

static int order(const heft_pickle *p, const heft_dcp_item *a, heft_str name, uint32_t offsets)
{
    int by = heft_str_order(a->name, name);
    return by ? by : order_offsets(p, a->offsets, offsets);
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_dcp *d = ctx;
    return order(&d->p, &d->items[a], d->items[b].name, d->items[b].offsets) < 0;
}

const heft_dcp_item *heft_dcp_find(const heft_dcp *d, heft_str name, uint32_t offsets)
{
    heft_bisect b = { .end = d->item_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, order(&d->p, &d->items[b.mid], name, offsets) < 0);
    bool is_found = b.first < d->item_count && !order(&d->p, &d->items[b.first], name, offsets);
    return is_found ? &d->items[b.first] : NULL;
}

/* ---- files ---- */

static heft_str path_of(const heft_dcp *d, const heft_dcp_item *item)
{
    uint32_t path = heft_pickle_dict_get(&d->p, item->info, "relative_path");
    return heft_pickle_is(&d->p, path, HEFT_PICKLE_TEXT) ? heft_pickle_at(&d->p, path)->as.s
                                                         : (heft_str){ "", 0 };
}

/* PyTorch writes no path with a folder; such a path would leave the folder of the checkpoint. */
static heft_status check_path(const heft_dcp *d, const heft_dcp_item *item, heft_str path)
{
    return heft_str_is_file_name(path)
               ? HEFT_OK
               : heft_dcp_fail(d, item->info,
                               "tensor %q: relative_path %q is not the name of a file in the "
                               "folder",
                               item->name, path);
}

static heft_status add_files(heft_dcp *d)
{
    uint32_t number;
    for (uint32_t i = 0; i < d->item_count; i++) {
        heft_str path = path_of(d, &d->items[i]);
        HEFT_TRY(check_path(d, &d->items[i], path));
        HEFT_TRY(heft_names_add_file(&d->files, d->x, path, &number));
    }
    return HEFT_OK;
}

/* ---- items ---- */

static heft_status read_item(const heft_dcp *d, uint32_t key, uint32_t value, heft_dcp_item *item)
{
    const heft_pickle *p = &d->p;
    uint32_t name = heft_torch_field(p, key, "fqn"), offset = heft_torch_field(p, key, "offset");
    *item = (heft_dcp_item){ .offsets = heft_dcp_size(p, offset), .key = key };
    item->info = heft_torch_fields(p, value);
    if (!heft_torch_is(p, key, "MetadataIndex") || !heft_pickle_is(p, name, HEFT_PICKLE_TEXT))
        return heft_dcp_fail(d, key, "a key of storage_data is not a MetadataIndex with a name");
    item->name = heft_pickle_at(p, name)->as.s;
    if (item->name.len > HEFT_DCP_MAX_NAME) /* names are compared often; many items may share one */
        return heft_dcp_fail(d, key, "a name in storage_data has more than %U bytes",
                             (uint64_t)HEFT_DCP_MAX_NAME);
    if (!heft_torch_is(p, value, "_StorageInfo") || item->info == HEFT_NONE)
        return heft_dcp_fail(d, value, "%q: the value in storage_data is not a _StorageInfo",
                             item->name);
    if (offset != HEFT_NONE && item->offsets == HEFT_NONE)
        return heft_dcp_fail(d, key, "%q: the offset of a piece is not a tuple", item->name);
    uint64_t n;
    for (uint32_t i = 0; heft_pickle_item(p, item->offsets, i) != HEFT_NONE; i++)
        if (!heft_pickle_u64(&n, p, heft_pickle_item(p, item->offsets, i)))
            return heft_dcp_fail(d, key, "%q: an offset of a piece is not a number from 0 on",
                                 item->name);
    return HEFT_OK;
}

static heft_status sort_items(heft_dcp *d)
{
    uint32_t n = d->item_count;
    uint32_t *ids = heft_arena_alloc(&d->x->arena, (2 * (size_t)n + 1) * sizeof *ids, 4);
    heft_dcp_item *sorted = heft_arena_alloc(&d->x->arena, ((size_t)n + 1) * sizeof *sorted, 8);
    if (!ids || !sorted)
        return heft_error_no_memory(d->x->err, "for the pieces of a checkpoint");
    heft_sort_numbers(ids, n, is_before, d);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = d->items[ids[i]];
    d->items = sorted;
    for (uint32_t i = 1; i < n; i++)
        if (!order(&d->p, &sorted[i - 1], sorted[i].name, sorted[i].offsets))
            return heft_dcp_fail(d, sorted[i].key, "a piece of %q is listed twice in storage_data",
                                 sorted[i].name);
    return HEFT_OK;
}

heft_status heft_dcp_read_storage(heft_dcp *d, uint32_t storage_data)
{
    const heft_pickle *p = &d->p;
    uint32_t key, value, count = heft_pickle_at(p, storage_data)->as.items.count / 2;
    d->items = heft_arena_alloc(&d->x->arena, ((size_t)count + 1) * sizeof *d->items, 8);
    if (!d->items)
        return heft_error_no_memory(d->x->err, "for the pieces of a checkpoint");
    heft_pickle_items i = heft_pickle_items_of(p, storage_data);
    while (heft_pickle_next(p, &i, &key) && heft_pickle_next(p, &i, &value))
        HEFT_TRY(read_item(d, key, value, &d->items[d->item_count++]));
    HEFT_TRY(add_files(d));
    return sort_items(d);
}

/* ---- ranges ---- */

/* A transform has a name, and the version of its form. */
static bool is_zstd(heft_str name)
{
    return heft_str_is(name, "stream.zstd") || heft_str_is(name, "stream.zstd/1");
}

/* Note that an item went through zstd; refuse other transforms, and a sequence of several. */
static heft_status read_transforms(const heft_dcp *d, const heft_dcp_item *item, heft_ix_box *box)
{
    const heft_pickle *p = &d->p;
    uint32_t list = heft_pickle_dict_get(p, item->info, "transform_descriptors"), first;
    if (list == HEFT_NONE || heft_pickle_is(p, list, HEFT_PICKLE_NONE))
        return HEFT_OK;
    if (!heft_pickle_is_sequence(p, list))
        return heft_dcp_fail(d, list, "%q: its transforms are not a list", item->name);
    heft_pickle_items i = heft_pickle_items_of(p, list);
    if (!heft_pickle_next(p, &i, &first))
        return HEFT_OK;
    bool is_text = heft_pickle_is(p, first, HEFT_PICKLE_TEXT);
    if (is_text && is_zstd(heft_pickle_at(p, first)->as.s) && !heft_pickle_next(p, &i, &first)) {
        box->holds |= HEFT_BOX_ZSTD;
        return HEFT_OK;
    }
    is_text = heft_pickle_is(p, first, HEFT_PICKLE_TEXT);
    return heft_error_set(d->x->err, HEFT_E_UNSUPPORTED, heft_pickle_offset(p, first),
                          "%q is stored with the transform %q, which Heft does not undo: save the "
                          "checkpoint without it",
                          item->name, is_text ? heft_pickle_at(p, first)->as.s : heft_lit("?"));
}

heft_status heft_dcp_locate(const heft_dcp *d, const heft_dcp_item *item, heft_ix_box *box)
{
    const heft_pickle *p = &d->p;
    uint64_t offset, end;
    uint32_t file = heft_names_find_file(&d->files, d->x, path_of(d, item));
    *box = (heft_ix_box){ .holds = HEFT_BOX_FILE };
    if (!heft_pickle_u64(&offset, p, heft_pickle_dict_get(p, item->info, "offset")) ||
        !heft_pickle_u64(&box->length, p, heft_pickle_dict_get(p, item->info, "length")) ||
        !heft_add(&end, offset, box->length) || end >> HEFT_GLOBAL_OFFSET_BITS)
        return heft_dcp_fail(d, item->info, "%q: offset and length are not a range of a file",
                             item->name);
    box->offset = heft_global_offset(file, offset);
    return read_transforms(d, item, box);
}
