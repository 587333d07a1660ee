/* heft_test.h - helpers of the C tests: assertions that show the library's message, an allocator
 * that counts and can fail, temporary directories, files, sinks, and ways to open a file. */
#ifndef HEFT_TEST_H
#define HEFT_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <heft/all.h>

#include "test_bytes.h"

#define HEFT_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- assertions: macros, to report the caller's file and line ------------------------------- */

/* Return true if the error, which must be set, has this rule. */
bool heft_test_is_rule(const heft_error *err, const char *rule);
#define heft_assert_ok(st, err) heft_test_status((st), HEFT_OK, (err), __FILE__, __LINE__)
#define heft_assert_status(st, expected, err) \
    heft_test_status((st), (expected), (err), __FILE__, __LINE__)
/* Assert that `st` is `expected` and that the error message contains `words`. */
#define heft_assert_fails(st, expected, err, words) \
    heft_test_fails((st), (expected), (err), (words), __FILE__, __LINE__)

/* Assert that `err` has the status `st` and a message of its own, unless `st` is HEFT_OK or
 * HEFT_AGAIN. */
#define heft_assert_error_set(st, err) heft_test_error_set((st), (err), __FILE__, __LINE__)

/* Fill `err` with bytes that a function must overwrite when setting an error. */
void heft_test_poison(heft_error *err);
void heft_test_error_set(heft_status st, const heft_error *err, const char *file, int line);
/* Return true if the build lacks an optional library; tests that need the library are skipped. */
bool heft_test_lacks_libraries(void);
void heft_test_status(heft_status st, heft_status expected, const heft_error *err, const char *file,
                      int line);
void heft_test_fails(heft_status st, heft_status expected, const heft_error *err, const char *words,
                     const char *file, int line);

/* ---- memory --------------------------------------------------------------------------------- */

/* An allocator that moves a block at each resize, to expose pointers into the old block, and checks
 * sizes and alignment. `al` and `host` point into the struct, which must therefore not move. */
typedef struct heft_test_memory {
    heft_allocator al;
    heft_host host;           /* allocates with `al`, has no threads */
    atomic_ullong live, peak; /* bytes */
    atomic_uint calls;        /* calls that asked for memory */
    uint32_t fail_at;         /* number of the call that fails, from 1; 0: none */
    bool keeps_failing;       /* all calls after `fail_at` fail, too */
} heft_test_memory;

void heft_test_memory_init(heft_test_memory *m, uint32_t fail_at);
void heft_test_memory_rewind(heft_test_memory *m); /* count calls and the peak anew */
#define heft_assert_all_freed(m) assert_int_equal(atomic_load(&(m)->live), 0)

/* The default host with `threads` threads; 1: only the caller's thread. */
typedef struct heft_test_host {
    heft_host host;
    heft_executor executor;
} heft_test_host;
void heft_test_host_init(heft_test_host *h, uint32_t threads);

/* Return count, or a quarter (rounded up) where HEFT_TEST_FEWER is set: in builds with sanitizers,
 * ten times slower. */
size_t heft_test_fewer(size_t count);

/* ---- bytes and files ------------------------------------------------------------------------ */

typedef struct heft_bytes { /* malloc'ed without slack, so that sanitizers see overruns */
    uint8_t *p;
    size_t len;
} heft_bytes;
heft_bytes heft_test_load(const char *path);
/* Return whether the file has exactly these bytes. */
bool heft_test_file_is(const char *path, heft_bytes expected);
heft_bytes heft_test_copy(const void *p, size_t len);
void heft_test_free(heft_bytes *b);
void heft_test_save(const char *path, const void *p, size_t len);
bool heft_test_exists(const char *path);
void heft_assert_same_bytes(heft_bytes a, heft_bytes b);

/* cmocka setup and teardown: a temporary directory for each test. *state is its path. */
int heft_test_dir_make(void **state);
int heft_test_dir_remove(void **state);
/* Return DIR/NAME in a static buffer; 8 buffers are reused in turn. */
const char *heft_test_path(const char *dir, const char *name);
/* Number of entries of the directory, hidden files included, "." and ".." excluded. */
size_t heft_test_dir_entries(const char *dir);

/* Install the library's SIGBUS handler again. The library installs the handler once, with the
 * first mapping, and cmocka replaces the handler before each test. Skip the test where the system,
 * for example an emulator, does not tell the address of a fault. */
void heft_test_fault_handler(const char *dir);

/* ---- sinks ---------------------------------------------------------------------------------- */

typedef struct heft_test_sink { /* a sink in memory; must not move while in use */
    heft_sink base;
    heft_sink_ops ops;
    uint8_t *p;
    size_t len, cap;
    uint64_t reserved;  /* last size passed to reserve() */
    uint64_t fail_from; /* writes past this offset fail; HEFT_NOWHERE: none */
    bool finished, discarded;
    atomic_int busy;
} heft_test_sink;
/* is_stream: the sink has write() instead of write_at(). */
heft_sink *heft_test_sink_init(heft_test_sink *s, bool is_stream);
heft_bytes heft_test_sink_bytes(const heft_test_sink *s); /* borrowed */
void heft_test_sink_free(heft_test_sink *s);

/* ---- opening -------------------------------------------------------------------------------- */

typedef struct heft_test_input {
    const char *path; /* NULL: the input exists in memory only */
    heft_bytes bytes;
} heft_test_input;

typedef struct heft_test_open_method {
    const char *name;
    bool needs_path;    /* works only for inputs with a path */
    bool reads_payload; /* false: a fed file, opened without tensor data */
    heft_status (*open)(heft_file **out, const heft_test_input *in, const heft_open_options *opt,
                        heft_error *err);
} heft_test_open_method;
extern const heft_test_open_method heft_test_open_methods[];
extern const size_t heft_test_open_method_count;

heft_status heft_test_open(heft_file **out, heft_bytes b, const heft_host *host, heft_error *err);
/* Open `b` and assert success. check: set heft_open_options.check_parts. */
heft_file *heft_test_opened(heft_bytes b, const heft_host *host, bool check);

/* ---- small things --------------------------------------------------------------------------- */

heft_str heft_test_str(const char *s);

#endif
