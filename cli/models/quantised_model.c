#include "models/quantised_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/mix.h>

#include "models/beside.h"
#include "models/model.h"
#include "models/quantised.h"
#include "process/columns.h"
#include "process/sinkwatch.h"
#include "process/textfile.h"

enum { FIELD_NAME, FIELD_FROM, FIELD_TO, FIELD_SIZE, FIELD_NEW_SIZE, FIELD_NOTE };

typedef struct changes {
    change (*at)(void *ctx, uint32_t i);
    void *ctx;
} changes;

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const changes *all = row->ctx;
    change c = all->at(all->ctx, row->id);
    if (field == FIELD_NAME)
        out_escaped(o, c.name);
    else if (field == FIELD_FROM || field == FIELD_TO)
        out_text(o, field == FIELD_FROM ? c.from : c.to);
    else if (field == FIELD_NOTE && c.instead_of)
        out_format(o, "instead of %s", c.instead_of);
    else if (field == FIELD_NOTE)
        out_text(o, c.note ? c.note : "-");
    else
        out_size(o, field == FIELD_SIZE ? c.bytes : c.new_bytes);
}

void change_table_print(outbuf *o, const session *s, uint32_t count,
                        change (*at)(void *ctx, uint32_t i), void *ctx)
{
    static const column columns[] = {
        { "NAME", false, FIELD_NAME },       { "FROM", false, FIELD_FROM },
        { "TO", false, FIELD_TO },           { "SIZE", true, FIELD_SIZE },
        { "BECOMES", true, FIELD_NEW_SIZE }, { "NOTE", false, FIELD_NOTE },
    };
    changes all = { at, ctx };
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .ctx = &all,
                .count = count,
                .threads = s->threads };
    table_print(o, &t);
}

/* ---- the option ---- */

/* [GLOB=]NAME[:OPTION], as pointers into the argument. */
typedef struct rule {
    char *glob; /* NULL: all tensors */
    const char *method;
} rule;

typedef struct rules_of_names {
    rule *rules;
    size_t count;
    bool has_default; /* a rule without a pattern */
    bool no_memory;
} rules_of_names;

static bool is_none(const rule *r)
{
    return !strcmp(r->method, "none");
}

/* A pattern chooses also what is left alone by default. */
static heft_quantise_wish wish(void *ctx, const heft_tensor *t)
{
    rules_of_names *n = ctx;
    for (size_t i = 0; i < n->count; i++)
        if (n->rules[i].glob && name_matches(&n->no_memory, t->name, n->rules[i].glob))
            return is_none(&n->rules[i]) ? HEFT_QUANTISE_NEVER : HEFT_QUANTISE_ALWAYS;
    return n->has_default ? HEFT_QUANTISE_BY_DEFAULT : HEFT_QUANTISE_NEVER;
}

static void release_rules(rules_of_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->rules[i].glob);
    free(n->rules);
}

/* Read the arguments, which name one method. */
static int read_rules(rules_of_names *n, const char **method, const opt_list *args)
{
    n->rules = calloc(args->count, sizeof *n->rules);
    *method = NULL;
    for (size_t i = 0; n->rules && i < args->count; i++) {
        const char *text = args->item[i], *equals = strrchr(text, '=');
        rule *r = &n->rules[n->count++];
        r->method = equals ? equals + 1 : text;
        r->glob = equals ? strndup(text, (size_t)(equals - text)) : NULL;
        n->no_memory = n->no_memory || (equals && !r->glob);
        n->has_default = n->has_default || (!equals && !is_none(r));
        if (is_none(r))
            continue;
        if (*method && strcmp(*method, r->method) != 0)
            return say_usage("convert", "--quantize takes one method: %s or %s", *method,
                             r->method);
        *method = r->method;
    }
    if (!n->rules || n->no_memory)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    return *method ? CODE_DONE : say_usage("convert", "--quantize names no method");
}

/* Refuse a target without a form for what the method writes, before anything is read. */
static int check_target(const char *method, const char *path, const heft_format *target)
{
    const char *options = strchr(method, ':');
    bool is_gguf = !strcmp(heft_format_name(target), "gguf");
    if (heft_format_caps(target) & HEFT_CAN_SCHEMES ||
        (is_gguf && options && !strcmp(options, ":gguf")))
        return CODE_DONE;
    heft_mix_info mix;
    if (heft_mix_find(&mix, str_of(method)))
        return say_usage("convert",
                         "--quantize %s takes no GLOB: it chooses by itself. "
                         "--tensor-type REGEX=TYPE names the type of a tensor",
                         method);
    heft_error err = { .status = HEFT_E_UNSUPPORTED,
                       .rule = "heft/quantised",
                       .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message,
             "%s files have no form for weights of the scheme %s. %s", heft_format_name(target),
             method,
             is_gguf ? "GGUF has mxfp4:gguf, nvfp4:gguf and mixes such as q4_k_m"
                     : "Write safetensors instead");
    return say_error(path, &err);
}

