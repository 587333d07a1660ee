/* delta_disk.c - writes a disk delta, as miles, slime and SGLang read it: one safetensors file with
 * a zstd frame for each tensor that changed, and an index.
 *
 * Tensors are compared and compressed on all threads, each as a whole, since a frame has its length
 * in front; the frames stay in memory until the file can be laid out. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/out.h"
#include "core/read/progress.h"
#include "core/read/stream.h"
#include "core/write/plan/plan.h"
#include "delta/delta_pair.h"
#include "delta/delta_settle.h"
#include "grammar/json.h"

enum { BUFFER = 256 << 10 };
static const char purpose[] = "to make a delta";
static const char file_name[] = "model-00000-of-00001.safetensors";

typedef struct frame {
    uint32_t tensor; /* number in the new model */
    uint8_t *bytes;  /* NULL: the tensor does not change */
    size_t length, room;
    uint64_t changed; /* bytes */
    char checksum[2 * HEFT_HASH_BYTES];
} frame;

typedef struct maker {
    const heft_file *old, *new;
    const heft_host *host;
    heft_disk_delta_options opt;
    heft_memory mem;
    const heft_codec *codec;
    const heft_digest *digest;
    bool overwrites;
    heft_progress progress;
    frame *frames; /* by tensor of the new model */
    uint32_t count;
    heft_delta_sums sums;
    heft_error *err;
} maker;

/* ---- a tensor, on any thread ---- */

typedef struct pair { /* the bytes of a tensor, old and new */
    const maker *m;
    uint64_t length;
    uint8_t *old, *new;
    size_t room;
    heft_error *err;
} pair;

static heft_status read_pair(pair *p, uint32_t old_part, uint32_t new_part)
{
    const heft_file *a = p->m->old, *b = p->m->new;
    p->length = heft_ix_part_row_at(&b->x, new_part)->length;
    bool fits = p->length < SIZE_MAX / 8;
    p->room = fits ? 2 * (size_t)p->length + 1 : 0;
    p->old = fits ? heft_alloc(p->m->host->allocator, p->room, 64) : NULL;
    if (!p->old)
        return heft_error_no_memory(p->err, purpose);
    p->new = p->old + p->length;
    heft_status st = heft_read_checked(p->old, a, old_part, heft_part_checksum(a, old_part, false),
                                       p->err);
    HEFT_TRY(heft_error_input(p->err, st, HEFT_INPUT_FIRST));
    st = heft_read_checked(p->new, b, new_part, heft_part_checksum(b, new_part, false), p->err);
    return heft_error_input(p->err, st, HEFT_INPUT_SECOND);
}

static heft_status put_checksum(frame *f, const pair *p)
{
    uint8_t got[64];
    heft_running_digest r = { .digest = NULL };
    HEFT_TRY(heft_running_digest_begin(&r, p->m->digest, p->m->host->allocator, purpose, p->err));
    heft_running_digest_update(&r, p->new, (size_t)p->length);
    heft_running_digest_end(&r, got);
    heft_running_digest_close(&r);
    heft_hex_text(f->checksum, got, p->m->digest->bytes);
    return HEFT_OK;
}

static heft_status encode(frame *f, const pair *p, const void *data, size_t len)
{
    const heft_codec *c = p->m->codec;
    void *state = NULL;
    f->room = c->bound(len);
    f->bytes = heft_alloc(p->m->host->allocator, f->room, 64);
    if (!f->bytes)
        return heft_error_no_memory(p->err, purpose);
    f->length = f->room;
    heft_status st = c->encoder_open(&state, 1, false, p->err);
    if (!st)
        st = c->encode(state, f->bytes, &f->length, data, len, p->err);
    if (state)
        c->encoder_close(state);
    return st;
}

static heft_status encode_xor(frame *f, const pair *p)
{
    for (uint64_t i = 0; i < p->length; i++)
        p->old[i] ^= p->new[i];
    return encode(f, p, p->old, (size_t)p->length);
}

