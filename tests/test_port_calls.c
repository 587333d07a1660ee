/* test_port_calls.c - calls of src/port that fail, are interrupted, or return extreme values. The
 * calls are intercepted through the linker option --wrap, see meson.build. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <heft/params.h>
#include <heft/share.h>
#include <heft/sign.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <zlib.h>
#include <zstd.h>

#include "core/read/stored_checksum.h"
#include "port/system/disk.h"

/* ---- intercepted calls ----------------------------------------------------------------------- */

typedef enum call {
    NO_CALL,
    MALLOC,
    CALLOC,
    PREAD,
    PREADV,
    OPENAT,
    FSTAT,
    MMAP,
    GETRANDOM,
    GETAFFINITY,
    DLOPEN,
    DLSYM,
    SHA256_UPDATE,
    SHA256_FINAL,
    SHA1_INIT,
    SHA1_UPDATE,
    SHA1_FINAL,
    BLAKE2_INIT,
    BLAKE2_FINAL,
    ZSTD_OPEN,
    ZSTD_LEVEL,
    INFLATE
} call;

static struct {
    call fails;
    int at, times; /* number of the first call that fails, from 1; number of calls that fail */
    int os;        /* errno */
    int calls;
    const struct statvfs *system; /* result of fstatvfs(), or NULL */
    uint64_t stored;              /* bytes that fstat() reports as allocated; 0: as they are */
    int processors;               /* result of sched_getaffinity(); 0: as they are */
} plan;

static void plan_for(call c, int at, int times, int os)
{
    memset(&plan, 0, sizeof plan);
    plan.fails = c;
    plan.at = at;
    plan.times = times;
    plan.os = os;
}

static bool fails(call c)
{
    if (c != plan.fails)
        return false;
    plan.calls++;
    errno = plan.os;
    return plan.calls >= plan.at && plan.calls < plan.at + plan.times;
}

/* Shared libraries may call a wrapped function, too: the symbols must be visible to libraries. */
#define WRAPPED(result, name, parameters, arguments, c, failure)            \
    result __real_##name parameters;                                        \
    __attribute__((visibility("default"))) result __wrap_##name parameters; \
    result __wrap_##name parameters                                         \
    {                                                                       \
        return fails(c) ? (failure) : __real_##name arguments;              \
    }

WRAPPED(void *, malloc, (size_t size), (size), MALLOC, NULL)
/* On machines of 32 bits the blocks that are aligned to 16 bytes come from posix_memalign(). */
WRAPPED(int, posix_memalign, (void **block, size_t align, size_t size), (block, align, size),
        MALLOC, ENOMEM)
WRAPPED(void *, calloc, (size_t n, size_t size), (n, size), CALLOC, NULL)
WRAPPED(ssize_t, pread64, (int fd, void *buf, size_t len, off_t at), (fd, buf, len, at), PREAD, -1)
WRAPPED(ssize_t, preadv64, (int fd, const struct iovec *to, int count, off_t at),
        (fd, to, count, at), PREADV, -1)
WRAPPED(int, openat64, (int dir, const char *name, int flags, mode_t mode),
        (dir, name, flags, mode), OPENAT, -1)
/* openat64() without a mode, under _FORTIFY_SOURCE */
WRAPPED(int, __openat64_2, (int dir, const char *name, int flags), (dir, name, flags), OPENAT, -1)
WRAPPED(void *, mmap64, (void *p, size_t len, int access, int flags, int fd, off_t at),
        (p, len, access, flags, fd, at), MMAP, MAP_FAILED)
WRAPPED(ssize_t, getrandom, (void *buf, size_t len, unsigned flags), (buf, len, flags), GETRANDOM,
        -1)
WRAPPED(int, SHA256_Update, (SHA256_CTX * c, const void *data, size_t len), (c, data, len),
        SHA256_UPDATE, 0)
WRAPPED(int, SHA256_Final, (unsigned char *out, SHA256_CTX *c), (out, c), SHA256_FINAL, 0)
WRAPPED(int, SHA1_Init, (SHA_CTX * c), (c), SHA1_INIT, 0)
WRAPPED(int, SHA1_Update, (SHA_CTX * c, const void *data, size_t len), (c, data, len), SHA1_UPDATE,
        0)
