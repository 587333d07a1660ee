/* fuzz_codec.c - fuzzes decoders: bytes that arrive in pieces decode to the same bytes as the whole
 * input, and an encoded input decodes to the input. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MAX_OUTPUT = 64 << 10 };

static const heft_codec *choose_codec(uint32_t number)
{
    const heft_codec *const *codecs = heft_host_default()->codecs;
    uint32_t count = 0;
    while (codecs && codecs[count])
        count++;
    return count ? codecs[number % count] : NULL;
}

/* Decode the input; in_step and out_step are the greatest sizes of a piece. */
static heft_status decode(const heft_codec *codec, const uint8_t *data, size_t size, uint8_t *out,
                          size_t *len, size_t in_step, size_t out_step)
{
    void *state = NULL;
    bool whole = false;
    size_t at = 0, capacity = *len;
    heft_error err = fuzz_no_error();
    heft_status st = codec->open(&state, capacity, &err);
    *len = 0;
    while (!st && !whole) {
        size_t in = size - at < in_step ? size - at : in_step, had = in;
        size_t room = capacity - *len < out_step ? capacity - *len : out_step;
        st = codec->decode(state, data + at, &in, out + *len, &room, &whole, &err);
        fuzz_require_error(st, &err);
        fuzz_require(st || (in <= had && room <= out_step));
        at += st ? 0 : in;
        *len += st ? 0 : room;
        if (!st && !in && !room)
            break; /* truncated, or more output than capacity */
    }
    codec->close(state);
    return st;
}

static void encode(const heft_codec *codec, const uint8_t *data, size_t size, uint8_t *back)
{
    void *state = NULL;
    if (!codec->bound || size > MAX_OUTPUT)
        return;
    size_t len = codec->bound(size), decoded = size;
    uint8_t *out = malloc(len + 1);
    fuzz_require(out && !codec->encoder_open(&state, 0, size % 2, NULL));
    fuzz_require(!codec->encode(state, out, &len, data, size, NULL));
    fuzz_require(!decode(codec, out, len, back, &decoded, 7, SIZE_MAX));
    fuzz_require(decoded == size && !memcmp(back, data, size));
    codec->encoder_close(state);
    free(out);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    const heft_codec *codec = choose_codec(fuzz_next(s));
    size_t in_step = 1 + (size_t)fuzz_next(s) % 64, out_step = 1 + (size_t)fuzz_next(s);
    size_t whole_len = MAX_OUTPUT, len = MAX_OUTPUT;
    uint8_t *whole = malloc(MAX_OUTPUT), *pieces = malloc(MAX_OUTPUT);
    fuzz_require(whole && pieces);
    if (codec) {
        heft_status st = decode(codec, data, size, whole, &whole_len, SIZE_MAX, SIZE_MAX);
        heft_status again = decode(codec, data, size, pieces, &len, in_step, out_step);
        fuzz_require(!st == !again);
        fuzz_require(st || (len == whole_len && !memcmp(whole, pieces, len)));
        encode(codec, data, size, pieces);
    }
    free(whole);
    free(pieces);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 3 };