/* Lay out the count, the positions, and the bytes there. */
static heft_status encode_overwrite(frame *f, const pair *p, heft_str name)
{
    if (p->length > UINT32_MAX)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "tensor %q has 4 GiB or more, which positions of 32 bits do not "
                                "reach: choose the encoding xor",
                                name);
    size_t room = 4 + 5 * (size_t)f->changed, at = 4, values = 4 + 4 * (size_t)f->changed;
    uint8_t *list = heft_alloc(p->m->host->allocator, room, 64);
    if (!list)
        return heft_error_no_memory(p->err, purpose);
    for (unsigned k = 0; k < 4; k++)
        list[k] = (uint8_t)(f->changed >> 8 * k);
    for (uint64_t i = 0; i < p->length; i++) {
        if (p->old[i] == p->new[i])
            continue;
        for (unsigned k = 0; k < 4; k++)
            list[at++] = (uint8_t)(i >> 8 * k);
        list[values++] = p->new[i];
    }
    heft_status st = encode(f, p, list, room);
    heft_free(p->m->host->allocator, list, room, 64);
    return st;
}

static heft_status make_frame(const maker *m, frame *f, heft_error *err)
{
    heft_str name = heft_ix_name(&m->new->x, f->tensor);
    pair p = { .m = m, .err = err };
    uint32_t old = heft_tensor_find(m->old, name);
    heft_status st = read_pair(&p, heft_ix_row(&m->old->x, old)->first_part,
                               heft_ix_row(&m->new->x, f->tensor)->first_part);
    for (uint64_t i = 0; i < p.length && !st; i++)
        f->changed += p.old[i] != p.new[i];
    if (!st && f->changed)
        st = put_checksum(f, &p);
    if (!st && f->changed)
        st = m->overwrites ? encode_overwrite(f, &p, name) : encode_xor(f, &p);
    heft_free(m->host->allocator, p.old, p.room, 64);
    return st;
}

static void run_frame(void *arg, size_t i)
{
    maker *m = arg;
    heft_error err;
    if (heft_progress_halted(&m->progress))
        return;
    heft_status st = make_frame(m, &m->frames[i], &err);
    if (st)
        heft_progress_fail(&m->progress, st, &err);
    heft_progress_add(&m->progress, 2 * heft_tensor_bytes(m->new, m->frames[i].tensor));
}

/* ---- what does not travel ---- */

static heft_status refuse(const maker *m, heft_str name, const char *what)
{
    heft_status st = heft_error_plain(m->err, HEFT_E_LOSSY,
                                      "tensor %q %s: a disk delta has new values of tensors only",
                                      name, what);
    return heft_error_rule(m->err, st, "heft/delta");
}

static heft_status check_tensor(maker *m, uint32_t t)
{
    const heft_index *x = &m->old->x, *y = &m->new->x;
    heft_str name = heft_ix_name(y, t);
    uint32_t old = heft_tensor_find(m->old, name);
    if (old == HEFT_NONE)
        return refuse(m, name, "is new");
    const heft_ix_tensor_row *a = heft_ix_row(x, old), *b = heft_ix_row(y, t);
    if (a->dtype != b->dtype || a->rank != b->rank ||
        (a->rank &&
         memcmp(heft_ix_dims(x, old), heft_ix_dims(y, t), a->rank * sizeof(uint64_t)) != 0))
        return refuse(m, name, "has another type or shape");
    if (a->layout != HEFT_DENSE || b->layout != HEFT_DENSE || a->part_count != 1 ||
        b->part_count != 1)
        return refuse(m, name, "is not dense");
    m->sums.bytes += heft_tensor_bytes(m->new, t);
    return HEFT_OK;
}

static heft_status note_metadata(const maker *m)
{
    const heft_index *x = &m->old->x, *y = &m->new->x;
    bool is_same = x->values.len == y->values.len;
    for (uint32_t i = 0; i < y->values.len && is_same; i = heft_ix_value_next(y, i))
        is_same = heft_ix_same_value(x, i, y, i);
    if (is_same)
        return HEFT_OK;
    static const char text[] = "the metadata changed, which a disk delta does not carry";
    if (m->opt.on_loss)
        m->opt.on_loss(m->opt.ctx, m->opt.strict ? HEFT_FAULT : HEFT_WARNING, "heft/delta",
                       (heft_str){ NULL, 0 }, text);
    if (!m->opt.strict)
        return HEFT_OK;
    return heft_error_rule(m->err, heft_error_plain(m->err, HEFT_E_LOSSY, "%s", text),
                           "heft/delta");
}

