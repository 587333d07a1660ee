/* damage.c - opens, lists, verifies and reads every damaged version of small files, in memory and
 * through public headers.
 *
 *   damage [--full | --seconds N] [--seed N] FILE...
 *
 * Each file is a test: no case crashes, takes more than a second of processor time or 64 MiB, loses
 * memory, or ends with an unexpected status; a damaged byte that a checksum covers is always
 * reported. Without options a sample of the cases is run. Each block of cases runs in a separate
 * process, so that a crash is reported and the other cases continue. TAP on stdout, and a comment
 * with figures. */
#include "damage_cases.h"

#include "damage_read.h"
#include "keep_heap.h"
#include <heft/check.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096 }; /* cases in a process */

/* Defined in builds with the address sanitizer, for time and memory. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *p, size_t size);

typedef struct settings {
    bool is_full;
    double seconds; /* 0: a fixed number of cases */
    uint64_t seed;
    const char *fewer;
} settings;

/* The processes that run cases write results here. */
typedef struct shared {
    uint64_t current; /* position of the case that is running */
    uint64_t cases, complaints, peak;
    double slowest;
    char text[8][700]; /* the first complaints */
} shared;

typedef struct subject { /* a file and the undamaged content */
    damage_file d;
    const char *title;
    bool *is_payload, *is_covered;
    damage_rules rules;
    damage_answer intact;
    uint32_t *outcomes; /* hashes of the answers to each case of DAMAGE_FIELD */
    shared *shared;
} subject;

/* ---- a case --------------------------------------------------------------------------------- */

static void complain(const subject *s, const char *title, const char *message)
{
    shared *sh = s->shared;
    if (sh->complaints < sizeof sh->text / sizeof *sh->text)
        snprintf(sh->text[sh->complaints], sizeof *sh->text, "%s: %s", title, message);
    sh->complaints++;
}

/* True if bytes were changed, and checksums cover all changes. Where other bytes are changed, too,
 * the file may state other checksums. */
static bool damages_covered(const subject *s, const uint8_t *p)
{
    bool is_changed = false;
    for (size_t i = 0; i < s->d.len; i++) {
        if (p[i] != s->d.bytes[i] && !s->is_covered[i])
            return false;
        is_changed = is_changed || p[i] != s->d.bytes[i];
    }
    return is_changed;
}

/* True if it is wrong to accept a damaged file: a checksum covers the damage, or the file has
 * another length and, without a further warning, other tensors. */
