
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/job.h"
#include "models/model.h"
#include "models/quantised_model.h"
#include "process/textfile.h"
#include "text/ecma_regex.h"

/* ---- REGEX=TYPE and GLOB=TYPE ---- */

typedef struct type_rule {
    char *pattern; /* NULL: no rule */
    regex_t re;    /* of the pattern, if is_regex is set; else it is a glob */
    bool is_regex;
    heft_dtype to; /* HEFT_UNTYPED: the tensor keeps its type */
} type_rule;

static int read_type(heft_dtype *to, const char *text)
{
    *to = heft_dtype_find(str_of(text));
    return *to ? CODE_DONE
               : say_usage("convert", "unknown element type '%s': `heft formats --types` lists all",
                           text);
}

static int read_regex(type_rule *r, const char *arg)
{
    char why[200];
    const char *equals = strrchr(arg, '=');
    if (!equals)
        return say_usage("convert", "--tensor-type '%s' is not REGEX=TYPE", arg);
    r->pattern = strndup(arg, (size_t)(equals - arg));
    char *posix = r->pattern ? ecma_to_posix(r->pattern) : NULL;
    int failed = posix ? regcomp(&r->re, posix, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
    r->is_regex = !failed;
    free(posix);
    if (failed == REG_ESPACE)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for '%s'", arg);
    if (!failed)
        return read_type(&r->to, equals + 1);
    regerror(failed, &r->re, why, sizeof why);
    return say_usage("convert", "--tensor-type '%s': %s", arg, why);
}

static int read_glob(type_rule *r, const char *arg)
{
    const char *equals = strrchr(arg, '=');
    r->pattern = strndup(arg, (size_t)(equals - arg));
    if (!r->pattern)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for '%s'", arg);
    return strcmp(equals + 1, "none") != 0 ? read_type(&r->to, equals + 1) : CODE_DONE;
}

static size_t rule_count(const job *j)
{
    return j->mix.types.count + j->quantise.args.count;
}

/* Read the rules of --tensor-type, and then the patterns of --quantize. */
static int read_rules(job *j)
{
    job_mix *m = &j->mix;
    size_t n = 0;
    int code = CODE_DONE;
    m->rules = calloc(rule_count(j) + 1, sizeof *m->rules);
    if (!m->rules)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    for (size_t i = 0; i < m->types.count && !code; i++)
        code = read_regex(&m->rules[n++], m->types.item[i]);
    for (size_t i = 0; i < j->quantise.args.count && !code; i++)
        if (strchr(j->quantise.args.item[i], '='))
            code = read_glob(&m->rules[n++], j->quantise.args.item[i]);
    return code;
}

static bool is_match(bool *no_memory, const type_rule *r, heft_str name)
{
    if (!r->is_regex)
        return r->pattern && name_matches(no_memory, name, r->pattern);
    char *text = strndup(name.ptr, name.len);
    bool matches = text && !regexec(&r->re, text, 0, NULL, 0);
    *no_memory = *no_memory || !text;
    free(text);
    return matches;
}

/* A callback of heft_mix_open(), whose context is that of the rules of the job. */
static heft_dtype type_of(void *ctx, heft_str name, heft_dtype from)
{
    rules *r = ctx;
    const job *j = r->job;
    for (size_t i = 0; i < rule_count(j); i++)
        if (is_match(&r->no_memory, &j->mix.rules[i], name))
            return j->mix.rules[i].to ? j->mix.rules[i].to : from;
    return HEFT_UNTYPED;
}

/* ---- before the input is open ---- */

/* Return the first argument of --quantize that is no pattern and differs from `but`, or NULL. */
static const char *find_name(const job *j, const char *but)
{
    for (size_t i = 0; i < j->quantise.args.count; i++) {
        const char *arg = j->quantise.args.item[i];
        if (!strchr(arg, '=') && (!but || strcmp(arg, but) != 0))
            return arg;
    }
    return NULL;
}

static bool is_method(const char *name)
{
    size_t len = strcspn(name, ":");
    if (len == 4 && !memcmp(name, "none", len))
        return true;
    for (uint32_t i = 0; heft_quantise_method_at(i).name; i++)
        if (strlen(heft_quantise_method_at(i).name) == len &&
            !memcmp(heft_quantise_method_at(i).name, name, len))
            return true;
    return false;
}

static int say_unknown(const char *name)
{
    outbuf text;
    out_open(&text, -1);
    for (uint32_t i = 0; heft_quantise_method_at(i).name; i++)
        out_format(&text, "%s%s", i ? ", " : "", heft_quantise_method_at(i).name);
    out_text(&text, "; mixes of GGUF are ");
    for (uint32_t i = 0; heft_mix_info_at(i).name; i++)
        if (!heft_mix_info_at(i).refusal)
            out_format(&text, "%s%s", i ? ", " : "", heft_mix_info_at(i).name);
    int code = say_usage("convert", "--quantize knows no '%s': schemes are %s", name,
                         out_cstr(&text));
    out_free(&text);
    return code;
}

int job_mix_prepare(job *j)
{
    job_mix *m = &j->mix;
    const char *name = find_name(j, NULL), *other = name ? find_name(j, name) : NULL;
    bool has_options = m->types.count || m->embedding || m->output || m->imatrix || m->pure ||
                       m->keeps_output;
    bool is_mix = name && heft_mix_find(&m->info, str_of(name));
    if (name && !is_mix && !is_method(name))
        return say_unknown(name);
    if (!is_mix)
        return has_options ? say_usage("convert",
                                       "--tensor-type, --pure, --imatrix and the types of single "
                                       "tensors need a mix of GGUF: --quantize q4_k_m")
                           : CODE_DONE;
    if (other)
        return say_usage("convert", "--quantize takes one method: %s or %s", name, other);
    int code = read_rules(j);
    heft_dtype type;
    if (!code && m->embedding)
        code = read_type(&type, m->embedding);
    if (!code && m->output)
        code = read_type(&type, m->output);
    return code;
}

/* ---- the importance ---- */

static bool is_gguf(heft_str bytes)
{
    return bytes.len >= 4 && !memcmp(bytes.ptr, "GGUF", 4);
}

static int say_trailing(const job *j)
{
    uint64_t bytes = heft_importance_trailing(j->mix.importance);
    if (bytes)
        say_lost(j->session->strict, j->mix.imatrix,
                 "%llu byte%s the end of the imatrix and mean%s nothing", (unsigned long long)bytes,
                 bytes == 1 ? " follows" : "s follow", bytes == 1 ? "s" : "");
    return bytes && j->session->strict ? CODE_CANNOT : CODE_DONE;
}

static int read_importance(job *j)
{
    heft_error err;
    heft_str bytes;
    heft_file *f;
    const char *path = j->mix.imatrix;
    int code = text_read(&bytes, path, TEXT_NAMED);
    if (code)
        return code;
    heft_status st;
    if (is_gguf(bytes)) {
        st = model_try_open(j->session, &f, path, &err);
        if (!st)
            st = heft_importance_open(&j->mix.importance, f, &err);
        heft_file_close(f);
    } else {
        st = heft_importance_read(&j->mix.importance, bytes.ptr, bytes.len, NULL, &err);
    }
    text_free(bytes);
    return st ? say_error(path, &err) : say_trailing(j);
}

/* ---- the mix ---- */

/* Return how many tensors the rules have chosen by their names in ggml. */
static uint32_t count_known_names(const job *j, const heft_file *f)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_str name = heft_mix_at(j->mix.mix, i).name;
        count += name.len > 4 && !memcmp(name.ptr, "blk.", 4);
    }
    return count;
}

