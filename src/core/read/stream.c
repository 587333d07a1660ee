/* stream.c - feeds the stored bytes of a part to a codec, which must produce exactly the expected
 * number of bytes. */
#include "core/read/stream.h"

#include "core/read/stored_checksum.h"

enum { CHUNK = 128 << 10 };

/* decode() handles these codecs without a library. */
static const heft_codec msgpack_codec = { .size = sizeof(heft_codec),
                                          .encoding = HEFT_MSGPACK,
                                          .name = "msgpack" };
static const heft_codec protobuf_codec = { .size = sizeof(heft_codec),
                                           .encoding = HEFT_PROTOBUF,
                                           .name = "protobuf" };

/* Name the tensor, the byte and the shard in the error that was just set, st. */
static heft_status name_place(const heft_file *f, uint32_t part, uint64_t at, heft_status st,
                              heft_error *err)
{
    if (!err)
        return st;
    heft_error why = *err;
    heft_file_enter(f); /* names are mapped */
    uint32_t owner = heft_ix_owner(&f->x, part);
    if (owner != HEFT_NONE)
        heft_error_plain(err, st, "tensor %q: %s", heft_ix_name(&f->x, owner), why.message);
    heft_file_disarm(f);
    heft_error_rule(err, st, why.rule);
    return heft_file_error_at(f, at, st, err);
}

/* name_place() for the next stored byte. */
static heft_status error_here(const heft_stream *s, heft_status st, heft_error *err)
{
    uint64_t at = s->row.offset + s->fetched - s->in_len;
    return s->is_for_finding ? st : name_place(s->f, s->part, at, st, err);
}

static heft_status format_error(const heft_stream *s, heft_error *err, const char *fmt, uint64_t a,
                                uint64_t b)
{
    return error_here(s, heft_error_plain(err, HEFT_E_FORMAT, fmt, a, b), err);
}

static void begin_codec(heft_stream *s)
{
    if (s->row.encoding == HEFT_MSGPACK) {
        s->numbers.msgpack = heft_msgpack_numbers_of(s->content_bytes);
        s->codec = &msgpack_codec;
    } else if (s->row.encoding == HEFT_PROTOBUF && !HEFT_IS_LEAN) {
        s->numbers.protobuf = heft_protobuf_numbers_of(s->content_bytes, s->row.dtype);
        s->codec = &protobuf_codec;
    } else
        s->codec = heft_host_codec(s->f->host, s->row.encoding);
}

static heft_status start_with_row(heft_stream *s, const heft_file *f, uint32_t part,
                                  const heft_ix_part_row *row, bool is_for_finding, heft_error *err)
{
    const heft_ix_view *v = heft_ix_view_of(&f->x, part);
    *s = (heft_stream){ .f = f,
                        .part = part,
                        .row = *row,
                        .content_bytes = row->length,
                        .frame_ended = true,
                        .is_for_finding = is_for_finding };
    s->strided = heft_strided_reader_of(f, part, NULL);
    s->content_bytes = v ? v->content : row->length;
    if (s->row.encoding == HEFT_RAW)
        return HEFT_OK;
    begin_codec(s);
    if (!s->codec)
        return error_here(
            s, heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot decode this part"),
            err);
    if (!heft_file_map(f, s->row.offset, s->row.stored)) {
        const heft_allocator *al = f->host->allocator;
        s->buf = heft_alloc(al, CHUNK, 64);
        if (!s->buf)
            return heft_error_no_memory(err, "to decode a part");
    }
    heft_status st = s->codec->open ? s->codec->open(&s->state, s->content_bytes, err) : HEFT_OK;
    if (st)
        heft_stream_stop(s);
    return st;
}

void heft_stream_stop(heft_stream *s)
{
    const heft_allocator *al = s->f->host->allocator;
    if (s->state)
        s->codec->close(s->state);
    heft_free(al, s->buf, CHUNK, 64);
    heft_spill_close(&s->spill);
    heft_part_check_release(&s->check);
    s->state = s->buf = NULL;
}

heft_status heft_stream_check(heft_stream *s, uint32_t checksum, heft_error *err)
{
    return heft_part_check_begin(&s->check, s->f, s->part, checksum, err);
}

heft_status heft_stream_show(heft_stream *s, heft_ledger *l, heft_error *err)
{
    uint32_t checksum = heft_ledger_in_order(l, s->part);
    heft_status st = heft_stream_check(s, checksum, err);
    s->check.outcome = checksum == HEFT_NONE ? NULL : &l->states[checksum];
    s->crcs = l->crcs.digest_count ? &l->crcs : NULL;
    return st;
}

static heft_status observe_stored(heft_stream *s, uint64_t at, const void *data, size_t len,
                                  heft_error *err)
{
    HEFT_TRY(heft_part_check_stored(&s->check, at, data, len, err));
    return s->crcs ? heft_partial_crcs_add(s->crcs, at, data, len, err) : HEFT_OK;
}

