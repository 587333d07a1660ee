#include "models/companions.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <heft/companion.h>

#include "models/beside.h"
#include "models/model.h"
#include "process/textfile.h"

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

int folder_open(folder *out, bool strict, const char *dir)
{
    static const char *const names[] = { "vocab.txt", "tokenizer.json" };
    *out = (folder){ .strict = strict };
    for (size_t i = 0; i < 2 && !out->vocab; i++) {
        out->vocab = path_in(dir, names[i]);
        if (!out->vocab)
            return CODE_SYSTEM;
        if (path_exists(out->vocab))
            break;
        free(out->vocab);
        out->vocab = NULL;
    }
    return CODE_DONE;
}

void folder_close(folder *f)
{
    free(f->vocab);
    free(f->config);
    free(f->values);
    heft_settings_close(f->settings);
    *f = (folder){ .vocab = NULL };
}

/* ---- metadata ---- */

/* EMBD metadata keys and the names of the same setting in config.json; the first name found is
 * used. */
static const struct {
    const char *key, *settings[3];
} keys[] = {
    { "embedding_dim", { "hidden_size", "n_embd", "dim" } },
    { "vocab_size", { "vocab_size" } },
    { "num_layers", { "num_hidden_layers", "n_layer", "n_layers" } },
    { "num_attention_heads", { "num_attention_heads", "n_head", "n_heads" } },
    { "hidden_size", { "hidden_size", "n_embd", "dim" } },
    { "intermediate_size", { "intermediate_size", "n_inner", "hidden_dim" } },
    { "max_position_emb", { "max_position_embeddings", "n_positions", "n_ctx" } },
};
enum { KEYS = sizeof keys / sizeof *keys, VALUES = KEYS + 3 };

static void add_text(folder *f, const char *key, const char *text)
{
    f->values[f->count++] =
        (heft_value){ .kind = HEFT_KIND_STR, .key = str_of(key), .as.s = str_of(text) };
}

/* ---- what the path says ---- */

/* In a hub cache, .../models--ORG--NAME/snapshots/REVISION[/FOLDER], take name and revision from
 * the path; elsewhere take the last component as the name. */
static void read_path(const char *path, heft_str *name, heft_str *revision)
{
    heft_str previous = { "", 0 }, last = previous, repository = previous;
    *revision = previous;
    while (*(path += strspn(path, "/"))) {
        heft_str part = { path, strcspn(path, "/") };
        if (str_same(last, str_of("snapshots")) && str_begins(previous, "models--")) {
            repository = previous;
            *revision = part;
        }
        previous = last;
        last = part;
        path += part.len;
    }
    *name = last;
    if (!repository.len)
        return;
    size_t from = repository.len;
    while (memcmp(repository.ptr + from - 2, "--", 2) != 0)
        from--;
    *name = (heft_str){ repository.ptr + from, repository.len - from };
}

