/* delta_foreign.c - recognises the changes that other programs store.
 *
 * A disk delta of miles, slime and SGLang is a folder like that of a model: for each tensor that
 * changed it has a tensor of bytes, a zstd stream; the metadata of the index say how it is made,
 * those of the files have a checksum of the new bytes for each.  A sparse patch of TRL is a
 * safetensors file with NAME.idx and NAME.val for each tensor. */
#include "delta/delta_foreign.h"

#include "base/error.h"
#include "delta/delta_keys.h"

static heft_str text_of(const heft_delta_keys *k, const char *key)
{
    uint32_t i = heft_delta_keys_find(k, heft_lit(key));
    const heft_value *v = i == HEFT_NONE ? NULL : heft_ix_value(k->x, i);
    return v && v->kind == HEFT_KIND_STR ? v->as.s : (heft_str){ NULL, 0 };
}

static heft_status unsupported(heft_error *err, const char *what, heft_str value)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "the delta has the %s %q, which is not known",
                            what, value);
}

/* ---- disk deltas ---- */

static const char *find_algorithm(heft_str name)
{
    static const char *const names[] = { "xxh3-128", "blake3", "adler32" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (heft_str_is(name, names[i]))
            return names[i];
    return NULL;
}

static heft_status add_disk_tensor(heft_delta *d, const heft_delta_keys *k, uint32_t t,
                                   heft_delta_coding coding, heft_error *err)
{
    const heft_ix_tensor_row *row = heft_ix_row(&d->f->x, t);
    heft_str name = heft_ix_name(&d->f->x, t);
    heft_delta_item *item = heft_delta_add(d, name);
    if (!item)
        return heft_error_no_memory(err, "to read a delta");
    if (row->dtype != HEFT_U8 || row->layout != HEFT_DENSE || row->part_count != 1)
        return heft_delta_bad(err, name, "is not a tensor of bytes");
    item->row.change = HEFT_CHANGE_SPARSE;
    item->row.tensor = t;
    item->coding = (uint8_t)coding;
    item->part[0] = row->first_part;
    uint32_t i = heft_delta_keys_find(k, name);
    if (i == HEFT_NONE || heft_ix_value(k->x, i)->kind != HEFT_KIND_STR)
        return heft_delta_bad(err, name, "has no checksum");
    item->checksum = heft_ix_value(k->x, i)->as.s;
    d->sums.tensors[HEFT_CHANGE_SPARSE]++;
    return HEFT_OK;
}

static heft_status read_disk(heft_delta *d, const heft_delta_keys *k, heft_error *err)
{
    heft_str how = text_of(k, "delta_encoding"), checksum = text_of(k, "checksum_format");
    heft_str compression = text_of(k, "compression_format");
    bool is_xor = heft_str_is(how, "xor");
    d->algorithm = find_algorithm(checksum);
    if (!is_xor && !heft_str_is(how, "overwrite"))
        return unsupported(err, "encoding", how);
    if (!heft_str_is(compression, "zstd"))
        return unsupported(err, "compression", compression);
    if (!d->algorithm)
        return unsupported(err, "checksum", checksum);
    d->sums.changed_bytes = HEFT_UNKNOWN_LENGTH; /* they are compressed */
    for (uint32_t t = 0; t < heft_ix_tensors(&d->f->x); t++)
        HEFT_TRY(add_disk_tensor(d, k, t, is_xor ? HEFT_DELTA_DISK_XOR : HEFT_DELTA_DISK_OVERWRITE,
                                 err));
    return HEFT_OK;
}

/* ---- patches ---- */

static heft_str without_end(heft_str name)
{
    return (heft_str){ name.ptr, name.len - 4 };
}

/* Return the tensor of indices that belongs to a tensor of values, or HEFT_NONE. */
static uint32_t find_indices(heft_delta *d, heft_str values)
{
    heft_arena arena = { .mem = &d->mem };
    heft_str name = heft_arena_join(&arena, without_end(values), heft_lit(".idx"), heft_lit(""));
    uint32_t t = name.ptr ? heft_tensor_find(d->f, name) : HEFT_NONE;
    heft_arena_free(&arena);
    return t;
}

static bool is_list(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    return row->layout == HEFT_DENSE && row->part_count == 1 && row->rank == 1;
}

static heft_status add_patch(heft_delta *d, uint32_t values, bool has_gaps, heft_error *err)
{
    const heft_index *x = &d->f->x;
    heft_str name = heft_ix_name(x, values);
    uint32_t indices = find_indices(d, name);
    heft_delta_item *item = heft_delta_add(d, without_end(name));
    if (!item)
        return heft_error_no_memory(err, "to read a delta");
    heft_dtype type = indices == HEFT_NONE ? HEFT_UNTYPED : heft_ix_row(x, indices)->dtype;
    bool is_known = has_gaps ? type == HEFT_U16 || type == HEFT_U32 : type == HEFT_I32;
    if (indices == HEFT_NONE || !is_known || !is_list(x, indices) || !is_list(x, values) ||
        heft_ix_dims(x, indices)[0] != heft_ix_dims(x, values)[0])
        return heft_delta_bad(err, item->row.name, "has no list of indices, one for each value");
    item->row.change = HEFT_CHANGE_SPARSE;
    item->row.tensor = values;
    item->row.changed = heft_ix_dims(x, values)[0];
    item->dtype = heft_ix_row(x, values)->dtype;
    item->coding = has_gaps ? HEFT_DELTA_PATCH_GAPS : HEFT_DELTA_PATCH;
    item->part[0] = heft_ix_row(x, indices)->first_part;
    item->part[1] = heft_ix_row(x, values)->first_part;
    d->sums.tensors[HEFT_CHANGE_SPARSE]++;
    d->sums.changed_bytes += heft_tensor_bytes(d->f, values);
    return HEFT_OK;
}

static heft_status read_patch(heft_delta *d, const heft_delta_keys *k, heft_error *err)
{
    const heft_index *x = &d->f->x;
    heft_str encoding = text_of(k, "encoding");
    bool has_gaps = heft_str_is(encoding, "gap_delta");
    uint32_t lists = 0;
    if (!heft_str_is(text_of(k, "sparse"), "True"))
        return heft_error_plain(
            err, HEFT_E_UNSUPPORTED,
            "the patch is an anchor: it has whole tensors and is a model itself");
    if (!has_gaps && !heft_str_is(encoding, "raw"))
        return unsupported(err, "encoding of indices", encoding);
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        bool is_value = heft_str_ends(heft_ix_name(x, t), ".val");
        if (is_value)
            HEFT_TRY(add_patch(d, t, has_gaps, err));
        else if (!heft_str_ends(heft_ix_name(x, t), ".idx"))
            return heft_delta_bad(err, heft_ix_name(x, t),
                                  "is neither a list of values nor of indices");
        lists += is_value;
    }
    if (2 * (uint64_t)lists != heft_ix_tensors(x))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "the patch has a list of indices without values");
    return HEFT_OK;
}

heft_status heft_delta_read_foreign(heft_delta *d, bool *is_known, heft_error *err)
{
    heft_delta_keys k;
    heft_status st = HEFT_OK;
    if (!heft_delta_keys_open(&k, &d->f->x, &d->mem)) {
        heft_delta_keys_free(&k);
        return heft_error_no_memory(err, "to read a delta");
    }
    bool is_disk = text_of(&k, "delta_encoding").ptr;
    bool is_patch = heft_str_is(text_of(&k, "format"), "sparse_weight_patch");
    *is_known = is_disk || is_patch;
    if (is_disk)
        st = read_disk(d, &k, err);
    else if (is_patch)
        st = read_patch(d, &k, err);
    heft_delta_keys_free(&k);
    return st;
}
