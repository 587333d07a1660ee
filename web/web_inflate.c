/* web_inflate.c - decode DEFLATE (RFC 1951).  Browsers have a decoder for streams of events only;
 * the core calls this decoder, which returns at once, for headers inside of compressed members.
 *
 * The decoder is a state machine: each state either has all bits that the state needs, or returns
 * and waits for more input.  Decoded bytes pass through a window of 32 KiB, to which matches
 * refer. */
#include "heft_web.h"

enum {
    WINDOW = 32 << 10,
    MAX_BITS = 15,
    FAST_BITS = 9,
    LITERALS = 288,
    DISTANCES = 32,
    LENGTH_CODES = 19,
    END_OF_BLOCK = 256
};

/* A prefix code: a table for codes of up to FAST_BITS bits, (symbol << 4 | length); longer codes
 * are found by the number of codes of each length. */
typedef struct prefix_code {
    uint16_t fast[1 << FAST_BITS];
    uint16_t count[MAX_BITS + 1];
    uint16_t symbols[LITERALS]; /* by code */
} prefix_code;

typedef enum state {
    BLOCK_HEADER,
    STORED_HEADER,
    STORED,
    CODE_COUNTS,
    CODE_LENGTHS_OF_LENGTHS,
    CODE_LENGTHS,
    SYMBOL,
    LENGTH_EXTRA,
    DISTANCE,
    DISTANCE_EXTRA,
    COPY,
    ENDED
} state;

typedef struct inflater {
    state state;
    bool is_last;
    uint64_t bits; /* input bits not yet consumed, the next one lowest */
    uint32_t bit_count;
    uint32_t literals, distances, lengths; /* number of codes in the header of the block */
    uint32_t at;                           /* codes read so far */
    uint32_t length, distance;             /* of the current match or stored block */
    uint32_t symbol;                       /* with extra bits to come */
    uint64_t produced;
    uint8_t code_lengths[LITERALS + DISTANCES];
    prefix_code literal, dist;
    uint8_t window[WINDOW];
} inflater;

typedef struct buffers {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_end;
} buffers;

static const uint8_t length_extra[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
static const uint16_t length_base[29] = { 3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                          15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                          67, 83, 99, 115, 131, 163, 195, 227, 258 };
static const uint16_t distance_base[30] = { 1,    2,    3,    4,     5,     7,    9,    13,
                                            17,   25,   33,   49,    65,    97,   129,  193,
                                            257,  385,  513,  769,   1025,  1537, 2049, 3073,
                                            4097, 6145, 8193, 12289, 16385, 24577 };
static const uint8_t length_order[LENGTH_CODES] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                    11, 4,  12, 3, 13, 2, 14, 1, 15 };

/* ---- bits ----------------------------------------------------------------------------------- */

static void refill(inflater *d, buffers *b)
{
    while (d->bit_count <= 56 && b->in < b->in_end) {
        d->bits |= (uint64_t)*b->in++ << d->bit_count;
        d->bit_count += 8;
    }
}

static uint32_t take(inflater *d, uint32_t n)
{
    uint32_t v = (uint32_t)(d->bits & ((UINT64_C(1) << n) - 1));
    d->bits >>= n;
    d->bit_count -= n;
    return v;
}

/* ---- prefix codes --------------------------------------------------------------------------- */

static uint32_t reversed(uint32_t code, uint32_t len)
{
    uint32_t r = 0;
    for (uint32_t i = 0; i < len; i++)
        r |= (code >> i & 1) << (len - 1 - i);
    return r;
}

/* Build the tables of a code; return false if the lengths describe more codes than exist, or fewer
 * and the code is not one of the incomplete codes that encoders make: no code, or one of 1 bit. */
