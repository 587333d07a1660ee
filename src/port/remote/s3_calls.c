/* s3_calls.c - single calls of S3, and answers in XML. */
#include "port/remote/s3.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void heft_s3_set_digest(heft_exchange *x)
{
    uint8_t out[HEFT_HASH_BYTES];
    const heft_digest *d = heft_find_sha256();
    void *state = d ? malloc(d->state_bytes) : NULL;
    if (state && d->init(state)) {
        d->update(state, x->body, x->body_bytes);
        d->final(out, state);
        heft_hex_text(x->digest, out, d->bytes);
    }
    free(state);
}

heft_status heft_s3_ask(heft_session *s, const heft_address *target, heft_exchange *x,
                        heft_error *err)
{
    heft_request *r = calloc(1, sizeof *r);
    if (!r)
        return heft_error_no_memory(err, "for a request");
    if (x->body)
        heft_s3_set_digest(x);
    r->target = target;
    r->exchange = x;
    heft_session_lock(s);
    heft_status st = heft_session_send(s, r, true, err);
    while (!st && r->state != HEFT_REQUEST_DONE)
        heft_session_wait(s);
    heft_session_unlock(s);
    x->answer = r->answer;
    if (r->status) { /* a request that was not sent has none */
        st = heft_error_plain(err, r->status, "%s", r->error.message);
        heft_error_os(err, st, r->error.os);
    }
    free(r);
    return st;
}

bool heft_s3_find_element(char *out, size_t size, const char *xml, const char *name)
{
    char open[64];
    int n = snprintf(open, sizeof open, "<%s>", name);
    const char *from = strstr(xml, open), *to = from ? strchr(from + n, '<') : NULL;
    if (!to || to == from + n || (size_t)(to - from - n) >= size)
        return false;
    memcpy(out, from + n, (size_t)(to - from - n));
    out[to - from - n] = '\0';
    return true;
}

heft_status heft_s3_look(heft_answer *out, heft_session *s, const heft_address *target,
                         heft_error *err)
{
    heft_exchange x = { .method = "GET", .query = "", .header = "Range: bytes=0-0" };
    heft_status st = heft_s3_ask(s, target, &x, err);
    *out = x.answer;
    if (!st || x.code == 416) /* 416: the object has no bytes */
        return HEFT_OK;
    if (err->os == ENOENT)
        return heft_error_plain(err, HEFT_E_NOTFOUND, "does not exist on the server");
    return st;
}
