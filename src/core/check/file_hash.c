/* file_hash.c - hashes tensors and models independently of the file format, as docs/hash.md
 * specifies.  Each part is hashed in pieces, on all threads; the part's digest is the hash of the
 * pieces' digests. */
#include "core/check/tensor_hash.h"
#include "core/check/verification.h"
#include "core/read/checked_read.h"
#include "core/read/decode.h"
#include "core/read/input_window.h"
#include "core/read/progress.h"
#include "core/read/stream.h"

#include "base/bisect.h"
#include "base/blake3.h"
#include "base/sort.h"

enum { PIECE = 1 << 20, MOST_PARTS = UINT16_MAX };

typedef struct piece {
    uint64_t from;
    uint32_t part;
} piece;

typedef struct hashing {
    const heft_file *f;
    heft_memory mem;
    heft_progress *progress;
    heft_vec parts;  /* ordered; the parts of the chosen tensors */
    heft_vec pieces; /* ordered by part */
    heft_hash *digests;
    heft_checked_read checks;
} hashing;

static const char purpose[] = "to hash the model";

static void put_u32(heft_blake3 *h, uint32_t v)
{
    uint8_t b[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };
    heft_blake3_update(h, b, sizeof b);
}

static void put_u64(heft_blake3 *h, uint64_t v)
{
    put_u32(h, (uint32_t)v);
    put_u32(h, (uint32_t)(v >> 32));
}

static void put_str(heft_blake3 *h, heft_str s)
{
    put_u32(h, (uint32_t)s.len);
    heft_blake3_update(h, s.ptr, s.len);
}

/* ---- pieces ---- */

static bool number_less(const void *ctx, uint32_t a, uint32_t b)
{
    (void)ctx;
    return a < b;
}

static heft_status add_parts(hashing *s, uint32_t tensor, heft_error *err)
{
    const heft_ix_tensor_row *row = heft_ix_row(&s->f->x, tensor);
    for (uint32_t i = 0; i < row->part_count; i++) {
        uint32_t part = row->first_part + i;
        if (!heft_vec_add(&s->mem, &s->parts, &part, sizeof part))
            return heft_error_no_memory(err, purpose);
    }
    return HEFT_OK;
}

/* Sort the parts; a tensor that is listed twice counts once. */
static heft_status sort_parts(hashing *s, heft_error *err)
{
    size_t bytes = (s->parts.len + (size_t)1) * sizeof(uint32_t);
    uint32_t *scratch = heft_mem_alloc(&s->mem, bytes), *parts = s->parts.ptr, kept = 0;
    if (!scratch)
        return heft_error_no_memory(err, purpose);
    if (s->parts.len)
        heft_sort(parts, scratch, s->parts.len, number_less, NULL);
    heft_mem_free(&s->mem, scratch, bytes);
    for (uint32_t i = 0; i < s->parts.len; i++)
        if (!kept || parts[kept - 1] != parts[i])
            parts[kept++] = parts[i];
    s->parts.len = kept;
    return HEFT_OK;
}

/* Choose the parts of the file that hold content that is left out of the model. */
static heft_status choose_left_out(hashing *s, heft_error *err)
{
    const heft_index *x = &s->f->x;
    for (uint32_t part = x->parts.len; heft_ix_has_part(x, part); part++)
        if (heft_ix_part_row_at(x, part)->flags & HEFT_P_LEFT_OUT &&
            !heft_vec_add(&s->mem, &s->parts, &part, sizeof part))
            return heft_error_no_memory(err, purpose);
    return HEFT_OK;
}

static heft_status choose_parts(hashing *s, const uint32_t *tensors, uint32_t count,
                                heft_error *err)
{
    uint32_t all = heft_ix_tensors(&s->f->x);
    for (uint32_t i = 0; i < count; i++) {
        if (tensors && tensors[i] >= all)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "tensor %U does not exist: the file has %U",
                                    (uint64_t)tensors[i], (uint64_t)all);
        HEFT_TRY(add_parts(s, tensors ? tensors[i] : i, err));
    }
    return sort_parts(s, err);
}

