/* share_record.c - the record of a share, a text in JSON:
 *
 *   {"heft_share":1, "plan":"9f...", "share":2, "count":8,
 *    "target":[OFFSET,BYTES,CRC,...], "source":[OFFSET,BYTES,CRC,...],
 *    "digests":[PART,"HEX",...], "checksums":[NUMBER,STATE,...], "lost":[PART,N,N,N,N,...],
 *    "blake3":"2c..."}
 *
 * target and source are runs of bytes of output and input, with a CRC for each algorithm that the
 * plan uses; digests are digests of parts of the output that were computed in order; checksums are
 * checksums of the input that were compared in order; lost are numbers of values that casts lose.
 * The hash covers the text before that member, so that a damaged record is noticed. */
#include "base/blake3.h"
#include "core/read/partial_crcs.h"
#include "grammar/json.h"
#include "share/share_plan.h"

/* ---- numbers and CRCs in the records of shares ---- */

static void share_put_number(heft_out *o, bool *any, uint64_t v)
{
    heft_out_u8(o, *any ? ',' : '[');
    *any = true;
    heft_json_put_u64(o, v);
}

/* Begin an array, or write the next number. */
static void share_end_array(heft_out *o, bool any)
{
    heft_out_str(o, heft_lit(any ? "]" : "[]"));
}

/* Write an array [OFFSET,BYTES,CRC,...] with the first `kinds` CRCs of each segment. */
static void share_crcs_put(heft_out *o, const heft_partial_crcs *s, uint32_t kinds)
{
    bool any = false;
    const heft_crc_segment *all = s->segments.ptr;
    for (uint32_t i = 0; i < s->segments.len; i++) {
        share_put_number(o, &any, all[i].offset);
        share_put_number(o, &any, all[i].len);
        for (uint32_t k = 0; k < kinds; k++)
            share_put_number(o, &any, all[i].state[k]);
    }
    share_end_array(o, any);
}

/* Read the next element of an array of numbers; false: the array ends, or j->st is set. */
static bool share_next_number(heft_json *j, uint64_t *out)
{
    heft_json_kind kind = heft_json_next(j);
    if (kind == HEFT_JSON_NUMBER && heft_json_u64(out, j->text))
        return true;
    if (kind != HEFT_JSON_ARRAY_END)
        heft_json_fail(j, "a whole number is missing in the record of a share");
    return false;
}

static bool share_next_numbers(heft_json *j, uint64_t *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!share_next_number(j, &out[i])) {
            heft_json_fail(j, "a list in the record of a share ends early");
            return false;
        }
    return true;
}

/* Read n further elements; false: j->st is set. */
static heft_status share_damaged(heft_json *j)
{
    return heft_json_fail(j, "a number in the record of a share is out of range");
}

/* Add the rest of an array of share_crcs_put(). */
static heft_status share_crcs_read(heft_json *j, heft_partial_crcs *to, uint32_t kinds)
{
    uint64_t v[2 + HEFT_PARTIAL_CRC_KINDS], end;
    while (share_next_number(j, v)) {
        heft_crc_segment segment = { .offset = v[0] };
        bool ok = share_next_numbers(j, v + 1, 1 + kinds) && v[1] && heft_add(&end, v[0], v[1]);
        for (uint32_t i = 0; i < kinds && ok; i++) {
            ok = v[2 + i] <= UINT32_MAX;
            segment.state[i] = (uint32_t)v[2 + i];
        }
        segment.len = ok ? v[1] : 0;
        HEFT_TRY(ok ? heft_partial_crcs_put(to, &segment, j->err) : share_damaged(j));
    }
    return j->st;
}

enum { VERSION = 1, DEPTH = 4 };

/* Bytes of the last member: ,"blake3":"HEX"} and a newline. */
enum { TAIL = sizeof ",\"blake3\":\"\"}\n" - 1 + 2 * HEFT_HASH_BYTES };

/* ---- writing ---- */

static void put_key(heft_out *o, const char *key)
{
    heft_out_str(o, heft_lit(","));
    heft_json_put_str(o, heft_lit(key));
    heft_out_str(o, heft_lit(":"));
}

/* Return the digest of a part that is computed in order and hence by a single share, or NULL. */
static const heft_digest *digest_in_order(const heft_planner *p, uint32_t part)
{
    const heft_digest *d = heft_planner_digest_of(p, part);
    return d && !heft_digest_joins(d) && heft_ix_part_row_at(&p->x, part)->stored ? d : NULL;
}

