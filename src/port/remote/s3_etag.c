/* s3_etag.c - the ETag of an object of S3 that was uploaded in parts: the MD5 of the MD5s of the
 * parts, a hyphen, and the number of parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "port/remote/session.h"

enum { DIGITS = 2 * HEFT_MD5_BYTES };

/* Read the digits of an ETag in quotation marks; false: the ETag is not an MD5. */
static bool read_md5(uint8_t out[HEFT_MD5_BYTES], const char *etag)
{
    if (strlen(etag) != DIGITS + 2 || etag[0] != '"' || etag[DIGITS + 1] != '"')
        return false;
    return heft_hex_read(out, HEFT_MD5_BYTES, (heft_str){ etag + 1, DIGITS });
}

bool heft_s3_etag(char out[HEFT_S3_ETAG], const char *etags, size_t step, uint64_t count)
{
    uint8_t *all = malloc((size_t)count * HEFT_MD5_BYTES + 1), digest[HEFT_MD5_BYTES];
    char text[DIGITS + 1] = "";
    bool known = all;
    for (uint64_t i = 0; i < count && known; i++)
        known = read_md5(all + i * HEFT_MD5_BYTES, etags + i * step);
    known = known && heft_md5(digest, all, (size_t)count * HEFT_MD5_BYTES);
    free(all);
    if (!known)
        return false;
    heft_hex_text(text, digest, sizeof digest);
    snprintf(out, HEFT_S3_ETAG, "\"%s-%u\"", text, (unsigned)count);
    return true;
}
