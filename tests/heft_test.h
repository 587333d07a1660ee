/* heft_test.h - what the tests in C share: assertions that show the library's own message, memory
 * that is counted and can run out, temporary directories, files, sinks, ways to open a file. */
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

#include <heft/heft_ext.h>

#define HEFT_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- assertions: macros for the sake of the caller's file and line -------------------------- */

#define heft_assert_ok(st, err) heft_test_status((st), HEFT_OK, (err), __FILE__, __LINE__)
#define heft_assert_status(st, expected, err) \
    heft_test_status((st), (expected), (err), __FILE__, __LINE__)
/* The status, and that the message holds the words. */
#define heft_assert_fails(st, expected, err, words) \
    heft_test_fails((st), (expected), (err), (words), __FILE__, __LINE__)

/* That a status which is not HEFT_OK came with an error of the same status and a message. */
#define heft_assert_told(st, err) heft_test_told((st), (err), __FILE__, __LINE__)

/* Bytes that no function leaves in an error which it sets. */
void heft_test_poison(heft_error *err);
void heft_test_told(heft_status st, const heft_error *err, const char *file, int line);
void heft_test_status(heft_status st, heft_status expected, const heft_error *err, const char *file,
                      int line);
void heft_test_fails(heft_status st, heft_status expected, const heft_error *err, const char *words,
                     const char *file, int line);

/* ---- memory --------------------------------------------------------------------------------- */

/* Every block moves whenever it is resized, so that pointers into the old one are found out; sizes
 * and alignment are checked.  al and host point into the struct: it must not move. */
typedef struct heft_test_memory {
    heft_allocator al;
    heft_host host;           /* over al, without threads */
    atomic_ullong live, peak; /* bytes */
    atomic_uint calls;        /* that asked for memory */
    uint32_t fail_at;         /* the call of that number gives nothing; 0: none does */
    bool fail_on;             /* … and none after it */
} heft_test_memory;

void heft_test_memory_init(heft_test_memory *m, uint32_t fail_at);
void heft_test_memory_rewind(heft_test_memory *m); /* counts from here on */
#define heft_assert_all_freed(m) assert_int_equal(atomic_load(&(m)->live), 0)

/* The default host on that many threads; 1: none but the caller's. */
typedef struct heft_test_host {
    heft_host host;
    heft_executor executor;
} heft_test_host;
void heft_test_host_init(heft_test_host *h, uint32_t threads);

/* ---- bytes and files ------------------------------------------------------------------------ */

typedef struct heft_bytes { /* malloc'ed to the byte, so that sanitizers see what lies behind */
    uint8_t *p;
    size_t len;
} heft_bytes;
heft_bytes heft_test_load(const char *path);
heft_bytes heft_test_copy(const void *p, size_t len);
void heft_test_free(heft_bytes *b);
void heft_test_save(const char *path, const void *p, size_t len);
bool heft_test_exists(const char *path);
void heft_assert_same_bytes(heft_bytes a, heft_bytes b);

/* A directory of its own for each test: *state is its path. */
int heft_test_dir_make(void **state);
int heft_test_dir_remove(void **state);
/* DIR/NAME, in one of a few static buffers. */
const char *heft_test_path(const char *dir, const char *name);
/* Names in the directory but for . and .., hidden ones included. */
size_t heft_test_dir_entries(const char *dir);

/* cmocka puts its own handler of faults in before each test; the library does so once, with its first
 * mapping.  Puts the library's back. */
void heft_test_fault_handler(const char *dir);

/* ---- sinks ---------------------------------------------------------------------------------- */

typedef struct heft_test_sink { /* into memory; must not move while in use */
    heft_sink base;
    heft_sink_ops ops;
    uint8_t *p;
    size_t len, cap;
    uint64_t reserved, fail_from; /* writing at or behind fail_from fails; HEFT_NOWHERE: never */
    bool finished, discarded;
    atomic_int busy;
} heft_test_sink;
/* is_stream: bytes come front to back. */
heft_sink *heft_test_sink_init(heft_test_sink *s, bool is_stream);
heft_bytes heft_test_sink_bytes(const heft_test_sink *s); /* borrowed */
void heft_test_sink_free(heft_test_sink *s);

/* ---- opening -------------------------------------------------------------------------------- */

typedef struct heft_test_input {
    const char *path; /* NULL: only in memory */
    heft_bytes bytes;
} heft_test_input;

typedef struct heft_test_open_method {
    const char *name;
    bool needs_path, reads_payload; /* what is fed in pieces lists its tensors and no more */
    heft_status (*open)(heft_file **out, const heft_test_input *in, const heft_open_options *opt,
                        heft_error *err);
} heft_test_open_method;
extern const heft_test_open_method heft_test_open_methods[];
extern const size_t heft_test_open_method_count;

heft_status heft_test_open(heft_file **out, heft_bytes b, const heft_host *host, heft_error *err);
/* The same where opening must succeed; check: with heft_open_options.check_parts. */
heft_file *heft_test_opened(heft_bytes b, const heft_host *host, bool check);

/* ---- small things --------------------------------------------------------------------------- */

heft_str heft_test_str(const char *s);
/* The same sequence in each run. */
uint32_t heft_test_random(uint64_t *state, uint32_t below);

#endif