static heft_status check_models(maker *m)
{
    HEFT_TRY(heft_delta_are_complete(m->old, m->new, m->err));
    for (uint32_t t = 0; t < heft_ix_tensors(&m->new->x); t++)
        HEFT_TRY(check_tensor(m, t));
    for (uint32_t t = 0; t < heft_ix_tensors(&m->old->x); t++)
        if (heft_tensor_find(m->new, heft_ix_name(&m->old->x, t)) == HEFT_NONE)
            return refuse(m, heft_ix_name(&m->old->x, t), "is gone");
    return note_metadata(m);
}

/* ---- the files ---- */

static heft_status open_sink(const maker *m, heft_sink **out, const char *name)
{
    heft_status st = m->opt.open(out, m->opt.open_ctx, name, m->err);
    return heft_error_about(m->err, st, HEFT_ABOUT_TARGET);
}

static heft_status add_frames(const maker *m, heft_writer *w)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const frame *f = &m->frames[i];
        heft_str digits = { f->checksum, 2 * (size_t)m->digest->bytes };
        heft_str name = heft_ix_name(&m->new->x, f->tensor);
        const uint64_t dims[] = { f->length };
        uint32_t part;
        if (!f->bytes)
            continue;
        HEFT_TRY(heft_writer_add_meta(w, heft_value_str(name, digits), m->err));
        HEFT_TRY(heft_writer_add_dense(&part, w, name, HEFT_U8, dims, 1, m->err));
    }
    return HEFT_OK;
}

static heft_status write_file(const maker *m)
{
    heft_sink *sink;
    heft_writer *w;
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    uint32_t part = 0;
    const heft_format *format = heft_format_find(heft_lit("safetensors"));
    if (!format || !(heft_format_caps(format) & HEFT_CAN_WRITE))
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "this build does not write safetensors, the format of disk deltas");
    o.host = m->host;
    HEFT_TRY(open_sink(m, &sink, file_name));
    HEFT_TRY(heft_writer_open(&w, format, sink, &o, m->err));
    heft_status st = add_frames(m, w);
    if (!st)
        st = heft_writer_begin(w, m->err);
    for (uint32_t i = 0; i < m->count && !st; i++)
        if (m->frames[i].bytes)
            st = heft_writer_write(w, part++, m->frames[i].bytes, m->frames[i].length, m->err);
    if (!st)
        return heft_writer_finish(w, m->err);
    heft_writer_discard(w);
    return st;
}

static void put_member(heft_out *o, const char *key, const char *before)
{
    heft_out_str(o, heft_lit(before));
    heft_json_put_str(o, heft_lit(key));
    heft_out_str(o, heft_lit(": "));
}

static void put_version(heft_out *o, uint32_t version)
{
    heft_out_str(o, heft_lit("\""));
    heft_out_decimal(o, version, 6);
    heft_out_str(o, heft_lit("\""));
}

static void put_index(heft_out *o, const maker *m)
{
    uint32_t version = m->opt.version ? m->opt.version : 1;
    const char *separator = "\n    ";
    put_member(o, "metadata", "{\n  ");
    put_member(o, "version", "{\n    ");
    put_version(o, version);
    put_member(o, "base_version", ",\n    ");
    put_version(o, version - 1);
    put_member(o, "delta_encoding", ",\n    ");
    heft_json_put_str(o, heft_lit(m->overwrites ? "overwrite" : "xor"));
    put_member(o, "compression_format", ",\n    ");
    heft_json_put_str(o, heft_lit("zstd"));
    put_member(o, "checksum_format", ",\n    ");
    heft_json_put_str(o, heft_lit(m->digest->name));
    put_member(o, "weight_map", "\n  },\n  ");
    heft_out_str(o, heft_lit("{"));
    for (uint32_t i = 0; i < m->count; i++) {
        if (!m->frames[i].bytes)
            continue;
        heft_out_str(o, heft_lit(separator));
        separator = ",\n    ";
        heft_json_put_str(o, heft_ix_name(&m->new->x, m->frames[i].tensor));
        heft_out_str(o, heft_lit(": "));
        heft_json_put_str(o, heft_lit(file_name));
    }
    heft_out_str(o, heft_lit("\n  }\n}\n"));
}

typedef struct index_output {
    heft_sink *sink;
    heft_error *err;
} index_output;

static heft_status flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    const index_output *f = ctx;
    return heft_sink_put(f->sink, at, data, len, f->err);
}