static void put_digests(heft_out *o, const heft_share_content *c)
{
    const heft_planner *p = &c->p->c.p;
    bool any = false;
    put_key(o, "digests");
    for (uint32_t i = 0; i < p->plan.order_count; i++) {
        uint32_t part = p->plan.order[i];
        const heft_digest *d = digest_in_order(p, part);
        if (!d || heft_ix_part_row_at(&p->x, part)->offset - c->only->offset >= c->only->length)
            continue;
        share_put_number(o, &any, part);
        heft_out_u8(o, ',');
        heft_json_put_hex(o, p->part_digests[part], d->bytes);
    }
    share_end_array(o, any);
}

static void put_states(heft_out *o, const heft_share_content *c)
{
    bool any = false;
    put_key(o, "checksums");
    for (uint32_t part = 0; part < c->p->c.in->x.parts.len; part++) {
        uint32_t checksum = heft_ledger_in_order(c->source, part);
        if (checksum == HEFT_NONE || !c->p->is_own[part])
            continue;
        share_put_number(o, &any, checksum);
        share_put_number(o, &any, (uint64_t)c->source->states[checksum]);
    }
    share_end_array(o, any);
}

static void put_lost(heft_out *o, const heft_share_content *c)
{
    bool any = false;
    put_key(o, "lost");
    for (uint32_t part = 0; c->lost && part < c->p->c.p.x.parts.len; part++) {
        size_t sum = 0;
        for (int k = 0; k < HEFT_CAST_LOSSES; k++)
            sum |= c->lost[part][k];
        if (sum)
            share_put_number(o, &any, part);
        for (int k = 0; k < HEFT_CAST_LOSSES && sum; k++)
            share_put_number(o, &any, c->lost[part][k]);
    }
    share_end_array(o, any);
}

void heft_share_record_put(heft_out *o, const heft_share_content *c, uint32_t number)
{
    heft_out_str(o, heft_lit("{\"heft_share\":"));
    heft_json_put_u64(o, VERSION);
    put_key(o, "plan");
    heft_json_put_hex(o, c->p->id.bytes, sizeof c->p->id.bytes);
    put_key(o, "share");
    heft_json_put_u64(o, number);
    put_key(o, "count");
    heft_json_put_u64(o, c->p->count);
    put_key(o, "target");
    share_crcs_put(o, c->target, c->target->digest_count);
    put_key(o, "source");
    share_crcs_put(o, &c->source->crcs, c->source->crcs.digest_count);
    put_digests(o, c);
    put_states(o, c);
    put_lost(o, c);
}

void heft_share_record_end(heft_out *o, const heft_hash *before)
{
    put_key(o, "blake3");
    heft_json_put_hex(o, before->bytes, sizeof before->bytes);
    heft_out_str(o, heft_lit("}\n"));
}

/* ---- reading ---- */

typedef struct reader {
    const heft_share_content *c;
    heft_json j;
    heft_hash id;
    uint64_t version, number, count;
    bool has_id;
} reader;

static heft_status read_digests(reader *r)
{
    const heft_planner *p = &r->c->p->c.p;
    uint64_t part;
    while (share_next_number(&r->j, &part)) {
        const heft_digest *d = part < p->x.parts.len ? digest_in_order(p, (uint32_t)part) : NULL;
        if (!d || heft_json_next(&r->j) != HEFT_JSON_STRING ||
            !heft_hex_read(p->part_digests[part], d->bytes, r->j.text))
            return share_damaged(&r->j);
        r->c->has_digest[part] = 1;
    }
    return r->j.st;
}

/* Return true if a share compares the checksum in order; the other checksums are compared when the
 * records are joined. */
static bool is_compared_in_order(const heft_ledger *v, uint64_t checksum)
{
    uint32_t part = checksum < v->checksums ? heft_ix_checksum_part(&v->f->x, (uint32_t)checksum)
                                            : HEFT_NONE;
    return part < v->f->x.parts.len && heft_ledger_in_order(v, part) == checksum;
}

static heft_status read_states(reader *r)
{
    const heft_ledger *v = r->c->source;
    uint64_t n[2];
    while (share_next_number(&r->j, n)) {
        if (!share_next_numbers(&r->j, n + 1, 1) || !is_compared_in_order(v, n[0]) ||
            n[1] > HEFT_CHECKSUM_UNCHECKED)
            return share_damaged(&r->j);
        v->states[n[0]] = (heft_checksum_state)n[1];
        r->c->has_state[n[0]] = 1;
    }
    return r->j.st;
}

