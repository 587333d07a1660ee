#include "models/mapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/beside.h"
#include "models/model.h"
#include "models/quantised.h"
#include "process/textfile.h"

/* ---- the map ---- */

/* Remove ":inverse" or ":forward" from the name, which is copied. */
static char *copy_name(const char *name, heft_map_direction *direction)
{
    static const struct {
        const char *suffix;
        heft_map_direction direction;
    } rows[] = { { ":inverse", HEFT_MAP_INVERSE }, { ":forward", HEFT_MAP_FORWARD } };
    char *copy = strdup(name);
    for (size_t i = 0; copy && i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(copy), n = strlen(rows[i].suffix);
        if (len <= n || strcmp(copy + len - n, rows[i].suffix) != 0)
            continue;
        copy[len - n] = 0;
        *direction = rows[i].direction;
    }
    return copy;
}

static int read_map(heft_map **out, const char *file)
{
    heft_error err;
    heft_str text;
    int code = text_read(&text, file, TEXT_NAMED);
    if (code)
        return code;
    if (heft_map_parse(out, text, NULL, &err))
        code = say_error(file, &err);
    text_free(text);
    return code;
}

static int open_named(heft_map **out, const char *name, const heft_file *f,
                      const heft_settings *config, const char *path)
{
    heft_error err;
    size_t len = strlen(name);
    if (strchr(name, '/') || (len > 4 && !strcmp(name + len - 4, ".map")))
        return read_map(out, name);
    heft_status st = strcmp(name, "auto") ? heft_map_open(out, str_of(name), NULL, &err)
                                          : heft_map_open_for(out, f, config, &err);
    if (!st)
        return CODE_DONE;
    size_t used = strlen(err.message);
    if (st == HEFT_E_NOTFOUND)
        snprintf(err.message + used, sizeof err.message - used, ". `heft maps` lists all");
    return say_error(path, &err);
}

int map_find(heft_map **out, heft_map_direction *direction, const char *name, const heft_file *f,
             const heft_settings *config, const char *path)
{
    char *copy = copy_name(name, direction);
    *out = NULL;
    int code = copy ? open_named(out, copy, f, config, path)
                    : say_status(HEFT_E_NOMEM, path, "no memory for a name");
    free(copy);
    return code;
}

/* ---- the model ---- */

typedef struct named_tensors { /* the first of several tensors, and their number */
    uint64_t count;
    char first[128];
} named_tensors;

typedef struct reports {
    named_tensors unmatched, dropped, missing;
    const session *session;
    const char *path;
} reports;

static void count_name(named_tensors *n, heft_str name)
{
    if (!n->count++)
        snprintf(n->first, sizeof n->first, "%.*s", (int)name.len, name.ptr);
}

static void count_unmatched(void *ctx, heft_str name)
{
    count_name(&((reports *)ctx)->unmatched, name);
}

/* Say that a result is stored once, or that two are not equal although they should be. */
static void say_tied(void *ctx, heft_str name, heft_str first, bool is_same)
{
    const reports *r = ctx;
    outbuf text;
    out_open(&text, -1);
    out_escaped(&text, name);
    out_text(&text, is_same ? " equals " : " differs from ");
    out_escaped(&text, first);
    if (is_same && !r->session->quiet)
        say(MESSAGE_NOTE, r->path, "%s and is not written: the output ties both", out_cstr(&text));
    else if (!is_same)
        say(MESSAGE_WARNING, r->path, "%s, although the model ties both: both are written",
            out_cstr(&text));
    out_free(&text);
}

static void count_dropped(void *ctx, heft_str name)
{
    count_name(&((reports *)ctx)->dropped, name);
}

static void count_missing(void *ctx, heft_str pattern)
{
    count_name(&((reports *)ctx)->missing, pattern);
}

/* Warn of tensors: an error with --strict. Return an exit code. */
static int say_named(const named_tensors *n, const session *s, const char *path, const char *what)
{
    outbuf name;
    if (!n->count)
        return CODE_DONE;
    out_open(&name, -1);
    out_escaped(&name, str_of(n->first));
    say_lost(s->strict, path, "%s: %llu tensor%s, '%s'%s", what, (unsigned long long)n->count,
             n->count == 1 ? "" : "s", out_cstr(&name), n->count == 1 ? "" : " ...");
    out_free(&name);
    return s->strict ? CODE_CANNOT : CODE_DONE;
}

static void say_map(const mapped *m, const session *s, heft_map_direction side, const char *path)
{
    heft_map_info i = heft_map_describe(m->map);
    bool is_inverse = side == HEFT_MAP_INVERSE;
    heft_str from = is_inverse ? i.to : i.from, to = is_inverse ? i.from : i.to;
    if (!s->quiet)
        say(MESSAGE_NOTE, path, "map %.*s: %.*s to %.*s", (int)i.name.len, i.name.ptr,
            (int)from.len, from.ptr, (int)to.len, to.ptr);
}

