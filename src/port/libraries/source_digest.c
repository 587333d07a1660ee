/* source_digest.c - digests of whole files, by libcrypto.
 *
 * SHA-256 and SHA-1 use the functions that OpenSSL deprecates, for the reason given in
 * digest_openssl.c.  BLAKE2b has only EVP, in a library context of its own. */
#include <heft/sign.h>
#include <string.h>

#include "base/text.h"
#include "port/libraries/crypto_library.h"
#include "port/port.h"

enum { STEP = 256 << 10, PROGRESS_STEP = 1 << 20 }; /* STEP stays in the second-level cache */

typedef struct blake2b {
    OSSL_LIB_CTX *library;
    EVP_MD *method;
    EVP_MD_CTX *context;
} blake2b;

typedef union state {
    SHA256_CTX sha256;
    SHA_CTX sha1;
    blake2b blake2b;
} state;

typedef struct algorithm {
    const char *name;
    uint32_t bytes;
    bool (*begin)(state *s, uint64_t length);
    bool (*update)(state *s, const void *data, size_t len);
    bool (*end)(state *s, uint8_t *out); /* out NULL: only release */
} algorithm;

static bool sha256_begin(state *s, uint64_t length)
{
    (void)length;
    return heft_crypto->SHA256_Init(&s->sha256);
}

static bool sha256_update(state *s, const void *data, size_t len)
{
    return heft_crypto->SHA256_Update(&s->sha256, data, len);
}

static bool sha256_end(state *s, uint8_t *out)
{
    return !out || heft_crypto->SHA256_Final(out, &s->sha256);
}

/* git hashes the word "blob", the size and a zero byte before the content. */
static bool git_begin(state *s, uint64_t length)
{
    char head[5 + 20 + 1] = "blob ";
    size_t digits = heft_u64_text(head + 5, length);
    head[5 + digits] = '\0';
    return heft_crypto->SHA1_Init(&s->sha1) &&
           heft_crypto->SHA1_Update(&s->sha1, head, 5 + digits + 1);
}

static bool git_update(state *s, const void *data, size_t len)
{
    return heft_crypto->SHA1_Update(&s->sha1, data, len);
}

static bool git_end(state *s, uint8_t *out)
{
    return !out || heft_crypto->SHA1_Final(out, &s->sha1);
}

static bool blake2b_end(state *s, uint8_t *out)
{
    bool ok = !out || heft_crypto->EVP_DigestFinal_ex(s->blake2b.context, out, NULL);
    heft_crypto->EVP_MD_CTX_free(s->blake2b.context);
    heft_crypto->EVP_MD_free(s->blake2b.method);
    heft_crypto->OSSL_LIB_CTX_free(s->blake2b.library);
    return ok;
}

static bool blake2b_begin(state *s, uint64_t length)
{
    (void)length;
    blake2b *b = &s->blake2b;
    *b = (blake2b){ .library = heft_crypto->OSSL_LIB_CTX_new() };
    b->method = b->library ? heft_crypto->EVP_MD_fetch(b->library, "BLAKE2B-512", NULL) : NULL;
    b->context = b->method ? heft_crypto->EVP_MD_CTX_new() : NULL;
    if (b->context && heft_crypto->EVP_DigestInit_ex2(b->context, b->method, NULL))
        return true;
    blake2b_end(s, NULL);
    return false;
}

static bool blake2b_update(state *s, const void *data, size_t len)
{
    return heft_crypto->EVP_DigestUpdate(s->blake2b.context, data, len);
}

bool heft_md5(uint8_t out[HEFT_MD5_BYTES], const void *data, size_t len)
{
    MD5_CTX c;
    return !heft_crypto_load(NULL) && heft_crypto->MD5_Init(&c) &&
           heft_crypto->MD5_Update(&c, data, len) && heft_crypto->MD5_Final(out, &c);
}

static const algorithm algorithms[] = {
    { "sha256", SHA256_DIGEST_LENGTH, sha256_begin, sha256_update, sha256_end },
    { "git-sha1", SHA_DIGEST_LENGTH, git_begin, git_update, git_end },
    { "blake2b", HEFT_FILE_DIGEST_BYTES, blake2b_begin, blake2b_update, blake2b_end },
};

static const algorithm *find_algorithm(const char *name)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (!strcmp(algorithms[i].name, name))
            return &algorithms[i];
    return NULL;
}

typedef struct pass { /* one pass over the bytes */
    const algorithm *a;
    state s;
    heft_source *source;
    heft_progress_fn progress;
    void *progress_ctx;
} pass;

static heft_status digest_range(pass *p, uint8_t *buf, uint64_t offset, uint64_t length,
                                heft_error *err)
{
    for (uint64_t done = 0; done < length;) {
        size_t n = length - done < STEP ? (size_t)(length - done) : STEP;
        HEFT_TRY(p->source->ops->read(p->source, offset + done, buf, n, err));
        if (!p->a->update(&p->s, buf, n))
            return heft_error_plain(err, HEFT_E_NOMEM, "libcrypto could not compute the digest");
        done += n;
        if (p->progress && (done == length || done % PROGRESS_STEP == 0) &&
            !p->progress(p->progress_ctx, done, length))
            return heft_error_plain(err, HEFT_E_CANCELLED, "cancelled");
    }
    return HEFT_HAS(p->source->ops, check_unchanged)
               ? p->source->ops->check_unchanged(p->source, err)
               : HEFT_OK;
}

heft_status heft_source_digest(heft_file_digest *out, heft_source *s, const char *name,
                               uint64_t offset, uint64_t length, heft_progress_fn progress,
                               void *progress_ctx, heft_error *err)
{
    const heft_allocator *al = &heft_libc_allocator;
    pass p = { find_algorithm(name), { .sha1 = { 0 } }, s, progress, progress_ctx };
    *out = (heft_file_digest){ .length = 0 };
    if (!p.a)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "the digest '%s' is not supported", name);
    if (offset > s->size || length > s->size - offset)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the range exceeds the file");
    HEFT_TRY(heft_crypto_load(err));
    uint8_t *buf = al->resize(al->ctx, NULL, 0, STEP, 16);
    bool begun = buf && p.a->begin(&p.s, length);
    heft_status st = begun ? digest_range(&p, buf, offset, length, err)
                           : heft_error_no_memory(err, "to compute a digest");
    /* A digest that is given up does not fail. */
    if (begun && !p.a->end(&p.s, st ? NULL : out->bytes))
        st = heft_error_no_memory(err, "to compute a digest");
    if (buf)
        al->resize(al->ctx, buf, STEP, 0, 16);
    out->length = st ? 0 : p.a->bytes;
    return st;
}
