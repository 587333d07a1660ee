/* fuzz_blend.c - fuzzes the settings of blends: in JSON, and in YAML where the build reads it; then
 * blends two small models by settings that are accepted. */
#include <string.h>

#include <heft/blend.h>

#include "fuzz.h"

static void read_all(const heft_file *f)
{
    uint8_t buf[64];
    for (uint32_t t = 0; t < heft_tensor_count(f); t++) {
        heft_tensor tensor = heft_tensor_at(f, t);
        uint64_t bytes = heft_tensor_bytes(f, t);
        fuzz_require(bytes <= sizeof buf);
        fuzz_use((uint64_t)heft_part_read(buf, f, tensor.first_part, 0, (size_t)bytes, NULL));
    }
}

static heft_file *open_small(uint32_t i)
{
    static const char *const texts[] = {
        "{\"a.0.w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
        "\"w\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[12,16]}}",
        "{\"a.0.w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
        "\"v\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[12,16]}}",
    };
    static uint8_t bytes[2][256];
    size_t len = strlen(texts[i % 2]);
    heft_file *f;
    memset(bytes[i % 2], (int)(60 + i % 2), sizeof *bytes);
    memset(bytes[i % 2], 0, 8);
    bytes[i % 2][0] = (uint8_t)len;
    memcpy(bytes[i % 2] + 8, texts[i % 2], len);
    return fuzz_open(&f, bytes[i % 2], 8 + len + 16, NULL) ? NULL : f;
}

static void blend(const heft_blend_settings *s)
{
    enum { MOST = 4 };
    const heft_file *files[MOST] = { NULL };
    uint32_t count = heft_blend_settings_models(s);
    heft_blend_options o = HEFT_BLEND_OPTIONS_INIT;
    heft_blend *b;
    fuzz_require(count && heft_blend_settings_base(s) < count);
    if (count > MOST)
        return;
    o.allow_nan = true;
    for (uint32_t i = 0; i < count; i++) {
        fuzz_require(heft_blend_settings_model(s, i).len);
        files[i] = open_small(i);
        fuzz_require(files[i]);
    }
    if (!heft_blend_open(&b, s, files, &o, NULL)) {
        fuzz_require(heft_blend_count(b) == heft_tensor_count(heft_blend_file(b)));
        read_all(heft_blend_file(b));
        heft_blend_close(b);
    }
    for (uint32_t i = 0; i < count; i++)
        heft_file_close((heft_file *)(uintptr_t)files[i]);
}

static void try_json(heft_str text)
{
    heft_blend_settings *s;
    if (heft_blend_settings_read(&s, text, NULL, NULL)) {
        fuzz_require(!s);
        return;
    }
    blend(s);
    heft_blend_settings_close(s);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_str text = { (const char *)data, size };
    heft_blob json;
    (void)s;
    try_json(text);
    heft_status st = heft_yaml_to_json(&json, text, NULL, NULL);
    if (!st)
        try_json((heft_str){ json.data, json.size });
    heft_blob_free(&json);
}

const fuzz_target fuzz_this = { .run = run };