/* ---- the plan ---- */

static int say_no_memory(const char *path)
{
    return say_status(HEFT_E_NOMEM, path, "no memory to match tensor names");
}

static int say_refusal(const quantised_model *q, const char *path, heft_error *err)
{
    size_t used = strlen(err->message);
    bool has_schemes = heft_schemes_count(q->schemes);
    const char *again = has_schemes ? ". --requantize insists, --dequantize only decodes"
                                    : ". --requantize insists, --cast f16 only decodes";
    const char *way = !err->rule                              ? ""
                      : !strcmp(err->rule, "heft/requantise") ? again
                      : !strcmp(err->rule, "heft/not-finite")
                          ? ". --allow-nan stores the nearest numbers"
                          : "";
    snprintf(err->message + used, sizeof err->message - used, "%s", way);
    return say_error(path, err);
}

/* Warn of tensors that a pattern has chosen and the method cannot store: an error with --strict. */
static int say_left(const quantised_model *q, const session *s, const char *path)
{
    heft_quantise_item first = { .scheme = NULL };
    uint32_t left = 0;
    for (uint32_t i = 0; i < heft_quantisation_count(q->plan); i++) {
        heft_quantise_item item = heft_quantisation_at(q->plan, i);
        bool is_left = item.wish == HEFT_QUANTISE_ALWAYS && !item.scheme;
        first = is_left && !left++ ? item : first;
    }
    if (!left)
        return CODE_DONE;
    outbuf name;
    out_open(&name, -1);
    out_escaped(&name, first.name);
    say_lost(s->strict, path,
             "%u tensor%s that a pattern chooses cannot be stored in this scheme: '%s' (%s)%s",
             left, left == 1 ? "" : "s", out_cstr(&name), first.reason,
             left == 1 ? "" : " ...; --dry-run lists all");
    out_free(&name);
    return s->strict ? CODE_CANNOT : CODE_DONE;
}

/* Report patterns that no tensor matches. */
static int check_patterns(const rules_of_names *n, const session *s, const heft_file *f,
                          const char *path)
{
    unmatched u = { .f = f, .path = path, .strict = s->strict };
    for (size_t i = 0; i < n->count; i++)
        if (n->rules[i].glob)
            unmatched_check(&u, "quantize", n->rules[i].glob);
    return u.no_memory ? say_no_memory(path) : u.code;
}

/* Say what was done, and what programs will miss. GGUF needs no settings. */
static void say_plan(const quantised_model *q, const session *s, const char *path,
                     bool has_settings)
{
    uint64_t quantised = 0, before = 0, after = 0;
    for (uint32_t i = 0; i < heft_quantisation_count(q->plan); i++) {
        heft_quantise_item item = heft_quantisation_at(q->plan, i);
        quantised += item.scheme != NULL;
        before += item.bytes;
        after += item.new_bytes;
    }
    outbuf text;
    out_open(&text, -1);
    out_format(&text, "%llu of %u tensors are quantised: ", (unsigned long long)quantised,
               heft_quantisation_count(q->plan));
    out_size(&text, before);
    out_text(&text, " become ");
    out_size(&text, after);
    if (!s->quiet)
        say(MESSAGE_NOTE, path, "%s", out_cstr(&text));
    out_free(&text);
    if (!q->config && !has_settings)
        say(MESSAGE_WARNING, path,
            "no config.json is written with this output: programs need its "
            "\"quantization_config\" to load the weights. A file of safetensors gets one, unless "
            "it is written in shares");
}

static int refuse_nothing(const quantised_model *q, const char *path)
{
    for (uint32_t i = 0; i < heft_quantisation_count(q->plan); i++)
        if (heft_quantisation_at(q->plan, i).scheme)
            return CODE_DONE;
    return say_status(
        HEFT_E_UNSUPPORTED, path,
        "--quantize finds no weight to quantise: embeddings, heads, norms and vectors "
        "are left alone unless a pattern chooses them");
}

/* Find the path of the new config.json, and read that of the input. */
static int find_config(quantised_model *q, const char *in, quantise_output to)
{
    static const char name[] = QUANTISED_SETTINGS;
    char *old = NULL;
    struct stat info;
    if (!to.path)
        return CODE_DONE;
    const char *slash = strrchr(to.path, '/');
    size_t dir = slash ? (size_t)(slash - to.path) + 1 : 0;
    if (!strcmp(to.path + dir, name))
        return say_status(HEFT_E_ARGUMENT, to.path,
                          "is the name of the settings that are written beside the weights: name "
                          "OUT otherwise");
    q->config = malloc(dir + sizeof name);
    if (!q->config)
        return say_status(HEFT_E_NOMEM, in, "no memory for a path");
    memcpy(q->config, to.path, dir);
    memcpy(q->config + dir, name, sizeof name);
    int code = text_beside(&q->source_config, &old, in, name);
    bool has_old = !code && q->source_config.ptr && !heft_is_url(in);
    if (has_old && !stat(q->config, &info) && path_is_same(old, &info))
        code = say_status(HEFT_E_ARGUMENT, q->config,
                          "describes the input: write OUT to a folder of its own");
    else if (!code && path_exists(q->config) && !to.force && !to.dry_run)
        code = say_status(HEFT_E_ARGUMENT, q->config, "already exists: --force replaces it");
    free(old);
    return code;
}

