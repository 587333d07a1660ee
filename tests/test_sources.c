/* test_sources.c - file sources: paths that are not regular files, files that are truncated or
 * rewritten while open. */
#include "dump.h"
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const heft_access accesses[] = { HEFT_ACCESS_AUTO, HEFT_ACCESS_MAP, HEFT_ACCESS_READ,
                                        HEFT_ACCESS_POPULATE, HEFT_ACCESS_DIRECT };

static heft_status open_at(heft_file **out, const char *path, heft_access access, heft_error *err)
{
    heft_source *s;
    *out = NULL;
    heft_status st = heft_source_open_file(&s, path, access, err);
    return st ? st : heft_file_open_source(out, s, NULL, err);
}

/* ---- paths that are not files --------------------------------------------------------------- */

static void refuses_paths_that_are_not_files(void **state)
{
    static const struct {
        const char *name;
        int os;
    } rows[] = { { "missing", ENOENT }, { "fifo", ESPIPE }, { "sub", EISDIR },
                 { "file/x", ENOTDIR }, { "loop", ELOOP },  { "/dev/null", ESPIPE } };
    heft_test_save(heft_test_path(*state, "file"), "x", 1);
    assert_int_equal(mkfifo(heft_test_path(*state, "fifo"), 0600), 0);
    assert_int_equal(mkdir(heft_test_path(*state, "sub"), 0700), 0);
    assert_int_equal(symlink("loop", heft_test_path(*state, "loop")), 0);
    for (size_t i = 0; i < HEFT_COUNT(rows) * HEFT_COUNT(accesses); i++) {
        const char *name = rows[i / HEFT_COUNT(accesses)].name;
        const char *path = *name == '/' ? name : heft_test_path(*state, name);
        heft_error err;
        heft_file *f;
        heft_status st = open_at(&f, path, accesses[i % HEFT_COUNT(accesses)], &err);
        heft_assert_status(st, HEFT_E_IO, &err);
        assert_int_equal(err.os, rows[i / HEFT_COUNT(accesses)].os);
        assert_null(f);
    }
}

static void refuses_an_empty_file(void **state)
{
    const char *path = heft_test_path(*state, "empty");
    heft_test_save(path, "", 0);
    for (size_t i = 0; i < HEFT_COUNT(accesses); i++) {
        heft_error err;
        heft_file *f;
        heft_assert_fails(open_at(&f, path, accesses[i], &err), HEFT_E_FORMAT, &err,
                          "the file is empty");
    }
}

static void names_foreign_formats(void **state)
{
    static const struct {
        const char *begins, *words;
    } rows[] = { { "<!DOCTYPE html>", "HTML page" },
                 { "version https://git-lfs.github.com/spec/v1\n", "git lfs pull" },
                 { "\x1f\x8b\x08", "gzip" },
                 { "\x28\xb5\x2f\xfd", "zstd" },
                 { "{\"a\": 1}", "JSON" },
                 { " \t\n\v\f\r<!DocType HTML>", "HTML page" },
                 { "\x08<!DOCTYPE html>", "unknown format" }, /* the characters next to space */
                 { "\x0e<!DOCTYPE html>", "unknown format" },
                 { "<!DOCTYP@ html>", "unknown format" },
                 { "{\"MESSAGE\": 1}", "error message of a server in JSON" },
                 { "\xef\xbb\xbf<html lang=en>", "HTML page" },
                 { "Invalid username or password.", "log in to the hub" },
                 { "{ \"error\" : \"Repository not found\"}", "error message of a server in JSON" },
                 { "BZh91AY", "bzip2" },
                 { "\xfd\x37zXZ", "xz" },
                 { "\x04\x22\x4d\x18", "lz4" },
                 { "lmgg\x01", "older than GGUF" },
                 { "\x1c\x01\x02\x03TFL3", "TensorFlow Lite" },
                 { "not a table of LevelDB: \x57\xfb\x80\x8b\x24\x75\x47\xdb", "TensorFlow" },
                 { "\x08\x07\x12\x07pytorch", "the model has no graph" },
                 { "Salted__12345678", "encrypted with OpenSSL" },
                 { "nothing in particular", "unknown format: the file begins with 'nothing '" } };
    heft_error err;
    heft_file *f;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_bytes b = heft_test_copy(rows[i].begins, strlen(rows[i].begins));
        heft_assert_fails(heft_test_open(&f, b, NULL, &err), HEFT_E_FORMAT, &err, rows[i].words);
        heft_test_free(&b);
    }
}

