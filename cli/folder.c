#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "textfile.h"

int folder_open(folder *out, const char *dir)
{
    static const char *const names[] = { "vocab.txt", "tokenizer.json" };
    *out = (folder){ .vocab = NULL };
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

/* What an EMBD file calls it, and what configurations do; the first that is there counts. */
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
enum { KEYS = sizeof keys / sizeof *keys, VALUES = KEYS + 2 };

static void add_text(folder *f, const char *key, const char *text)
{
    f->values[f->count++] =
        (heft_value){ .kind = HEFT_KIND_STR, .key = str_of(key), .as.s = str_of(text) };
}

/* The last part of the name that the model was published under, else of the folder's path. */
static void add_name(folder *f, const char *dir)
{
    heft_value v;
    char path[4096];
    const char *text = dir;
    size_t len = strlen(dir);
    if (f->settings && heft_settings_find(&v, f->settings, "_name_or_path") &&
        v.kind == HEFT_KIND_STR && v.as.s.len) {
        text = v.as.s.ptr;
        len = v.as.s.len;
    } else if (realpath(dir, path)) {
        text = path;
        len = strlen(path);
    }
    while (len && text[len - 1] == '/')
        len--;
    size_t from = len;
    while (from && text[from - 1] != '/')
        from--;
    len -= from;
    if (!len || len >= sizeof f->name)
        return;
    memcpy(f->name, text + from, len);
    add_text(f, "model_name", f->name);
}

static void add_settings(folder *f)
{
    for (size_t i = 0; f->settings && i < KEYS; i++)
        for (size_t k = 0; k < 3 && keys[i].settings[k]; k++) {
            heft_value v;
            if (!heft_settings_find(&v, f->settings, keys[i].settings[k]) ||
                v.kind == HEFT_KIND_BOOL)
                continue;
            v.key = str_of(keys[i].key);
            f->values[f->count++] = v;
            break;
        }
}

/* The only clock there is, so that the same folder makes the same file. */
static int add_time(folder *f)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    char *end;
    struct tm tm;
    if (!text)
        return CODE_DONE;
    long long seconds = strtoll(text, &end, 10);
    time_t when = (time_t)seconds;
    if (!*text || *end || !gmtime_r(&when, &tm) ||
        !strftime(f->created, sizeof f->created, "%Y-%m-%dT%H:%M:%SZ", &tm)) {
        say(NULL, "SOURCE_DATE_EPOCH is '%s', not a number of seconds", text);
        return CODE_USAGE;
    }
    add_text(f, "created_at", f->created);
    return CODE_DONE;
}

static int read_config(folder *f, const char *path)
{
    heft_error err;
    heft_str text;
    int code = text_read(&text, path, TEXT_FOUND);
    if (!code && heft_settings_json(&f->settings, text, NULL, &err))
        code = say_error(path, &err);
    text_free(text);
    return code;
}

int folder_read_values(folder *f, const char *dir, bool strict)
{
    char *config = f->config = path_in(dir, "config.json");
    int code = config ? CODE_DONE : CODE_SYSTEM;
    f->values = calloc(VALUES, sizeof *f->values);
    if (config && path_exists(config)) {
        code = read_config(f, config);
    } else if (config) {
        say(dir, "%s: a folder without a config.json, so most metadata are missing",
            strict ? "error" : "warning");
        code = strict ? CODE_CANNOT : CODE_DONE;
    }
    if (!code && !f->values) {
        say(dir, "no memory for metadata");
        code = CODE_SYSTEM;
    }
    if (code)
        return code;
    add_name(f, dir);
    add_settings(f);
    return add_time(f);
}
