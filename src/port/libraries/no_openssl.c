/* no_openssl.c - digests of files and signatures in a build without libcrypto. */
#include <heft/sign.h>

#include "port/port.h"

static heft_status fail(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "this build of Heft has no OpenSSL, which computes digests and "
                            "signatures; rebuild Heft with -Dopenssl=enabled");
}

bool heft_md5(uint8_t out[HEFT_MD5_BYTES], const void *data, size_t len)
{
    (void)out, (void)data, (void)len;
    return false;
}

heft_status heft_source_digest(heft_file_digest *out, heft_source *s, const char *name,
                               uint64_t offset, uint64_t length, heft_progress_fn progress,
                               void *progress_ctx, heft_error *err)
{
    (void)s, (void)name, (void)offset, (void)length, (void)progress, (void)progress_ctx;
    *out = (heft_file_digest){ .length = 0 };
    return fail(err);
}

heft_status heft_signature_sign(heft_signature *s, heft_str key, heft_str password, heft_error *err)
{
    (void)s, (void)key, (void)password;
    return fail(err);
}

heft_status heft_signature_certify(heft_signature *s, heft_str certificates, heft_error *err)
{
    (void)s, (void)certificates;
    return fail(err);
}

heft_status heft_signature_check_key(const heft_signature *s, heft_str key, heft_error *err)
{
    (void)s, (void)key;
    return fail(err);
}

heft_status heft_signature_check_chain(const heft_signature *s, heft_str authorities,
                                       heft_str certificate, heft_error *err)
{
    (void)s, (void)authorities, (void)certificate;
    return fail(err);
}