static bool build_code(prefix_code *c, const uint8_t *lengths, uint32_t n)
{
    uint16_t offset[MAX_BITS + 2] = { 0 };
    uint32_t code = 0, next[MAX_BITS + 1], used = 0;
    int32_t left = 1;
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < n; i++)
        c->count[lengths[i]]++;
    used = n - c->count[0];
    c->count[0] = 0;
    for (uint32_t len = 1; len <= MAX_BITS; len++) {
        left = 2 * left - c->count[len];
        if (left < 0)
            return false;
        code = (code + c->count[len - 1]) << 1;
        next[len] = code;
        offset[len + 1] = (uint16_t)(offset[len] + c->count[len]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len = lengths[i];
        if (!len)
            continue;
        c->symbols[offset[len]++] = (uint16_t)i;
        uint32_t r = reversed(next[len]++, len);
        for (; len <= FAST_BITS && r < 1U << FAST_BITS; r += 1U << len)
            c->fast[r] = (uint16_t)(i << 4 | len);
    }
    return !left || !used || (used == 1 && c->count[1] == 1);
}

enum { NEED_INPUT = -1, BAD_CODE = -2 };

/* Return the next symbol, NEED_INPUT if the input ends within the code, or BAD_CODE. */
static int32_t next_symbol(inflater *d, const prefix_code *c)
{
    uint32_t entry = c->fast[d->bits & ((1U << FAST_BITS) - 1)];
    if (entry && (entry & 15) <= d->bit_count) {
        take(d, entry & 15);
        return (int32_t)(entry >> 4);
    }
    int32_t code = 0, first = 0, index = 0;
    for (uint32_t len = 1; len <= MAX_BITS; len++) {
        if (len > d->bit_count)
            return NEED_INPUT;
        code |= (int32_t)(d->bits >> (len - 1) & 1);
        if (code - first < c->count[len]) {
            take(d, len);
            return c->symbols[index + code - first];
        }
        index += c->count[len];
        first = (first + c->count[len]) << 1;
        code <<= 1;
    }
    return BAD_CODE;
}

static bool fixed_codes(inflater *d)
{
    memset(d->code_lengths, 8, 144);
    memset(d->code_lengths + 144, 9, 112);
    memset(d->code_lengths + 256, 7, 24);
    memset(d->code_lengths + 280, 8, 8);
    if (!build_code(&d->literal, d->code_lengths, LITERALS))
        return false;
    memset(d->code_lengths, 5, DISTANCES);
    return build_code(&d->dist, d->code_lengths, DISTANCES);
}

/* ---- states: each returns NULL, `waiting`, or what is wrong ---------------------------------- */

static const char waiting[] = "";

static const char *block_header(inflater *d)
{
    if (d->bit_count < 3)
        return waiting;
    d->is_last = take(d, 1);
    uint32_t type = take(d, 2);
    d->at = 0;
    d->state = type == 0 ? STORED_HEADER : type == 1 ? SYMBOL : CODE_COUNTS;
    if (type == 1)
        fixed_codes(d);
    return type == 3 ? "deflate: invalid block type" : NULL;
}

static const char *stored_header(inflater *d)
{
    if (d->bit_count - d->bit_count % 8 < 32)
        return waiting;
    take(d, d->bit_count % 8);
    d->length = take(d, 16);
    d->state = STORED;
    return take(d, 16) == (d->length ^ 0xFFFF) ? NULL : "deflate: invalid stored block lengths";
}

static const char *code_counts(inflater *d)
{
    if (d->bit_count < 14)
        return waiting;
    d->literals = take(d, 5) + 257;
    d->distances = take(d, 5) + 1;
    d->lengths = take(d, 4) + 4;
    d->at = 0;
    memset(d->code_lengths, 0, sizeof d->code_lengths);
    d->state = CODE_LENGTHS_OF_LENGTHS;
    return d->literals > 286 || d->distances > 30 ? "deflate: too many length or distance symbols"
                                                  : NULL;
}

