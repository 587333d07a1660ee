/* gptrs.c - reads gpt-rs checkpoints (GPTRSCHK) and tensor archives (GPTRSTEN), version 2.
 *
 *   "GPTRSCHK", u32 2, u32 length, config_json, u32 length, index, payloads
 *   "GPTRSTEN", u32 2,                          u32 length, index, payloads
 *   index: u32 tensors, then per tensor: u32 length, name, [checkpoint: 16 bytes of base id],
 *          u32 rank, u64 dims[rank], u32 element type, u8 requires_grad, u64 offset in the file,
 *          u64 length
 *
 * A base id is the first 16 bytes of BLAKE3(name), or zero.  Payloads may have any offset; Heft
 * writes payloads at multiples of 64, padded with zeros.
 */
#include "format/gptrs/gptrs.h"
#include "model/parallel.h"

enum {
    MAGIC = HEFT_GPTRS_MAGIC,
    ALIGN = 64,
    V1_TAIL = 13, /* element type, flag, length */
    V1_MIN = 8 + V1_TAIL,
    TAIL = HEFT_GPTRS_TAIL, /* element type, flag, offset, length */
    BASE_ID = HEFT_GPTRS_BASE_ID
};

/* Read an entry of a bincode index, which gptrs_is_bincode() has checked to be complete, or a
 * record of version 1, whose data follow the record. */
static heft_status read_old_entry(heft_cur *c, heft_gptrs_entry *e, bool is_bincode,
                                  bool is_checkpoint)
{
    *e = (heft_gptrs_entry){ .at = heft_cur_pos(c) };
    e->name = heft_cur_text(c, is_bincode ? heft_cur_u64(c) : heft_cur_u32(c), "a tensor's name");
    e->base_id = is_bincode && is_checkpoint ? heft_cur_take(c, BASE_ID) : NULL;
    e->rank = is_bincode ? heft_cur_u64(c) : heft_cur_u32(c);
    e->dims = heft_cur_take(c, 8 * e->rank);
    const uint8_t *tail = heft_cur_take(c, is_bincode ? TAIL : V1_TAIL);
    if (c->st)
        return c->st;
    e->tag = heft_le32(tail);
    e->grad = tail[4];
    e->offset = is_bincode ? heft_le64(tail + 5) : heft_cur_pos(c);
    e->length = heft_le64(tail + (is_bincode ? 13 : 5));
    return HEFT_OK;
}

/* ---- version 1 ---- */

/* Parse the records of version 1, each followed by the data; `at` is the offset of the tensor
 * count. */
static heft_status gptrs_parse_v1(heft_window *in, heft_index *x, uint64_t at, bool is_checkpoint)
{
    heft_cur c = heft_cur_open(in, at, in->size, "the tensor count");
    uint32_t tensors = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    x->version = heft_lit("1");
    heft_status st = heft_ix_reserve(x, at, tensors, heft_cur_left(&c), V1_MIN);
    at = heft_cur_pos(&c);
    for (uint32_t i = 0; i < tensors && !st; i++) {
        heft_gptrs_entry e = { .is_ascii = false };
        c = heft_cur_open(in, at, in->size, "a tensor's record");
        st = read_old_entry(&c, &e, false, is_checkpoint);
        if (!st)
            st = heft_gptrs_add(x, &e, is_checkpoint);
        at = e.offset + e.length;
    }
    return st;
}

/* ---- version 2 with a bincode index ---- */

/* The try_ functions read from an index that is in memory as a whole.  Return false, without an
 * error message, if too few bytes are left. */
static bool try_skip(heft_cur *c, uint64_t n)
{
    return n <= heft_cur_left(c) && heft_cur_take(c, n);
}

static bool try_u32(heft_cur *c, uint64_t *out)
{
    bool fits = heft_cur_left(c) >= 4;
    *out = fits ? heft_cur_u32(c) : 0;
    return fits;
}

static bool try_u64(heft_cur *c, uint64_t *out)
{
    bool fits = heft_cur_left(c) >= 8;
    *out = fits ? heft_cur_u64(c) : 0;
    return fits;
}

/* Return true if the entries fill the index exactly when counts and lengths are read by
 * try_count. */
