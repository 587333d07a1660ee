#include "models/adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/beside.h"
#include "models/model.h"
#include "models/single_file.h"
#include "process/columns.h"

/* ---- opening ---- */

typedef struct merging {
    const char *const *paths; /* pairs of --lora */
    const session *session;
    uint64_t count;
    uint32_t adapter;
    char first[128];
    uint64_t patterns; /* of settings, for no module */
    single_file names; /* that adapters may have for the tensors of the base */
} merging;

static heft_str other_name(void *ctx, uint32_t tensor)
{
    merging *m = ctx;
    return single_file_name(&m->names, tensor);
}

static void count_unmatched(void *ctx, uint32_t adapter, heft_str name)
{
    merging *u = ctx;
    if (u->count++)
        return;
    u->adapter = adapter;
    snprintf(u->first, sizeof u->first, "%.*s", (int)name.len, name.ptr);
}

/* A scale that the settings give to no module is likely meant for one that has another name. */
static void say_pattern(void *ctx, uint32_t adapter, const char *map, heft_str pattern)
{
    enum { MOST = 8 };
    merging *u = ctx;
    outbuf text;
    if (u->patterns++ >= MOST)
        return;
    out_open(&text, -1);
    out_escaped(&text, pattern);
    say_lost(u->session->strict, u->paths[2 * (size_t)adapter],
             "'%s' in %s of adapter_config.json names no module of the adapter%s", out_cstr(&text),
             map, u->patterns == MOST ? " (no more are listed)" : "");
    out_free(&text);
}

/* Say which tensors of adapters were left out: an error with --strict. Return an exit code. */
static int say_unmatched(const merging *u)
{
    outbuf name;
    if (!u->count)
        return u->patterns && u->session->strict ? CODE_USAGE : CODE_DONE;
    out_open(&name, -1);
    out_escaped(&name, str_of(u->first));
    say_lost(u->session->strict, u->paths[2 * u->adapter],
             "%llu tensor%s of adapters match nothing and are left out, '%s'%s",
             (unsigned long long)u->count, u->count == 1 ? "" : "s", out_cstr(&name),
             u->count == 1 ? "" : " ...");
    out_free(&name);
    return u->session->strict ? CODE_CANNOT : CODE_DONE;
}

static int open_adapter(adapters *a, const adapter_options *o, const session *s)
{
    const char *path = o->list.item[2 * a->count], *scale = o->list.item[2 * a->count + 1];
    heft_lora_adapter *to = &a->all[a->count];
    int code = settings_beside(&a->configs[a->count], path, "adapter_config.json", true);
    if (!code)
        code = model_open_whole(s, &a->files[a->count], path);
    if (code) {
        heft_settings_close(a->configs[a->count]);
        return code;
    }
    *to = (heft_lora_adapter){ a->files[a->count], a->configs[a->count],
                               *scale ? strtod(scale, NULL) : 1 };
    a->paths[++a->count] = path;
    return CODE_DONE;
}

/* Append the way on to the error, and say it of the adapter or the model. */
static int say_lora_error(const char *path, heft_error *err)
{
    static const struct {
        const char *rule, *way;
    } ways[] = {
        { "heft/unmatched", ". --allow-unmatched leaves such tensors out" },
        { "heft/quantised", ". --dequantize decodes known schemes, --cast f32 blocks of GGUF" },
    };
    size_t used = strlen(err->message);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (err->rule && !strcmp(err->rule, ways[i].rule))
            snprintf(err->message + used, sizeof err->message - used, "%s", ways[i].way);
    return say_error(path, err);
}

