/* cast_losses.c - count lost values during a copy, or in a separate pass before writing to a
 * stream, where output cannot be taken back, and in a dry run. */

#include "core/read/input_window.h"
#include "core/write/convert/copy.h"

enum { SPAN = 4 << 20 };

static const heft_ix_part_row *target(const heft_copy_context *c, uint32_t part)
{
    return heft_ix_part_row_at(&c->p->x, part);
}

static bool may_lose(const heft_copy_context *c, uint32_t part)
{
    heft_dtype from = c->origins[part].dtype, to = target(c, part)->dtype;
    return from != to && from && to && heft_dtype_can_cast(to, from) &&
           heft_cast_is_lossy(to, from);
}

heft_status heft_cast_losses_begin(heft_copy_context *c, heft_error *err)
{
    const heft_plan *plan = &c->p->plan;
    bool any = false;
    c->lost = NULL;
    for (uint32_t i = 0; i < plan->order_count && !any; i++)
        any = may_lose(c, plan->order[i]);
    if (!any)
        return HEFT_OK;
    c->lost = heft_plan_alloc(&c->p->plan, c->p->x.parts.len * sizeof *c->lost);
    return c->lost ? HEFT_OK : heft_error_no_memory(err, "to count casts");
}

/* ---- a pass that only counts ---- */

typedef struct span { /* range of bytes of a part to write */
    uint32_t part;
    uint64_t from, end;
} span;

typedef struct count_job {
    const heft_copy_context *c;
    heft_vec spans;
    heft_memory mem;
} count_job;

static heft_status add_spans(count_job *n, uint32_t part, heft_error *err)
{
    uint64_t length = target(n->c, part)->length;
    bool is_whole = heft_part_is_whole(n->c, part);
    for (uint64_t from = 0, end; from < length; from = end) {
        span *to = heft_vec_push(&n->mem, &n->spans, sizeof *to);
        if (!to)
            return heft_error_no_memory(err, "to count casts");
        end = is_whole || length - from < SPAN ? length : from + SPAN;
        *to = (span){ part, from, end };
    }
    return HEFT_OK;
}

static heft_status count_span(const count_job *n, const span *s, heft_part_source *w)
{
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, n->c->p->host->allocator, NULL, s->end - s->from,
                                      &w->err);
    while (!st && !heft_progress_halted(n->c->progress) && heft_chunks_next(&c)) {
        st = heft_part_source_read(w, s->part, s->from + c.at, c.len, c.buf);
        heft_progress_add(n->c->progress, 0);
    }
    heft_chunks_close(&c);
    return st;
}

static void run_span(void *arg, size_t i)
{
    const count_job *n = arg;
    heft_part_source w;
    if (heft_progress_halted(n->c->progress))
        return;
    heft_status st = heft_part_source_init(&w, n->c)
                         ? count_span(n, (const span *)n->spans.ptr + i, &w)
                         : heft_error_plain(&w.err, HEFT_E_NOMEM, "no memory to count casts");
    if (st)
        heft_progress_fail(n->c->progress, st, &w.err);
    heft_part_source_free(&w);
}

heft_status heft_cast_losses_count(heft_copy_context *c, heft_error *err)
{
    const heft_plan *plan = &c->p->plan;
    count_job n = { .c = c, .mem = { c->p->host->allocator, UINT64_MAX, 0 } };
    heft_status st = HEFT_OK;
    if (!c->lost)
        return HEFT_OK;
    for (uint32_t i = 0; i < plan->order_count && !st; i++)
        if (may_lose(c, plan->order[i]))
            st = add_spans(&n, plan->order[i], err);
    if (!st) {
        heft_file_enter(c->in);
        heft_host_run(c->p->host, n.spans.len, run_span, &n);
        st = heft_file_leave(c->in, err);
    }
    heft_vec_free(&n.mem, &n.spans, sizeof(span));
    return st ? st : heft_progress_end(c->progress, err);
}

/* ---- the report ---- */

static void put_counts(heft_out *o, const size_t lost[HEFT_CAST_LOSSES])
{
    static const char *const kinds[] = {
        [HEFT_LOST_RANGE] = "overflow to infinity",
        [HEFT_LOST_CLAMPED] = "saturated",
        [HEFT_LOST_NAN] = "NaN to a number",
        [HEFT_LOST_DIGITS] = "past the mantissa",
    };
    const char *before = " loses values: ";
    for (int k = 0; k < HEFT_CAST_LOSSES; k++) {
        char digits[20];
        if (!lost[k])
            continue;
        heft_out_str(o, heft_lit(before));
        heft_out_bytes(o, digits, heft_u64_text(digits, lost[k]));
        heft_out_str(o, heft_lit(" "));
        heft_out_str(o, heft_lit(kinds[k]));
        before = ", ";
    }
}

static heft_status report_part(const heft_copy_context *c, uint32_t tensor, uint32_t part)
{
    uint8_t text[256];
    heft_out o = { .buf = text, .cap = sizeof text };
    size_t any = 0;
    for (int k = 0; k < HEFT_CAST_LOSSES; k++)
        any |= c->lost[part][k];
    if (!any)
        return HEFT_OK;
    heft_out_str(&o, heft_lit("cast from "));
    heft_out_str(&o, heft_lit(heft_dtype_name(c->origins[part].dtype)));
    heft_out_str(&o, heft_lit(" to "));
    heft_out_str(&o, heft_lit(heft_dtype_name(target(c, part)->dtype)));
    put_counts(&o, c->lost[part]);
    heft_out_u8(&o, 0);
    return heft_plan_loss(&c->p->plan, HEFT_WARNING, "heft/cast", tensor, (const char *)text);
}

heft_status heft_cast_losses_report(const heft_copy_context *c, heft_error *err)
{
    const heft_index *x = &c->p->x;
    uint32_t before = c->p->losses;
    heft_status st = HEFT_OK;
    for (uint32_t t = 0; c->lost && t < heft_ix_tensors(x) && !st; t++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, t);
        for (uint32_t k = 0; k < row->part_count && !st; k++)
            st = report_part(c, t, row->first_part + k);
    }
    uint64_t stops = c->p->losses - before;
    if (st || !stops)
        return st;
    return heft_error_rule(err,
                           heft_error_plain(err, HEFT_E_LOSSY, "%U %s values by a cast%s", stops,
                                            stops == 1 ? "tensor loses" : "tensors lose",
                                            c->p->listed),
                           "heft/cast");
}