WRAPPED(int, SHA1_Final, (unsigned char *out, SHA_CTX *c), (out, c), SHA1_FINAL, 0)
WRAPPED(int, EVP_DigestInit_ex2, (EVP_MD_CTX * c, const EVP_MD *m, const OSSL_PARAM *p), (c, m, p),
        BLAKE2_INIT, 0)
WRAPPED(int, EVP_DigestFinal_ex, (EVP_MD_CTX * c, unsigned char *out, unsigned *len), (c, out, len),
        BLAKE2_FINAL, 0)

static void *crypto_library; /* the last library that was opened */

/* libcrypto is loaded, and the functions are found by name. */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    bool is_to_fail = fails(DLOPEN);
    void *library = __real_dlopen(is_to_fail ? "libmissing.so.3" : name, flags);
    errno = is_to_fail ? plan.os : errno;
    crypto_library = library;
    return library;
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
/* Sanitizers call the function before checked code can run. */
__attribute__((no_sanitize("address", "undefined"))) void *__wrap_dlsym(void *library,
                                                                        const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } wrapped[] = {
        { "SHA256_Update", (void (*)(void))__wrap_SHA256_Update },
        { "SHA256_Final", (void (*)(void))__wrap_SHA256_Final },
        { "SHA1_Init", (void (*)(void))__wrap_SHA1_Init },
        { "SHA1_Update", (void (*)(void))__wrap_SHA1_Update },
        { "SHA1_Final", (void (*)(void))__wrap_SHA1_Final },
        { "EVP_DigestInit_ex2", (void (*)(void))__wrap_EVP_DigestInit_ex2 },
        { "EVP_DigestFinal_ex", (void (*)(void))__wrap_EVP_DigestFinal_ex },
    };
    if (!crypto_library || library != crypto_library)
        return __real_dlsym(library, name);
    void *found = __real_dlsym(library, fails(DLSYM) ? "missing" : name);
    for (size_t i = 0; found && i < HEFT_COUNT(wrapped); i++)
        if (!strcmp(name, wrapped[i].name))
            memcpy(&found, &wrapped[i].function, sizeof found);
    return found;
}

WRAPPED(ZSTD_DCtx *, ZSTD_createDCtx, (void), (), ZSTD_OPEN, NULL)
WRAPPED(size_t, ZSTD_CCtx_setParameter, (ZSTD_CCtx * c, ZSTD_cParameter p, int v), (c, p, v),
        ZSTD_LEVEL, (size_t)-42 /* ZSTD_error_parameter_outOfBound */)
WRAPPED(int, inflate, (z_streamp z, int flush), (z, flush), INFLATE, Z_MEM_ERROR)

int __real_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out)
{
    int failed = __real_fstat64(fd, out) || fails(FSTAT) ? -1 : 0;
    if (!failed && plan.stored)
        out->st_blocks = (blkcnt_t)(plan.stored / 512);
    return failed;
}

int __real_fstatvfs64(int fd, struct statvfs *out);
int __wrap_fstatvfs64(int fd, struct statvfs *out);
int __wrap_fstatvfs64(int fd, struct statvfs *out)
{
    int failed = __real_fstatvfs64(fd, out);
    if (plan.system)
        *out = *plan.system;
    return plan.system ? 0 : failed;
}

static int reserved; /* calls of fallocate() */
int __wrap_fallocate64(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t len)
{
    (void)fd, (void)mode, (void)at, (void)len;
    reserved++;
    return 0;
}

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out)
{
    int failed = fails(GETAFFINITY) ? -1 : __real_sched_getaffinity(pid, size, out);
    if (!failed && plan.processors) {
        CPU_ZERO(out);
        for (unsigned i = 0; i < (unsigned)plan.processors; i++)
            CPU_SET(i, out);
    }
    return failed;
}

/* ---- random numbers, threads, space ---------------------------------------------------------- */