static const char *lengths_of_lengths(inflater *d, buffers *b)
{
    for (; d->at < d->lengths; d->at++) {
        refill(d, b);
        if (d->bit_count < 3)
            return waiting;
        d->code_lengths[length_order[d->at]] = (uint8_t)take(d, 3);
    }
    bool ok = build_code(&d->literal, d->code_lengths, LENGTH_CODES);
    d->at = 0;
    d->state = CODE_LENGTHS;
    return ok ? NULL : "deflate: invalid code lengths set";
}

/* Read the code lengths of literals and distances, which are themselves coded. */
static const char *code_lengths(inflater *d, buffers *b)
{
    static const uint8_t extra[3] = { 2, 3, 7 }, base[3] = { 3, 3, 11 };
    uint32_t total = d->literals + d->distances;
    while (d->at < total) {
        refill(d, b);
        uint64_t bits = d->bits;
        uint32_t bit_count = d->bit_count;
        int32_t s = next_symbol(d, &d->literal);
        if (s < 0)
            return s == NEED_INPUT ? waiting : "deflate: invalid bit length repeat";
        if (s < 16) {
            d->code_lengths[d->at++] = (uint8_t)s;
            continue;
        }
        if (d->bit_count < extra[s - 16]) { /* the symbol is read again */
            d->bits = bits;
            d->bit_count = bit_count;
            return waiting;
        }
        uint32_t n = base[s - 16] + take(d, extra[s - 16]);
        if ((s == 16 && !d->at) || n > total - d->at)
            return "deflate: invalid bit length repeat";
        memset(d->code_lengths + d->at, s == 16 ? d->code_lengths[d->at - 1] : 0, n);
        d->at += n;
    }
    if (!d->code_lengths[END_OF_BLOCK])
        return "deflate: invalid code -- missing end-of-block";
    d->state = SYMBOL;
    if (!build_code(&d->literal, d->code_lengths, d->literals))
        return "deflate: invalid literal/lengths set";
    return build_code(&d->dist, d->code_lengths + d->literals, d->distances)
               ? NULL
               : "deflate: invalid distances set";
}

static void put(inflater *d, buffers *b, uint8_t byte)
{
    d->window[d->produced++ % WINDOW] = byte;
    *b->out++ = byte;
}

/* Decode literals until a match, the end of the block or of a buffer.  With a full buffer only the
 * end of the block is taken, so that the end of the stream is known with the last byte. */
static const char *symbols(inflater *d, buffers *b)
{
    for (;;) {
        refill(d, b);
        uint64_t bits = d->bits;
        uint32_t bit_count = d->bit_count;
        int32_t s = next_symbol(d, &d->literal);
        if (s < 0)
            return s == NEED_INPUT ? waiting : "deflate: invalid literal/length code";
        if (b->out == b->out_end && s != END_OF_BLOCK) {
            d->bits = bits;
            d->bit_count = bit_count;
            return waiting;
        }
        if (s < END_OF_BLOCK) {
            put(d, b, (uint8_t)s);
            continue;
        }
        d->symbol = (uint32_t)s - END_OF_BLOCK - 1;
        d->state = s == END_OF_BLOCK ? (d->is_last ? ENDED : BLOCK_HEADER) : LENGTH_EXTRA;
        return s != END_OF_BLOCK && d->symbol >= sizeof length_extra
                   ? "deflate: invalid literal/length code"
                   : NULL;
    }
}

static const char *read_length(inflater *d)
{
    if (d->bit_count < length_extra[d->symbol])
        return waiting;
    d->length = length_base[d->symbol] + take(d, length_extra[d->symbol]);
    d->state = DISTANCE;
    return NULL;
}

static const char *distance(inflater *d)
{
    int32_t s = next_symbol(d, &d->dist);
    if (s < 0)
        return s == NEED_INPUT ? waiting : "deflate: invalid distance code";
    d->symbol = (uint32_t)s;
    d->state = DISTANCE_EXTRA;
    return s >= 30 ? "deflate: invalid distance code" : NULL;
}

