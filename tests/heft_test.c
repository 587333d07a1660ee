/* heft_test.c - assertions, memory, files and sinks for tests. */
#include "heft_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_allocator.h"

/* ---- assertions ----------------------------------------------------------------------------- */

void heft_test_poison(heft_error *err)
{
    memset(err, 0xA5, sizeof *err);
}

/* Return true if the whole error is set, with a message other than the default. */
static bool is_error_set(heft_status st, const heft_error *err)
{
    return err->status == st && *err->message && memchr(err->message, 0, sizeof err->message) &&
           !strstr(err->message, "no details are available");
}

void heft_test_error_set(heft_status st, const heft_error *err, const char *file, int line)
{
    if (!st || st == HEFT_AGAIN || is_error_set(st, err))
        return;
    print_error("status %s came with the error %d, \"%.*s\"\n", heft_status_name(st), err->status,
                (int)sizeof err->message, err->message);
    _fail(file, line);
}

bool heft_test_lacks_libraries(void)
{
    return LACKS_LIBRARIES;
}

bool heft_test_is_rule(const heft_error *err, const char *rule)
{
    return err->rule && !strcmp(err->rule, rule);
}

void heft_test_status(heft_status st, heft_status expected, const heft_error *err, const char *file,
                      int line)
{
    if (err)
        heft_test_error_set(st, err, file, line);
    if (st == expected)
        return;
    if (LACKS_LIBRARIES && st == HEFT_E_UNSUPPORTED && err && strstr(err->message, "this build"))
        skip();
    print_error("status is %s, not %s: %s\n", heft_status_name(st), heft_status_name(expected),
                st && err ? err->message : "");
    _fail(file, line);
}

void heft_test_fails(heft_status st, heft_status expected, const heft_error *err, const char *words,
                     const char *file, int line)
{
    heft_test_status(st, expected, err, file, line);
    if (err->status != expected || !strstr(err->message, words)) {
        print_error("the message is \"%s\" (%s), without \"%s\"\n", err->message,
                    heft_status_name(err->status), words);
        _fail(file, line);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool next_call_fails(heft_test_memory *m)
{
    uint32_t call = atomic_fetch_add(&m->calls, 1) + 1;
    return m->fail_at && (m->keeps_failing ? call >= m->fail_at : call == m->fail_at);
}

static void count_live(heft_test_memory *m, size_t more, size_t less)
{
    unsigned long long live = atomic_fetch_add(&m->live, more) + more;
    unsigned long long peak = atomic_load(&m->peak);
    while (live > peak && !atomic_compare_exchange_weak(&m->peak, &peak, live))
        ;
    atomic_fetch_sub(&m->live, less);
}

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    heft_test_memory *m = ctx;
    if (new_size && next_call_fails(m))
        return NULL;
    void *p = heft_test_resize(NULL, ptr, old_size, new_size, align);
    count_live(m, new_size, old_size);
    return p;
}

void heft_test_memory_init(heft_test_memory *m, uint32_t fail_at)
{
    memset(m, 0, sizeof *m);
    m->al = (heft_allocator){ .size = sizeof(heft_allocator), .resize = resize, .ctx = m };
    m->host = *heft_host_default();
    m->host.allocator = &m->al;
    m->host.executor = NULL;
    m->fail_at = fail_at;
}

void heft_test_memory_rewind(heft_test_memory *m)
{
    atomic_store(&m->calls, 0);
    atomic_store(&m->peak, atomic_load(&m->live));
}

void heft_test_host_init(heft_test_host *h, uint32_t threads)
{
    h->host = *heft_host_default();
    h->executor = heft_executor_threads(threads);
    h->host.executor = threads > 1 ? &h->executor : NULL;
}

size_t heft_test_fewer(size_t count)
{
    return getenv("HEFT_TEST_FEWER") ? count / 4 + (count % 4 != 0) : count;
}

/* ---- bytes and files ------------------------------------------------------------------------ */

heft_bytes heft_test_copy(const void *p, size_t len)
{
    heft_bytes b = { malloc(len ? len : 1), len };
    assert_non_null(b.p);
    if (len)
        memcpy(b.p, p, len);
    return b;
}

heft_bytes heft_test_load(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st)) {
        print_error("%s cannot be read\n", path);
        fail();
    }
    heft_bytes b = { malloc(st.st_size ? (size_t)st.st_size : 1), (size_t)st.st_size };
    assert_non_null(b.p);
    assert_int_equal(fread(b.p, 1, b.len, f), b.len);
    fclose(f);
    return b;
}

bool heft_test_file_is(const char *path, heft_bytes expected)
{
    heft_bytes b = heft_test_load(path);
    bool is_same = b.len == expected.len && !memcmp(b.p, expected.p, b.len);
    heft_test_free(&b);
    return is_same;
}

void heft_test_free(heft_bytes *b)
{
    free(b->p);
    *b = (heft_bytes){ NULL, 0 };
}

void heft_test_save(const char *path, const void *p, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

bool heft_test_exists(const char *path)
{
    struct stat st;
    return !lstat(path, &st);
}

void heft_assert_same_bytes(heft_bytes a, heft_bytes b)
{
    size_t least = a.len < b.len ? a.len : b.len, i = 0;
    if (a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len)))
        return;
    while (i < least && a.p[i] == b.p[i])
        i++;
    print_error("%zu and %zu bytes, which differ from byte %zu on\n", a.len, b.len, i);
    fail();
}

static int open_descriptors; /* when the directory was made */

