/* share_id.c - the id of a plan: a hash of everything that decides over the bytes of the output,
 * and nothing that differs between machines; and the id of a file, a part of the plan's id. */
#include "base/blake3.h"

#include "core/write/convert/copy.h"
#include "share/share_plan.h"
#include <heft/private.h>

static void add_u64(heft_blake3 *h, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    heft_blake3_update(h, bytes, sizeof bytes);
}

static void add_text(heft_blake3 *h, heft_str s)
{
    add_u64(h, s.len);
    heft_blake3_update(h, s.ptr, s.len);
}

static void add_rows(heft_blake3 *h, const heft_index *x)
{
    add_u64(h, x->parts.len);
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *row = heft_ix_part_row_at(x, i);
        const uint64_t all[] = { row->offset, row->stored, row->length, row->dtype, row->encoding };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            add_u64(h, all[k]);
    }
}

static void add_value(heft_blake3 *h, const heft_value *v)
{
    uint64_t bytes = 0;
    add_text(h, v->key);
    add_u64(h, v->kind);
    if (v->kind == HEFT_KIND_STR || v->kind == HEFT_KIND_BYTES || v->kind == HEFT_KIND_ID128)
        add_text(h, v->as.s);
    else if (v->kind == HEFT_KIND_ARRAY &&
             heft_dtype_bytes(&bytes, v->as.array.dtype, v->as.array.count))
        add_text(h, (heft_str){ v->as.array.ptr, (size_t)bytes });
    else if (v->kind == HEFT_KIND_BOOL)
        add_u64(h, v->as.b);
    else if (v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP)
        add_u64(h, v->as.container.count);
    else if (v->kind != HEFT_KIND_NULL)
        add_u64(h, v->as.u); /* the bits of a number */
}

/* Names, shapes and metadata: some formats store the names after the data. */
static void add_model(heft_blake3 *h, const heft_index *x)
{
    add_u64(h, heft_ix_tensors(x));
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, t);
        add_text(h, heft_ix_name(x, t));
        add_u64(h, row->dtype);
        add_u64(h, row->layout);
        add_u64(h, row->rank);
        for (uint32_t i = 0; i < row->rank; i++)
            add_u64(h, heft_ix_dims(x, t)[i]);
    }
    const heft_value *values = x->values.ptr;
    const heft_ix_attr_row *attributes = x->attrs.ptr;
    add_u64(h, x->values.len);
    for (uint32_t i = 0; i < x->values.len; i++)
        add_value(h, &values[i]);
    for (uint32_t i = 0; i < x->attrs.len; i++) {
        add_u64(h, attributes[i].tensor);
        add_value(h, &attributes[i].value);
    }
}

/* ---- files ---- */

enum { SAMPLE = 4096, SAMPLES = 256 };

static uint64_t size_of_shard(const heft_file *f, uint32_t number)
{
    const heft_source *s = heft_file_source(f, number);
    return s && s->size != HEFT_UNKNOWN_LENGTH ? s->size : 0;
}

static heft_status add_sample(heft_blake3 *h, const heft_file *f, uint64_t offset, size_t len,
                              heft_error *err)
{
    uint8_t buf[SAMPLE];
    HEFT_TRY(heft_file_read_stored(f, offset, buf, len, err));
    heft_blake3_update(h, buf, len);
    return HEFT_OK;
}

/* Hash blocks at equal distances, counted over the file and all shards: every byte, if the blocks
 * are enough for that.  A file that was trained further, or written again, differs in most. */
static heft_status add_samples(heft_blake3 *h, const heft_file *f, heft_error *err)
{
    uint64_t total = 0, at = 0; /* at: distance of the next block from the begin of the shard */
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i <= f->opened_shard_count; i++)
        if (!heft_add(&total, total, size_of_shard(f, i)))
            total = UINT64_MAX;
    uint64_t distance = heft_div(total, SAMPLES) + 1;
    distance = distance < SAMPLE ? SAMPLE : distance;
    for (uint32_t i = 0; i <= f->opened_shard_count && !st; i++) {
        uint64_t size = size_of_shard(f, i);
        while (at < size && !st) {
            size_t len = size - at < SAMPLE ? (size_t)(size - at) : SAMPLE;
            st = add_sample(h, f, heft_global_offset(i, at), len, err);
            at += distance;
        }
        at -= size;
    }
    return st;
}