static const char *distance_bits(inflater *d)
{
    uint32_t extra = d->symbol < 2 ? 0 : d->symbol / 2 - 1;
    if (d->bit_count < extra)
        return waiting;
    d->distance = distance_base[d->symbol] + take(d, extra);
    d->state = COPY;
    return d->distance > d->produced ? "deflate: invalid distance too far back" : NULL;
}

static const char *copy_match(inflater *d, buffers *b)
{
    for (; d->length && b->out < b->out_end; d->length--)
        put(d, b, d->window[(d->produced - d->distance) % WINDOW]);
    if (d->length)
        return waiting;
    d->state = SYMBOL;
    return NULL;
}

static const char *copy_stored(inflater *d, buffers *b)
{
    for (; d->length && b->out < b->out_end; d->length--) {
        if (d->bit_count < 8)
            refill(d, b);
        if (d->bit_count < 8)
            return waiting;
        put(d, b, (uint8_t)take(d, 8));
    }
    if (d->length)
        return waiting;
    d->state = d->is_last ? ENDED : BLOCK_HEADER;
    return NULL;
}

static const char *step(inflater *d, buffers *b)
{
    refill(d, b);
    switch (d->state) {
    case BLOCK_HEADER:
        return block_header(d);
    case STORED_HEADER:
        return stored_header(d);
    case STORED:
        return copy_stored(d, b);
    case CODE_COUNTS:
        return code_counts(d);
    case CODE_LENGTHS_OF_LENGTHS:
        return lengths_of_lengths(d, b);
    case CODE_LENGTHS:
        return code_lengths(d, b);
    case SYMBOL:
        return symbols(d, b);
    case LENGTH_EXTRA:
        return read_length(d);
    case DISTANCE:
        return distance(d);
    case DISTANCE_EXTRA:
        return distance_bits(d);
    case COPY:
        return copy_match(d, b);
    default:
        return waiting;
    }
}

/* ---- the codec ------------------------------------------------------------------------------ */

static heft_status open_decoder(void **out, uint64_t decoded, heft_error *err)
{
    (void)decoded;
    inflater *d = web_allocator.resize(NULL, NULL, 0, sizeof *d, 16);
    *out = d;
    if (!d)
        return web_fail(err, HEFT_E_NOMEM, "no memory for a decoder of deflate");
    memset(d, 0, sizeof *d);
    return HEFT_OK;
}

static const char extra_bytes[] = "deflate: extra bytes after the end of the stream";

/* Input that the decoder has taken ahead into `bits` belongs to the stream, except for whole bytes
 * after the end, which are given back. */
static heft_status decode(void *decoder, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err)
{
    inflater *d = decoder;
    buffers b = { in, (const uint8_t *)in + *in_len, out, (uint8_t *)out + *out_len };
    const char *wrong = NULL;
    if (d->state == ENDED && *in_len)
        return web_fail(err, HEFT_E_FORMAT, extra_bytes);
    while (!wrong && d->state != ENDED)
        wrong = step(d, &b);
    if (wrong && wrong != waiting)
        return web_fail(err, HEFT_E_FORMAT, wrong);
    if (d->state == ENDED) {
        size_t ahead = d->bit_count / 8, taken = (size_t)(b.in - (const uint8_t *)in);
        if (ahead > taken)
            return web_fail(err, HEFT_E_FORMAT, extra_bytes);
        b.in -= ahead;
        d->bits = d->bit_count = 0;
    }
    *whole = d->state == ENDED;
    *in_len = (size_t)(b.in - (const uint8_t *)in);
    *out_len = (size_t)(b.out - (uint8_t *)out);
    return HEFT_OK;
}

static void close_decoder(void *decoder)
{
    web_allocator.resize(NULL, decoder, sizeof(inflater), 0, 16);
}

const heft_codec web_inflate = {
    .size = sizeof(heft_codec),
    .encoding = HEFT_DEFLATE,
    .name = "deflate",
    .open = open_decoder,
    .decode = decode,
    .close = close_decoder,
};
