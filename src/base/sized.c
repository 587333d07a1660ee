/* sized.c - checks and copies structs of the caller that begin with their size. */
#include "base/sized.h"

#include <string.h>

#include "base/error.h"

heft_status heft_sized_copy(void *to, size_t bytes, const void *from, heft_error *err)
{
    enum { MAX_SIZE = 1 << 16 }; /* a larger size is uninitialised memory */
    size_t size;
    if (!from)
        return HEFT_OK;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > MAX_SIZE)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "options have the invalid size %U: initialise with HEFT_..._INIT",
                                (uint64_t)size);
    for (size_t i = bytes; i < size; i++)
        if (((const uint8_t *)from)[i])
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "options have byte %U set, which this version of the library "
                                    "does not know: use a newer library",
                                    (uint64_t)i);
    memcpy(to, from, size < bytes ? size : bytes);
    memcpy(to, &bytes, sizeof bytes);
    return HEFT_OK;
}

/* ---- tables of functions: later members than those of the first version need HEFT_HAS() ---- */

heft_status heft_sized_check(size_t size, size_t min_size, const char *what, heft_error *err)
{
    if (size >= min_size)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "%s has size %U, but needs at least %U bytes: set the member size",
                            what, (uint64_t)size, (uint64_t)min_size);
}

heft_status heft_source_check(const heft_source *s, heft_error *err)
{
    return heft_sized_check(s->ops->size, offsetof(heft_source_ops, dont_need), "heft_source_ops",
                            err);
}

heft_status heft_sink_check(const heft_sink *s, heft_error *err)
{
    return heft_sized_check(s->ops->size, offsetof(heft_sink_ops, reflink), "heft_sink_ops", err);
}

/* Limit digests to HEFT_HASH_BYTES, the size of the buffers that checksums are compared in. */
static heft_status check_digest(const heft_digest *d, heft_error *err)
{
    HEFT_TRY(heft_sized_check(d->size, offsetof(heft_digest, combine), "heft_digest", err));
    if (!d->bytes || d->bytes > HEFT_HASH_BYTES)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "digest %s has %U bytes; 1 to %U are allowed",
                                d->name, (uint64_t)d->bytes, (uint64_t)HEFT_HASH_BYTES);
    return HEFT_OK;
}

heft_status heft_host_check(const heft_host *h, heft_error *err)
{
    HEFT_TRY(heft_sized_check(h->size, offsetof(heft_host, scratch), "heft_host", err));
    if (!h->allocator)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the host has no allocator");
    HEFT_TRY(heft_sized_check(h->allocator->size, sizeof(heft_allocator), "heft_allocator", err));
    if (!h->allocator->resize)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the host's allocator has no resize()");
    if (h->executor)
        HEFT_TRY(heft_sized_check(h->executor->size, sizeof(heft_executor), "heft_executor", err));
    for (size_t i = 0; h->digests && h->digests[i]; i++)
        HEFT_TRY(check_digest(h->digests[i], err));
    for (size_t i = 0; h->codecs && h->codecs[i]; i++)
        HEFT_TRY(
            heft_sized_check(h->codecs[i]->size, offsetof(heft_codec, bound), "heft_codec", err));
    return HEFT_OK;
}

/* ---- options of appending ---- */

heft_status heft_append_read_options(heft_append_settings *out, const heft_append_options *opt,
                                     heft_error *err)
{
    *out = (heft_append_settings){ .append = HEFT_APPEND_OPTIONS_INIT,
                                   .convert = HEFT_CONVERT_OPTIONS_INIT,
                                   .write = HEFT_WRITE_OPTIONS_INIT };
    heft_status st = heft_sized_copy(&out->append, sizeof out->append, opt, err);
    if (!st)
        st = heft_sized_copy(&out->convert, sizeof out->convert, out->append.convert, err);
    if (!st)
        st = heft_sized_copy(&out->write, sizeof out->write, out->convert.write, err);
    out->append.convert = &out->convert;
    out->convert.write = &out->write;
    return st;
}