static heft_status split_pieces(hashing *s, heft_error *err)
{
    const uint32_t *parts = s->parts.ptr;
    for (uint32_t i = 0; i < s->parts.len; i++) {
        uint32_t part = parts[i];
        uint64_t length = heft_ix_part_row_at(&s->f->x, part)->length;
        for (uint64_t from = 0; from < length; from += PIECE) {
            piece p = { from, part };
            if (!heft_vec_add(&s->mem, &s->pieces, &p, sizeof p))
                return heft_error_no_memory(err, purpose);
        }
        s->progress->total += length;
    }
    s->digests = heft_mem_alloc(&s->mem, (s->pieces.len + (size_t)1) * sizeof *s->digests);
    return s->digests ? HEFT_OK : heft_error_no_memory(err, purpose);
}

static heft_status hash_bytes(const hashing *s, heft_stream *stream, size_t len, heft_blake3 *h,
                              heft_error *err)
{
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, s->f->host->allocator, NULL, len, err);
    while (!st && heft_chunks_next(&c)) {
        st = heft_stream_read(c.buf, stream, c.len, err);
        if (!st)
            heft_blake3_update(h, c.data, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

/* Hash piece i from the stream, positioned there.  stream NULL: the part is in place. */
static heft_status hash_piece(hashing *s, size_t i, heft_stream *stream, heft_error *err)
{
    const piece *p = (const piece *)s->pieces.ptr + i;
    const heft_ix_part_row *row = heft_ix_part_row_at(&s->f->x, p->part);
    size_t len = row->length - p->from < PIECE ? (size_t)(row->length - p->from) : PIECE;
    heft_status st = HEFT_OK;
    heft_blake3 h;
    heft_blake3_init(&h);
    if (stream) {
        st = hash_bytes(s, stream, len, &h, err);
    } else { /* compute checksums while the bytes are in the cache */
        const uint8_t *data = (const uint8_t *)heft_part_view(s->f, p->part) + p->from;
        st = heft_file_count_read(s->f, p->part, len, err);
        if (!st)
            heft_blake3_update(&h, data, len);
        if (!st)
            st = heft_ledger_show(&s->checks.ledger, row->offset + p->from, data, len, err);
    }
    heft_blake3_final(&h, s->digests[i].bytes);
    heft_progress_add(s->progress, len);
    return st;
}

/* Hash a piece of a raw part.  Without random access (compressed part, or digest that cannot be
 * joined) the first piece of a part hashes all pieces, and the rest do nothing. */
static heft_status hash_streamed(hashing *s, size_t i, uint32_t digest, heft_error *err)
{
    const piece *p = (const piece *)s->pieces.ptr + i;
    const heft_ix_part_row *row = heft_ix_part_row_at(&s->f->x, p->part);
    bool splits = row->encoding == HEFT_RAW && digest == HEFT_NONE;
    heft_stream stream;
    if (!splits && p->from)
        return HEFT_OK;
    HEFT_TRY(heft_stream_start(&stream, s->f, p->part, err));
    heft_status st = heft_stream_skip(&stream, p->from, err);
    if (!st)
        st = heft_stream_check(&stream, digest, err);
    stream.crcs = heft_ix_is_plain(row) && s->checks.ledger.checksums ? &s->checks.ledger.crcs
                                                                      : NULL;
    do {
        st = st ? st : hash_piece(s, i++, &stream, err);
        p = (const piece *)s->pieces.ptr + i;
    } while (!st && !splits && i < s->pieces.len && p->from && !heft_progress_halted(s->progress));
    heft_stream_stop(&stream);
    return st;
}

static void run_piece(void *arg, size_t i)
{
    hashing *s = arg;
    const piece *p = (const piece *)s->pieces.ptr + i;
    heft_error err;
    if (heft_progress_halted(s->progress))
        return;
    uint32_t digest = heft_ledger_in_order(&s->checks.ledger, p->part);
    heft_status st = digest == HEFT_NONE && heft_part_in_place(s->f, p->part)
                         ? hash_piece(s, i, NULL, &err)
                         : hash_streamed(s, i, digest, &err);
    if (st)
        heft_progress_fail(s->progress, st, &err);
}

/* ---- tensors ---- */

static void put_part_digest(heft_blake3 *h, const heft_index *x, const heft_ix_part_row *row,
                            const heft_hash *digest)
{
    put_str(h, heft_ix_role(x, row->role));
    put_u64(h, row->length);
    heft_blake3_update(h, digest->bytes, HEFT_HASH_BYTES);
}

static void put_part(const hashing *s, heft_blake3 *h, uint32_t part)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&s->f->x, part);
    const piece *pieces = s->pieces.ptr;
    heft_blake3 own;
    heft_hash digest;
    heft_blake3_init(&own);
    heft_bisect b = { .end = s->pieces.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, pieces[b.mid].part < part);
    for (uint32_t i = b.first; i < s->pieces.len && pieces[i].part == part; i++)
        heft_blake3_update(&own, s->digests[i].bytes, HEFT_HASH_BYTES);
    heft_blake3_final(&own, digest.bytes);
    put_part_digest(h, &s->f->x, row, &digest);
}

