/* gptrs.c - gpt-rs' checkpoints (GPTRSCHK) and tensor archives (GPTRSTEN), version 2.
 *
 *   "GPTRSCHK", u32 2, u32 length, config_json, u32 length, index, payloads
 *   "GPTRSTEN", u32 2,                          u32 length, index, payloads
 *   index: u32 tensors, then per tensor: u32 length, name, [checkpoint: 16 bytes of base id],
 *          u32 rank, u64 dims[rank], u32 element type, u8 requires_grad, u64 offset in the file,
 *          u64 length
 *
 * A base id is the first 16 bytes of BLAKE3(name), or zero.  Payloads lie anywhere; we write them
 * at multiples of 64 with zeros between.
 */
#include "format/gptrs/entry.h"

#include "base/blake3.h"
#include "format/losses.h"
#include "model/slices.h"

enum {
    MAGIC = 8,
    BASE_ID = 16,
    TAIL = 21, /* of an entry: element type, flag, offset, length */
    ALIGN = 64
};

const heft_dtype heft_gptrs_types[] = { HEFT_F32, HEFT_F16, HEFT_BF16, HEFT_I32 }; /* by tag */

static const char *const magics[] = { "GPTRSTEN", "GPTRSCHK" }; /* by `checkpoint` */

/* ---- reading ---- */

heft_status heft_gptrs_check_entry(heft_index *x, const heft_gptrs_entry *e, bool checkpoint)
{
    if (e->tag >= HEFT_GPTRS_TYPES)
        return heft_error_set(x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: element type %U is unknown (0 to 3 are known)", e->name,
                              (uint64_t)e->tag);
    if (checkpoint && !heft_is_ascii(e->name.ptr, e->name.len))
        return heft_error_set(x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: a name in a checkpoint is ASCII", e->name);
    if (e->rank > UINT16_MAX)
        return heft_error_set(x->err, HEFT_E_LIMIT, e->at,
                              "tensor %q: %U dimensions pass the limit of 65535", e->name, e->rank);
    return HEFT_OK;
}

static inline heft_str read_name(heft_cur *c, bool *is_ascii)
{
    uint32_t len = heft_cur_u32(c);
    const uint8_t *p = heft_cur_take(c, len);
    *is_ascii = p && heft_is_ascii_name(p, len);
    return *is_ascii ? (heft_str){ (const char *)p, len }
                     : heft_cur_text_at(c, p, len, "a tensor's name");
}

static inline heft_status read_entry(heft_cur *c, heft_gptrs_entry *e, bool checkpoint)
{
    uint32_t id_bytes = checkpoint ? BASE_ID : 0;
    e->at = heft_cur_pos(c);
    e->name = read_name(c, &e->is_ascii);
    const uint8_t *middle = heft_cur_take(c, id_bytes + 4);
    e->rank = middle ? heft_le32(middle + id_bytes) : 0;
    e->dims = heft_cur_take(c, 8 * e->rank + TAIL);
    if (c->st)
        return c->st;
    const uint8_t *tail = e->dims + 8 * e->rank;
    e->base_id = checkpoint ? middle : NULL;
    e->tag = heft_le32(tail);
    e->grad = tail[4];
    e->offset = heft_le64(tail + 5);
    e->length = heft_le64(tail + 13);
    return HEFT_OK;
}

typedef struct places {  /* what the entries said together */
    uint64_t data;       /* where payloads can begin */
    uint64_t begin, end; /* of the first one with bytes, of the last */
    bool ascending;
} places;

static inline void note_place(places *s, heft_index *x, const heft_gptrs_entry *e)
{
    if (!e->length)
        return;
    if (heft_unlikely(e->offset < s->data)) {
        heft_ix_omit(x, HEFT_NOTE, "gptrs/range-in-index", (heft_str){ NULL, 0 },
                     "data that lie over the header or the index get bytes of their own");
        heft_ix_note(x, HEFT_WARNING, "gptrs/range-in-index", e->offset, heft_ix_tensors(x) - 1,
                     "its data lie over the header or the index");
    }
    if (e->offset < s->end)
        s->ascending = false;
    s->begin = s->end ? s->begin : e->offset;
    s->end = e->offset + e->length;
}

/* Those of entries that stand behind the others. */
static void join_places(places *s, const places *more)
{
    if (!more->end)
        return;
    s->ascending = s->ascending && more->ascending && more->begin >= s->end;
    s->begin = s->end ? s->begin : more->begin;
    s->end = more->end;
}

typedef struct many {
    bool checkpoint;
    uint64_t data;
    places places[HEFT_IX_SLICES];
} many;

static void skip_entry(const void *ctx, heft_cur *c, uint32_t *rank)
{
    const many *m = ctx;
    uint32_t id_bytes = m->checkpoint ? BASE_ID : 0;
    heft_cur_take(c, heft_cur_u32(c));
    const uint8_t *middle = heft_cur_take(c, id_bytes + 4);
    *rank = middle ? heft_le32(middle + id_bytes) : 0;
    heft_cur_take(c, UINT64_C(8) * *rank + TAIL);
}

static heft_status read_run(heft_cur *c, heft_index *x, bool checkpoint, uint32_t count, places *s)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++) {
        heft_gptrs_entry e;
        st = read_entry(c, &e, checkpoint);
        if (!st)
            st = heft_gptrs_add(x, &e, checkpoint);
        if (!st)
            note_place(s, x, &e);
    }
    return st;
}