int adapters_open(adapters *a, const adapter_options *o, const session *s, const heft_file *f,
                  const char *path, bool allow_nan, heft_dtype block)
{
    heft_error err;
    size_t count = adapters_wanted(o);
    heft_lora_options opt = HEFT_LORA_OPTIONS_INIT;
    merging u = { .paths = o->list.item, .session = s };
    int code = CODE_DONE;
    *a = (adapters){ .merged = NULL };
    if (!count)
        return CODE_DONE;
    a->all = calloc(count, sizeof *a->all);
    a->files = calloc(count, sizeof(heft_file *));
    a->configs = calloc(count, sizeof(heft_settings *));
    a->paths = calloc(count + 1, sizeof(char *));
    if (!a->all || !a->files || !a->configs || !a->paths)
        return say_status(HEFT_E_NOMEM, path, "no memory for adapters");
    *a->paths = path;
    while (a->count < count && !code)
        code = open_adapter(a, o, s);
    if (code)
        return code;
    opt.verify = !s->no_verify;
    opt.allow_unmatched = s->allow_unmatched;
    opt.allow_nan = allow_nan;
    opt.peft_rounding = o->peft_rounding;
    opt.block_type = block;
    opt.on_unmatched = s->allow_unmatched ? count_unmatched : NULL;
    opt.on_pattern = say_pattern;
    opt.ctx = &u;
    single_file_open(&u.names, f);
    opt.other_name = u.names.map ? other_name : NULL;
    heft_status st = heft_lora_open(&a->merged, f, a->all, (uint32_t)count, &opt, &err);
    single_file_release(&u.names);
    if (st)
        return say_lora_error(a->paths[err.input ? err.input - 1 : 0], &err);
    return say_unmatched(&u);
}

const heft_file *adapters_file(const adapters *a)
{
    return heft_lora_file(a->merged);
}

void adapters_release(adapters *a)
{
    heft_lora_close(a->merged);
    for (size_t i = 0; i < a->count; i++) {
        heft_file_close(a->files[i]);
        heft_settings_close(a->configs[i]);
    }
    free(a->all);
    free((void *)a->files);
    free((void *)a->configs);
    free((void *)a->paths);
    *a = (adapters){ .merged = NULL };
}

/* ---- what is merged ---- */

enum { FIELD_NAME, FIELD_HOW, FIELD_RANK, FIELD_SCALE, FIELD_ADAPTER };

typedef struct merged_rows {
    const adapters *a;
    const adapter_options *o;
} merged_rows;

static const char *path_of(const adapter_options *o, const heft_lora_item *i)
{
    return o->list.item[2 * (size_t)i->adapter];
}

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const merged_rows *r = row->ctx;
    heft_lora_item i = heft_lora_at(r->a->merged, row->id);
    if (field == FIELD_NAME)
        out_name(o, i.name);
    else if (field == FIELD_HOW)
        out_text(o, i.how);
    else if (field == FIELD_ADAPTER)
        out_escaped(o, str_of(path_of(r->o, &i)));
    else if (field == FIELD_RANK && !i.rank)
        out_char(o, '-');
    else if (field == FIELD_RANK)
        out_format(o, "%u", i.rank);
    else
        out_format(o, "%.6g", i.scale);
}

static void print_json(outbuf *o, const merged_rows *r)
{
    json j = json_open(o);
    json_member_begin(&j, "merged", '[');
    for (uint32_t k = 0; k < heft_lora_count(r->a->merged); k++) {
        heft_lora_item i = heft_lora_at(r->a->merged, k);
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", i.name);
        json_member_str(&j, "how", str_of(i.how));
        json_member_u64(&j, "rank", i.rank);
        json_member_f64(&j, "scale", i.scale);
        json_member_str(&j, "adapter", str_of(path_of(r->o, &i)));
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_close(&j);
}

void adapters_print(outbuf *o, const adapters *a, const adapter_options *asked, const session *s,
                    bool as_json)
{
    static const column columns[] = {
        { "NAME", false, FIELD_NAME },       { "MERGED", false, FIELD_HOW },
        { "RANK", true, FIELD_RANK },        { "SCALE", true, FIELD_SCALE },
        { "ADAPTER", false, FIELD_ADAPTER },
    };
    merged_rows r = { a, asked };
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .ctx = &r,
                .count = heft_lora_count(a->merged),
                .threads = s->threads };
    if (as_json)
        print_json(o, &r);
    else
        table_print(o, &t);
}