/* Hash sizes, offsets of the data, stored checksums, and samples of the bytes. */
static heft_status add_input(heft_blake3 *h, const heft_file *f, heft_error *err)
{
    add_text(h, heft_lit(f->format->name));
    for (uint32_t i = 0; i <= f->opened_shard_count; i++)
        add_u64(h, size_of_shard(f, i));
    add_rows(h, &f->x);
    for (uint32_t i = 0; i < heft_ix_checksums(&f->x); i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&f->x, i);
        add_text(h, heft_lit(c.algorithm));
        heft_blake3_update(h, c.expect, sizeof c.expect);
    }
    return add_samples(h, f, err);
}

heft_status heft_share_file_id(heft_hash *out, const heft_file *f, heft_error *err)
{
    heft_error own;
    heft_blake3 h;
    err = heft_error_begin(err, &own);
    heft_blake3_init(&h);
    heft_file_enter(f); /* names are mapped */
    add_text(&h, heft_lit("heft file 1"));
    add_model(&h, &f->x);
    heft_status st = heft_file_leave_after(f, add_input(&h, f, err), err);
    heft_blake3_final(&h, out->bytes);
    return heft_error_end(err, st);
}

/* ---- plans ---- */

static heft_status add_header(void *ctx, uint64_t at, const void *data, size_t len)
{
    (void)at;
    heft_blake3_update(ctx, data, len);
    return HEFT_OK;
}

static void add_crcs(heft_blake3 *h, const heft_partial_crcs *s)
{
    for (uint32_t i = 0; i < s->digest_count; i++)
        add_text(h, heft_lit(s->digests[i]->name));
    add_u64(h, s->digest_count);
}

/* Shares that encode rows must agree on the importance of their columns. */
static void add_encoding(heft_blake3 *h, const heft_copy_context *copying, const heft_origin *o)
{
    uint64_t rows = o->row ? heft_div(o->elements, o->row) : 0;
    uint64_t matrices = o->matrix_rows ? heft_div(rows, o->matrix_rows) : 0;
    add_u64(h, o->row);
    add_u64(h, copying->allow_nan);
    add_u64(h, o->importance != NULL);
    if (o->importance)
        heft_blake3_update(h, o->importance, (size_t)(matrices * o->row) * sizeof *o->importance);
}

static void add_parts(heft_blake3 *h, const heft_copy_context *copying)
{
    const heft_planner *p = copying->p;
    for (uint32_t i = 0; i < p->plan.order_count; i++) {
        uint32_t part = p->plan.order[i];
        const heft_origin *o = &copying->origins[part];
        const heft_digest *d = heft_planner_digest_of(p, part);
        const uint64_t all[] = { part,          o->part,     o->dtype,
                                 o->transposed, o->elements, (uint64_t)o->layout_target,
                                 o->tensor,     o->nonzero,  heft_part_is_whole(copying, part) };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            add_u64(h, all[k]);
        add_encoding(h, copying, o);
        add_text(h, heft_lit(d ? d->name : ""));
    }
}

heft_status heft_share_compute_id(heft_share_plan *p, const heft_copy_context *copying)
{
    const heft_plan *plan = &p->c.p.plan;
    uint8_t buf[1024];
    heft_blake3 h;
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = add_header, .ctx = &h };
    const uint64_t all[] = {
        p->count,    plan->header_bytes, plan->data_end,    plan->file_bytes,
        plan->align, plan->fill,         plan->order_count, p->c.opt.no_verify
    };
    heft_blake3_init(&h);
    add_text(&h, heft_lit("heft share 1"));
    add_text(&h, heft_lit(p->c.p.format->name));
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        add_u64(&h, all[k]);
    if (p->c.p.writer->write_header && !p->c.p.writer->write_header(plan, &o))
        (void)!heft_out_flush(&o);
    add_rows(&h, &p->c.p.x);
    add_model(&h, &p->c.p.x);
    add_parts(&h, copying);
    add_crcs(&h, &p->c.p.written);
    add_crcs(&h, &p->uses.crcs);
    heft_status st = add_input(&h, p->c.in, &p->err);
    heft_blake3_final(&h, p->id.bytes);
    return st;
}