/* Fetch more stored bytes, if any are left. */
static heft_status refill(heft_stream *s, heft_error *err)
{
    uint64_t left = s->row.stored - s->fetched;
    size_t n = left < CHUNK ? (size_t)left : CHUNK;
    const uint8_t *mapped = heft_file_map(s->f, s->row.offset, s->row.stored);
    heft_status st = HEFT_OK;
    if (s->in_len || !n)
        return HEFT_OK;
    st = heft_file_count_read(s->f, s->part, n, err);
    s->in = mapped ? mapped + s->fetched : s->buf;
    if (!st && !mapped)
        st = heft_file_read_stored(s->f, s->row.offset + s->fetched, s->buf, n, err);
    if (st)
        return st;
    uint64_t at = s->row.offset + s->fetched;
    s->fetched += n;
    s->in_len = n;
    return observe_stored(s, at, s->in, n, err);
}

static heft_status decode(heft_stream *s, uint8_t *out, size_t *len, heft_error *err)
{
    heft_status st = refill(s, err);
    size_t consumed = s->in_len;
    if (st) /* the error says what cannot be read */
        return st;
    if (s->codec == &msgpack_codec)
        st = heft_msgpack_numbers_decode(&s->numbers.msgpack, s->in, &consumed, out, len,
                                         &s->frame_ended, err);
    else if (s->codec == &protobuf_codec && !HEFT_IS_LEAN)
        st = heft_protobuf_numbers_decode(&s->numbers.protobuf, s->in, &consumed, out, len,
                                          &s->frame_ended, err);
    else
        st = s->codec->decode(s->state, s->in, &consumed, out, len, &s->frame_ended, err);
    if (!st)
        st = heft_file_count_read(s->f, s->part, *len, err);
    if (st)
        return st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED ? error_here(s, st, err) : st;
    bool stuck = !consumed && !*len;
    s->in += consumed;
    s->in_len -= consumed;
    if (stuck && s->decoded < s->content_bytes && !s->is_measuring)
        return format_error(s, err, "the part decodes to %U bytes, its tensor needs %U", s->decoded,
                            s->content_bytes);
    return HEFT_OK;
}

/* Decode the remaining stored bytes into a scratch buffer.  Frames must be complete and must not
 * produce bytes past the content, or past the limit while measuring. */
static heft_status drain(heft_stream *s, uint8_t *buf, size_t len, heft_error *err)
{
    while (s->fetched < s->row.stored || s->in_len || !s->frame_ended) {
        size_t n = len, before = s->in_len + (size_t)(s->row.stored - s->fetched);
        HEFT_TRY(decode(s, buf, &n, err));
        s->decoded += n;
        if (s->is_measuring && s->decoded > s->row.length)
            return format_error(s, err,
                                "the part decodes to more than %U bytes, the limit for a part "
                                "whose length the file does not state",
                                s->row.length, 0);
        if (!s->is_measuring && n)
            return format_error(s, err,
                                "the part decodes to more than the %U bytes its tensor needs",
                                s->content_bytes, 0);
        if (!n && s->in_len + (size_t)(s->row.stored - s->fetched) == before)
            return format_error(s, err, "the last frame is truncated", 0, 0);
    }
    return HEFT_OK;
}

/* ---- parts of unknown length ---- */

heft_status heft_stream_decoded_length(uint64_t *length, const heft_file *f, uint32_t part,
                                       bool is_for_finding, heft_error *err)
{
    enum { MAX_RATIO = 256, MIN_LIMIT = 1 << 30 }; /* bound the time, too */
    heft_stream s;
    uint8_t scratch[4096];
    heft_ix_part_row row = *heft_ix_part_row_at(&f->x, part);
    row.length = row.stored > UINT64_MAX / MAX_RATIO ? UINT64_MAX - 1 : row.stored * MAX_RATIO;
    row.length = row.length > MIN_LIMIT ? row.length : MIN_LIMIT;
    HEFT_TRY(start_with_row(&s, f, part, &row, is_for_finding, err));
    s.is_measuring = true;
    heft_file_enter(f);
    heft_status st = heft_file_leave_after(f, drain(&s, scratch, sizeof scratch, err), err);
    heft_stream_stop(&s);
    *length = s.decoded;
    return st;
}

/* Four bytes expand at most to a zstd block of 128 KiB, one byte to 1032 bytes in DEFLATE.  A part
 * that needs a higher ratio is refused without decoding. */