static heft_status write_index(maker *m)
{
    index_output f = { .err = m->err };
    uint8_t *buf = heft_mem_alloc(&m->mem, BUFFER);
    heft_out o = { .buf = buf, .cap = BUFFER, .flush = flush, .ctx = &f };
    if (!buf)
        return heft_error_no_memory(m->err, purpose);
    heft_status st = open_sink(m, &f.sink, "model.safetensors.index.json");
    if (!st) {
        put_index(&o, m);
        st = heft_sink_end(f.sink, heft_out_flush(&o), m->err);
    }
    heft_mem_free(&m->mem, buf, BUFFER);
    return st;
}

/* ---- the whole ---- */

static heft_status choose(maker *m)
{
    const char *encoding = m->opt.encoding ? m->opt.encoding : "xor";
    const char *checksum = m->opt.checksum ? m->opt.checksum : "adler32";
    m->overwrites = heft_str_is(heft_lit(encoding), "overwrite");
    if (!m->overwrites && !heft_str_is(heft_lit(encoding), "xor"))
        return heft_error_plain(m->err, HEFT_E_ARGUMENT,
                                "the encoding of a disk delta is xor or overwrite, not %s",
                                encoding);
    bool is_known = heft_str_has_word(heft_lit("xxh3-128 blake3 adler32"), heft_lit(checksum));
    if (!is_known)
        return heft_error_plain(
            m->err, HEFT_E_ARGUMENT,
            "the checksum of a disk delta is xxh3-128, blake3 or adler32, not %s", checksum);
    m->digest = heft_delta_digest(m->host, checksum);
    m->codec = heft_host_codec(m->host, HEFT_ZSTD);
    if (!m->digest || !m->codec || !m->codec->encode)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED, "this build lacks %s",
                                m->digest ? "zstd" : checksum);
    return m->opt.open
               ? HEFT_OK
               : heft_error_plain(m->err, HEFT_E_ARGUMENT, "there is no function that opens sinks");
}

static heft_status make_frames(maker *m)
{
    m->count = heft_ix_tensors(&m->new->x);
    m->frames = heft_mem_alloc(&m->mem, ((size_t)m->count + 1) * sizeof *m->frames);
    if (!m->frames)
        return heft_error_no_memory(m->err, purpose);
    for (uint32_t i = 0; i < m->count; i++)
        m->frames[i] = (frame){ .tensor = i };
    m->progress =
        (heft_progress){ .fn = m->opt.progress, .ctx = m->opt.ctx, .total = 2 * m->sums.bytes };
    heft_host_run(m->host, m->count, run_frame, m);
    HEFT_TRY(heft_progress_end(&m->progress, m->err));
    for (uint32_t i = 0; i < m->count; i++) {
        m->sums.tensors[m->frames[i].bytes ? HEFT_CHANGE_SPARSE : HEFT_CHANGE_NONE]++;
        m->sums.changed_bytes += m->frames[i].changed;
    }
    return HEFT_OK;
}

static heft_status make(maker *m)
{
    HEFT_TRY(choose(m));
    HEFT_TRY(check_models(m));
    HEFT_TRY(make_frames(m));
    HEFT_TRY(heft_delta_are_unchanged(m->old, m->new, m->err));
    if (m->sums.tensors[HEFT_CHANGE_SPARSE])
        HEFT_TRY(write_file(m));
    return write_index(m);
}

heft_status heft_delta_make_disk(heft_delta_sums *out, const heft_file *old_model,
                                 const heft_file *new_model, const heft_disk_delta_options *opt,
                                 heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    maker m = { .old = old_model,
                .new = new_model,
                .host = new_model->host,
                .opt = HEFT_DISK_DELTA_OPTIONS_INIT,
                .mem = { new_model->host->allocator, UINT64_MAX, 0 },
                .err = err };
    HEFT_TRY(heft_sized_copy(&m.opt, sizeof m.opt, opt, err));
    heft_file_enter(old_model);
    heft_file_enter(new_model);
    heft_status st = make(&m);
    st = heft_file_leave_input(new_model, HEFT_INPUT_SECOND, st, err);
    st = heft_file_leave_input(old_model, HEFT_INPUT_FIRST, st, err);
    for (uint32_t i = 0; m.frames && i < m.count; i++)
        heft_free(m.host->allocator, m.frames[i].bytes, m.frames[i].room, 64);
    heft_mem_free(&m.mem, m.frames, ((size_t)m.count + 1) * sizeof *m.frames);
    if (out)
        *out = m.sums;
    return heft_error_end(err, st);
}