static void random_numbers_survive_a_signal(void **state)
{
    uint64_t id;
    heft_error err;
    (void)state;
    plan_for(GETRANDOM, 1, 2, EINTR);
    heft_assert_ok(heft_param_id_new(&id, &err), &err);
    assert_int_equal(plan.calls, 3);
    plan_for(GETRANDOM, 1, 1, ENOSYS);
    heft_assert_fails(heft_param_id_new(&id, &err), HEFT_E_IO, &err, "no random numbers");
    assert_int_equal(err.os, ENOSYS);
    assert_int_equal(plan.calls, 1);
}

static void uses_from_1_to_64_processors(void **state)
{
    static const struct {
        int processors, width;
    } rows[] = { { 1, 1 }, { 2, 2 }, { 64, 64 }, { 65, 64 }, { 500, 64 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        plan_for(NO_CALL, 0, 0, 0);
        plan.processors = rows[i].processors;
        assert_int_equal(heft_executor_threads(0).width, rows[i].width);
    }
    plan_for(GETAFFINITY, 1, 1, ENOSYS);
    assert_int_equal(heft_executor_threads(0).width, 1);
}

static void does_not_reserve_more_than_is_free(void **state)
{
    enum { BLOCK = 4096, FREE = 100 };
    static const struct {
        uint64_t size, present, blocks, block;
        bool asks; /* fallocate() decides */
    } rows[] = {
        { FREE * BLOCK, 512, 1000, BLOCK, true },
        { FREE * BLOCK + BLOCK - 1, 512, 1000, BLOCK, true },
        { (FREE + 1) * BLOCK + 512, 512, 1000, BLOCK, false },
        { (FREE + 1) * BLOCK + 511, 512, 1000, BLOCK, true },
        { (FREE + 9) * BLOCK, 9 * BLOCK, 1000, BLOCK, true },
        { (FREE + 10) * BLOCK, 9 * BLOCK, 1000, BLOCK, false },
        { (FREE + 9) * BLOCK, 900 * BLOCK, 1000, BLOCK, true }, /* the file is larger */
        { (FREE + 9) * BLOCK, (FREE + 9) * BLOCK, 1000, BLOCK, true },
        { (FREE + 10) * BLOCK, 512, 0, BLOCK, true }, /* the system does not know */
        { (FREE + 10) * BLOCK, 512, 1000, 0, true },
    };
    int fd = open(heft_test_path(*state, "x"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        struct statvfs system = { .f_bavail = FREE };
        plan_for(NO_CALL, 0, 0, 0);
        plan.system = &system;
        plan.stored = rows[i].present;
        system.f_blocks = (fsblkcnt_t)rows[i].blocks;
        system.f_frsize = (unsigned long)rows[i].block;
        reserved = 0;
        assert_int_equal(heft_disk_reserve(&heft_system_disk, fd, rows[i].size),
                         rows[i].asks ? 0 : ENOSPC);
        assert_int_equal(reserved, rows[i].asks);
    }
    plan_for(FSTAT, 1, 1, EIO);
    struct statvfs full = { .f_blocks = 9, .f_frsize = BLOCK };
    plan.system = &full;
    assert_int_equal(heft_disk_reserve(&heft_system_disk, fd, BLOCK), 0);
    plan_for(NO_CALL, 0, 0, 0);
    assert_int_equal(heft_disk_reserve(&heft_system_disk, fd, (uint64_t)INT64_MAX + 1), EFBIG);
    struct statvfs none = { .f_blocks = 0 };
    plan.system = &none;
    assert_int_equal(heft_disk_reserve(&heft_system_disk, fd, INT64_MAX), 0);
    plan_for(NO_CALL, 0, 0, 0);
    close(fd);
}

static void buffers_have_a_length_that_can_be_mapped(void **state)
{
    static const size_t wrong[] = { SIZE_MAX, SIZE_MAX - (4 << 20), SIZE_MAX / 4 * 3 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(wrong); i++)
        assert_null(heft_buffer_new(wrong[i]));
    plan_for(MMAP, 1, 1, ENOMEM);
    assert_null(heft_buffer_new(5));
    plan_for(NO_CALL, 0, 0, 0);
    const heft_allocator *al = &heft_libc_allocator;
    assert_null(al->resize(al->ctx, NULL, 0, SIZE_MAX, 16));
    plan_for(MMAP, 1, 1, ENOMEM);
    assert_null(al->resize(al->ctx, NULL, 0, 8 << 20, 16));
    plan_for(NO_CALL, 0, 0, 0);
    uint8_t *small = al->resize(al->ctx, NULL, 0, 100, 16);
    memset(small, 7, 100);
    plan_for(MMAP, 1, 1, ENOMEM);
    assert_null(al->resize(al->ctx, small, 100, 8 << 20, 16));
    plan_for(NO_CALL, 0, 0, 0);
    assert_int_equal(small[99], 7); /* a failure keeps the block */
    al->resize(al->ctx, small, 100, 0, 16);
}

/* ---- memory of the C library ----------------------------------------------------------------- */

static void sources_report_missing_memory(void **state)
{
    heft_source *s;
    heft_error err;
    const char *path = heft_test_path(*state, "x");
    heft_test_save(path, "content", 7);
    plan_for(CALLOC, 1, 1, ENOMEM);
    heft_assert_fails(heft_source_open_memory(&s, "x", 1, &err), HEFT_E_NOMEM, &err, "memory");
    assert_null(s);
    for (int at = 1; at < 3; at++) { /* the source, the guard of the mapping */
        plan_for(CALLOC, at, 1, ENOMEM);
        heft_assert_fails(heft_source_open_file(&s, path, HEFT_ACCESS_AUTO, &err), HEFT_E_NOMEM,
                          &err, "memory");
        assert_null(s);
    }
    plan_for(MMAP, 1, 1, ENODEV);
    heft_assert_fails(heft_source_open_file(&s, path, HEFT_ACCESS_MAP, &err), HEFT_E_IO, &err,
                      "cannot be mapped");
    plan_for(MMAP, 1, 1, ENODEV);
    heft_assert_ok(heft_source_open_file(&s, path, HEFT_ACCESS_AUTO, &err), &err);
    assert_null(s->ops->map(s, 0, 7));
    s->ops->dont_need(s, 0, 7); /* nothing is mapped */
    heft_source_close(s);
    plan_for(NO_CALL, 0, 0, 0);
}

static void direct_reads_are_optional(void **state)
{
    char got[8] = "";
    heft_error err;
    const char *path = heft_test_path(*state, "x");
    heft_test_save(path, "content", 7);
    for (int at = 1; at < 4; at++) { /* the source, the reader, the list of chunks */
        heft_source *s;
        plan_for(CALLOC, at + (at > 1), 1, ENOMEM); /* 2 is the guard */
        heft_status st = heft_source_open_file(&s, path, HEFT_ACCESS_DIRECT, &err);
        plan_for(NO_CALL, 0, 0, 0);
        heft_assert_status(st, at == 1 ? HEFT_E_NOMEM : HEFT_OK, &err);
        if (st)
            continue;
        heft_assert_ok(s->ops->read(s, 0, got, 7, &err), &err);
        assert_string_equal(got, "content");
        heft_source_close(s);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    plan_for(OPENAT, 1, 1, EINVAL);
    assert_null(heft_direct_open(fd, NULL, 7));
    plan_for(NO_CALL, 0, 0, 0);
    heft_direct *d = heft_direct_open(fd, NULL, 7);
    if (d) { /* otherwise the file system has no direct reads */
        plan_for(PREADV, 1, 2, EINTR);
        assert_int_equal(heft_direct_read(d, 0, got, 7), 7);
        heft_direct_close(d);
        d = heft_direct_open(fd, NULL, 7);
        plan_for(PREADV, 1, 9, EIO);
        assert_int_equal(heft_direct_read(d, 0, got, 7), 0); /* an ordinary read goes on */
        heft_direct_close(d);
        d = heft_direct_open(fd, NULL, 7);
        plan_for(CALLOC, 1, 1, ENOMEM);
        assert_int_equal(heft_direct_read(d, 0, got, 7), 0);
        heft_direct_close(d);
    }
    plan_for(NO_CALL, 0, 0, 0);
    close(fd);
}

static void reads_are_repeated_after_a_signal(void **state)
{
    char got[8] = "";
    heft_source *s;
    heft_error err;
    const char *path = heft_test_path(*state, "x");
    heft_test_save(path, "content", 7);
    heft_assert_ok(heft_source_open_file(&s, path, HEFT_ACCESS_READ, &err), &err);
    plan_for(PREAD, 1, 2, EINTR);
    heft_assert_ok(s->ops->read(s, 0, got, 7, &err), &err);
    assert_string_equal(got, "content");
    plan_for(PREAD, 1, 1, EIO);
    heft_assert_fails(s->ops->read(s, 0, got, 7, &err), HEFT_E_IO, &err, "reading failed");
    heft_source_close(s);
    plan_for(NO_CALL, 0, 0, 0);
}

static void temporary_files_report_each_failure(void **state)
{
    static const struct {
        call fails;
        int at;
        heft_status st;
        const char *words;
    } rows[] = {
        { CALLOC, 1, HEFT_E_NOMEM, "for a temporary file" },
        { OPENAT, 1, HEFT_E_IO, "the directory for temporary files cannot be opened" },
        { MMAP, 1, HEFT_E_IO, "a temporary file cannot be mapped" },
        { CALLOC, 2, HEFT_E_NOMEM, "to guard a mapping" },
        { NO_CALL, 0, HEFT_OK, "" },
    };
    heft_source *guarded[4]; /* no guard is left for the temporary file */
    const char *path = heft_test_path(*state, "x");
    heft_test_save(path, "content", 7);
    for (size_t i = 0; i < HEFT_COUNT(guarded); i++)
        heft_assert_ok(heft_source_open_file(&guarded[i], path, HEFT_ACCESS_MAP, NULL), NULL);
    setenv("TMPDIR", *state, 1);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_scratch *s;
        heft_error err;
        const void *map;
        plan_for(rows[i].fails, rows[i].at, 1, EIO);
        heft_status st = heft_scratch_temporary(&s, 7, &err);
        if (!st)
            st = s->ops->write(s, "content", 7, &err);
        if (!st)
            st = s->ops->map(s, &map, &err);
        if (!st) {
            assert_memory_equal(map, "content", 7);
            heft_assert_ok(s->ops->check(s, &err), &err);
        }
        plan_for(NO_CALL, 0, 0, 0);
        if (s)
            s->ops->close(s);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, rows[i].st, &err, rows[i].words);
    }
    for (int is_set = 0; is_set < 2; is_set++) { /* /var/tmp */
        heft_scratch *s;
        unsetenv("TMPDIR");
        if (is_set)
            setenv("TMPDIR", "", 1);
        heft_assert_ok(heft_scratch_temporary(&s, 1, NULL), NULL);
        s->ops->close(s);
    }
    unsetenv("TMPDIR");
    for (size_t i = 0; i < HEFT_COUNT(guarded); i++)
        heft_source_close(guarded[i]);
}

/* ---- digests of whole files ------------------------------------------------------------------ */

static uint64_t progress_calls, progress_done, cancel_at;

static bool count_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    progress_calls++;
    progress_done = done;
    return !cancel_at || done < cancel_at;
}