/* ---- large indexes and large payloads ------------------------------------------------------- */

/* The index needs many windows, and reaches into the last 64 KiB of the file. */
static void reads_an_index_of_any_size(void **state)
{
    static const uint32_t counts[] = { 1000, 1600, 3000, 30000 };
    const char *format;
    for (size_t i = 0; (format = heft_test_writable(i / HEFT_COUNT(counts))); i++) {
        heft_test_input in = { heft_test_path(*state, "many"), { NULL, 0 } };
        uint32_t count = counts[i % HEFT_COUNT(counts)];
        in.bytes = heft_test_many(format, count);
        heft_test_save(in.path, in.bytes.p, in.bytes.len);
        for (size_t method = 0; method < 5; method++) {
            heft_test_memory m;
            heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
            heft_error err;
            heft_file *f;
            heft_test_memory_init(&m, 0);
            opt.host = &m.host;
            heft_assert_ok(heft_test_open_methods[method].open(&f, &in, &opt, &err), &err);
            assert_int_equal(heft_tensor_count(f), count);
            assert_in_range(atomic_load(&m.peak), 0, 8 * in.bytes.len);
            heft_file_close(f);
            heft_assert_all_freed(&m);
        }
        heft_test_free(&in.bytes);
    }
}

/* Opening reads only the first and last bytes of a large file, and the index. */
static void opening_reads_nothing_of_the_payload(void **state)
{
    heft_bytes b = heft_test_one("safetensors", 8 << 20);
    heft_test_input in = { heft_test_path(*state, "large"), b };
    heft_test_save(in.path, b.p, b.len);
    for (size_t method = 0; method < 5; method++) {
        heft_test_memory m;
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_error err;
        heft_file *f;
        heft_test_memory_init(&m, 0);
        opt.host = &m.host;
        heft_assert_ok(heft_test_open_methods[method].open(&f, &in, &opt, &err), &err);
        assert_in_range(atomic_load(&m.peak), 0, 200 << 10);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

/* ---- truncated files ------------------------------------------------------------------------ */

static heft_status do_verify(const heft_file *f, heft_error *err)
{
    return heft_file_verify(NULL, f, NULL, err);
}

static heft_status do_hash(const heft_file *f, heft_error *err)
{
    heft_hash model, *tensors = calloc(heft_tensor_count(f) + 1u, sizeof *tensors);
    heft_status st = heft_file_hash(&model, tensors, f, NULL, NULL, err);
    free(tensors);
    return st;
}

static heft_status do_convert(const heft_file *f, heft_error *err)
{
    heft_test_sink sink;
    heft_status st = heft_file_convert(f, heft_file_format(f), heft_test_sink_init(&sink, false),
                                       NULL, err);
    assert_int_equal(sink.discarded, !!st);
    heft_test_sink_free(&sink);
    return st;
}

/* Return the part with the highest offset. */
static uint32_t last_part(const heft_file *f)
{
    uint32_t last = heft_tensor_at(f, 0).first_part;
    for (uint32_t i = 1; i < heft_tensor_count(f); i++) {
        uint32_t part = heft_tensor_at(f, i).first_part;
        last = heft_part_at(f, part).offset > heft_part_at(f, last).offset ? part : last;
    }
    return last;
}

static heft_status do_read(const heft_file *f, heft_error *err)
{
    uint8_t buf[64];
    return heft_part_read(buf, f, last_part(f), 0, 4, err);
}

static heft_status do_stream(const heft_file *f, heft_error *err)
{
    heft_stream *s;
    uint8_t buf[64];
    heft_status st = heft_stream_open(&s, f, last_part(f), err);
    if (!st)
        st = heft_stream_read(buf, s, 4, err);
    heft_stream_close(s);
    return st;
}

static heft_status (*const uses[])(const heft_file *f, heft_error *err) = { do_verify, do_hash,
                                                                            do_convert, do_read,
                                                                            do_stream };

/* Return the end of the bytes that the use must read. */
static uint64_t needed_end(size_t use, const heft_file *f)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < heft_tensor_count(f) && use; i++) {
        heft_part p = heft_part_at(f, heft_tensor_at(f, i).first_part);
        end = p.offset + p.stored > end ? p.offset + p.stored : end;
    }
    return end; /* verify (use 0) may read nothing: some formats have no checksums */
}