static void say_fallbacks(job *j, const heft_file *f)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_mix_item item = rules_mix_item(&j->rules, i);
        if (!item.instead_of)
            continue;
        outbuf text;
        out_open(&text, -1);
        out_text(&text, "tensor ");
        out_escaped(&text, item.name);
        out_format(&text, ": its rows do not fill blocks of %s and become %s",
                   heft_dtype_get(item.instead_of)->name, heft_dtype_get(item.to)->name);
        say(MESSAGE_NOTE, j->source, "%s", out_cstr(&text));
        out_free(&text);
    }
}

/* A float is quantised only if the mix is one of floats. */
static bool is_quantised(const job *j, const heft_mix_item *item)
{
    return !item->is_left_out && item->to != item->from &&
           (item->to == j->mix.info.dtype || heft_dtype_get(item->to)->kind == HEFT_DTYPE_BLOCK);
}

static void say_choice(job *j, const heft_file *f)
{
    uint32_t count = heft_tensor_count(f), quantised = 0, measured = 0;
    uint64_t before = 0, after = 0;
    for (uint32_t i = 0; i < count; i++) {
        heft_mix_item item = rules_mix_item(&j->rules, i);
        quantised += is_quantised(j, &item);
        measured += is_quantised(j, &item) && item.importance;
        before += item.is_left_out ? 0 : item.bytes;
        after += item.is_left_out ? 0 : item.new_bytes;
    }
    outbuf text;
    out_open(&text, -1);
    out_format(&text, "%s: %u of %u tensors are quantised: ", j->mix.info.name, quantised, count);
    out_size(&text, before);
    out_text(&text, " become ");
    out_size(&text, after);
    say(MESSAGE_NOTE, j->source, "%s", out_cstr(&text));
    out_free(&text);
    say_fallbacks(j, f);
    if (j->mix.importance)
        say(MESSAGE_NOTE, j->source, "%u of %u quantised tensors use the imatrix", measured,
            quantised);
}