static heft_status read_slice(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t slice)
{
    many *m = ctx;
    places s = { .data = m->data, .ascending = true };
    heft_status st = read_run(c, x, m->checkpoint, count, &s);
    m->places[slice] = s;
    return st;
}

static heft_status read_entries(heft_cur *c, heft_index *x, bool checkpoint, uint32_t count,
                                places *s)
{
    many m = { .checkpoint = checkpoint, .data = s->data };
    heft_ix_slicing how = {
        .skip = skip_entry, .read = read_slice, .ctx = &m, .base_ids = checkpoint
    };
    if (!heft_ix_slices(x, c, count, &how))
        return read_run(c, x, checkpoint, count, s);
    for (uint32_t i = 0; i < HEFT_IX_SLICES; i++)
        join_places(s, &m.places[i]);
    return HEFT_OK;
}

static heft_status parse_index(heft_cur *c, heft_index *x, bool checkpoint, places *s)
{
    uint64_t at = heft_cur_pos(c), min_bytes = 8 + TAIL + (checkpoint ? BASE_ID : 0);
    uint32_t tensors = heft_cur_u32(c);
    if (c->st)
        return c->st;
    x->version = heft_lit("2");
    heft_status st = heft_ix_reserve(x, at, tensors, heft_cur_left(c), min_bytes);
    if (!st)
        st = read_entries(c, x, checkpoint, tensors, s);
    if (!st && heft_cur_left(c)) {
        heft_ix_omit(x, HEFT_WARNING, "gptrs/index-length", (heft_str){ NULL, 0 },
                     "the bytes that follow the entries of the index are left out");
        heft_ix_note(x, HEFT_WARNING, "gptrs/index-length", heft_cur_pos(c), HEFT_NONE,
                     "the index is longer than its entries");
    }
    return st;
}

/* Equal ranges are tied weights; anything else that two tensors share is odd. */
static heft_status note_overlaps(heft_index *x)
{
    uint32_t *order = NULL, count;
    heft_status st = heft_ix_order(x, &order, &count);
    if (st)
        return st;
    heft_range reach = { 0, 0 }; /* that ends furthest so far */
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] >= x->parts.len)
            continue; /* the config */
        const heft_ix_part_row *part = heft_ix_part_row_at(x, order[i]);
        bool is_tied = part->offset == reach.offset && part->length == reach.length;
        if (part->offset < reach.offset + reach.length && !is_tied)
            heft_ix_note(x, HEFT_WARNING, "gptrs/overlap", part->offset, order[i],
                         "its data overlap partly with another tensor's");
        if (part->offset + part->length > reach.offset + reach.length)
            reach = (heft_range){ part->offset, part->length };
    }
    heft_ix_order_free(x, order);
    return HEFT_OK;
}

/* From the length of the index on.  Every tensor has one part, so their numbers are the same. */
static heft_status parse_v2(heft_in *in, heft_index *x, uint64_t at, bool checkpoint)
{
    heft_cur c = heft_cur_open(in, at, 4, "the length of the index");
    uint32_t length = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    c = heft_cur_whole(in, at + 4, length, "the index");
    if (c.st)
        return c.st;
    if (heft_gptrs_is_bincode(c, checkpoint))
        return heft_gptrs_parse_bincode(&c, x, checkpoint);
    places s = { .data = at + 4 + length, .ascending = true };
    heft_status st = parse_index(&c, x, checkpoint, &s);
    return st || s.ascending ? st : note_overlaps(x);
}