static heft_status read_lost(reader *r)
{
    uint64_t n[1 + HEFT_CAST_LOSSES];
    while (share_next_number(&r->j, n)) {
        if (!share_next_numbers(&r->j, n + 1, HEFT_CAST_LOSSES) ||
            n[0] >= r->c->p->c.p.x.parts.len || !r->c->lost)
            return share_damaged(&r->j);
        for (int k = 0; k < HEFT_CAST_LOSSES; k++) {
            size_t *to = &r->c->lost[n[0]][k];
            *to = n[1 + k] < SIZE_MAX - *to ? *to + (size_t)n[1 + k] : SIZE_MAX;
        }
    }
    return r->j.st;
}

static heft_status foreign(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "the record of a share belongs to another plan: another input, other "
                            "options, or another number of shares");
}

/* Read a member that names the share or the plan, before the lists. */
static heft_status read_head(reader *r, heft_str key)
{
    heft_json_kind kind = heft_json_next(&r->j);
    uint64_t *number = heft_str_is(key, "heft_share") ? &r->version
                       : heft_str_is(key, "share")    ? &r->number
                       : heft_str_is(key, "count")    ? &r->count
                                                      : NULL;
    if (number)
        return kind == HEFT_JSON_NUMBER && heft_json_u64(number, r->j.text) ? HEFT_OK
                                                                            : share_damaged(&r->j);
    if (!heft_str_is(key, "plan"))
        return heft_json_skip(&r->j, kind);
    r->has_id = kind == HEFT_JSON_STRING &&
                heft_hex_read(r->id.bytes, sizeof r->id.bytes, r->j.text);
    return r->has_id ? HEFT_OK : share_damaged(&r->j);
}

static heft_status check_head(reader *r)
{
    const heft_share_plan *p = r->c->p;
    if (r->version != VERSION || !r->has_id || r->count != p->count ||
        memcmp(r->id.bytes, p->id.bytes, sizeof p->id.bytes) != 0)
        return foreign(r->j.err);
    return r->number - 1 < p->count ? HEFT_OK : share_damaged(&r->j);
}

static heft_status read_list(reader *r, heft_str key)
{
    const heft_share_content *c = r->c;
    HEFT_TRY(check_head(r));
    heft_json_kind kind = heft_json_next(&r->j);
    if (!c->target)
        return heft_json_skip(&r->j, kind);
    if (kind != HEFT_JSON_ARRAY)
        return share_damaged(&r->j);
    return heft_str_is(key, "target") ? share_crcs_read(&r->j, c->target, c->target->digest_count)
           : heft_str_is(key, "source")
               ? share_crcs_read(&r->j, &c->source->crcs, c->source->crcs.digest_count)
           : heft_str_is(key, "digests")   ? read_digests(r)
           : heft_str_is(key, "checksums") ? read_states(r)
                                           : read_lost(r);
}

static bool is_list(heft_str key)
{
    static const char *const lists[] = { "target", "source", "digests", "checksums", "lost" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (heft_str_is(key, lists[i]))
            return true;
    return false;
}

/* Compare the hash at the end of the text. */
static heft_status check_hash(heft_str text, heft_error *err)
{
    heft_blake3 h;
    heft_hash found;
    uint8_t tail[TAIL];
    heft_out o = { .buf = tail, .cap = sizeof tail };
    if (text.len > TAIL) {
        heft_blake3_init(&h);
        heft_blake3_update(&h, text.ptr, text.len - TAIL);
        heft_blake3_final(&h, found.bytes);
        heft_share_record_end(&o, &found);
        if (!memcmp(text.ptr + text.len - TAIL, tail, TAIL))
            return HEFT_OK;
    }
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "the record of a share is damaged: its hash does not match");
}

heft_status heft_share_record_read(const heft_share_content *c, heft_str text, uint32_t *number,
                                   heft_error *err)
{
    reader r = { .c = c };
    *number = 0;
    HEFT_TRY(check_hash(text, err));
    r.j = heft_json_open(text, 0, DEPTH, NULL, err);
    heft_json_kind kind = heft_json_next(&r.j);
    heft_status st = kind == HEFT_JSON_OBJECT ? HEFT_OK : share_damaged(&r.j);
    while (!st && (kind = heft_json_next(&r.j)) == HEFT_JSON_KEY) {
        heft_str key = r.j.text;
        st = is_list(key) ? read_list(&r, key) : read_head(&r, key);
    }
    if (!st)
        st = r.j.st;
    if (!st && heft_json_next(&r.j) != HEFT_JSON_END)
        st = share_damaged(&r.j);
    if (!st)
        st = check_head(&r);
    *number = (uint32_t)r.number;
    if (!st || st == HEFT_E_NOMEM)
        return st;
    heft_error copy = *err;
    return heft_error_plain(err, HEFT_E_ARGUMENT, "%s", copy.message);
}
