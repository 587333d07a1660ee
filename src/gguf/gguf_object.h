/* gguf_object.h - objects within settings of tokenizer.json. */
#ifndef HEFT_GGUF_OBJECT_H
#define HEFT_GGUF_OBJECT_H
#include "base/text.h"
#include "gguf/gguf_build.h"

/* An object: its values. */
typedef struct heft_gguf_object {
    const heft_settings *s;
    uint32_t begin, end;
} heft_gguf_object;

static inline heft_gguf_object heft_gguf_object_at(const heft_settings *s, uint32_t i)
{
    return (heft_gguf_object){ s, i + 1, heft_settings_next(s, i) };
}

static inline heft_gguf_object heft_gguf_whole(const heft_settings *s)
{
    return (heft_gguf_object){ s, 0, heft_settings_value_count(s) };
}

static inline heft_value heft_gguf_member(heft_gguf_object o, const char *key)
{
    for (uint32_t i = o.begin; i < o.end; i = heft_settings_next(o.s, i))
        if (heft_str_is(heft_settings_value_at(o.s, i).key, key))
            return heft_settings_value_at(o.s, i);
    return (heft_value){ .kind = HEFT_KIND_NULL };
}

static inline bool heft_gguf_flag(heft_gguf_object o, const char *key, bool otherwise)
{
    heft_value v = heft_gguf_member(o, key);
    return v.kind == HEFT_KIND_BOOL ? v.as.b : otherwise;
}

/* Return the text of the member "pattern": of its kind "Regex" or "String"; ptr NULL: there is
 * none. */
static inline heft_str heft_gguf_pattern(heft_gguf_object o, const char *kind)
{
    heft_value pattern = heft_gguf_member(o, "pattern");
    for (uint32_t i = o.begin; pattern.kind == HEFT_KIND_MAP && i < o.end; i++) {
        heft_value v = heft_settings_value_at(o.s, i);
        if (v.kind == HEFT_KIND_STR && heft_str_is(v.key, kind))
            return v.as.s;
    }
    return (heft_str){ NULL, 0 };
}

#endif
