/* declare_program.c - writes files with heft_writer_add_tensor() that no conversion produces; the
 * files are checked by check_declared.py. Usage: declare DIR */
#include <stdio.h>
#include <string.h>

#include <heft/heft.h>
#include <heft/ids.h>
#include <heft/write.h>

static uint8_t bytes[4096];

static heft_str text(const char *s)
{
    return (heft_str){ s, strlen(s) };
}

typedef struct file {
    heft_writer *w;
    heft_error err;
    heft_status st;
    char path[4096];
} file;

static file open_file(const char *dir, const char *name, const char *format, const char *version)
{
    file f = { .w = NULL };
    heft_sink *sink = NULL;
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    o.version = version;
    snprintf(f.path, sizeof f.path, "%s/%s", dir, name);
    f.st = heft_sink_open_file(&sink, f.path, HEFT_SINK_REPLACE, &f.err);
    if (!f.st)
        f.st = heft_writer_open(&f.w, heft_format_find(heft_str_from(format)), sink, &o, &f.err);
    return f;
}

static void add(file *f, const heft_tensor_spec *s)
{
    uint32_t part;
    if (!f->st)
        f->st = heft_writer_add_tensor(&part, f->w, s, &f->err);
}

/* Write `count` parts of sizes[i] bytes, finish and close the file; return 1 on failure. */
static int close_file(file *f, const size_t *sizes, uint32_t count)
{
    if (!f->st)
        f->st = heft_writer_begin(f->w, &f->err);
    for (uint32_t i = 0; i < count && !f->st; i++)
        f->st = heft_writer_write(f->w, i, bytes, sizes[i], &f->err);
    if (!f->st)
        f->st = heft_writer_finish(f->w, &f->err);
    else
        heft_writer_discard(f->w);
    if (f->st)
        fprintf(stderr, "%s: %s\n", f->path, f->err.message);
    return f->st != HEFT_OK;
}

static heft_tensor_spec typed(const char *name, heft_dtype t, const char *stored)
{
    static const uint64_t dims[] = { 2, 3 };
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    s.name = text(name);
    s.dtype = t;
    s.dims = dims;
    s.rank = 2;
    s.stored_type = text(stored);
    return s;
}

static int write_burnpack(const char *dir)
{
    static const heft_component data = { { "data", 4 }, HEFT_U8, 40, NULL };
    static const char scheme[] =
        "{\"QFloat\":{\"value\":\"Q8S\",\"param\":\"F32\",\"store\":{\"PackedU32\":0},"
        "\"level\":\"Tensor\",\"mode\":\"Symmetric\"}}";
    static const struct {
        const char *name, *stored;
        heft_dtype t;
    } rows[] = { { "flex", "Flex32", HEFT_F32 },
                 { "bool8", "{\"Bool\":\"U8\"}", HEFT_BOOL },
                 { "bool32", "{\"Bool\":\"U32\"}", HEFT_U32 },
                 { "native", "{\"Bool\":\"Native\"}", HEFT_BOOL },
                 { "plain", "", HEFT_F32 } };
    file f = open_file(dir, "types.bpk", "burnpack", NULL);
    for (uint32_t i = 0; i < 5; i++) {
        heft_tensor_spec s = typed(rows[i].name, rows[i].t, rows[i].stored);
        s.identity = (heft_identity){ .has = HEFT_HAS_PARAM_ID, .param_id = UINT64_MAX - i };
        add(&f, &s);
    }
    heft_tensor_spec s = typed("q", HEFT_U8, scheme);
    s.layout = text("burn.qfloat");
    s.components = &data;
    s.component_count = 1;
    add(&f, &s);
    return close_file(&f, (const size_t[]){ 24, 6, 24, 6, 24, 40 }, 6);
}

static int write_gptrs(const char *dir)
{
    static const char config[] = "{\"kind\":\"x\",\"config\":{}}";
    file f = open_file(dir, "grads.gptrs", "gptrs-checkpoint", NULL);
    for (uint32_t i = 0; i < 3; i++) {
        heft_tensor_spec s = typed((const char *[]){ "yes", "no", "unsaid" }[i], HEFT_F32, "");
        s.identity = (heft_identity){ .has = i < 2 ? HEFT_HAS_REQUIRES_GRAD : 0,
                                      .requires_grad = i == 0 };
        add(&f, &s);
    }
    if (!f.st)
        f.st = heft_writer_add_model_part(f.w, text("config"), config, strlen(config), &f.err);
    return close_file(&f, (const size_t[]){ 24, 24, 24 }, 3);
}

/* Write a tensor with a custom layout (zTensor 1.0, section 7.3). */
static int write_custom_layout(const char *dir, const char *version)
{
    static const heft_storage packed = { .encoding = HEFT_ZSTD, .level = 19, .digest = "crc32c" },
                              checked = { .digest = "sha256" };
    static const heft_component parts[] = { { { "data", 4 }, HEFT_U8, 2048, &packed },
                                            { { "scale", 5 }, HEFT_U8, 64, &checked },
                                            { { "zero_point", 10 }, HEFT_U8, 64, NULL } };
    static const heft_component typed_parts[] = { { { "data", 4 }, HEFT_U8, 2048, &packed },
                                                  { { "scale", 5 }, HEFT_F16, 32, &checked },
                                                  { { "zero_point", 10 }, HEFT_I8, 64, NULL } };
    char name[32];
    snprintf(name, sizeof name, "own-%s.zt", version);
    file f = open_file(dir, name, "ztensor", version);
    heft_tensor_spec s = typed("layer", HEFT_U8, "");
    s.dims = (const uint64_t[]){ 64, 64 };
    s.layout = text("quantized_4bit");
    s.components = strcmp(version, "1.0") ? typed_parts : parts;
    s.component_count = 3;
    add(&f, &s);
    if (!f.st && !strcmp(version, "1.0"))
        f.st = heft_writer_set_generator(f.w, text("declare 1.4"), &f.err);
    return close_file(&f, (const size_t[]){ 2048, 64, 64 }, 3);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i / 7 & 1);
    if (argc != 2)
        return 2;
    return write_burnpack(argv[1]) || write_gptrs(argv[1]) || write_custom_layout(argv[1], "1.0") ||
           write_custom_layout(argv[1], "1.2");
}
