/* gptrs_entry.c - element types by tag, checks of an entry, and of base ids against the names. */
#include "base/blake3.h"
#include "format/gptrs/gptrs.h"
#include "format/losses.h"

const heft_dtype heft_gptrs_types[] = { HEFT_F32, HEFT_F16, HEFT_BF16, HEFT_I32 };

heft_status heft_gptrs_check_entry(heft_index *x, const heft_gptrs_entry *e, bool is_checkpoint)
{
    if (e->tag >= HEFT_GPTRS_TYPES)
        return heft_error_set(x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: element type %U is unknown (0 to 3 are known)", e->name,
                              (uint64_t)e->tag);
    if (is_checkpoint && !heft_is_ascii(e->name.ptr, e->name.len))
        return heft_error_set(x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: names in a checkpoint must be ASCII", e->name);
    if (e->rank > UINT16_MAX)
        return heft_error_set(x->err, HEFT_E_LIMIT, e->at,
                              "tensor %q: %U dimensions exceed the limit of 65535", e->name,
                              e->rank);
    return HEFT_OK;
}

bool heft_gptrs_is_id_of(const uint8_t *base_id, heft_str name)
{
    uint8_t id[HEFT_GPTRS_BASE_ID];
    heft_blake3_id(id, name.ptr, name.len);
    return !memcmp(id, base_id, sizeof id);
}

static bool is_wrong(const heft_index *x, uint32_t tensor)
{
    const uint8_t *stored = heft_ix_base_id_at(x, tensor);
    return stored && !heft_gptrs_is_id_of(stored, heft_ix_name(x, tensor));
}

/* Hashing a name takes several times as long as parsing an entry: of more than MAX_ALL tensors
 * check an evenly spread sample only.  heft_gptrs_check_base_ids() and plans check all tensors. */
void heft_gptrs_note_base_ids(heft_index *x)
{
    enum { MAX_ALL = 1024, SAMPLE = 256 };
    uint32_t n = heft_ix_tensors(x), step = n > MAX_ALL ? n / SAMPLE : 1;
    for (uint32_t t = 0; t < n; t += step)
        if (is_wrong(x, t))
            heft_ix_note_early(x, HEFT_WARNING, "gptrs/base-id", HEFT_NOWHERE, t,
                               "its stored base id is not the BLAKE3 of its name");
}

heft_status heft_gptrs_check_base_ids(heft_check *c)
{
    for (uint32_t t = 0; t < heft_ix_tensors(c->x); t++)
        if (is_wrong(c->x, t))
            c->report(c, HEFT_FAULT, "gptrs/base-id", (heft_range){ HEFT_NOWHERE, 0 }, t,
                      "its stored base id is not the BLAKE3 of its name");
    return HEFT_OK;
}

heft_status heft_gptrs_plan_base_id(heft_plan *p, uint32_t tensor, bool is_checkpoint)
{
    const heft_plan_source *s = &p->source;
    const uint8_t *stored = s->base_id ? s->base_id(s->ctx, tensor) : NULL;
    if (!stored || heft_gptrs_is_id_of(stored, s->name(s->ctx, tensor)))
        return HEFT_OK;
    return heft_plan_loss(p, HEFT_WARNING, "gptrs/base-id", tensor,
                          is_checkpoint ? "its stored base id is not the BLAKE3 of its name: the "
                                          "correct id is written"
                                        : "its stored base id is not the BLAKE3 of its name: an "
                                          "archive stores no ids, readers derive ids from names");
}
