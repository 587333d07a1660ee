/* part_storage.c - settle the storage of each part: encoding and digest. */
#include "core/write/plan/plan.h"

/* ---- requested storage ---- */

heft_status heft_planner_check_storage(const heft_planner *p, const heft_storage *storage,
                                       heft_error *err)
{
    if (storage->reserved[0] || storage->reserved[1])
        return heft_error_plain(err, HEFT_E_ARGUMENT, "heft_storage.reserved is not 0");
    const heft_codec *codec = heft_host_codec(p->host, storage->encoding);
    bool is_raw = storage->encoding == HEFT_RAW;
    if (!is_raw && !(p->format->caps & HEFT_CAN_ENCODE))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s does not support compression",
                                p->format->name);
    if (storage->encoding == HEFT_ENCODING_OTHER)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "unknown encoding");
    if (!is_raw && codec && !HEFT_HAS(codec, encoder_close))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build can only decode %s",
                                codec->name);
    if (storage->digest && !(p->format->caps & HEFT_CAN_DIGEST))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s cannot store a digest per tensor",
                                p->format->name);
    return HEFT_OK;
}

heft_storage heft_planner_default_storage(const heft_planner *p)
{
    heft_storage storage = p->opt.storage;
    if (p->writer->storage && !p->plan.existing)
        p->writer->storage(&p->plan, &storage, false);
    return storage;
}

heft_status heft_planner_set_storage(heft_planner *p, uint32_t part, const heft_storage *storage,
                                     heft_error *err)
{
    const heft_digest *d = storage->digest ? heft_host_digest(p->host, storage->digest) : NULL;
    HEFT_TRY(heft_planner_check_storage(p, storage, err));
    if (storage->digest && !d)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compute %s digests",
                                storage->digest);
    while (p->part_storage.len <= part) {
        heft_part_storage *to = heft_vec_push(&p->x.mem, &p->part_storage, sizeof *to);
        if (!to)
            return heft_error_no_memory(err, "to plan the file");
        *to = (heft_part_storage){ .required = false };
        /* model-level parts keep the format's own storage */
        if (heft_ix_owner(&p->x, p->part_storage.len - 1) != HEFT_NONE)
            to->storage = heft_planner_default_storage(p);
    }
    ((heft_part_storage *)p->part_storage.ptr)[part] =
        (heft_part_storage){ .storage = { .encoding = storage->encoding,
                                          .level = storage->level,
                                          .digest = d ? d->name : NULL } };
    return HEFT_OK;
}

void heft_planner_require_encoding(heft_planner *p, uint32_t part)
{
    ((heft_part_storage *)p->part_storage.ptr)[part].required = true;
}

bool heft_planner_requires_encoding(const heft_planner *p, uint32_t part)
{
    return part < p->part_storage.len &&
           ((const heft_part_storage *)p->part_storage.ptr)[part].required;
}

heft_status heft_planner_fill_storage(heft_planner *p)
{
    heft_storage default_storage = heft_planner_default_storage(p);
    p->plan.storage = heft_plan_alloc(&p->plan, p->x.parts.len * sizeof *p->plan.storage);
    if (!p->plan.storage)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < heft_ix_tensors(&p->x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(&p->x, t);
        for (uint32_t k = 0; k < row->part_count; k++)
            p->plan.storage[row->first_part + k] = default_storage;
    }
    for (uint32_t i = 0; i < p->part_storage.len; i++)
        p->plan.storage[i] = ((heft_part_storage *)p->part_storage.ptr)[i].storage;
    return HEFT_OK;
}

/* ---- called by formats ---- */

bool heft_plan_compresses(const heft_plan *p)
{
    bool any = heft_planner_default_storage(p->planner).encoding != HEFT_RAW;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !any; t++) {
        const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
        for (uint32_t k = 0; k < row->part_count && !any; k++)
            any = p->storage[row->first_part + k].encoding != HEFT_RAW;
    }
    return any;
}

heft_status heft_plan_check_storage(const heft_plan *p,
                                    heft_status (*check)(const heft_plan *, const heft_storage *))
{
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
        for (uint32_t k = 0; k < row->part_count; k++)
            HEFT_TRY(check(p, &p->storage[row->first_part + k]));
    }
    return HEFT_OK;
}

/* Parts that share bytes get the encoding of the first, and a digest if any of these parts has a
 * digest. */
heft_status heft_plan_copy_shared_storage(heft_plan *p)
{
    bool differ = false;
    for (uint32_t i = 0; p->duplicate_of && i < p->x->parts.len; i++) {
        heft_storage *own = &p->storage[i], *first = &p->storage[p->duplicate_of[i]];
        bool is_same_digest = own->digest == first->digest ||
                              (own->digest && first->digest &&
                               heft_str_is(heft_lit(own->digest), first->digest));
        differ = differ || own->encoding != first->encoding || own->level != first->level ||
                 !is_same_digest;
        if (!first->digest)
            first->digest = own->digest;
    }
    for (uint32_t i = 0; differ && i < p->x->parts.len; i++)
        p->storage[i] = p->storage[p->duplicate_of[i]];
    return differ ? heft_plan_loss(
                        p, HEFT_NOTE, "heft/shared-storage", HEFT_NONE,
                        "tensors that share their bytes are stored with the settings of the first")
                  : HEFT_OK;
}

/* ---- digests of parts ---- */

heft_status heft_planner_part_digests(heft_planner *p, heft_error *err)
{
    uint32_t all = p->x.parts.len;
    for (uint32_t i = 0; i < all; i++) {
        const char *name = p->plan.storage[i].digest;
        if (!name)
            continue;
        if (!p->digest_of) {
            p->digest_of = heft_plan_alloc(&p->plan, all * sizeof *p->digest_of);
            p->part_digests = heft_plan_alloc(&p->plan, all * sizeof *p->part_digests);
        }
        if (!p->digest_of || !p->part_digests)
            return HEFT_E_NOMEM;
        const heft_digest *d = heft_host_digest(p->host, name);
        if (!d)
            return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compute %s digests",
                                    name);
        if (d->combine && !p->plan.appended)
            heft_partial_crcs_track(&p->written, p->host, name);
        p->digest_of[i] = d;
    }
    return HEFT_OK;
}

const heft_digest *heft_planner_digest_of(const heft_planner *p, uint32_t part)
{
    return p->digest_of ? p->digest_of[part] : NULL;
}

/* ---- codecs ---- */

heft_status heft_planner_check_codecs(const heft_planner *p, heft_error *err)
{
    const heft_plan *plan = &p->plan;
    for (uint32_t i = 0; i < plan->order_count; i++) {
        heft_encoding e = plan->storage[plan->order[i]].encoding;
        if (e != HEFT_RAW && !heft_host_codec(p->host, e))
            return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compress");
    }
    return HEFT_OK;
}
