/* value_losses.c - finds values of the input that the written format may forbid. */
#include "core/read/chunks.h"
#include "core/read/stream.h"
#include "core/write/convert/convert_model.h"

/* Set *at to the offset in the decoded bytes where a part of the input breaks the rule, or to
 * HEFT_NOWHERE. */
static heft_status check_part(uint64_t *at, const heft_file *f, uint32_t part, heft_value_rule rule,
                              heft_error *err)
{
    heft_stream s;
    heft_chunks c;
    *at = HEFT_NOWHERE;
    HEFT_TRY(heft_stream_start(&s, f, part, err));
    heft_status st = heft_chunks_open(&c, f->host->allocator, NULL, s.row.length, err);
    while (!st && *at == HEFT_NOWHERE && heft_chunks_next(&c)) {
        st = heft_stream_read(c.buf, &s, c.len, err);
        size_t i = st ? c.len : heft_value_rule_broken_at(rule, c.data, c.len, !c.left);
        *at = i < c.len ? c.at + i : HEFT_NOWHERE;
    }
    heft_chunks_close(&c);
    heft_stream_stop(&s);
    return st;
}

/* Values that break a rule of the input's own format are damage. */
static heft_status damaged(const heft_conversion *c, uint32_t part, uint64_t at,
                           heft_value_rule rule)
{
    const heft_index *x = &c->in->x;
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    uint64_t offset = p->offset + (p->encoding == HEFT_RAW ? at : 0);
    heft_error_plain(c->err, HEFT_E_FORMAT, "%s", heft_value_rule_text(rule));
    heft_error_rule(c->err, HEFT_E_FORMAT, heft_value_rule_name(rule));
    return heft_file_error_at(c->in, offset, HEFT_E_FORMAT, c->err);
}

heft_status heft_conversion_check_values(void *ctx, uint32_t tensor, heft_value_rule *broken)
{
    heft_conversion *c = ctx;
    const heft_ix_tensor_row *row = heft_ix_row(&c->p.x, tensor);
    const heft_origin *origins = c->origins.ptr;
    heft_status st = HEFT_OK;
    *broken = HEFT_ANY_VALUE;
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count && !st; i++) {
        heft_value_rule rule = heft_value_rule_of(&c->p.x, i);
        uint64_t at;
        /* A cast produces valid values. */
        if (!rule || origins[i].dtype != heft_ix_part_row_at(&c->p.x, i)->dtype)
            continue;
        st = check_part(&at, c->in, origins[i].part, rule, c->err);
        if (st || at == HEFT_NOWHERE)
            continue;
        if (c->in->x.strict && !c->opt.no_verify)
            return damaged(c, origins[i].part, at, rule);
        *broken = rule;
    }
    return st;
}