/* The config's part is added, and *at moved behind it. */
static heft_status parse_config(heft_in *in, heft_index *x, uint64_t *at, heft_gptrs_config *config)
{
    heft_cur c = heft_cur_open(in, *at, 4, "the length of config_json");
    uint32_t length = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    heft_range where = { *at + 4, length };
    c = heft_cur_whole(in, where.offset, where.length, "config_json");
    heft_str text = { (const char *)heft_cur_take(&c, length), length };
    if (c.st)
        return c.st;
    heft_status st = heft_gptrs_config_read(config, text, where.offset, x->limits.depth, &x->arena,
                                            x->err);
    if (st)
        return st;
    if (config->is_runtime_odd)
        heft_ix_note(x, HEFT_WARNING, "gptrs/config-runtime", where.offset, HEFT_NONE,
                     "config_json: \"runtime\" is neither null nor an object");
    *at = where.offset + length;
    return heft_ix_part(x, HEFT_NONE, heft_lit("config"), HEFT_UNTYPED, where, length, HEFT_RAW);
}

static heft_status parse(heft_in *in, heft_index *x, bool checkpoint)
{
    heft_cur c = heft_cur_open(in, 0, MAGIC + 4, "the header");
    const uint8_t *magic = heft_cur_take(&c, MAGIC);
    uint32_t version = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    if (memcmp(magic, magics[checkpoint], MAGIC) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "it does not begin with '%s'",
                              magics[checkpoint]);
    if (version != 1 && version != 2)
        return heft_error_set(x->err, HEFT_E_FORMAT, MAGIC, "version %U is neither 1 nor 2",
                              (uint64_t)version);
    uint64_t at = MAGIC + 4;
    heft_gptrs_config config = { false, false };
    heft_status st = checkpoint ? parse_config(in, x, &at, &config) : HEFT_OK;
    if (!st)
        st = version == 1 ? heft_gptrs_parse_v1(in, x, at, checkpoint)
                          : parse_v2(in, x, at, checkpoint);
    if (!st && config.is_untagged && heft_str_is(x->version, "2"))
        heft_ix_note(x, HEFT_WARNING, "gptrs/config-untagged", MAGIC + 8, HEFT_NONE,
                     "config_json is a bare GPT configuration without \"kind\"");
    if (!st && checkpoint)
        heft_gptrs_note_base_ids(x);
    return st;
}

static heft_status parse_checkpoint(heft_in *in, heft_index *x)
{
    return parse(in, x, true);
}

static heft_status parse_archive(heft_in *in, heft_index *x)
{
    return parse(in, x, false);
}

/* ---- planning ---- */

typedef struct layout { /* heft_plan.priv */
    bool checkpoint;
    heft_str config[3]; /* written one after the other */
    uint64_t config_bytes, index_bytes;
} layout;

static uint32_t tag_of(heft_dtype t)
{
    uint32_t tag = 0;
    while (tag < HEFT_GPTRS_TYPES && heft_gptrs_types[tag] != t)
        tag++;
    return tag;
}

/* A stored id that is not that of the name tells of damage, perhaps to the name: an edit leaves it as it is. */
static heft_status check_replaced_id(heft_plan *p, uint32_t t)
{
    const uint8_t *asked = heft_ix_base_id_at(p->x, t);
    const uint8_t *had = p->kept ? heft_ix_base_id_at(p->kept, t) : NULL;
    uint8_t id[BASE_ID];
    if (!asked || !had || !memcmp(asked, had, BASE_ID))
        return HEFT_OK;
    heft_str name = heft_ix_name(p->kept, t);
    heft_blake3_id(id, name.ptr, name.len);
    if (!memcmp(id, had, BASE_ID))
        return HEFT_OK;
    return heft_error_plain(p->err, HEFT_E_CHECKSUM,
                            "tensor %q: its stored base id is not the BLAKE3 of its name: an edit "
                            "would hide that ('heft convert' makes ids anew)",
                            name);
}

static heft_status plan_tensor(heft_plan *p, uint32_t t, bool checkpoint, bool *has_half)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    heft_str name = heft_ix_name(p->x, t);
    const char *why = NULL;
    if (!heft_loss_is_plain(p->x, t))
        why = "only dense tensors can be stored in .gptrs and .gten";
    else if (checkpoint && !heft_is_ascii(name.ptr, name.len))
        why = "a name in a checkpoint has to be ASCII";
    if (why || tag_of(row->dtype) == HEFT_GPTRS_TYPES)
        heft_plan_drop(p, t);
    if (why)
        return heft_plan_loss(p, HEFT_FAULT, "gptrs/tensor", t, why);
    if (tag_of(row->dtype) == HEFT_GPTRS_TYPES)
        return heft_loss_type(p, "gptrs/dtype", t, "a gpt-rs file");
    *has_half = *has_half || row->dtype == HEFT_F16 || row->dtype == HEFT_BF16;
    heft_status st = heft_gptrs_plan_base_id(p, t, checkpoint);
    return st ? st : heft_loss_scalar(p, "gptrs/rank-0", t, "a gpt-rs file");
}