static void put_description(heft_blake3 *h, const heft_index *x, uint32_t id)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, id);
    put_str(h, heft_lit("heft tensor 1"));
    put_str(h, heft_lit(heft_dtype_name(row->dtype)));
    put_u32(h, row->rank);
    for (uint32_t i = 0; i < row->rank; i++)
        put_u64(h, heft_ix_dims(x, id)[i]);
    put_str(h, heft_ix_layout(x, id));
    put_u32(h, row->part_count);
}

void heft_hash_one_part(heft_hash *out, const heft_index *x, uint32_t tensor,
                        const heft_blake3 *pieces)
{
    heft_blake3 h;
    heft_hash digest;
    heft_blake3_final(pieces, digest.bytes);
    heft_blake3_init(&h);
    put_description(&h, x, tensor);
    put_part_digest(&h, x, heft_ix_part_row_at(x, heft_ix_row(x, tensor)->first_part), &digest);
    heft_blake3_final(&h, out->bytes);
}

static void hash_tensor(const hashing *s, uint32_t id, uint32_t *order, heft_hash *out)
{
    const heft_index *x = &s->f->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, id);
    heft_blake3 h;
    heft_blake3_init(&h);
    put_description(&h, x, id);
    for (uint32_t i = 0; i < row->part_count; i++)
        order[i] = row->first_part + i;
    heft_sort(order, order + MOST_PARTS, row->part_count, heft_ix_role_before, x);
    for (uint32_t i = 0; i < row->part_count; i++)
        put_part(s, &h, order[i]);
    heft_blake3_final(&h, out->bytes);
}

/* Hash the chosen parts, which are content that is left out. */
static void hash_left_out(const hashing *s, uint32_t *order, heft_hash *out)
{
    uint32_t count = s->parts.len;
    heft_blake3 h;
    heft_blake3_init(&h);
    put_str(&h, heft_lit("heft left out 1"));
    put_u32(&h, count);
    if (count)
        memcpy(order, s->parts.ptr, count * sizeof *order);
    heft_sort(order, order + count, count, heft_ix_role_before, &s->f->x);
    for (uint32_t i = 0; i < count; i++)
        put_part(s, &h, order[i]);
    heft_blake3_final(&h, out->bytes);
}

/* ---- the model ---- */

/* Hash the model; left_out is the hash of the content that is left out, or NULL without any. */
static void hash_model(const heft_index *x, const heft_hash *tensors, const heft_hash *left_out,
                       uint32_t *order, heft_hash *out)
{
    uint32_t n = heft_ix_tensors(x);
    heft_blake3 h;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    heft_sort(order, order + n, n, heft_ix_name_before, x);
    heft_blake3_init(&h);
    put_str(&h, heft_lit("heft model 1"));
    for (uint32_t i = 0; i < n; i++) {
        put_str(&h, heft_ix_name(x, order[i]));
        heft_blake3_update(&h, tensors[order[i]].bytes, HEFT_HASH_BYTES);
    }
    if (left_out)
        heft_blake3_update(&h, left_out->bytes, HEFT_HASH_BYTES);
    heft_blake3_final(&h, out->bytes);
}

/* ---- choices of callers ---- */

typedef struct choice {      /* tensors to hash, and where the hashes go */
    const uint32_t *tensors; /* NULL: all tensors */
    uint32_t count;
    heft_hash *out;
    heft_hash *left_out; /* receives the hash of the content that is left out; or NULL */
} choice;

static heft_status hash_chosen(hashing *s, const choice *c, heft_error *err)
{
    uint32_t max_count = c->left_out && s->parts.len > MOST_PARTS ? s->parts.len : MOST_PARTS;
    size_t bytes = 2 * (size_t)max_count * sizeof(uint32_t);
    uint32_t *order = heft_mem_alloc(&s->mem, bytes);
    if (!order)
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < c->count; i++)
        hash_tensor(s, c->tensors ? c->tensors[i] : i, order, &c->out[i]);
    if (c->left_out)
        hash_left_out(s, order, c->left_out);
    heft_mem_free(&s->mem, order, bytes);
    return HEFT_OK;
}

