#include "file_sum.h"

#include <stdlib.h>

#include <heft/heft_ext.h>

#include "progress_line.h"

static const heft_digest *find_sha256(void)
{
    const heft_digest *const *all = heft_host_default()->digests;
    while (all && *all && strcmp((*all)->name, "sha256") != 0)
        all++;
    return all ? *all : NULL;
}

/* Read the source once, in chunks. */
static heft_status digest_source(file_sum *out, heft_source *s, const heft_digest *d, void *state,
                                 const char *name, heft_error *err)
{
    enum { CHUNK = 1 << 20 };
    static char buf[CHUNK];
    heft_status st = HEFT_OK;
    progress p;
    progress_begin(&p, name);
    for (uint64_t at = 0; at < s->size && !st; at += CHUNK) {
        size_t len = s->size - at < CHUNK ? (size_t)(s->size - at) : CHUNK;
        st = s->ops->read(s, at, buf, len, err);
        if (!st)
            d->update(state, buf, len);
        (void)progress_step(&p, at, s->size);
    }
    progress_end(&p);
    out->size = s->size;
    return st;
}

int file_sum_compute(file_sum *out, const char *dir, const char *name)
{
    heft_error err;
    heft_source *s;
    const heft_digest *d = find_sha256();
    if (!d)
        return say_status(HEFT_E_UNSUPPORTED, name,
                          "this build has no SHA-256: it was made without OpenSSL");
    heft_status st = dir ? heft_source_open_in_folder(&s, dir, name, HEFT_ACCESS_READ, &err)
                         : heft_source_open_file(&s, name, HEFT_ACCESS_READ, &err);
    if (st)
        return say_error(name, &err);
    void *state = malloc(d->state_bytes);
    bool is_ready = state && d->init(state);
    int code = is_ready ? CODE_DONE : say_status(HEFT_E_NOMEM, name, "no memory for a digest");
    if (is_ready) {
        if (digest_source(out, s, d, state, name, &err))
            code = say_error(name, &err);
        d->final(out->bytes, state);
    }
    free(state);
    heft_source_close(s);
    return code;
}