static heft_status plan_tensors(heft_plan *p, bool checkpoint)
{
    bool has_half = false;
    heft_status st = heft_loss_attributes(p, "gptrs/attributes", HEFT_T_GRAD);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        st = check_replaced_id(p, t);
        if (!st)
            st = plan_tensor(p, t, checkpoint, &has_half);
    }
    if (!st && has_half)
        st = heft_plan_loss(p, HEFT_NOTE, "gptrs/half", HEFT_NONE,
                            "the first readers of this format refuse f16 and bf16");
    if (!st)
        heft_plan_compact(p);
    return st;
}

static heft_status plan_config(heft_plan *p, layout *l)
{
    heft_gptrs_config config = { false, false };
    heft_error why;
    heft_status st = heft_plan_model_part(p, "config", &l->config[1]);
    if (st)
        return st;
    if (!l->config[1].ptr) {
        l->config[1] = heft_lit("{\"kind\":\"unknown\",\"config\":{}}");
        return heft_plan_loss(p, HEFT_WARNING, "gptrs/config", HEFT_NONE,
                              "no config: a checkpoint has one, so a placeholder of kind 'unknown' "
                              "is written");
    }
    st = heft_gptrs_config_read(&config, l->config[1], 0, p->x->limits.depth, p->arena, &why);
    if (st)
        return heft_error_plain(p->err, st == HEFT_E_NOMEM ? st : HEFT_E_ARGUMENT,
                                "the config cannot be used: %s", why.message);
    if (!config.is_untagged || (p->kept && !p->is_new_config))
        return HEFT_OK;
    l->config[0] = heft_lit("{\"kind\":\"gpt\",\"config\":");
    l->config[2] = heft_lit("}");
    return heft_plan_warn(p, "gptrs/config",
                          "the bare GPT configuration is put under \"config\", with kind \"gpt\"");
}

static heft_status plan_losses(heft_plan *p, layout *l)
{
    heft_status st = heft_loss_parts(p, "gptrs/parts", l->checkpoint ? "config" : NULL);
    if (!st)
        st = heft_loss_metadata(p, "gptrs/metadata");
    if (!st && l->checkpoint)
        st = plan_config(p, l);
    return st ? st : plan_tensors(p, l->checkpoint);
}

/* Of a tensor that was there: its id stays what it was, unless it was made from a name that is now another. */
static void keep_base_id_of(uint8_t id[BASE_ID], const heft_plan *p, uint32_t t)
{
    const uint8_t *had = heft_ix_base_id_at(p->kept, t);
    heft_str old = heft_ix_name(p->kept, t), now = heft_ix_name(p->x, t);
    uint8_t made[BASE_ID];
    if (!had)
        return;
    memcpy(id, had, BASE_ID);
    heft_blake3_id(made, old.ptr, old.len);
    if (!memcmp(made, had, BASE_ID))
        heft_blake3_id(id, now.ptr, now.len);
}

static void put_base_id(heft_out *o, const heft_plan *p, uint32_t t)
{
    heft_str name = heft_ix_name(p->x, t);
    const uint8_t *asked = heft_ix_base_id_at(p->x, t);
    uint8_t id[BASE_ID] = { 0 };
    if (!o->buf)
        ; /* only counted */
    else if (asked)
        memcpy(id, asked, BASE_ID);
    else if (p->kept)
        keep_base_id_of(id, p, t);
    else
        heft_blake3_id(id, name.ptr, name.len);
    heft_out_bytes(o, id, BASE_ID);
}

static void put_entry(heft_out *o, const heft_plan *p, uint32_t t, bool checkpoint)
{
    const heft_index *x = p->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const heft_ix_part_row *part = heft_ix_part_row_at(x, row->first_part);
    const uint64_t *dims = heft_ix_dims(x, t);
    heft_out_u32(o, row->name_len);
    heft_out_str(o, heft_ix_name(x, t));
    if (checkpoint)
        put_base_id(o, p, t);
    heft_out_u32(o, row->rank);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_out_u64(o, dims[i]);
    heft_out_u32(o, tag_of(row->dtype));
    heft_out_u8(o, row->flags & HEFT_T_GRAD ? 1 : 0);
    heft_out_u64(o, part->offset);
    heft_out_u64(o, part->length);
}