static void truncate_and_use(const char *path, heft_bytes b, size_t length, heft_access access,
                             size_t use)
{
    heft_error err;
    heft_file *f;
    heft_test_save(path, b.p, b.len);
    heft_assert_ok(open_at(&f, path, access, &err), &err);
    assert_int_equal(truncate(path, (off_t)length), 0);
    heft_status st = uses[use](f, &err);
    if (st != HEFT_E_IO && (st || access == HEFT_ACCESS_MAP || access == HEFT_ACCESS_POPULATE ||
                            needed_end(use, f) > length))
        fail_msg("cut to %zu: use %zu ended with %s: %s", length, use, heft_status_name(st),
                 err.message);
    if (st == HEFT_E_IO) /* every later read fails, too */
        heft_assert_status(do_read(f, &err), HEFT_E_IO, &err);
    heft_file_close(f);
}

/* Return the end of the last data. An index after the data has been read when the file is open. */
static size_t end_of_data(heft_bytes b)
{
    heft_error err;
    heft_file *f;
    uint64_t end = 0;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_part p = heft_part_at(f, heft_tensor_at(f, i).first_part);
        end = p.offset + p.stored > end ? p.offset + p.stored : end;
    }
    heft_file_close(f);
    return (size_t)end;
}

static void reports_a_truncated_file_without_a_signal(void **state)
{
    const char *format;
    heft_test_fault_handler(*state);
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes b = heft_test_many(format, 3000);
        const size_t end = end_of_data(b), lengths[] = { 0, 5000, end / 2, end - 5000 };
        for (size_t k = 0; k < HEFT_COUNT(lengths) * HEFT_COUNT(uses); k++)
            for (size_t access = 1; access < HEFT_COUNT(accesses); access++)
                truncate_and_use(heft_test_path(*state, "cut"), b, lengths[k % HEFT_COUNT(lengths)],
                                 accesses[access], k / HEFT_COUNT(lengths));
        heft_test_free(&b);
    }
}

static void reports_a_truncated_large_payload(void **state)
{
    heft_bytes b = heft_test_one("mag", 12 << 20);
    heft_test_fault_handler(*state);
    for (size_t use = 1; use < 3; use++)
        for (size_t access = 1; access < HEFT_COUNT(accesses); access++)
            truncate_and_use(heft_test_path(*state, "cut"), b, 5 << 20, accesses[access], use);
    heft_test_free(&b);
}

static void rewrite_and_use(const char *path, heft_bytes b, bool extend, heft_access access,
                            size_t use)
{
    heft_error err;
    heft_file *f;
    heft_test_save(path, b.p, b.len); /* in the tick of the system in which it is opened */
    heft_assert_ok(open_at(&f, path, access, &err), &err);
    heft_assert_ok(heft_file_is_unchanged(f, &err), &err);
    int fd = open(path, O_WRONLY);
    size_t at = extend ? b.len : b.len - 1;
    assert_int_equal(pwrite(fd, b.p, 1, (off_t)at), 1);
    close(fd);
    heft_assert_fails(uses[use](f, &err), HEFT_E_IO, &err, "changed while it was being read");
    heft_assert_fails(heft_file_is_unchanged(f, &err), HEFT_E_IO, &err, "changed while");
    heft_file_close(f);
}

