/* fuzz_convert.c - fuzzes conversion with any options: an input that opens is written in a format
 * of the script's choice.  The output is as long as planned, opens, has no faults, has the same
 * tensors if nothing was to change and no loss was reported, and is the same for a stream and for a
 * file.  Damage is refused, or stays. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_request.h"

typedef struct conversion {
    const heft_host *host;
    const heft_file *in;
    const heft_format *to;
    fuzz_script script;
    bool is_sound, has_wrong_checksum;
} conversion;

static void check_written(const conversion *c, const fuzz_request *r, fuzz_bytes bytes)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *out = NULL;
    bool compresses = r->write.storage.encoding != HEFT_RAW || r->opt.storage;
    opt.host = c->host;
    fuzz_require(bytes.len == r->planned || !r->planned ||
                 (compresses && bytes.len <= r->planned) || !r->write.version);
    fuzz_require(!fuzz_open(&out, bytes.ptr, bytes.len, &opt));
    fuzz_require(heft_file_format(out) == c->to);
    fuzz_require(!c->is_sound || !fuzz_faults(out));
    if (c->is_sound && !r->losses && !r->has_callback)
        fuzz_require_same(c->in, out);
    heft_file_close(out);
}

static void check_status(const conversion *c, const fuzz_request *r, heft_status st)
{
    bool is_allowed = !st || st == HEFT_E_LOSSY || st == HEFT_E_LIMIT || st == HEFT_E_UNSUPPORTED ||
                      st == HEFT_E_ARGUMENT;
    fuzz_require(!c->is_sound || is_allowed);
    fuzz_require(!c->has_wrong_checksum || r->opt.no_verify || r->opt.keep || r->losses || st);
}

static heft_status convert(const conversion *c, fuzz_request *r, heft_sink *take)
{
    heft_error err = fuzz_no_error();
    fuzz_script s = c->script;
    fuzz_request_init(r, c->host, c->to, &s);
    heft_status st = heft_file_convert(c->in, c->to, take, &r->opt, &err);
    fuzz_require_error(st, &err);
    return st;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    fuzz_request once, again;
    fuzz_bytes bytes = { .ptr = NULL }, same = { .ptr = NULL };
    conversion c = { .to = fuzz_writable(fuzz_next(s)), .host = &m.host };
    fuzz_memory_init(&m, UINT32_MAX);
    c.in = fuzz_open_model(&m.host, data, size);
    if (c.in) {
        c.script = *s;
        c.is_sound = fuzz_is_sound(c.in);
        c.has_wrong_checksum = !c.is_sound && fuzz_has_wrong_checksum(c.in);
        heft_status st = convert(&c, &once, fuzz_sink_at(&bytes));
        check_status(&c, &once, st);
        if (!st)
            check_written(&c, &once, bytes);
        if (s->bytes[s->len - 1] % 4 == 0) {
            heft_status streamed = convert(&c, &again, fuzz_sink(&same));
            /* Before a stream begins, more of a damaged file is checked. */
            fuzz_require(streamed == st || !c.is_sound);
            fuzz_require(st || streamed ||
                         (same.len == bytes.len && !memcmp(same.ptr, bytes.ptr, same.len)));
        }
    }
    heft_file_close((heft_file *)(uintptr_t)c.in);
    fuzz_require(!m.live);
    free(bytes.ptr);
    free(same.ptr);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = FUZZ_SCRIPT, .takes_models = true };