heft_status heft_stream_check_ratio(const heft_file *f, uint32_t part, uint64_t length,
                                    bool is_for_finding, heft_error *err)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&f->x, part);
    const heft_ix_view *v = heft_ix_view_of(&f->x, part);
    uint64_t max_length, ratio = row->encoding == HEFT_ZSTD ? 128 << 8 : 1032;
    length = v ? v->content : length;
    if (row->encoding == HEFT_RAW || !heft_mul(&max_length, row->stored, ratio) ||
        length <= max_length)
        return HEFT_OK;
    heft_status st = heft_error_plain(
        err, HEFT_E_FORMAT, "%U stored bytes cannot decode to the %U bytes that the tensor needs",
        row->stored, length);
    return is_for_finding ? st : name_place(f, part, row->offset, st, err);
}

heft_status heft_stream_start_for(heft_stream *s, const heft_file *f, uint32_t part,
                                  bool is_for_finding, heft_error *err)
{
    heft_ix_part_row row = *heft_ix_part_row_at(&f->x, part);
    if (row.length == HEFT_UNKNOWN_LENGTH)
        HEFT_TRY(heft_stream_decoded_length(&row.length, f, part, is_for_finding, err));
    HEFT_TRY(heft_stream_check_ratio(f, part, row.length, is_for_finding, err));
    return start_with_row(s, f, part, &row, is_for_finding, err);
}

heft_status heft_stream_start(heft_stream *s, const heft_file *f, uint32_t part, heft_error *err)
{
    return heft_stream_start_for(s, f, part, false, err);
}

/* ---- reading ---- */

/* Read in steps that stay in the processor's cache until the digest is updated. */
static heft_status read_stored(heft_stream *s, uint8_t *buf, size_t len, heft_error *err)
{
    enum { STEP = 1 << 20 };
    uint64_t at = s->row.offset + s->delivered;
    for (size_t done = 0, n; done < len; done += n) {
        n = len - done < STEP ? len - done : STEP;
        HEFT_TRY(heft_file_read_stored(s->f, at + done, buf + done, n, err));
        HEFT_TRY(observe_stored(s, at + done, buf + done, n, err));
    }
    return HEFT_OK;
}

static bool is_observed(const heft_stream *s)
{
    return s->crcs || heft_part_check_is_on(&s->check);
}

/* Observers see the stored bytes before the byte-swap. */
static heft_status read_raw(heft_stream *s, void *buf, size_t len, heft_error *err)
{
    heft_status st = heft_file_count_read(s->f, s->part, len, err);
    if (st || heft_ix_is_plain(&s->row))
        return st ? st : read_stored(s, buf, len, err);
    if (is_observed(s) && !s->strided.strides) {
        st = read_stored(s, buf, len, err);
        if (st)
            return st;
    }
    return heft_strided_reader_read(&s->strided, s->delivered, buf, len, err);
}

/* Read the next bytes of the content; no bytes may follow the last. */
static heft_status read_content(heft_stream *s, uint8_t *out, size_t len, heft_error *err)
{
    heft_status st = HEFT_OK;
    while (len && !st) {
        size_t n = len;
        st = decode(s, out, &n, err);
        if (st)
            break;
        heft_part_check_decoded(&s->check, out, n);
        out += n;
        s->decoded += n;
        len -= n;
    }
    uint8_t more;
    return st || s->decoded < s->content_bytes ? st : drain(s, &more, sizeof more, err);
}

static heft_status discard_content(heft_stream *s, uint64_t end, heft_error *err)
{
    uint8_t discarded[4096];
    while (s->decoded < end) {
        uint64_t left = end - s->decoded;
        HEFT_TRY(read_content(s, discarded,
                              left < sizeof discarded ? (size_t)left : sizeof discarded, err));
    }
    return HEFT_OK;
}

static heft_status spill_content(void *ctx, uint8_t *buf, size_t len, heft_error *err)
{
    return read_content(ctx, buf, len, err);
}

/* Strided elements need random access to the whole content. */
static heft_status read_strided(heft_stream *s, uint8_t *out, size_t len, heft_error *err)
{
    heft_status st = heft_file_count_read(s->f, s->part, len, err);
    if (!st && !s->spill.bytes)
        st = heft_spill_fill(&s->spill, s->f->host, s->spill_sink, s->content_bytes, spill_content,
                             s, err);
    if (st) {
        heft_spill_close(&s->spill);
        return st;
    }
    s->strided.content = s->spill.bytes;
    st = heft_strided_reader_read(&s->strided, s->delivered, out, len, err);
    return st ? st : heft_spill_state(&s->spill, err);
}