typedef struct changing_source {
    heft_source base;
    bool fails, has_changed;
} changing_source;

static heft_status changing_read(heft_source *s, uint64_t off, void *buf, size_t len,
                                 heft_error *err)
{
    (void)off;
    memset(buf, 'x', len);
    if (!((const changing_source *)s)->fails)
        return HEFT_OK;
    *err = (heft_error){ .status = HEFT_E_IO, .message = "cannot be read" };
    return HEFT_E_IO;
}

static heft_status changing_check(heft_source *s, heft_error *err)
{
    if (!((const changing_source *)s)->has_changed)
        return HEFT_OK;
    *err = (heft_error){ .status = HEFT_E_IO, .message = "has changed" };
    return HEFT_E_IO;
}

static void changing_close(heft_source *s)
{
    (void)s;
}

static const heft_source_ops changing_ops = { .size = sizeof(heft_source_ops),
                                              .read = changing_read,
                                              .close = changing_close,
                                              .check_unchanged = changing_check };

/* The first test with a digest: afterwards libcrypto is loaded. */
static void a_libcrypto_that_cannot_be_loaded_is_reported(void **state)
{
    static const struct {
        call fails;
        int os;
        heft_status st;
        const char *words;
    } rows[] = {
        { DLOPEN, ENOENT, HEFT_E_UNSUPPORTED, "(libmissing.so.3: cannot open" },
        { DLOPEN, ENOMEM, HEFT_E_NOMEM, "to load libcrypto" },
        { DLSYM, 0, HEFT_E_UNSUPPORTED, "install the package libssl3" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        changing_source s = { { &changing_ops, 1 }, false, false };
        heft_running_digest running = { .digest = NULL };
        heft_file_digest digest;
        heft_error err;
        plan_for(rows[i].fails, 1, 2, rows[i].os);
        heft_status st = heft_source_digest(&digest, &s.base, "sha256", 0, 1, NULL, NULL, &err);
        heft_assert_fails(st, rows[i].st, &err, rows[i].words);
        st = heft_running_digest_begin(&running, &heft_openssl_sha256, &heft_libc_allocator, "",
                                       &err);
        heft_assert_fails(st, rows[i].st, &err, rows[i].words);
        plan_for(NO_CALL, 0, 0, 0);
    }
}

static void digests_of_files_report_each_failure(void **state)
{
    enum { SIZE = (5 << 20) / 2 };
    static const struct {
        const char *name;
        uint64_t offset, length;
        call fails;
        bool reads_badly, has_changed;
        uint64_t cancel_at;
        heft_status st;
        const char *words;
    } rows[] = {
        { "sha256", 0, SIZE, NO_CALL, false, false, 0, HEFT_OK, "" },
        { "git-sha1", 0, SIZE, NO_CALL, false, false, 0, HEFT_OK, "" },
        { "blake2b", 0, SIZE, NO_CALL, false, false, 0, HEFT_OK, "" },
        { "sha256", SIZE, 0, NO_CALL, false, false, 0, HEFT_OK, "" },
        { "md5", 0, SIZE, NO_CALL, false, false, 0, HEFT_E_UNSUPPORTED, "'md5' is not supported" },
        { "sha256", SIZE + 1, 0, NO_CALL, false, false, 0, HEFT_E_ARGUMENT, "exceeds the file" },
        { "sha256", 0, SIZE + 1, NO_CALL, false, false, 0, HEFT_E_ARGUMENT, "exceeds the file" },
        { "sha256", 1, SIZE, NO_CALL, false, false, 0, HEFT_E_ARGUMENT, "exceeds the file" },
        { "sha256", SIZE, UINT64_MAX, NO_CALL, false, false, 0, HEFT_E_ARGUMENT, "exceeds" },
        { "sha256", 0, SIZE, NO_CALL, true, false, 0, HEFT_E_IO, "cannot be read" },
        { "sha256", 0, SIZE, NO_CALL, false, true, 0, HEFT_E_IO, "has changed" },
        { "sha256", 0, SIZE, NO_CALL, false, false, 1, HEFT_E_CANCELLED, "cancelled" },
        { "sha256", 0, SIZE, NO_CALL, false, false, SIZE, HEFT_E_CANCELLED, "cancelled" },
        { "sha256", 0, SIZE, SHA256_UPDATE, false, false, 0, HEFT_E_NOMEM, "libcrypto" },
        { "sha256", 0, SIZE, SHA256_FINAL, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "sha256", 0, SIZE, MALLOC, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "git-sha1", 0, SIZE, SHA1_INIT, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "git-sha1", 0, SIZE, SHA1_UPDATE, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "git-sha1", 0, SIZE, SHA1_FINAL, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "blake2b", 0, SIZE, BLAKE2_INIT, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "blake2b", 0, SIZE, BLAKE2_FINAL, false, false, 0, HEFT_E_NOMEM, "to compute a digest" },
        { "blake2b", 0, SIZE, NO_CALL, true, false, 0, HEFT_E_IO, "cannot be read" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        changing_source s = { { &changing_ops, SIZE }, rows[i].reads_badly, rows[i].has_changed };
        heft_file_digest digest;
        heft_error err;
        progress_calls = progress_done = 0;
        cancel_at = rows[i].cancel_at;
        plan_for(rows[i].fails, 1, 1, ENOMEM);
        heft_status st = heft_source_digest(&digest, &s.base, rows[i].name, rows[i].offset,
                                            rows[i].length, count_progress, NULL, &err);
        plan_for(NO_CALL, 0, 0, 0);
        heft_assert_status(st, rows[i].st, &err);
        assert_int_equal(!digest.length, !!st);
        if (st)
            heft_assert_fails(st, rows[i].st, &err, rows[i].words);
        if (!st && rows[i].length) { /* each MiB, and the end */
            assert_int_equal(progress_calls, 3);
            assert_int_equal(progress_done, SIZE);
        }
        if (rows[i].cancel_at == 1)
            assert_int_equal(progress_calls, 1);
    }
}

/* ---- codecs ---------------------------------------------------------------------------------- */

static void codecs_report_missing_memory(void **state)
{
    static const struct {
        const heft_codec *codec;
        call fails;
    } rows[] = { { &heft_zstd_codec, CALLOC },
                 { &heft_zstd_codec, ZSTD_OPEN },
                 { &heft_inflate_codec, CALLOC },
                 { &heft_inflate_codec, INFLATE } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        void *codec;
        uint8_t out[8];
        size_t in_len = 3, out_len = sizeof out;
        bool whole = true;
        heft_error err;
        plan_for(rows[i].fails, 1, 1, ENOMEM);
        heft_status st = rows[i].codec->open(&codec, 5, &err);
        if (!st)
            st = rows[i].codec->decode(codec, "\1\2\3", &in_len, out, &out_len, &whole, &err);
        plan_for(NO_CALL, 0, 0, 0);
        heft_assert_fails(st, HEFT_E_NOMEM, &err, "memory");
        if (codec)
            rows[i].codec->close(codec);
    }
    void *encoder;
    heft_error err;
    plan_for(ZSTD_LEVEL, 1, 1, 0);
    heft_assert_fails(heft_zstd_codec.encoder_open(&encoder, 3, true, &err), HEFT_E_ARGUMENT, &err,
                      "zstd: ");
    heft_zstd_codec.encoder_close(encoder);
    plan_for(ZSTD_LEVEL, 2, 1, 0);
    heft_assert_fails(heft_zstd_codec.encoder_open(&encoder, 3, true, &err), HEFT_E_ARGUMENT, &err,
                      "zstd: ");
    heft_zstd_codec.encoder_close(encoder);
    plan_for(NO_CALL, 0, 0, 0);
}

static void an_encoder_needs_room_for_the_frame(void **state)
{
    void *encoder;
    char out[4] = "";
    size_t len = sizeof out;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_zstd_codec.encoder_open(&encoder, 3, true, &err), &err);
    heft_assert_fails(heft_zstd_codec.encode(encoder, out, &len, "data", 4, &err), HEFT_E_FORMAT,
                      &err, "zstd: Destination buffer is too small");
    heft_zstd_codec.encoder_close(encoder);
}

/* The content of a frame in a single segment is its window. */
static void a_window_is_compared_with_the_part(void **state)
{
    static const uint8_t frame[] = { 0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 0, 0x10 };
    const uint64_t window = 1 << 28;
    (void)state;
    for (uint64_t decoded = window - 1; decoded <= window; decoded++) {
        void *decoder;
        uint8_t out[8];
        size_t in_len = sizeof frame, out_len = sizeof out;
        bool whole = false;
        heft_error err;
        heft_assert_ok(heft_zstd_codec.open(&decoder, decoded, &err), &err);
        heft_status st = heft_zstd_codec.decode(decoder, frame, &in_len, out, &out_len, &whole,
                                                &err);
        if (decoded < window)
            heft_assert_fails(st, HEFT_E_FORMAT, &err, "a window of 268435456 bytes, its part has");
        else
            heft_assert_fails(st, HEFT_E_UNSUPPORTED, &err, "more than the limit");
        heft_zstd_codec.close(decoder);
    }
}

/* ---- a file that another program changes ----------------------------------------------------- */

static void each_member_of_the_status_shows_a_change(void **state)
{
    const char *path = heft_test_path(*state, "x");
    heft_error err;
    heft_test_save(path, "content", 7);
    heft_target t = { .disk = &heft_system_disk, .name = "x" };
    t.dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    t.fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fstat(t.fd, &t.stat_at_open), 0);
    heft_assert_ok(heft_target_check_unchanged(&t, &err), &err);
    const struct stat before = t.stat_at_open;
    for (int member = 0; member < 7; member++) {
        t.stat_at_open = before;
        t.stat_at_open.st_dev += member == 0;
        t.stat_at_open.st_ino += member == 1;
        t.stat_at_open.st_size += member == 2;
        t.stat_at_open.st_mtim.tv_sec += member == 3;
        t.stat_at_open.st_mtim.tv_nsec ^= member == 4;
        t.stat_at_open.st_ctim.tv_sec += member == 5;
        t.stat_at_open.st_ctim.tv_nsec ^= member == 6;
        heft_assert_fails(heft_target_check_unchanged(&t, &err), HEFT_E_IO, &err,
                          "another program changed the file");
    }
    t.stat_at_open = before;
    plan_for(FSTAT, 1, 1, EIO);
    heft_assert_fails(heft_target_check_unchanged(&t, &err), HEFT_E_IO, &err,
                      "its status cannot be read");
    plan_for(NO_CALL, 0, 0, 0);
    assert_int_equal(unlink(path), 0); /* the name is gone */
    heft_assert_fails(heft_target_check_unchanged(&t, &err), HEFT_E_IO, &err,
                      "another program changed the file");
    heft_test_save(path, "content", 7); /* the name belongs to a second file */
    assert_int_equal(fstat(t.fd, &t.stat_at_open), 0);
    heft_assert_fails(heft_target_check_unchanged(&t, &err), HEFT_E_IO, &err,
                      "another program changed the file");
    close(t.fd);
    close(t.dir);
}