static int open_mix(job *j, const heft_file *f)
{
    heft_error err;
    job_mix *m = &j->mix;
    heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
    o.mix = m->info.name;
    o.keep = j->convert.keep;
    o.rename = j->convert.rename;
    o.type = m->types.count || j->quantise.args.count > 1 ? type_of : NULL;
    o.ctx = &j->rules;
    o.set = j->rules.set.values;
    o.set_count = j->rules.set.value_count;
    o.importance = m->importance;
    o.importance_file = str_of(m->imatrix ? m->imatrix : "");
    o.output_type = m->output ? heft_dtype_find(str_of(m->output)) : HEFT_UNTYPED;
    o.embedding_type = m->embedding ? heft_dtype_find(str_of(m->embedding)) : HEFT_UNTYPED;
    o.pure = m->pure;
    o.keeps_output = m->keeps_output;
    o.requantise = j->quantise.requantise;
    heft_status st = heft_mix_open(&m->mix, f, &o, &err);
    if (st && j->rules.no_memory)
        return say_no_memory_to_match(j->source);
    return st ? say_error(job_explain(j, &err), &err) : CODE_DONE;
}

/* Say that all tensors that a rule matches keep their type; `reason` is that of one. */
static void say_useless(unmatched *u, const type_rule *r, const char *reason)
{
    say_lost(u->strict, u->path, "--%s '%s' changes nothing: what it matches keeps its type (%s)",
             r->is_regex ? "tensor-type" : "quantize", r->pattern, reason);
    u->code = u->strict ? CODE_CANNOT : u->code;
}

static void check_rule(unmatched *u, const job *j, const type_rule *r)
{
    const char *reason = NULL;
    for (uint32_t t = 0; t < heft_tensor_count(u->f) && !u->no_memory; t++) {
        heft_mix_item item = heft_mix_at(j->mix.mix, t);
        if (!is_match(&u->no_memory, r, item.name))
            continue;
        if (!item.reason || !r->to)
            return;
        reason = item.reason;
    }
    if (u->no_memory)
        return;
    if (reason)
        say_useless(u, r, reason);
    else
        unmatched_say(u, r->is_regex ? "tensor-type" : "quantize", r->pattern);
}

/* Report the rules that match no tensor by its name in the output, or only such that stay. */
static int check_rules(job *j, const heft_file *f)
{
    unmatched u = { .f = f, .path = j->source, .strict = j->session->strict };
    for (size_t i = 0; i < rule_count(j) && !u.no_memory; i++)
        if (j->mix.rules[i].pattern)
            check_rule(&u, j, &j->mix.rules[i]);
    return u.no_memory ? say_no_memory_to_match(j->source) : u.code;
}