static void put_index(heft_out *o, const heft_plan *p, bool checkpoint)
{
    heft_out_u32(o, heft_ix_tensors(p->x));
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        put_entry(o, p, t, checkpoint);
}

static heft_status plan_places(heft_plan *p, layout *l)
{
    for (unsigned i = 0; i < 3; i++)
        l->config_bytes += l->config[i].len;
    heft_out count = heft_out_counting();
    put_index(&count, p, l->checkpoint);
    l->index_bytes = count.total;
    if (l->index_bytes > UINT32_MAX || l->config_bytes > UINT32_MAX)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "%s takes %U bytes, its length has room for 2^32 - 1",
                                l->index_bytes > UINT32_MAX ? "the index" : "the config",
                                l->index_bytes > UINT32_MAX ? l->index_bytes : l->config_bytes);
    uint64_t config = l->checkpoint ? 4 + l->config_bytes : 0;
    p->fill = 0;
    p->front_bytes = MAGIC + 4 + config + 4 + l->index_bytes;
    p->data_end = p->front_bytes;
    uint64_t start = p->front_bytes;
    heft_plan_room(p, &start);
    heft_status st = heft_ix_tensors(p->x) ? heft_plan_place(p, start, 1) : HEFT_OK;
    p->file_bytes = p->data_end;
    return st;
}

static heft_status plan(heft_plan *p, bool checkpoint)
{
    if (p->version && !heft_str_is(heft_lit(p->version), "2"))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "version %s of gpt-rs' files cannot be written, only 2 can",
                                p->version);
    layout *l = heft_plan_alloc(p, sizeof *l);
    if (!l)
        return HEFT_E_NOMEM;
    *l = (layout){ .checkpoint = checkpoint };
    p->priv = l;
    heft_status st = plan_losses(p, l);
    if (!st)
        st = heft_plan_share(p);
    return st ? st : plan_places(p, l);
}

static heft_status plan_checkpoint(heft_plan *p)
{
    return plan(p, true);
}

static heft_status plan_archive(heft_plan *p)
{
    return plan(p, false);
}

/* ---- writing ---- */

static heft_status front(const heft_plan *p, heft_out *o)
{
    const layout *l = p->priv;
    heft_out_str(o, heft_lit(magics[l->checkpoint]));
    heft_out_u32(o, 2);
    if (l->checkpoint) {
        heft_out_u32(o, (uint32_t)l->config_bytes);
        for (unsigned i = 0; i < 3; i++)
            heft_out_str(o, l->config[i]);
    }
    heft_out_u32(o, (uint32_t)l->index_bytes);
    put_index(o, p, l->checkpoint);
    return o->st;
}

/* ---- the formats ---- */

static int probe_checkpoint(const uint8_t *head, size_t head_len, const uint8_t *tail,
                            size_t tail_len, uint64_t size)
{
    (void)tail;
    (void)tail_len;
    (void)size;
    return head_len >= MAGIC && !memcmp(head, magics[true], MAGIC) ? 64 : 0;
}

static int probe_archive(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                         uint64_t size)
{
    (void)tail;
    (void)tail_len;
    (void)size;
    return head_len >= MAGIC && !memcmp(head, magics[false], MAGIC) ? 64 : 0;
}

static const heft_odd_rules odd_rules = { "gptrs/name", NULL, NULL, "gptrs/rank" };

const heft_format heft_format_gptrs_checkpoint = {
    .name = "gptrs-checkpoint",
    .title = "gpt-rs checkpoint",
    .suffixes = ".gptrs",
    .versions = "2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE,
    .align = ALIGN,
    .probe = probe_checkpoint,
    .parse = parse_checkpoint,
    .odd = &odd_rules,
    .check = heft_gptrs_check_base_ids,
    .plan = plan_checkpoint,
    .front = front,
};

const heft_format heft_format_gptrs_archive = {
    .name = "gptrs-archive",
    .title = "gpt-rs tensor archive",
    .suffixes = ".gten",
    .versions = "2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE,
    .align = ALIGN,
    .probe = probe_archive,
    .parse = parse_archive,
    .odd = &odd_rules,
    .plan = plan_archive,
    .front = front,
};