/* Otherwise a result could consist of bytes of two versions of the file. */
static void reports_a_rewritten_file(void **state)
{
    enum { WHOLE_FILE_USES = 3 }; /* verify, hash, convert */
    heft_bytes b = heft_test_many("mag", 100);
    for (size_t i = 0; i < WHOLE_FILE_USES * HEFT_COUNT(accesses); i++)
        for (int extend = 0; extend < 2; extend++)
            rewrite_and_use(heft_test_path(*state, "model"), b, extend,
                            accesses[i % HEFT_COUNT(accesses)], i / HEFT_COUNT(accesses));
    heft_test_free(&b);
}

static void finds_names_in_a_truncated_file_safely(void **state)
{
    const char *path = heft_test_path(*state, "cut");
    heft_bytes b = heft_test_many("mag", 3000);
    heft_error err;
    heft_file *f;
    heft_test_fault_handler(*state);
    heft_test_save(path, b.p, b.len);
    heft_assert_ok(open_at(&f, path, HEFT_ACCESS_MAP, &err), &err);
    assert_int_equal(heft_tensor_find(f, HEFT_STR("layers.2999.weight")), 2999);
    assert_int_equal(truncate(path, 0), 0);
    /* the result is unspecified; the call must return */
    (void)heft_tensor_find(f, HEFT_STR("layers.2999.weight"));
    heft_assert_status(do_read(f, &err), HEFT_E_IO, &err);
    heft_file_close(f);
    heft_test_free(&b);
}

static void guarded_names_of_a_truncated_file_are_zeros(void **state)
{
    const char *path = heft_test_path(*state, "cut");
    heft_bytes b = heft_test_many("mag", 3000);
    heft_array a;
    heft_error err;
    heft_file *f;
    heft_test_fault_handler(*state);
    heft_test_save(path, b.p, b.len);
    heft_assert_ok(open_at(&f, path, HEFT_ACCESS_MAP, &err), &err);
    heft_file_guard(f);
    heft_assert_ok(heft_file_unguard(f, &err), &err);
    assert_int_equal(truncate(path, 0), 0);
    heft_file_guard(f);
    heft_file_guard(f);
    heft_str name = heft_tensor_at(f, 2999).name;
    for (size_t i = 0; i < name.len; i++)
        assert_int_equal(name.ptr[i], 0);
    heft_assert_status(heft_file_unguard(f, &err), HEFT_E_IO, &err);
    assert_int_equal(heft_tensor_at(f, 0).name.ptr[0], 0); /* the outer pair still guards */
    heft_assert_status(heft_file_unguard(f, &err), HEFT_E_IO, &err);
    assert_int_equal(heft_part_find(f, 7, HEFT_STR("no such role")), HEFT_NONE);
    heft_assert_status(
        heft_array_read(&a, f, HEFT_STR("layers.2999.weight"), HEFT_UNTYPED, NULL, 0, &err),
        HEFT_E_IO, &err);
    heft_file_close(f);
    heft_test_free(&b);
}

/* Truncates the file at the allocation `at`, while the file is parsed. */
typedef struct truncating_allocator {
    heft_allocator al;
    const char *path;
    uint32_t calls, at;
} truncating_allocator;

static void *truncate_then_resize(void *ctx, void *p, size_t old_size, size_t new_size,
                                  size_t align)
{
    truncating_allocator *s = ctx;
    const heft_allocator *libc = heft_host_default()->allocator;
    if (++s->calls == s->at && truncate(s->path, 0))
        abort();
    return libc->resize(libc->ctx, p, old_size, new_size, align);
}