static bool fills_index(heft_cur c, bool (*try_count)(heft_cur *, uint64_t *), uint64_t base_id)
{
    uint64_t tensors, name_len, rank;
    bool fits = try_count(&c, &tensors);
    for (uint64_t i = 0; fits && i < tensors; i++)
        fits = try_count(&c, &name_len) && try_skip(&c, name_len) && try_skip(&c, base_id) &&
               try_count(&c, &rank) && rank <= heft_cur_left(&c) / 8 && try_skip(&c, 8 * rank) &&
               try_skip(&c, TAIL);
    return fits && !heft_cur_left(&c);
}

/* The upper half of the u64 count of a bincode index is zero.  A regular index may begin with the
 * same bytes if the first name is empty, so both interpretations are tried. */
static bool gptrs_is_bincode(heft_cur index, bool is_checkpoint)
{
    uint64_t base_id = is_checkpoint ? BASE_ID : 0, count;
    heft_cur c = index;
    return try_u64(&c, &count) && count <= UINT32_MAX && !fills_index(index, try_u32, base_id) &&
           fills_index(index, try_u64, base_id);
}

/* Recognise and parse an index in bincode, written on two days in December 2025 under the same
 * version number 2.  The index must be in memory as a whole. */
static heft_status gptrs_parse_bincode(heft_cur *index, heft_index *x, bool is_checkpoint)
{
    uint64_t at = heft_cur_pos(index), tensors = heft_cur_u64(index);
    uint64_t min_bytes = 16 + TAIL + (is_checkpoint ? BASE_ID : 0);
    x->version = heft_lit("2-bincode");
    HEFT_TRY(heft_ix_reserve(x, at, tensors, heft_cur_left(index), min_bytes));
    for (uint64_t i = 0; i < tensors; i++) {
        heft_gptrs_entry e = { .is_ascii = false };
        HEFT_TRY(read_old_entry(index, &e, true, is_checkpoint));
        HEFT_TRY(heft_gptrs_add(x, &e, is_checkpoint));
    }
    return HEFT_OK;
}

/* ---- version 2 ---- */

static inline heft_status read_entry(heft_cur *c, heft_gptrs_entry *e, bool is_checkpoint)
{
    uint32_t id_bytes = is_checkpoint ? BASE_ID : 0;
    e->at = heft_cur_pos(c);
    uint32_t name_len = heft_cur_u32(c);
    const uint8_t *name = heft_cur_take(c, name_len);
    e->is_ascii = name && heft_is_ascii_name(name, name_len);
    e->name = e->is_ascii ? (heft_str){ (const char *)name, name_len }
                          : heft_cur_text_at(c, name, name_len, "a tensor's name");
    const uint8_t *id_and_rank = heft_cur_take(c, id_bytes + 4);
    e->rank = id_and_rank ? heft_le32(id_and_rank + id_bytes) : 0;
    e->dims = heft_cur_take(c, 8 * e->rank + TAIL);
    if (c->st)
        return c->st;
    const uint8_t *tail = e->dims + 8 * e->rank;
    e->base_id = is_checkpoint ? id_and_rank : NULL;
    e->tag = heft_le32(tail);
    e->grad = tail[4];
    e->offset = heft_le64(tail + 5);
    e->length = heft_le64(tail + 13);
    return HEFT_OK;
}

typedef struct payloads {            /* of consecutive entries */
    uint64_t data_start;             /* lowest regular offset: the end of the index */
    uint64_t first_offset, last_end; /* first and last payload that is not empty; 0: none */
    bool is_ascending;
} payloads;

static inline void add_payload(payloads *s, heft_index *x, const heft_gptrs_entry *e)
{
    if (!e->length)
        return;
    if (heft_unlikely(e->offset < s->data_start)) {
        heft_ix_omit(x, HEFT_NOTE, "gptrs/range-in-index", (heft_str){ NULL, 0 },
                     "data that overlap with the header or the index are stored separately");
        heft_ix_note(x, HEFT_WARNING, "gptrs/range-in-index", e->offset, heft_ix_tensors(x) - 1,
                     "its data overlap with the header or the index");
    }
    if (e->offset < s->last_end)
        s->is_ascending = false;
    s->first_offset = s->last_end ? s->first_offset : e->offset;
    s->last_end = e->offset + e->length;
}