static int count_descriptors(void)
{
    int count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

int heft_test_dir_make(void **state)
{
    const char *where = getenv("TMPDIR");
    char *dir = malloc(512);
    snprintf(dir, 512, "%s/heft-test-XXXXXX", where ? where : "/tmp");
    *state = dir;
    open_descriptors = count_descriptors();
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

int heft_test_dir_remove(void **state)
{
    int gone = nftw(*state, remove_one, 100, FTW_DEPTH | FTW_PHYS);
    int more = count_descriptors() - open_descriptors;
    free(*state);
    if (more)
        print_error("%d descriptors were not closed\n", more);
    return more ? -1 : gone;
}

const char *heft_test_path(const char *dir, const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % HEFT_COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void *volatile fault_address;
static sigjmp_buf after_fault;

static void note_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    fault_address = info->si_addr;
    siglongjmp(after_fault, 1);
}

/* True if SIGBUS comes with the address of the access. Emulators may not tell, or name the next
 * page. */
static bool faults_have_addresses(const char *dir)
{
    enum { BYTES = 1 << 16 };
    struct sigaction action = { .sa_sigaction = note_fault, .sa_flags = SA_SIGINFO }, before;
    int fd = open(heft_test_path(dir, "first"), O_RDWR);
    assert_true(fd >= 0 && !ftruncate(fd, BYTES));
    volatile uint8_t *p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED && !ftruncate(fd, 0));
    sigaction(SIGBUS, &action, &before);
    fault_address = NULL;
    if (!sigsetjmp(after_fault, 1))
        (void)p[BYTES / 2];
    sigaction(SIGBUS, &before, NULL);
    munmap((void *)(uintptr_t)p, BYTES);
    close(fd);
    return (uintptr_t)fault_address == (uintptr_t)p + BYTES / 2;
}

void heft_test_fault_handler(const char *dir)
{
    static bool has_addresses;
    static struct sigaction handler;
    static bool is_saved;
    heft_source *s;
    heft_error err;
    if (!is_saved) {
        const char *path = heft_test_path(dir, "first");
        signal(SIGBUS, SIG_DFL);
        heft_test_save(path, "x", 1);
        heft_assert_ok(heft_source_open_file(&s, path, HEFT_ACCESS_MAP, &err), &err);
        heft_source_close(s);
        assert_int_equal(sigaction(SIGBUS, NULL, &handler), 0);
        assert_true(handler.sa_flags & SA_SIGINFO);
        is_saved = true;
        has_addresses = faults_have_addresses(dir);
    }
    if (!has_addresses)
        skip();
    assert_int_equal(sigaction(SIGBUS, &handler, NULL), 0);
}

size_t heft_test_dir_entries(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

/* ---- sinks ---------------------------------------------------------------------------------- */

static bool reserve_bytes(heft_test_sink *s, uint64_t end)
{
    if (end <= s->cap)
        return true;
    size_t cap = s->cap * 2 > end ? s->cap * 2 : (size_t)end;
    uint8_t *p = realloc(s->p, cap);
    if (!p)
        return false;
    memset(p + s->cap, 0xEE, cap - s->cap);
    s->p = p;
    s->cap = cap;
    return true;
}

static heft_status write_at(heft_sink *sink, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    heft_test_sink *s = (heft_test_sink *)sink;
    while (atomic_exchange(&s->busy, 1))
        ;
    bool fits = off + len <= s->fail_from && reserve_bytes(s, off + len);
    if (fits) {
        memcpy(s->p + off, data, len);
        s->len = off + len > s->len ? (size_t)(off + len) : s->len;
    }
    atomic_store(&s->busy, 0);
    if (!fits && err)
        *err = (heft_error){
            .status = HEFT_E_IO, .os = 28, .offset = HEFT_NOWHERE, .message = "the sink is full"
        };
    return fits ? HEFT_OK : HEFT_E_IO;
}

static heft_status write_next(heft_sink *sink, const void *data, size_t len, heft_error *err)
{
    return write_at(sink, ((heft_test_sink *)sink)->len, data, len, err);
}

static heft_status reserve(heft_sink *sink, uint64_t size, heft_error *err)
{
    (void)err;
    ((heft_test_sink *)sink)->reserved = size;
    return HEFT_OK;
}

static heft_status finish(heft_sink *sink, heft_error *err)
{
    heft_test_sink *s = (heft_test_sink *)sink;
    (void)err;
    if (s->finished || s->discarded)
        abort(); /* finish() or discard() was called before */
    s->finished = true;
    return HEFT_OK;
}

static void discard(heft_sink *sink)
{
    heft_test_sink *s = (heft_test_sink *)sink;
    if (s->finished || s->discarded)
        abort();
    s->discarded = true;
}

heft_sink *heft_test_sink_init(heft_test_sink *s, bool is_stream)
{
    memset(s, 0, sizeof *s);
    s->ops = (heft_sink_ops){
        .size = sizeof(heft_sink_ops), .reserve = reserve, .finish = finish, .discard = discard
    };
    if (is_stream)
        s->ops.write = write_next;
    else
        s->ops.write_at = write_at;
    s->base.ops = &s->ops;
    s->fail_from = HEFT_NOWHERE;
    return &s->base;
}

heft_bytes heft_test_sink_bytes(const heft_test_sink *s)
{
    return (heft_bytes){ s->p, s->len };
}

void heft_test_sink_free(heft_test_sink *s)
{
    free(s->p);
    s->p = NULL;
    s->len = s->cap = 0;
}

/* ---- small things --------------------------------------------------------------------------- */

heft_str heft_test_str(const char *s)
{
    return (heft_str){ s, strlen(s) };
}

uint32_t heft_test_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}