int quantise(quantised_model *q, const quantise_options *o, const session *s, const heft_file *f,
             const char *path, quantise_output to)
{
    heft_error err;
    heft_quantise_options opt = HEFT_QUANTISE_OPTIONS_INIT;
    rules_of_names names = { .rules = NULL };
    int code = read_rules(&names, &opt.method, &o->args);
    if (!code)
        code = check_target(opt.method, path, to.format);
    if (!code)
        code = check_patterns(&names, s, f, path);
    if (!code)
        code = find_config(q, path, to);
    if (!code)
        code = quantised_open_to_convert(&q->schemes, f, path);
    opt.wish = wish;
    opt.ctx = &names;
    opt.schemes = q->schemes;
    opt.allow_nan = o->allow_nan;
    opt.requantise = o->requantise;
    opt.quality = o->quality;
    opt.plan_only = to.dry_run;
    opt.verify = !s->no_verify && !to.dry_run;
    if (!code && heft_quantisation_open(&q->plan, f, &opt, &err))
        code = say_refusal(q, path, &err);
    if (!code && names.no_memory)
        code = say_no_memory(path);
    if (!code)
        code = refuse_nothing(q, path);
    if (!code)
        code = say_left(q, s, path);
    if (!code)
        say_plan(q, s, path, !strcmp(heft_format_name(to.format), "gguf"));
    release_rules(&names);
    return code;
}

void quantised_release(quantised_model *q)
{
    heft_quantisation_close(q->plan);
    heft_schemes_close(q->schemes);
    text_free(q->source_config);
    free(q->config);
    *q = (quantised_model){ .plan = NULL };
}

const heft_file *quantised_file(const quantised_model *q)
{
    return heft_quantisation_file(q->plan);
}

int quantise_open_quality(heft_quality **out, const session *s, const char *path)
{
    heft_error err;
    return heft_quality_open(out, &s->host, &err) ? say_error(path, &err) : CODE_DONE;
}

void quantise_close_quality(heft_quality *q)
{
    heft_quality_close(q);
}

void quantise_each_method(void (*fn)(void *ctx, const char *name, const char *summary), void *ctx)
{
    heft_quantise_method method;
    heft_mix_info mix;
    for (uint32_t i = 0; (method = heft_quantise_method_at(i)).name; i++)
        fn(ctx, method.name, method.summary);
    for (uint32_t i = 0; (mix = heft_mix_info_at(i)).name; i++)
        if (!mix.refusal)
            fn(ctx, mix.name, "a mix of GGUF");
}

const char *quantise_mix_name(uint64_t file_type)
{
    heft_mix_info info;
    for (uint32_t i = 0; (info = heft_mix_info_at(i)).name; i++)
        if (info.file_type == file_type)
            return info.name;
    return NULL;
}

/* ---- the table of a dry run ---- */

static change change_at(void *ctx, uint32_t i)
{
    heft_quantise_item item = heft_quantisation_at(ctx, i);
    const heft_dtype_info *type = heft_dtype_get(item.from);
    const char *from = type ? type->name : "-";
    return (change){ .name = item.name,
                     .from = from,
                     .to = item.scheme ? item.scheme : from,
                     .bytes = item.bytes,
                     .new_bytes = item.new_bytes,
                     .note = item.reason };
}

static int print_table(const quantised_model *q, const session *s)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    change_table_print(&o, s, heft_quantisation_count(q->plan), change_at, q->plan);
    bool ok = out_flush(&o); /* the size of the file follows */
    out_free(&o);
    return ok ? CODE_DONE : CODE_SYSTEM;
}

/* ---- config.json ---- */

static int write_config(const quantised_model *q, const session *s, quantise_output to)
{
    heft_error err;
    heft_sink *sink;
    heft_blob text;
    if (heft_quantisation_config(&text, q->plan, q->source_config, &err))
        return say_error(q->config, &err);
    heft_status st = sink_open(&sink, q->config, to.force, to.no_sync, NULL, &err);
    if (!st)
        st = sink_write_whole(sink, text.data, text.size, &err);
    heft_blob_free(&text);
    if (st)
        return say_error(q->config, &err);
    if (!s->quiet)
        say(MESSAGE_NOTE, q->config, "%s",
            q->source_config.len
                ? "that of the input, with \"quantization_config\""
                : "has \"quantization_config\" only: the input has no config.json");
    return CODE_DONE;
}

int quantised_end(const quantised_model *q, const session *s, quantise_output to)
{
    if (to.dry_run)
        return print_table(q, s);
    return q->config ? write_config(q, s, to) : CODE_DONE;
}
