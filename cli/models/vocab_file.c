#include "models/vocab_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int vocab_find(heft_vocab **out, const heft_file *f, const char *path)
{
    heft_error err;
    heft_status st = heft_vocab_open(out, f, &err);
    return st && st != HEFT_E_NOTFOUND ? say_error(path, &err) : CODE_DONE;
}

void vocab_put(outbuf *o, const heft_vocab *v)
{
    for (uint32_t i = 0; i < heft_vocab_count(v); i++) {
        heft_str token = heft_vocab_at(v, i);
        out_bytes(o, token.ptr, token.len);
        out_char(o, '\n');
    }
}

int vocab_read(heft_vocab **out, const char *path, text_origin origin)
{
    heft_error err;
    heft_str text;
    size_t len = strlen(path);
    bool is_json = len > 5 && !strcmp(path + len - 5, ".json");
    *out = NULL;
    int code = text_read(&text, path, origin);
    if (code)
        return code;
    if (is_json ? heft_vocab_parse_json(out, text, NULL, &err)
                : heft_vocab_parse_lines(out, text, NULL, &err))
        code = say_error(path, &err);
    text_free(text);
    return code;
}

/* ---- special tokens ---- */

static int special_of(const char *name, size_t len)
{
    int i = 0;
    while (i < HEFT_SPECIALS &&
           (strncmp(heft_vocab_special_name((heft_special)i), name, len) != 0 ||
            heft_vocab_special_name((heft_special)i)[len]))
        i++;
    return i;
}

/* Parse a token id, or "none" as HEFT_NONE. */
static bool read_id(uint32_t *id, const char *text, size_t len)
{
    char *end;
    bool is_none = len == 4 && !strncmp(text, "none", 4);
    unsigned long long v = strtoull(text, &end, 10);
    *id = is_none ? HEFT_NONE : (uint32_t)v;
    return is_none || (*text >= '0' && *text <= '9' && end == text + len && v < HEFT_NONE);
}

int vocab_read_special(specials *out, const char *cmd, const char *arg)
{
    *out = (specials){ .count = 0 };
    for (const char *at = arg; *at;) {
        size_t len = strcspn(at, ","), name = strcspn(at, "=");
        int special = name < len ? special_of(at, name) : HEFT_SPECIALS;
        uint32_t id, i = 0;
        if (special == HEFT_SPECIALS)
            return say_usage(
                cmd, "--special: '%.*s' is not NAME=ID, where NAME is pad, unk, cls, sep or mask",
                (int)len, at);
        if (!read_id(&id, at + name + 1, len - name - 1))
            return say_usage(cmd, "--special: '%.*s' is not a token id", (int)len, at);
        while (i < out->count && out->id[i].special != (heft_special)special)
            i++;
        out->id[i] = (heft_special_id){ (heft_special)special, id };
        out->count += i == out->count;
        at += len + (at[len] == ',');
    }
    return CODE_DONE;
}

int vocab_set_special(heft_vocab *v, const specials *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t id = s->id[i].id;
        if (id != HEFT_NONE && id >= heft_vocab_count(v))
            return say_usage("convert",
                             "--special: '%s=%u' is not an id of the vocabulary's %u tokens",
                             heft_vocab_special_name(s->id[i].special), id, heft_vocab_count(v));
        heft_vocab_set_special(v, s->id[i].special, id);
    }
    return CODE_DONE;
}