static bool is_to_refuse(const subject *s, const damage_answer *a, const uint8_t *p, size_t len)
{
    enum { EMPTY = 16 }; /* the first bytes of a zTensor 0.1 file are a file without tensors */
    if (len == s->d.len)
        return damages_covered(s, p);
    return len != EMPTY && a->content != s->intact.content && a->warnings <= s->intact.warnings;
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_case(subject *s, damage_kind kind, uint64_t i)
{
    static uint8_t damaged[1 << 20];
    char title[300];
    damage_answer a;
    size_t len = damage_apply(damaged, &s->d, kind, i);
    uint8_t *exact = malloc(len + !len); /* without slack, so that sanitizers see overruns */
    if (!exact)
        abort();
    memcpy(exact, damaged, len);
    damage_describe(title, sizeof title, &s->d, kind, i);
    double began = processor_seconds();
    damage_read(&a, exact, len, &s->rules);
    double took = processor_seconds() - began;
    if (a.violation[0])
        complain(s, title, a.violation);
    if (a.is_accepted && is_to_refuse(s, &a, exact, len))
        complain(s, title, "the damage is accepted");
    s->shared->peak = a.peak > s->shared->peak ? a.peak : s->shared->peak;
    free(exact);
    if (kind == DAMAGE_FIELD)
        s->outcomes[i] = a.hash | 1;
    s->shared->slowest = took > s->shared->slowest ? took : s->shared->slowest;
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Case number at a position: all numbers below count, in an order that depends on the seed. */
/* Return a * b modulo count, which is less than 2^63. */
static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t count)
{
    uint64_t product = 0;
    for (a %= count; b; b >>= 1, a = 2 * a % count)
        product = (product + (b & 1 ? a : 0)) % count;
    return product;
}

static uint64_t number_at(uint64_t position, uint64_t count, uint64_t seed)
{
    uint64_t step = (uint64_t)((double)count * 0.6180339887) | 1, a, b;
    for (;; step += 2) { /* until step and count have no common divisor */
        for (a = step, b = count; b;) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return (multiply_modulo(position, step, count) + seed * 0x9E3779B97F4A7C15 % count) %
                   count;
    }
}

/* Limit the processor time of the next case; SIGPROF ends the process. */
static void start_timer(void)
{
    struct itimerval one = { .it_value = { .tv_sec = __asan_poison_memory_region ? 20 : 1 } };
    setitimer(ITIMER_PROF, &one, NULL);
}

static void run_block(subject *s, damage_kind kind, uint64_t from, uint64_t to, uint64_t seed)
{
    uint64_t count = damage_cases(&s->d, kind);
    for (uint64_t at = from; at < to; at++) {
        s->shared->current = at;
        start_timer();
        run_case(s, kind, number_at(at, count, seed));
        s->shared->cases++;
    }
    s->shared->current = to;
}

static void report_end(subject *s, damage_kind kind, uint64_t number, int status)
{
    char title[300], text[100];
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    damage_describe(title, sizeof title, &s->d, kind, number);
    snprintf(text, sizeof text, "%s %d",
             signal == SIGPROF ? "takes more than a second of processor time, signal"
             : signal          ? "signal"
                               : "exit status",
             signal ? signal : WEXITSTATUS(status));
    complain(s, title, text);
}

/* Run cases [from, to) in a process; return the position where to continue. */
static uint64_t run_process(subject *s, damage_kind kind, uint64_t from, uint64_t to, uint64_t seed)
{
    struct rusage used;
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        run_block(s, kind, from, to, seed);
        _exit(0);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        abort();
    uint64_t at = s->shared->current, count = damage_cases(&s->d, kind);
    if (status) {
        report_end(s, kind, number_at(at, count, seed), status);
        return at + 1;
    }
    /* codecs of other libraries allocate by themselves */
    if (!__asan_poison_memory_region && used.ru_maxrss > (DAMAGE_MEMORY >> 10) + (16 << 10))
        complain(s, "a block of cases", "needs more than 64 MiB");
    return to;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_kind(subject *s, damage_kind kind, const settings *set, double seconds)
{
    /* the number of cases without options */
    static const uint64_t few[DAMAGE_KINDS] = { 6000, 1000, 256, 6000, 4000 };
    uint64_t count = damage_cases(&s->d, kind), end = count;
    double began = now();
    uint64_t few_cases = few[kind] / (set->fewer ? 4 : 1);
    if (!set->is_full && set->seconds <= 0 && few_cases < count)
        end = few_cases;
    for (uint64_t at = 0; at < end;) {
        uint64_t to = end - at < BLOCK ? end : at + BLOCK;
        at = run_process(s, kind, at, to, set->seed);
        if (set->seconds > 0 && now() - began > seconds)
            return;
        if (s->shared->complaints > 1000) /* more would tell nothing */
            return;
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

static void *shared_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes + !bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    return p;
}

static bool load(damage_file *d, const char *path)
{
    enum { LARGEST = (1 << 20) - DAMAGE_APPENDED };
    FILE *in = fopen(path, "rb");
    uint8_t *p = malloc(LARGEST);
    if (in && p)
        d->len = fread(p, 1, LARGEST, in);
    bool ok = in && p && d->len && d->len < LARGEST && !ferror(in);
    if (in)
        fclose(in);
    d->bytes = p;
    return ok;
}

/* Mark the bytes of parts and the bytes that checksums cover. Offsets of a packed file refer to the
 * unpacked bytes: nothing is marked. */
static void mark_bytes(subject *s, const heft_file *f)
{
    uint32_t first;
    heft_checksum c;
    heft_file_parts(f, &first);
    if (heft_file_size(f) != s->d.len)
        return;
    for (uint32_t i = 0; i < first; i++) {
        heft_part p = heft_part_at(f, i);
        if (!p.shard)
            memset(s->is_payload + p.offset, 1, (size_t)p.stored);
    }
    for (uint32_t i = 0, n = heft_checksum_count(f); i < n; i++) {
        c = heft_checksum_at(f, i);
        if (s->rules.count < sizeof s->rules.at / sizeof *s->rules.at)
            s->rules.at[s->rules.count++] = c.rule;
        if (!c.shard)
            memset(s->is_covered + c.range.offset, 1, (size_t)c.range.length);
    }
    for (uint32_t i = 0; i < first; i++) { /* a deflated part can end with unused bits */
        heft_part p = heft_part_at(f, i);
        if (!p.shard && p.encoding == HEFT_DEFLATE && p.stored)
            s->is_covered[p.offset + p.stored - 1] = false;
    }
}

/* Read the undamaged file; false: the file has faults. */
static bool prepare(subject *s, const char *path)
{
    heft_error err;
    heft_file *f;
    s->title = path;
    if (!load(&s->d, path)) {
        complain(s, path, "cannot be read, or is too large");
        return false;
    }
    s->is_payload = calloc(s->d.len, 1);
    s->is_covered = calloc(s->d.len, 1);
    if (!s->is_payload || !s->is_covered)
        abort();
    if (damage_open(&f, s->d.bytes, s->d.len, heft_host_default(), false, &err)) {
        complain(s, "the intact file", err.message);
        return false;
    }
    mark_bytes(s, f);
    heft_file_close(f);
    damage_read(&s->intact, s->d.bytes, s->d.len, &s->rules);
    if (!s->intact.is_accepted || s->intact.violation[0])
        complain(s, "the intact file has faults", s->intact.violation);
    damage_list_fields(&s->d, s->is_payload);
    s->outcomes = shared_memory(s->d.field_count * DAMAGE_EDGES * sizeof *s->outcomes);
    return !s->shared->complaints;
}

static void release(subject *s)
{
    if (s->outcomes)
        munmap(s->outcomes,
               s->d.field_count * DAMAGE_EDGES * sizeof *s->outcomes + !s->d.field_count);
    free((void *)(uintptr_t)s->d.bytes);
    free(s->d.fields);
    free(s->d.pairs_of);
    free(s->is_payload);
    free(s->is_covered);
}

static void run_file(subject *s, const settings *set, double seconds)
{
    for (damage_kind kind = 0; kind < DAMAGE_KINDS; kind++) {
        if (kind == DAMAGE_PAIR)
            damage_choose_pairs(&s->d, s->outcomes, s->intact.hash | 1);
        run_kind(s, kind, set, seconds / DAMAGE_KINDS);
    }
}

static void print_file(const subject *s, int n, bool ok)
{
    const char *name = strrchr(s->title, '/');
    size_t covered = 0;
    for (size_t i = 0; i < s->d.len && s->is_covered; i++)
        covered += s->is_covered[i];
    ok = ok && !s->shared->complaints;
    printf("%sok %d - %s\n", ok ? "" : "not ", n, name ? name + 1 : s->title);
    printf("# %" PRIu64 " cases, %zu bytes, %zu covered by checksums, %zu fields in pairs\n",
           s->shared->cases, s->d.len, covered, s->d.pairs_count);
    for (size_t i = 0; i < sizeof s->shared->text / sizeof *s->shared->text && !ok; i++)
        if (s->shared->text[i][0])
            printf("#   %s\n", s->shared->text[i]);
    fflush(stdout);
}

/* ---- the program ---------------------------------------------------------------------------- */

typedef struct figures {
    uint64_t cases, failures, peak;
    double slowest;
} figures;

static void check_file(figures *sum, const char *path, int n, const settings *set, double seconds)
{
    subject s = { .shared = shared_memory(sizeof(shared)) };
    bool ok = prepare(&s, path);
    if (ok)
        run_file(&s, set, seconds);
    print_file(&s, n, ok);
    sum->cases += s.shared->cases;
    sum->failures += s.shared->complaints + !ok;
    sum->peak = s.shared->peak > sum->peak ? s.shared->peak : sum->peak;
    sum->slowest = s.shared->slowest > sum->slowest ? s.shared->slowest : sum->slowest;
    release(&s);
    munmap(s.shared, sizeof(shared));
}

int main(int argc, char **argv)
{
    settings set = { .seed = 1, .fewer = getenv("HEFT_TEST_FEWER") };
    figures sum = { 0 };
    int first = 1;
    double began = now();
    for (; first < argc && !strncmp(argv[first], "--", 2); first++) {
        if (!strcmp(argv[first], "--full"))
            set.is_full = true;
        else if (!strcmp(argv[first], "--seconds") && first + 1 < argc)
            set.seconds = atof(argv[++first]);
        else if (!strcmp(argv[first], "--seed") && first + 1 < argc)
            set.seed = strtoull(argv[++first], NULL, 10);
        else
            return 2;
    }
    if (first == argc)
        return 2;
    keep_heap();
    printf("1..%d\n", argc - first);
    for (int i = first; i < argc; i++) {
        double left = set.seconds - (now() - began);
        check_file(&sum, argv[i], i - first + 1, &set, left > 0 ? left / (argc - i) : 0);
    }
    printf("# {\"campaign\": \"damage\", \"cases\": %" PRIu64 ", \"seconds\": %.1f, \"failures\": "
           "%" PRIu64 ", \"files\": %d, \"peak_bytes\": %" PRIu64 ", \"slowest_ms\": %.1f}\n",
           sum.cases, now() - began, sum.failures, argc - first, sum.peak, sum.slowest * 1e3);
    return sum.failures != 0;
}