/* Report an imatrix that has no number for the model, and casts that leave nothing of the mix. */
static int check_effect(job *j, const heft_file *f)
{
    uint32_t measured = 0, chosen = 0, quantised = 0;
    bool strict = j->session->strict;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_mix_item own = heft_mix_at(j->mix.mix, i), item = rules_mix_item(&j->rules, i);
        measured += !own.is_left_out && own.importance;
        chosen += is_quantised(j, &own);
        quantised += is_quantised(j, &item);
    }
    bool is_unused = j->mix.importance && !measured, is_undone = chosen && !quantised;
    if (is_unused)
        say_lost(strict, j->source,
                 "the imatrix has no numbers for any weight: it is of another model");
    if (is_undone)
        say_lost(strict, j->source, "--cast leaves no tensor to %s, which general.file_type states",
                 j->mix.info.name);
    return strict && (is_unused || is_undone) ? CODE_CANNOT : CODE_DONE;
}

/* Refuse to measure a mix that quantises nothing. */
static int check_quality(job *j, const heft_file *f)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_mix_item item = rules_mix_item(&j->rules, i);
        if (is_quantised(j, &item) && heft_dtype_get(item.to)->kind == HEFT_DTYPE_BLOCK)
            return CODE_DONE;
    }
    return say_usage("convert",
                     "--verify-quality has nothing to measure: %s quantises no tensor "
                     "of '%s'",
                     j->mix.info.name, j->source);
}

int job_mix_choose(job *j, const heft_file *f)
{
    size_t count;
    job_mix *m = &j->mix;
    if (!m->info.name)
        return CODE_DONE;
    int code = m->imatrix ? read_importance(j) : CODE_DONE;
    if (!code)
        code = open_mix(j, f);
    j->rules.mix = m->mix;
    j->rules.mixed = f;
    if (!code)
        code = check_rules(j, f);
    if (!code)
        code = check_effect(j, f);
    if (!code && j->verify_quality)
        code = check_quality(j, f);
    if (code)
        return code;
    const heft_value *values = heft_mix_metadata(&count, m->mix);
    if (!set_options_add(&j->rules.set, values, count))
        return say_status(HEFT_E_NOMEM, j->source, "no memory for metadata");
    bool has_rules = heft_dtype_get(m->info.dtype)->kind == HEFT_DTYPE_BLOCK && !m->pure &&
                     m->info.dtype != HEFT_Q8_0;
    if (has_rules && !count_known_names(j, f))
        say(MESSAGE_WARNING, j->source,
            "no tensor has a name of ggml (\"blk.0.attn_v.weight\"): the rules of %s know none of "
            "them, and all weights become %s. --rename gives the names",
            m->info.name, heft_dtype_get(m->info.dtype)->name);
    if (!j->session->quiet)
        say_choice(j, f);
    return CODE_DONE;
}

void job_mix_release(job *j)
{
    job_mix *m = &j->mix;
    for (size_t i = 0; m->rules && i < rule_count(j); i++) {
        if (m->rules[i].is_regex)
            regfree(&m->rules[i].re);
        free(m->rules[i].pattern);
    }
    free(m->rules);
    heft_mix_close(m->mix);
    heft_importance_close(m->importance);
}

/* ---- the table of a dry run ---- */

static change change_at(void *ctx, uint32_t i)
{
    heft_mix_item item = rules_mix_item(ctx, i);
    const heft_dtype_info *wanted = heft_dtype_get(item.instead_of);
    return (change){ .name = item.name,
                     .from = dtype_name(item.from),
                     .to = dtype_name(item.to),
                     .bytes = item.bytes,
                     .new_bytes = item.new_bytes,
                     .note = item.is_left_out  ? "left out"
                             : item.reason     ? item.reason
                             : item.importance ? "imatrix"
                                               : NULL,
                     .instead_of = wanted && !item.is_left_out ? wanted->name : NULL };
}

void job_mix_print(outbuf *o, job *j, const heft_file *f)
{
    if (j->mix.mix)
        change_table_print(o, j->session, heft_tensor_count(f), change_at, &j->rules);
}
