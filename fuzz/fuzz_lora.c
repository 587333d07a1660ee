/* fuzz_lora.c - fuzzes adapters: names, shapes and settings that the script makes up, or a file as
 * an adapter, are merged into a small model.  The result has the same bytes read as a whole and in
 * sections. */
#include <stdio.h>
#include <string.h>

#include <heft/lora.h>

#include "fuzz.h"

enum { MOST_TEXT = 4096, PAYLOAD = 4096, PREFIX = 8 };

typedef struct text {
    char s[MOST_TEXT];
    size_t len;
} text;

static void put(text *t, const char *word)
{
    int n = snprintf(t->s + t->len, sizeof t->s - t->len, "%s", word);
    t->len += n > 0 && (size_t)n < sizeof t->s - t->len ? (size_t)n : 0;
}

static void put_number(text *t, uint32_t n)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%u", (unsigned)n);
    put(t, digits);
}

/* ---- models ---- */

typedef struct model {
    text header;
    size_t at; /* bytes of tensors */
    uint8_t bytes[PREFIX + MOST_TEXT + PAYLOAD];
    size_t size;
} model;

/* Add a tensor, unless there is no room; 0 ends the dimensions. */
static void add(model *m, const char *name, const char *dtype, size_t size, const uint32_t dims[4])
{
    size_t bytes = size;
    for (int i = 0; i < 4 && dims[i]; i++)
        bytes *= dims[i];
    if (m->at + bytes > PAYLOAD || m->header.len > MOST_TEXT - 300)
        return;
    put(&m->header, m->header.len > 1 ? ",\"" : "\"");
    put(&m->header, name);
    put(&m->header, "\":{\"dtype\":\"");
    put(&m->header, dtype);
    put(&m->header, "\",\"shape\":[");
    for (int i = 0; i < 4 && dims[i]; i++) {
        put(&m->header, i ? "," : "");
        put_number(&m->header, dims[i]);
    }
    put(&m->header, "],\"data_offsets\":[");
    put_number(&m->header, (uint32_t)m->at);
    put(&m->header, ",");
    put_number(&m->header, (uint32_t)(m->at + bytes));
    put(&m->header, "]}");
    m->at += bytes;
}

/* Values of 16 or 32 bits, most of them ordinary numbers. */
static void end(model *m, uint32_t seed)
{
    put(&m->header, "}");
    for (size_t i = 0; i < PREFIX; i++)
        m->bytes[i] = (uint8_t)((uint64_t)m->header.len >> 8 * i);
    memcpy(m->bytes + PREFIX, m->header.s, m->header.len);
    uint8_t *to = m->bytes + PREFIX + m->header.len;
    for (size_t i = 0; i < m->at; i++)
        to[i] = (uint8_t)(i % 2 ? 0x3C + (i + seed) % 7 : i * 37 + seed);
    m->size = PREFIX + m->header.len + m->at;
}

static void make_base(model *m, uint32_t seed)
{
    put(&m->header, "{");
    add(m, "model.q.weight", "F32", 4, (const uint32_t[4]){ 6, 5 });
    add(m, "model.q.bias", "F32", 4, (const uint32_t[4]){ 6 });
    add(m, "model.e.weight", "BF16", 2, (const uint32_t[4]){ 9, 4 });
    add(m, "model.c.weight", "F16", 2, (const uint32_t[4]){ 4, 2, 3, 3 });
    add(m, "model.x.down", "BF16", 2, (const uint32_t[4]){ 3, 4, 5 });
    add(m, "model.i.weight", "I32", 4, (const uint32_t[4]){ 3, 4 });
    end(m, seed);
}

static void make_adapter(model *m, fuzz_script *s)
{
    static const char *const prefixes[] = { "base_model.model.", "lora_unet_", "", "unet.",
                                            "base_model." };
    static const char *const modules[] = { "model.q",    "model_q", "model.e",
                                           "model.c",    "model.x", "q",
                                           "model.none", "model.i", "model.q.base_layer" };
    static const char *const roles[] = { ".lora_A.weight",
                                         ".lora_B.weight",
                                         ".lora_embedding_A",
                                         ".lora_embedding_B",
                                         ".lora_magnitude_vector",
                                         ".alpha",
                                         ".lora_mid.weight",
                                         ".lora_down.weight",
                                         ".lora_up.weight",
                                         ".lora_B.bias",
                                         ".diff",
                                         ".weight",
                                         ".bias",
                                         ".lokr_w1",
                                         "_lora.up.weight" };
    static const uint32_t dims[] = { 1, 2, 3, 4, 5, 6, 9, 18, 8, 15, 0 };
    enum { PREFIXES = sizeof prefixes / sizeof *prefixes, ROLES = sizeof roles / sizeof *roles };
    enum { MODULES = sizeof modules / sizeof *modules, DIMS = sizeof dims / sizeof *dims };
    put(&m->header, "{");
    for (uint32_t i = fuzz_next(s) % 6 + 1, role = fuzz_next(s), module = fuzz_next(s); i--;) {
        char name[128];
        uint32_t shape[4], choice = fuzz_next(s);
        module = choice % 4 ? module : fuzz_next(s); /* mostly pairs of one module */
        snprintf(name, sizeof name, "%s%s%s", prefixes[choice / 4 % PREFIXES],
                 modules[module % MODULES], roles[role++ % ROLES]);
        for (int k = 0; k < 4; k++)
            shape[k] = dims[fuzz_next(s) % DIMS];
        bool is_half = choice / 32 % 2;
        add(m, name, is_half ? "F16" : "F32", is_half ? 2 : 4, shape);
    }
    end(m, fuzz_next(s));
}