/* Read contiguous numbers and restore each. */
static heft_status read_restored(heft_stream *s, uint8_t *out, size_t len, heft_error *err)
{
    uint32_t size = s->row.flags & HEFT_P_SIGNS ? heft_dtype_size(s->row.dtype)
                                                : heft_dtype_number_bytes(s->row.dtype);
    heft_status st = HEFT_OK;
    for (size_t n = 0; len && !st; out += n, len -= n) {
        if (s->partial_left) {
            n = s->partial_left < len ? s->partial_left : len;
            memcpy(out, s->partial + size - s->partial_left, n);
            s->partial_left -= (uint32_t)n;
        } else if (len >= size) {
            n = len & ~(size_t)(size - 1);
            st = read_content(s, out, n, err);
            if (!st)
                heft_restore(out, n, &s->row);
        } else {
            n = 0;
            st = read_content(s, s->partial, size, err);
            if (!st)
                heft_restore(s->partial, size, &s->row);
            s->partial_left = size;
        }
    }
    return st;
}

static heft_status read_decoded(heft_stream *s, uint8_t *out, size_t len, heft_error *err)
{
    heft_status st;
    if (s->strided.strides)
        return read_strided(s, out, len, err);
    st = s->delivered ? HEFT_OK : discard_content(s, s->strided.first, err);
    if (!st)
        st = s->row.flags & HEFT_P_RESTORED ? read_restored(s, out, len, err)
                                            : read_content(s, out, len, err);
    return st || s->delivered + len < s->row.length ? st
                                                    : discard_content(s, s->content_bytes, err);
}

/* Count len bytes as delivered; after the last byte compare the part's digest. */
static heft_status advance(heft_stream *s, size_t len, heft_error *err)
{
    s->delivered += len;
    return s->delivered == s->row.length ? heft_part_check_end(&s->check, err) : HEFT_OK;
}

heft_status heft_stream_read(void *buf, heft_stream *s, size_t len, heft_error *err)
{
    if (len > s->row.length - s->delivered)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%U bytes were requested, but only %U are left", (uint64_t)len,
                                s->row.length - s->delivered);
    HEFT_TRY(s->codec ? read_decoded(s, buf, len, err) : read_raw(s, buf, len, err));
    return advance(s, len, err);
}

heft_status heft_stream_view(const void **data, heft_stream *s, void *buf, size_t len,
                             heft_error *err)
{
    uint64_t at = s->row.offset + s->delivered;
    const uint8_t *mapped = len && heft_ix_is_plain(&s->row) && heft_file_has_bytes(s->f, at)
                                ? heft_file_map(s->f, at, len)
                                : NULL;
    *data = mapped ? mapped : buf;
    if (!mapped || len > s->row.length - s->delivered)
        return heft_stream_read(buf, s, len, err);
    HEFT_TRY(heft_file_count_read(s->f, s->part, len, err));
    heft_file_enter(s->f);
    HEFT_TRY(heft_file_leave_after(s->f, observe_stored(s, at, mapped, len, err), err));
    return advance(s, len, err);
}

heft_status heft_stream_skip(heft_stream *s, uint64_t len, heft_error *err)
{
    uint8_t discarded[4096];
    if (!s->codec && !is_observed(s)) {
        s->delivered += len;
        return HEFT_OK;
    }
    for (; len; len -= len < sizeof discarded ? len : sizeof discarded)
        HEFT_TRY(heft_stream_read(discarded, s,
                                  len < sizeof discarded ? (size_t)len : sizeof discarded, err));
    return HEFT_OK;
}

void heft_stream_close(heft_stream *s)
{
    if (!s)
        return;
    const heft_allocator *al = s->f->host->allocator;
    heft_stream_stop(s);
    heft_free(al, s, sizeof *s, 16);
}

heft_status heft_stream_open_with(heft_stream **out, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_partial_crcs *crcs, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    *out = NULL;
    heft_stream *s = heft_alloc(al, sizeof *s, 16);
    if (!s)
        return heft_error_no_memory(err, "for a stream");
    heft_status st = heft_stream_start(s, f, part, err);
    if (st) {
        heft_free(al, s, sizeof *s, 16);
        return st;
    }
    s->crcs = crcs;
    st = heft_stream_check(s, checksum, err);
    if (st)
        heft_stream_close(s);
    else
        *out = s;
    return st;
}

heft_status heft_stream_open(heft_stream **out, const heft_file *f, uint32_t part, heft_error *err)
{
    heft_status st = heft_file_find_part(f, part, err);
    *out = NULL;
    if (st)
        return st;
    if (f->check_parts)
        return heft_stream_open_checked(out, f, part, err);
    return heft_stream_open_with(out, f, part, HEFT_NONE, NULL, err);
}

heft_status heft_stream_open_checked(heft_stream **out, const heft_file *f, uint32_t part,
                                     heft_error *err)
{
    heft_status st = heft_file_find_part(f, part, err);
    *out = NULL;
    if (!st)
        st = heft_box_checksums_check_part(f, part, err);
    return st ? st
              : heft_stream_open_with(out, f, part, heft_part_checksum(f, part, false), NULL, err);
}