static heft_status hash_bytes_of(hashing *s, const choice *c, heft_error *err)
{
    static const uint32_t none;
    const heft_file *f = s->f;
    bool is_whole = !c->tensors || f->missing;
    if (is_whole)
        HEFT_TRY(heft_file_is_complete(f, err));
    HEFT_TRY(heft_check_lengths(f, err));
    HEFT_TRY(c->left_out ? choose_left_out(s, err) : choose_parts(s, c->tensors, c->count, err));
    HEFT_TRY(split_pieces(s, err));
    const uint32_t *parts = s->parts.len ? s->parts.ptr : &none; /* NULL would be all parts */
    HEFT_TRY(heft_checked_read_begin(&s->checks, f, f->check_parts, true, c->tensors ? parts : NULL,
                                     s->parts.len, err));
    heft_host_run(f->host, s->pieces.len, run_piece, s);
    HEFT_TRY(heft_progress_end(s->progress, err));
    HEFT_TRY(heft_checked_read_end(&s->checks, err));
    return hash_chosen(s, c, err);
}

static heft_status hash_file(const heft_file *f, const choice *c, heft_progress_fn on_progress,
                             void *progress_ctx, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_progress progress = { .fn = on_progress, .ctx = progress_ctx };
    hashing s = { .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 }, .progress = &progress };
    heft_file_enter(f); /* names are mapped, too */
    heft_status st = heft_file_end_reading(f, hash_bytes_of(&s, c, err), err);
    heft_ledger_free(&s.checks.ledger);
    heft_mem_free(&s.mem, s.digests, (s.pieces.len + (size_t)1) * sizeof *s.digests);
    heft_vec_free(&s.mem, &s.pieces, sizeof(piece));
    heft_vec_free(&s.mem, &s.parts, sizeof(uint32_t));
    return heft_error_end(err, st);
}

heft_status heft_left_out_hash(heft_hash *out, bool *has_any, const heft_file *f, heft_error *err)
{
    static const uint32_t none;
    const heft_index *x = &f->x;
    choice left_out = { .tensors = &none, .left_out = out };
    *has_any = x->left_out_unread;
    for (uint32_t part = x->parts.len; heft_ix_has_part(x, part); part++)
        *has_any = *has_any || heft_ix_part_row_at(x, part)->flags & HEFT_P_LEFT_OUT;
    if (!*has_any)
        return HEFT_OK;
    if (x->left_out_unread)
        return heft_error_rule(
            err,
            heft_error_plain(err, HEFT_E_UNSUPPORTED,
                             "the model has no digest, because not all of its content can be read: "
                             "%U left out",
                             (uint64_t)x->left_out_unread),
            "heft/left-out");
    return hash_file(f, &left_out, NULL, NULL, err);
}

heft_status heft_hash_model(heft_hash *model, const heft_hash *tensors, const heft_file *f,
                            heft_error *err)
{
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    heft_error own;
    heft_hash left_out;
    bool has_left_out;
    err = heft_error_begin(err, &own);
    HEFT_TRY(heft_left_out_hash(&left_out, &has_left_out, f, err));
    size_t bytes = (2 * (size_t)heft_ix_tensors(&f->x) + 1) * sizeof(uint32_t);
    uint32_t *order = heft_mem_alloc(&mem, bytes);
    if (!order)
        return heft_error_no_memory(err, purpose);
    heft_file_enter(f); /* names are mapped */
    hash_model(&f->x, tensors, has_left_out ? &left_out : NULL, order, model);
    heft_mem_free(&mem, order, bytes);
    return heft_file_leave(f, err);
}

heft_status heft_file_hash(heft_hash *model, heft_hash *tensors, const heft_file *f,
                           heft_progress_fn on_progress, void *progress_ctx, heft_error *err)
{
    choice all = { .count = heft_ix_tensors(&f->x), .out = tensors };
    HEFT_TRY(hash_file(f, &all, on_progress, progress_ctx, err));
    return heft_hash_model(model, tensors, f, err);
}

heft_status heft_tensor_hash_many(heft_hash *hashes, const heft_file *f, const uint32_t *tensors,
                                  uint32_t count, heft_progress_fn on_progress, void *progress_ctx,
                                  heft_error *err)
{
    static const uint32_t none;
    choice listed = { .tensors = tensors ? tensors : &none, .count = count, .out = hashes };
    return hash_file(f, &listed, on_progress, progress_ctx, err);
}