static heft_settings *make_config(const heft_host *host, fuzz_script *s)
{
    static const char *const members[] = { "\"r\":2",
                                           "\"lora_alpha\":4",
                                           "\"lora_alpha\":\"1e1\"",
                                           "\"lora_alpha\":0.25",
                                           "\"use_rslora\":true",
                                           "\"use_dora\":true",
                                           "\"fan_in_fan_out\":true",
                                           "\"rank_pattern\":{\"q\":3,\"(\":1}",
                                           "\"alpha_pattern\":{\".*e\":1.5,\"x\":null}",
                                           "\"target_parameters\":[\"x.down\",7,\"none\"]",
                                           "\"peft_type\":\"LORA\"",
                                           "\"r\":-1" };
    enum { MEMBERS = sizeof members / sizeof *members };
    text t = { .len = 0 };
    heft_settings *out = NULL;
    put(&t, "{\"lora_alpha\":8");
    for (uint32_t i = fuzz_next(s) % 5; i--;) {
        put(&t, ",");
        put(&t, members[fuzz_next(s) % MEMBERS]);
    }
    put(&t, "}");
    (void)!heft_settings_parse_json(&out, (heft_str){ t.s, t.len }, host, NULL);
    return out;
}

/* ---- merging ---- */

static void merge(const heft_file *base, const heft_file *adapter, const heft_settings *config,
                  fuzz_script *s)
{
    heft_lora_options opt = HEFT_LORA_OPTIONS_INIT;
    heft_lora_adapter all[2] = { { adapter, config, 1 }, { adapter, config, -0.5 } };
    heft_error err = fuzz_no_error();
    heft_lora *l = NULL;
    uint32_t choice = fuzz_next(s);
    opt.allow_unmatched = choice % 2;
    opt.allow_nan = choice / 2 % 2;
    opt.peft_rounding = choice / 4 % 2;
    opt.verify = choice / 8 % 2;
    heft_status st = heft_lora_open(&l, base, all, 1 + choice / 16 % 2, &opt, &err);
    fuzz_require_error(st, &err);
    fuzz_require(st ? !l : l != NULL);
    if (!l)
        return;
    const heft_file *f = heft_lora_file(l);
    fuzz_require(heft_tensor_count(f) == heft_tensor_count(base));
    for (uint32_t i = 0; i < heft_lora_count(l); i++)
        fuzz_require(heft_tensor_find(f, heft_lora_at(l, i).name) != HEFT_NONE);
    for (uint32_t i = 0; i < heft_tensor_count(f) && fuzz_is_small(f); i++)
        if (heft_tensor_at(f, i).part_count)
            fuzz_require_sections(f, heft_tensor_at(f, i).first_part, s);
    heft_lora_close(l);
}

/* ---- extraction ---- */

static void extract(const heft_file *base, const heft_file *tuned, fuzz_script *s)
{
    heft_extract_options opt = HEFT_EXTRACT_OPTIONS_INIT;
    heft_error err = fuzz_no_error();
    heft_extraction *x = NULL;
    heft_blob config;
    opt.rank = fuzz_next(s) % 9;
    opt.seed = fuzz_next(s);
    heft_status st = heft_extraction_open(&x, base, tuned, &opt, &err);
    fuzz_require_error(st, &err);
    fuzz_require(st ? !x : x != NULL);
    if (!x)
        return;
    const heft_file *f = heft_extraction_file(x);
    for (uint32_t i = 0; i < heft_tensor_count(f) && fuzz_is_small(f); i++)
        fuzz_require_sections(f, heft_tensor_at(f, i).first_part, s);
    for (uint32_t i = 0; i < heft_extraction_count(x); i++)
        fuzz_require(heft_extraction_at(x, i).name.ptr != NULL);
    fuzz_require(!heft_extraction_config(&config, x, NULL));
    heft_blob_free(&config);
    heft_extraction_close(x);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    static model base, tuned, adapter;
    fuzz_memory m;
    base.header.len = base.at = adapter.header.len = adapter.at = 0;
    tuned.header.len = tuned.at = 0;
    fuzz_memory_init(&m, UINT32_MAX);
    make_base(&base, 1);
    make_base(&tuned, fuzz_next(s));
    make_adapter(&adapter, s);
    heft_file *b = fuzz_open_model(&m.host, base.bytes, base.size);
    heft_file *made = fuzz_open_model(&m.host, adapter.bytes, adapter.size);
    heft_file *given = fuzz_open_model(&m.host, data, size);
    heft_settings *config = fuzz_next(s) % 4 ? make_config(&m.host, s) : NULL;
    heft_file *t = fuzz_open_model(&m.host, tuned.bytes, tuned.size);
    fuzz_require(b && t);
    if (fuzz_next(s) % 8 == 0)
        extract(b, t, s);
    if (made)
        merge(b, made, config, s);
    if (given) {
        merge(b, given, config, s);
        merge(given, given, NULL, s);
        if (fuzz_next(s) % 8 == 0)
            extract(b, given, s);
    }
    heft_settings_close(config);
    heft_file_close(given);
    heft_file_close(made);
    heft_file_close(t);
    heft_file_close(b);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 96, .takes_models = true };
