/* msan_calls.h - mark memory as initialised after calls that the memory sanitizer does not see.
 *
 * Included before every source of the build with that sanitizer (./dev analyze). The sanitizer of
 * clang 14 does not know stat() of glibc 2.33 and later, nor the functions of libraries. */
#ifndef HEFT_MSAN_CALLS_H
#define HEFT_MSAN_CALLS_H

#ifdef _GNU_SOURCE
#ifndef OPENSSL_SUPPRESS_DEPRECATED
#define OPENSSL_SUPPRESS_DEPRECATED
#endif
#include <dlfcn.h>
#include <ftw.h>
#include <openssl/sha.h>
#include <sanitizer/msan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

static inline int heft_msan_stat(int failed, struct stat *info)
{
    if (!failed)
        __msan_unpoison(info, sizeof *info);
    return failed;
}

static inline char *heft_msan_text(char *text)
{
    if (text)
        __msan_unpoison_string(text);
    return text;
}

static inline int heft_msan_inflate(z_stream *z, int flush)
{
    Bytef *out = z->next_out;
    int code = inflate(z, flush);
    __msan_unpoison(out, (size_t)(z->next_out - out));
    return code;
}

static inline size_t heft_msan_decompress(ZSTD_DStream *d, ZSTD_outBuffer *to, ZSTD_inBuffer *from)
{
    size_t code = ZSTD_decompressStream(d, to, from);
    __msan_unpoison(to->dst, to->pos);
    return code;
}

static inline size_t heft_msan_compress(ZSTD_CCtx *c, void *out, size_t capacity, const void *in,
                                        size_t len)
{
    size_t n = ZSTD_compress2(c, out, capacity, in, len);
    if (!ZSTD_isError(n))
        __msan_unpoison(out, n);
    return n;
}

static __typeof__(SHA256_Final) *heft_msan_final;

static inline int heft_msan_sha256(unsigned char *out, SHA256_CTX *state)
{
    int done = heft_msan_final(out, state);
    __msan_unpoison(out, SHA256_DIGEST_LENGTH);
    return done;
}

/* libcrypto is loaded, and its functions are found by their names. */
static inline void *heft_msan_find(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (strcmp(name, "SHA256_Final") != 0)
        return function;
    heft_msan_final = (__typeof__(SHA256_Final) *)function;
    return (void *)heft_msan_sha256;
}

/* The callback of the latest nftw(), which has no context argument. */
static __nftw_func_t heft_msan_visitor;

static inline int heft_msan_visit(const char *path, const struct stat *info, int kind,
                                  struct FTW *at)
{
    __msan_unpoison_string(path);
    __msan_unpoison(info, sizeof *info);
    __msan_unpoison(at, sizeof *at);
    return heft_msan_visitor(path, info, kind, at);
}

static inline int heft_msan_nftw(const char *dir, __nftw_func_t visit, int depth, int flags)
{
    heft_msan_visitor = visit;
    return nftw(dir, heft_msan_visit, depth, flags);
}

#define nftw(dir, visit, depth, flags)            heft_msan_nftw(dir, visit, depth, flags)
#define stat(path, info)                          heft_msan_stat(stat(path, info), info)
#define lstat(path, info)                         heft_msan_stat(lstat(path, info), info)
#define fstat(fd, info)                           heft_msan_stat(fstat(fd, info), info)
#define fstatat(d, path, info, how)               heft_msan_stat(fstatat(d, path, info, how), info)
#define realpath(path, to)                        heft_msan_text(realpath(path, to))
#define inflate(z, flush)                         heft_msan_inflate(z, flush)
#define ZSTD_decompressStream(d, to, from)        heft_msan_decompress(d, to, from)
#define ZSTD_compress2(c, out, capacity, in, len) heft_msan_compress(c, out, capacity, in, len)
#define dlsym(library, name)                      heft_msan_find(library, name)
#endif

#endif