typedef struct parallel_read {
    bool is_checkpoint;
    uint64_t data_start;
    payloads payloads[HEFT_IX_CHUNKS];
} parallel_read;

static void skip_entry(const void *ctx, heft_cur *c, uint32_t *rank)
{
    const parallel_read *parallel = ctx;
    uint32_t id_bytes = parallel->is_checkpoint ? BASE_ID : 0;
    heft_cur_take(c, heft_cur_u32(c));
    const uint8_t *id_and_rank = heft_cur_take(c, id_bytes + 4);
    *rank = id_and_rank ? heft_le32(id_and_rank + id_bytes) : 0;
    heft_cur_take(c, UINT64_C(8) * *rank + TAIL);
}

static heft_status read_records(heft_cur *c, heft_index *x, bool is_checkpoint, uint32_t count,
                                payloads *s)
{
    for (uint32_t i = 0; i < count; i++) {
        heft_gptrs_entry e;
        HEFT_TRY(read_entry(c, &e, is_checkpoint));
        HEFT_TRY(heft_gptrs_add(x, &e, is_checkpoint));
        add_payload(s, x, &e);
    }
    return HEFT_OK;
}

static heft_status read_chunk(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t chunk)
{
    parallel_read *parallel = ctx;
    payloads s = { .data_start = parallel->data_start, .is_ascending = true };
    heft_status st = read_records(c, x, parallel->is_checkpoint, count, &s);
    parallel->payloads[chunk] = s;
    return st;
}

static heft_status read_entries(heft_cur *c, heft_index *x, bool is_checkpoint, uint32_t count,
                                payloads *s)
{
    parallel_read parallel = { .is_checkpoint = is_checkpoint, .data_start = s->data_start };
    heft_ix_binary_records records = {
        .skip = skip_entry, .read = read_chunk, .ctx = &parallel, .base_ids = is_checkpoint
    };
    if (!heft_ix_parallel_binary(x, c, count, &records))
        return read_records(c, x, is_checkpoint, count, s);
    for (uint32_t i = 0; i < HEFT_IX_CHUNKS; i++) {
        const payloads *next = &parallel.payloads[i];
        if (!next->last_end)
            continue;
        s->is_ascending = s->is_ascending && next->is_ascending &&
                          next->first_offset >= s->last_end;
        s->first_offset = s->last_end ? s->first_offset : next->first_offset;
        s->last_end = next->last_end;
    }
    return HEFT_OK;
}

static heft_status parse_index(heft_cur *c, heft_index *x, bool is_checkpoint, payloads *s)
{
    uint64_t at = heft_cur_pos(c), min_bytes = 8 + TAIL + (is_checkpoint ? BASE_ID : 0);
    uint32_t tensors = heft_cur_u32(c);
    if (c->st)
        return c->st;
    x->version = heft_lit("2");
    HEFT_TRY(heft_ix_reserve(x, at, tensors, heft_cur_left(c), min_bytes));
    HEFT_TRY(read_entries(c, x, is_checkpoint, tensors, s));
    if (heft_cur_left(c)) {
        heft_ix_omit(x, HEFT_WARNING, "gptrs/index-length", (heft_str){ NULL, 0 },
                     "the bytes of the index after the last entry are left out");
        heft_ix_note(x, HEFT_WARNING, "gptrs/index-length", heft_cur_pos(c), HEFT_NONE,
                     "the index is longer than its entries");
    }
    return HEFT_OK;
}

/* Parse a version-2 file from the length of the index, at offset `at`, to the end. */
static heft_status parse_v2(heft_window *in, heft_index *x, uint64_t at, bool is_checkpoint)
{
    heft_cur c = heft_cur_open(in, at, 4, "the length of the index");
    uint32_t length = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    c = heft_cur_whole(in, at + 4, length, "the index");
    if (c.st)
        return c.st;
    if (gptrs_is_bincode(c, is_checkpoint))
        return gptrs_parse_bincode(&c, x, is_checkpoint);
    payloads s = { .data_start = at + 4 + length, .is_ascending = true };
    heft_status st = parse_index(&c, x, is_checkpoint, &s);
    if (st || s.is_ascending)
        return st;
    /* Equal ranges are tied weights; any partial overlap is unusual. */
    return heft_ix_note_overlaps(x, "gptrs/overlap",
                                 "its data overlap partly with another tensor's", true);
}