/* Say the error, and for a tensor without a rule the ways on. */
static int say_map_error(const char *path, const heft_file *f, heft_error *err)
{
    heft_schemes *found = NULL;
    size_t used = strlen(err->message);
    bool is_unmatched = err->rule && !strcmp(err->rule, "heft/unmatched");
    if (is_unmatched && quantised_open(&found, f, path))
        return CODE_SYSTEM;
    const char *way = !is_unmatched ? ""
                      : found && heft_schemes_count(found)
                          ? ". Quantised tensors are mapped once --dequantize has decoded them"
                          : ". --allow-unmatched keeps such tensors as they are";
    snprintf(err->message + used, sizeof err->message - used, "%s", way);
    heft_schemes_close(found);
    return say_error(path, err);
}

static bool is_text(heft_str s, const char *text)
{
    return s.len == strlen(text) && !memcmp(s.ptr, text, s.len);
}

/* Return whether the map takes the model from a framework. */
static bool comes_from(const mapped *m, const char *framework)
{
    heft_map_info i = heft_map_describe(m->map);
    return is_text(m->direction == HEFT_MAP_INVERSE ? i.to : i.from, framework);
}

static bool leads_to(const mapped *m, const char *framework)
{
    heft_map_info i = heft_map_describe(m->map);
    return is_text(m->direction == HEFT_MAP_INVERSE ? i.from : i.to, framework);
}

/* Make the metadata of a GGUF file, if the model is in a folder with config.json. */
static int open_gguf(mapped *m, const session *s, const heft_file *f, const char *path)
{
    if (m->config)
        return gguf_folder_open(&m->gguf, s, f, path);
    say_lost(
        s->strict, path,
        "there is no config.json: the GGUF file has no metadata, and llama.cpp does not load it");
    return s->strict ? CODE_CANNOT : CODE_DONE;
}

/* Return the general.architecture of a model that is written, or that is read; empty: none. */
static heft_str architecture_of(const mapped *m, const heft_file *f)
{
    size_t count = 0;
    const heft_value *made = m->gguf.metadata ? heft_gguf_metadata_values(&count, m->gguf.metadata)
                                              : NULL;
    for (size_t i = 0; i < count; i++)
        if (is_text(made[i].key, "general.architecture") && made[i].kind == HEFT_KIND_STR)
            return made[i].as.s;
    heft_value stored;
    bool is_there = !made && heft_meta_find(&stored, f, str_of("general.architecture"));
    return is_there && stored.kind == HEFT_KIND_STR ? stored.as.s : str_of("");
}

/* Refuse a map whose layout is not the one that the metadata announce: llama.cpp, or the readers of
 * config.json, would compute with rows in another order. */
static int check_architecture(const mapped *m, const heft_file *f, const char *path)
{
    heft_map_info i = heft_map_describe(m->map);
    heft_str is = architecture_of(m, f);
    if (!i.architecture.len || !is.len || str_same(i.architecture, is))
        return CODE_DONE;
    return say_status(HEFT_E_ARGUMENT, path,
                      "the map %.*s is for the architecture %.*s, and this model is of %.*s: "
                      "--map auto chooses the map",
                      (int)i.name.len, i.name.ptr, (int)i.architecture.len, i.architecture.ptr,
                      (int)is.len, is.ptr);
}

int mapped_open(mapped *m, const session *s, const heft_file *f, const char *path,
                mapped_output output)
{
    heft_error err;
    heft_map_options opt = HEFT_MAP_OPTIONS_INIT;
    reports names = { .session = s, .path = path };
    int code = CODE_DONE;
    *m = (mapped){ .map = NULL };
    if (!s->map)
        return CODE_DONE;
    code = settings_beside(&m->config, path, "config.json", true);
    if (!code)
        code = map_find(&m->map, &opt.direction, s->map, f, m->config, path);
    if (code)
        return code;
    if (opt.direction == HEFT_MAP_EITHER)
        opt.direction = heft_map_side(m->map, f);
    m->direction = opt.direction;
    bool is_gguf = comes_from(m, "gguf");
    m->is_for_ggml = output == MAPPED_GGUF && leads_to(m, "gguf");
    if (output == MAPPED_GGUF && !is_gguf)
        code = open_gguf(m, s, f, path);
    else if (output == MAPPED_FOLDER && is_gguf)
        code = gguf_folder_make(&m->gguf, s, f, path);
    if (!code && (m->gguf.metadata || m->gguf.back))
        code = check_architecture(m, f, path);
    if (code)
        return code;
    opt.gguf = m->gguf.metadata;
    opt.texts = m->gguf.back;
    opt.config = m->config;
    opt.allow_unmatched = s->allow_unmatched;
    opt.verify = !s->no_verify;
    opt.on_unmatched = s->allow_unmatched ? count_unmatched : NULL;
    opt.on_dropped = count_dropped;
    opt.on_missing = count_missing;
    opt.on_tied = say_tied;
    opt.ctx = &names;
    if (heft_map_apply(&m->model, m->map, f, &opt, &err))
        return say_map_error(path, f, &err);
    say_map(m, s, opt.direction, path);
    code = say_named(&names.unmatched, s, path, "no rule of the map matches, kept as they are");
    code = code ? code : say_named(&names.dropped, s, path, "the map leaves out");
    return code ? code : say_named(&names.missing, s, path, "the model lacks what the map expects");
}

void mapped_release(mapped *m)
{
    heft_file_close(m->model);
    gguf_folder_close(&m->gguf);
    heft_settings_close(m->config);
    heft_map_close(m->map);
    *m = (mapped){ .map = NULL };
}
