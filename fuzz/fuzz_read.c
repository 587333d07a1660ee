/* fuzz_read.c - fuzzes reading: whole tensors, sections, streams, checked reads and views of a
 * model give the same bytes, with the same outcome. */
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>

#include "fuzz.h"

/* Read a part in sections whose sizes the script chooses. */
static heft_status read_stream(heft_stream *stream, uint8_t *out, uint64_t length, fuzz_script *s)
{
    heft_error err = fuzz_no_error();
    heft_status st = HEFT_OK;
    for (uint64_t at = 0, n; at < length && !st; at += n) {
        const void *data = NULL;
        uint32_t step = fuzz_next(s);
        n = step < length - at && step ? step : length - at;
        if (step % 2) {
            st = heft_stream_view(&data, stream, out + at, (size_t)n, &err);
            if (!st && data != out + at)
                memcpy(out + at, data, (size_t)n);
        } else {
            st = heft_stream_read(out + at, stream, (size_t)n, &err);
        }
        fuzz_require_error(st, &err);
    }
    return st;
}

static void check_part(const heft_file *f, uint32_t part, fuzz_script *s)
{
    heft_part p = heft_part_at(f, part);
    heft_stream *stream = NULL;
    if (p.length == HEFT_UNKNOWN_LENGTH || p.length > FUZZ_MAX_PAYLOAD)
        return;
    size_t len = (size_t)p.length;
    uint8_t *a = malloc(len + 1), *b = malloc(len + 1);
    fuzz_require(a && b);
    heft_status st = heft_part_read(a, f, part, 0, len, NULL);
    heft_status many = heft_part_read_many((void *[]){ b }, f, &part, 1, NULL, NULL, NULL);
    if (len) /* an empty part need not be decoded */
        fuzz_require(!st == !many && (st || !memcmp(a, b, len)));
    const void *view = heft_part_view(f, part);
    fuzz_require(!view || (!st && !memcmp(view, a, len)));
    if (len && !heft_stream_open(&stream, f, part, NULL)) {
        heft_status streamed = read_stream(stream, b, len, s);
        fuzz_require(!st == !streamed && (st || !memcmp(a, b, len)));
    }
    heft_stream_close(stream);
    if (!st && len) {
        size_t from = (fuzz_next(s) * 251u) % len, n = fuzz_next(s) % (len - from + 1);
        fuzz_require(!heft_part_read(b, f, part, from, n, NULL) && !memcmp(a + from, b, n));
    }
    free(a);
    free(b);
}

static void check_array(const heft_file *f, uint32_t id)
{
    heft_array read, view, cast;
    heft_tensor t = heft_tensor_at(f, id);
    heft_status st = heft_array_read(&read, f, t.name, HEFT_UNTYPED, NULL, 0, NULL);
    heft_status viewed = heft_array_view(&view, f, t.name, NULL);
    fuzz_require(!st == !viewed);
    fuzz_require(st || (read.bytes == view.bytes && read.rank == t.rank));
    fuzz_require(st || !read.bytes || !memcmp(read.data, view.data, (size_t)read.bytes));
    if (!st && !heft_array_read(&cast, f, t.name, t.dtype, NULL, 0, NULL)) {
        fuzz_require(cast.bytes == read.bytes);
        heft_array_free(&cast);
    }
    heft_array_free(&read);
    heft_array_free(&view);
}

/* Read all parts through a checked read; a sound file passes. */
static void check_all(const heft_file *f, fuzz_script *s)
{
    heft_checked_read *all = NULL;
    heft_status st = heft_checked_read_open(&all, f, NULL, 0, NULL);
    uint32_t parts = 0;
    for (uint32_t id = 0; id < heft_tensor_count(f); id++)
        parts += heft_tensor_at(f, id).part_count;
    for (uint32_t i = 0; !st && i < parts; i++) {
        heft_stream *stream = NULL;
        uint64_t length = heft_part_at(f, i).length;
        uint8_t *bytes = length <= FUZZ_MAX_PAYLOAD ? malloc((size_t)length + 1) : NULL;
        st = heft_checked_read_stream(&stream, all, i, NULL);
        if (!st && bytes)
            st = read_stream(stream, bytes, length, s);
        heft_stream_close(stream);
        free(bytes);
    }
    st = st ? st : heft_checked_read_end(all, NULL);
    fuzz_require(!st || st == HEFT_E_UNSUPPORTED || fuzz_faults(f) ||
                 heft_file_is_complete(f, NULL));
    heft_checked_read_close(all);
}

/* Require that a model joined with itself is the model. */
static void check_joined(const heft_file *f)
{
    heft_join_options opt = HEFT_JOIN_OPTIONS_INIT;
    heft_file *joined = NULL;
    opt.duplicates = HEFT_DUPLICATES_FIRST;
    if (!heft_file_join(&joined, (const heft_file *[]){ f, f }, 2, &opt, NULL))
        fuzz_require(heft_tensor_count(joined) == heft_tensor_count(f));
    heft_file_close(joined);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    fuzz_memory_init(&m, UINT32_MAX);
    heft_file *f = fuzz_open_model(&m.host, data, size);
    for (uint32_t id = 0; f && id < heft_tensor_count(f) && id < 64; id++) {
        heft_tensor t = heft_tensor_at(f, id);
        for (uint32_t i = 0; i < t.part_count; i++)
            check_part(f, t.first_part + i, s);
        check_array(f, id);
    }
    if (f) {
        check_all(f, s);
        check_joined(f);
    }
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 8, .takes_models = true };