/* Check config_json, whose length field is at offset *at; add the part "config" and advance *at
 * past config_json. */
static heft_status parse_config(heft_window *in, heft_index *x, uint64_t *at,
                                heft_gptrs_config *config)
{
    heft_cur c = heft_cur_open(in, *at, 4, "the length of config_json");
    uint32_t length = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    heft_range range = { *at + 4, length };
    c = heft_cur_whole(in, range.offset, range.length, "config_json");
    heft_str text = { (const char *)heft_cur_take(&c, length), length };
    if (c.st)
        return c.st;
    HEFT_TRY(
        heft_gptrs_config_read(config, text, range.offset, x->limits.depth, &x->arena, x->err));
    if (config->has_invalid_runtime)
        heft_ix_note(x, HEFT_WARNING, "gptrs/config-runtime", range.offset, HEFT_NONE,
                     "config_json: \"runtime\" is neither null nor an object");
    *at = range.offset + length;
    return heft_ix_part(x, HEFT_NONE, heft_lit("config"), HEFT_UNTYPED, range, length, HEFT_RAW);
}

static heft_status parse(heft_window *in, heft_index *x, bool is_checkpoint)
{
    heft_cur c = heft_cur_open(in, 0, MAGIC + 4, "the header");
    const uint8_t *magic = heft_cur_take(&c, MAGIC);
    uint32_t version = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    if (memcmp(magic, heft_gptrs_magic(is_checkpoint), MAGIC) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "the file does not begin with '%s'",
                              heft_gptrs_magic(is_checkpoint));
    if (version != 1 && version != 2)
        return heft_error_set(x->err, HEFT_E_FORMAT, MAGIC, "version %U is neither 1 nor 2",
                              (uint64_t)version);
    uint64_t at = MAGIC + 4;
    heft_gptrs_config config = { false, false };
    if (is_checkpoint)
        HEFT_TRY(parse_config(in, x, &at, &config));
    HEFT_TRY(version == 1 ? gptrs_parse_v1(in, x, at, is_checkpoint)
                          : parse_v2(in, x, at, is_checkpoint));
    if (config.is_untagged && heft_str_is(x->version, "2"))
        heft_ix_note(x, HEFT_WARNING, "gptrs/config-untagged", MAGIC + 8, HEFT_NONE,
                     "config_json is a bare GPT configuration without \"kind\"");
    if (is_checkpoint)
        heft_gptrs_note_base_ids(x);
    return HEFT_OK;
}

static heft_status parse_checkpoint(heft_window *in, heft_index *x)
{
    return parse(in, x, true);
}

static heft_status parse_archive(heft_window *in, heft_index *x)
{
    return parse(in, x, false);
}

/* ---- the formats ---- */

static const heft_name_rules name_rules = { "gptrs/name", NULL, NULL, "gptrs/rank" };

const heft_format heft_format_gptrs_checkpoint = {
    .name = "gptrs-checkpoint",
    .title = "gpt-rs checkpoint",
    .structure_rule = "gptrs-checkpoint/structure",
    .suffixes = ".gptrs",
    .versions = "2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT,
    .align = ALIGN,
    .magics = "GPTRSCHK",
    .parse = parse_checkpoint,
    .name_rules = &name_rules,
    .check = heft_gptrs_check_base_ids,
};

const heft_format_writer heft_format_writer_gptrs_checkpoint = {
    .plan = heft_gptrs_plan_checkpoint,
    .write_header = heft_gptrs_write_header,
};

const heft_format heft_format_gptrs_archive = {
    .name = "gptrs-archive",
    .title = "gpt-rs tensor archive",
    .structure_rule = "gptrs-archive/structure",
    .suffixes = ".gten",
    .versions = "2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT,
    .align = ALIGN,
    .magics = "GPTRSTEN",
    .parse = parse_archive,
    .name_rules = &name_rules,
};

const heft_format_writer heft_format_writer_gptrs_archive = {
    .plan = heft_gptrs_plan_archive,
    .write_header = heft_gptrs_write_header,
};