/* Read the revision from the first line of the file that "hf download --local-dir" leaves. */
static int read_noted_revision(folder *f, const char *dir)
{
    heft_str text = { NULL, 0 };
    char *path = path_in(dir, ".cache/huggingface/download/config.json.metadata");
    int code = !path ? CODE_SYSTEM : path_exists(path) ? text_read(&text, path, TEXT_FOUND) : 0;
    size_t len = 0;
    while (!code && len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\r')
        len++;
    if (!code && len < sizeof f->revision)
        memcpy(f->revision, text.ptr ? text.ptr : "", len);
    text_free(text);
    free(path);
    return code;
}

static void copy_text(char *to, size_t capacity, heft_str text)
{
    if (text.len < capacity)
        memcpy(to, text.ptr, text.len);
}

static int add_name(folder *f, const char *dir)
{
    char path[PATH_MAX];
    heft_str name, revision;
    read_path(realpath(dir, path) ? path : dir, &name, &revision);
    copy_text(f->name, sizeof f->name, name);
    copy_text(f->revision, sizeof f->revision, revision);
    if (*f->name)
        add_text(f, "model_name", f->name);
    return *f->revision ? CODE_DONE : read_noted_revision(f, dir);
}

/* ---- what config.json says ---- */

static void add_settings(folder *f)
{
    for (size_t i = 0; f->settings && i < KEYS; i++)
        for (size_t k = 0; k < 3 && keys[i].settings[k]; k++) {
            heft_value v;
            if (!heft_settings_find(&v, f->settings, str_of(keys[i].settings[k])) ||
                v.kind == HEFT_KIND_BOOL)
                continue;
            v.key = str_of(keys[i].key);
            f->values[f->count++] = v;
            break;
        }
}

/* Find the first of the settings that is a number or a text that is not empty. */
static bool find_setting(heft_value *out, const folder *f, const char *const *names)
{
    bool found = false;
    for (; f->settings && *names && !found; names++)
        found = heft_settings_find(out, f->settings, str_of(*names)) &&
                out->kind != HEFT_KIND_BOOL && (out->kind != HEFT_KIND_STR || out->as.s.len);
    return found;
}

/* "transformers_version" is the version of a library, and "_commit_hash" is a revision of the base
 * model; neither is the version of this model. */
static void add_version(folder *f)
{
    static const char *const names[] = { "model_version", "version", NULL };
    heft_value v;
    if (find_setting(&v, f, names)) {
        v.key = str_of("model_version");
        f->values[f->count++] = v;
    } else if (*f->revision) {
        add_text(f, "model_version", f->revision);
    }
}

/* Return true if s begins with a date as in ISO 8601: 2025-01-16. */
static bool is_date(heft_str s)
{
    static const char pattern[] = "0000-00-00";
    bool is = s.len >= sizeof pattern - 1;
    for (size_t i = 0; is && pattern[i]; i++)
        is = pattern[i] == '0' ? s.ptr[i] >= '0' && s.ptr[i] <= '9' : s.ptr[i] == pattern[i];
    return is;
}

/* ISO 8601 has years of four digits. */
static bool write_time(folder *f, long long seconds)
{
    enum { FIRST_YEAR = 1000 - 1900, LAST_YEAR = 9999 - 1900 }; /* as in struct tm */
    time_t when = (time_t)seconds;
    struct tm tm;
    return when == seconds && gmtime_r(&when, &tm) && tm.tm_year >= FIRST_YEAR &&
           tm.tm_year <= LAST_YEAR &&
           strftime(f->created, sizeof f->created, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* SOURCE_DATE_EPOCH is the only clock, so that the same folder always gives the same file. */
static int read_epoch(folder *f)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    char *end;
    if (!text)
        return CODE_DONE;
    long long seconds = strtoll(text, &end, 10);
    if (!*text || *end || !write_time(f, seconds))
        return say_status(HEFT_E_ARGUMENT, NULL,
                          "SOURCE_DATE_EPOCH is '%s', not a number of seconds in the years 1000 to "
                          "9999",
                          text);
    return CODE_DONE;
}

static int add_time(folder *f)
{
    static const char *const names[] = { "created_at", "date", NULL };
    heft_value v;
    int code = CODE_DONE;
    if (!find_setting(&v, f, names)) {
        code = read_epoch(f);
    } else if (v.kind == HEFT_KIND_STR && is_date(v.as.s)) {
        v.key = str_of("created_at");
        f->values[f->count++] = v;
    } else if (v.kind != HEFT_KIND_INT || !write_time(f, v.as.i)) {
        say_lost(f->strict, f->config,
                 "the creation date is neither ISO 8601 nor a number of seconds");
        code = f->strict ? CODE_CANNOT : read_epoch(f);
    }
    if (!code && *f->created)
        add_text(f, "created_at", f->created);
    return code;
}

static int read_config(folder *f, const char *path)
{
    heft_error err;
    heft_str text;
    int code = text_read(&text, path, TEXT_FOUND);
    if (!code && heft_settings_parse_json(&f->settings, text, NULL, &err))
        code = say_error(path, &err);
    text_free(text);
    return code;
}

int folder_read_values(folder *f, const char *dir)
{
    char *config = f->config = path_in(dir, "config.json");
    int code = config ? CODE_DONE : CODE_SYSTEM;
    f->values = calloc(VALUES, sizeof *f->values);
    if (config && path_exists(config)) {
        code = read_config(f, config);
    } else if (config) {
        say_lost(f->strict, dir, "no config.json in the folder: most metadata will be missing");
        code = f->strict ? CODE_CANNOT : CODE_DONE;
    }
    if (!code && !f->values) {
        say_status(HEFT_E_NOMEM, dir, "no memory for metadata");
        code = CODE_SYSTEM;
    }
    if (code)
        return code;
    code = add_name(f, dir);
    if (code)
        return code;
    add_version(f);
    add_settings(f);
    return add_time(f);
}

size_t folder_drop_revision(const folder *f, heft_value *values, size_t count,
                            const heft_file *weights)
{
    bool has = false;
    heft_str key = str_of("model_version");
    for (uint32_t i = 0; i < heft_meta_count(weights); i = heft_meta_next(weights, i))
        has = has || str_same(heft_meta_at(weights, i).key, key);
    for (size_t i = 0; has && i < count; i++)
        if (str_same(values[i].key, key) && values[i].as.s.ptr == f->revision) {
            memmove(values + i, values + i + 1, (count - i - 1) * sizeof *values);
            return count - 1;
        }
    return count;
}

/* ---- other settings of a model ---- */

int model_config_read(heft_settings **out, const char *path, const char *name, bool warns)
{
    *out = NULL;
    return heft_is_url(path) ? CODE_DONE : settings_beside(out, path, name, warns);
}

int model_config_open(heft_settings **out, const heft_file *f, const char *path, const char *name,
                      bool warns)
{
    bool is_folder;
    *out = NULL;
    int code = path_find_folder(&is_folder, path);
    if (code || (!is_folder && !heft_shard_file_count(f)))
        return code;
    return model_config_read(out, path, name, warns);
}
