/* fuzz_scan.c - fuzzes the scan for pickles: memory is proportional to the file, findings lie in
 * the file, and a scan without a mapping finds the same. */
#include <string.h>

#include <heft/check.h>

#include "fuzz.h"

typedef struct scanning {
    uint64_t size, findings, sum;
} scanning;

static void mix(scanning *x, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        x->sum = (x->sum ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001B3);
}

static void on_finding(void *ctx, const heft_scan_finding *f)
{
    scanning *x = ctx;
    fuzz_require(f->is_decoded || f->offset <= x->size);
    fuzz_require(f->severity == HEFT_WARNING || f->severity == HEFT_FAULT);
    fuzz_require(*f->text && !strchr(f->text, '\n'));
    fuzz_require(!strncmp(f->rule, "pickle/", 7) || !strncmp(f->rule, "onnx/", 5) ||
                 !strncmp(f->rule, "torch/", 6));
    mix(x, f->member.ptr, f->member.len);
    mix(x, f->module.ptr, f->module.len);
    mix(x, f->name.ptr, f->name.len);
    mix(x, &f->offset, sizeof f->offset);
    x->findings++;
}

static scanning scan(heft_source *s, const heft_host *host, const char *name)
{
    heft_error err = fuzz_no_error();
    heft_scan_result result;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    scanning x = { .size = s->size };
    o.on_finding = on_finding;
    o.ctx = &x;
    o.host = host;
    o.name = name;
    heft_status st = heft_source_scan(&result, s, &o, &err);
    fuzz_require(!st && result.findings == x.findings);
    return x;
}

typedef struct unmapped {
    heft_source base;
    const uint8_t *data;
} unmapped;

static heft_status read_unmapped(heft_source *s, uint64_t offset, void *buf, size_t len,
                                 heft_error *err)
{
    (void)err;
    memcpy(buf, ((const unmapped *)(void *)s)->data + offset, len);
    return HEFT_OK;
}

static void close_unmapped(heft_source *s)
{
    (void)s;
}

static const heft_source_ops unmapped_ops = { .size = sizeof(heft_source_ops),
                                              .read = read_unmapped,
                                              .close = close_unmapped };

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    static const char *const names[] = { NULL, "m.pkl", "m.bin", "m.npy" };
    const char *name = names[fuzz_next(s) % 4];
    fuzz_memory m;
    heft_source *source;
    fuzz_memory_init(&m, UINT32_MAX);
    m.host.codecs = heft_host_default()->codecs;
    fuzz_require(!heft_source_open_memory(&source, data, size, NULL));
    scanning mapped = scan(source, &m.host, name);
    heft_source_close(source);
    fuzz_require(!m.live);
    unmapped u = { .base = { &unmapped_ops, size }, .data = data };
    scanning read = scan(&u.base, NULL, name);
    fuzz_require(mapped.findings == read.findings && mapped.sum == read.sum);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 1 };