static void reports_a_file_truncated_while_it_is_opened(void **state)
{
    const char *path = heft_test_path(*state, "cut");
    heft_bytes b = heft_test_many("safetensors", 3000);
    heft_test_fault_handler(*state);
    for (uint32_t at = 1; at < 40; at++) {
        truncating_allocator s = { .path = path, .at = at };
        heft_host host = *heft_host_default();
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_source *from;
        heft_error err;
        heft_file *f;
        s.al = (heft_allocator){ .size = sizeof(heft_allocator),
                                 .resize = truncate_then_resize,
                                 .ctx = &s };
        host.allocator = &s.al;
        opt.host = &host;
        heft_test_save(path, b.p, b.len);
        heft_assert_ok(heft_source_open_file(&from, path, HEFT_ACCESS_MAP, &err), &err);
        heft_status st = heft_file_open_source(&f, from, &opt, &err);
        if (st)
            heft_assert_fails(st, HEFT_E_IO, &err, "was truncated");
        /* the index was truncated before the parser read it */
        assert_true(st || s.calls < at || at > 20);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

/* ---- signals -------------------------------------------------------------------------------- */

static volatile sig_atomic_t own_faults;

static void count_fault(int sig)
{
    static const char message[] = "caught";
    (void)sig;
    own_faults++;
    _exit(sizeof message);
}

/* Read a page beyond the end of a truncated file, in a mapping of this program. */
static void fault_in_own_mapping(const char *path)
{
    heft_test_save(path, path, strlen(path));
    int fd = open(path, O_RDONLY);
    const volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED || truncate(path, 0))
        _exit(90);
    (void)p[0];
}

static void use_a_mapped_file(const char *path)
{
    heft_bytes b = heft_test_one("mag", 1000);
    heft_error err;
    heft_file *f;
    heft_test_save(path, b.p, b.len);
    if (open_at(&f, path, HEFT_ACCESS_MAP, &err) || do_hash(f, &err))
        _exit(91);
    heft_file_close(f);
}

static int status_of(void (*before)(void), const char *path, const char *other)
{
    int status;
    pid_t child = fork();
    if (!child) {
        if (before)
            before();
        use_a_mapped_file(path);
        fault_in_own_mapping(other);
        _exit(92);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void default_action(void)
{
    signal(SIGBUS, SIG_DFL); /* sanitizers install handlers */
}

static void own_handler(void)
{
    signal(SIGBUS, count_fault);
}

static void passes_other_faults_to_the_previous_handler(void **state)
{
    const char *path = heft_test_path(*state, "mapped"), *other = heft_test_path(*state, "other");
    int status = status_of(default_action, path, other);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = status_of(own_handler, path, other);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == sizeof "caught");
}

static void view_of_a_truncated_file_faults(void **state)
{
    const char *path = heft_test_path(*state, "cut");
    int status;
    pid_t child = fork();
    if (!child) {
        heft_bytes b = heft_test_one("mag", 20000);
        heft_error err;
        heft_file *f;
        default_action();
        heft_test_save(path, b.p, b.len);
        if (open_at(&f, path, HEFT_ACCESS_MAP, &err))
            _exit(91);
        const volatile uint8_t *p = heft_part_view(f, 0);
        if (truncate(path, 0))
            _exit(92);
        _exit(p[19000] ? 93 : 94);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* must be first: the handler is installed when the first file is mapped */
        IN_A_DIRECTORY(passes_other_faults_to_the_previous_handler),
        IN_A_DIRECTORY(view_of_a_truncated_file_faults),
        IN_A_DIRECTORY(reports_a_truncated_file_without_a_signal),
        IN_A_DIRECTORY(reports_a_truncated_large_payload),
        IN_A_DIRECTORY(reports_a_rewritten_file),
        IN_A_DIRECTORY(finds_names_in_a_truncated_file_safely),
        IN_A_DIRECTORY(guarded_names_of_a_truncated_file_are_zeros),
        IN_A_DIRECTORY(reports_a_file_truncated_while_it_is_opened),
        IN_A_DIRECTORY(refuses_paths_that_are_not_files),
        IN_A_DIRECTORY(refuses_an_empty_file),
        IN_A_DIRECTORY(names_foreign_formats),
        IN_A_DIRECTORY(reads_an_index_of_any_size),
        IN_A_DIRECTORY(opening_reads_nothing_of_the_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