/* Nothing is removed, since the plan may belong to something else. */
static void a_plan_whose_status_cannot_be_read_is_kept(void **state)
{
    static const char text[] = "heft shares 1\ncount 2\n";
    char out[PATH_MAX], plan_path[PATH_MAX];
    heft_error err;
    snprintf(out, sizeof out, "%s", heft_test_path(*state, "out"));
    snprintf(plan_path, sizeof plan_path, "%s", heft_test_path(*state, "out.shares/plan"));
    assert_int_equal(mkdir(heft_test_path(*state, "out.shares"), 0700), 0);
    heft_test_save(plan_path, text, sizeof text - 1);
    plan_for(FSTAT, 1, 100, EIO);
    heft_assert_fails(heft_share_abort(out, &err), HEFT_E_IO, &err,
                      "a record of a share cannot be read");
    assert_true(heft_test_exists(plan_path));
    plan_for(NO_CALL, 0, 0, 0);
    heft_assert_ok(heft_share_abort(out, &err), &err);
    assert_int_equal(heft_test_dir_entries(*state), 0);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_survive_a_signal),
        cmocka_unit_test(uses_from_1_to_64_processors),
        with_dir(does_not_reserve_more_than_is_free),
        cmocka_unit_test(buffers_have_a_length_that_can_be_mapped),
        with_dir(sources_report_missing_memory),
        with_dir(direct_reads_are_optional),
        with_dir(reads_are_repeated_after_a_signal),
        with_dir(temporary_files_report_each_failure),
        cmocka_unit_test(a_libcrypto_that_cannot_be_loaded_is_reported),
        cmocka_unit_test(digests_of_files_report_each_failure),
        cmocka_unit_test(codecs_report_missing_memory),
        cmocka_unit_test(an_encoder_needs_room_for_the_frame),
        cmocka_unit_test(a_window_is_compared_with_the_part),
        with_dir(each_member_of_the_status_shows_a_change),
        with_dir(a_plan_whose_status_cannot_be_read_is_kept),
    };
    return cmocka_run_group_tests_name("port_calls", tests, NULL, NULL);
}
