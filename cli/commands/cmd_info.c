/* cmd_info.c - `heft info`: format, counts, metadata, parts and checksums of a file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/scheme.h>

#include "models/burn.h"
#include "models/companions.h"
#include "models/module_tree.h"
#include "models/pipeline.h"
#include "models/quantised.h"
#include "options/command.h"
#include "process/textfile.h"
#include "text/number_text.h"

/* What is known of an open file. */
typedef struct facts {
    heft_file *f;
    const char *path;
    heft_vocab *vocab; /* NULL: none */
    uint32_t *tied;    /* numbers of tensors in the view */
    model_sums sums;
    model_kind kind;
    pipeline pipeline;
    model_view view;
    heft_schemes *schemes; /* also with --raw-tensors */
} facts;

/* Return the sums of all tensors, tied ones counted each. */
static totals sum_tensors(const model_view *v)
{
    totals sum = { 0, 0, 0 };
    for (uint32_t i = 0; i < heft_tensor_count(v->f); i++)
        totals_add(&sum, v, NULL, i);
    return sum;
}

/* Return the decoded bytes of all stored tensors. */
static uint64_t count_bytes(const heft_file *f)
{
    model_view stored = model_view_of_stored(f);
    return sum_tensors(&stored).bytes;
}

/* ---- text ---- */

static void label(outbuf *o, const char *text)
{
    out_format(o, "%-11s ", text);
}

static void put_bytes(outbuf *o, const char *name, uint64_t bytes)
{
    label(o, name);
    out_size(o, bytes);
    if (bytes >= 1024)
        out_format(o, " (%llu bytes)", (unsigned long long)bytes);
    out_char(o, '\n');
}

static void put_format(outbuf *o, const heft_format *format, heft_str version)
{
    const char *name = heft_format_name(format), *title = heft_format_title(format);
    label(o, "Format");
    out_text(o, name);
    if (version.len) {
        out_char(o, ' ');
        out_escaped(o, version);
    }
    if (strcmp(name, title) != 0)
        out_format(o, " (%s)", title);
    out_char(o, '\n');
}

static void put_types(outbuf *o, const model_sums *sums)
{
    const char *separator = " (";
    for (uint32_t i = 0; i < sums->type_count; i++) {
        out_format(o, "%s%llu ", separator, (unsigned long long)sums->types[i].sum.tensors);
        model_sums_put_type(o, sums, i);
        separator = ", ";
    }
    out_text(o, *separator == ',' ? ")\n" : "\n");
}

/* Return the bytes of a long text that fit on a line after the label and the key. */
static size_t shown_bytes(heft_str map, heft_str key)
{
    enum { MOST = 200, LEAST = 20, LABEL = 12, LENGTH = 22 }; /* LENGTH: of "... (N bytes)" */
    size_t used = LABEL + LENGTH + map.len + key.len, columns = term_columns(STDOUT_FILENO);
    if (!term_is_stdout())
        return MOST;
    return columns > used + LEAST ? columns - used : LEAST;
}

static void put_entry(outbuf *o, const char *name, heft_str map, const heft_value *v)
{
    label(o, name);
    if (map.len) {
        out_name(o, map);
        out_char(o, '.');
    }
    out_name(o, v->key);
    out_text(o, " = ");
    out_value(o, v, shown_bytes(map, v->key));
    out_char(o, '\n');
}

/* List Burn's scalars one by one, with the keys that --set and --unset accept. */
static void put_metadata(outbuf *o, const heft_file *f, uint32_t most)
{
    uint32_t keys = 0;
    for (uint32_t i = 0, k, end; i < heft_meta_count(f); i = end) {
        heft_value v = heft_meta_at(f, i), child;
        end = heft_meta_next(f, i);
        if (!burn_is_scalars(&v) && keys++ < most)
            put_entry(o, keys == 1 ? "Metadata" : "", (heft_str){ NULL, 0 }, &v);
        if (!burn_is_scalars(&v))
            continue;
        for (k = i + 1; k < end; k = heft_meta_next(f, k)) {
            child = heft_meta_at(f, k);
            if (keys++ < most)
                put_entry(o, keys == 1 ? "Metadata" : "", v.key, &child);
        }
    }
    if (keys > most) {
        label(o, "");
        out_format(o, "... and %u more; -v or --json shows all\n", keys - most);
    }
}

static void put_record(outbuf *o, const heft_file *f)
{
    uint64_t parameters;
    burn_record record = burn_record_of(f, &parameters);
    if (record == BURN_MODEL)
        return;
    label(o, "Record");
    if (record == BURN_OPTIMIZER)
        out_format(o, "optimizer, %llu %s\n", (unsigned long long)parameters,
                   parameters == 1 ? "parameter" : "parameters");
    else
        out_text(o, "learning rate scheduler\n");
}

static void put_parts(outbuf *o, const heft_file *f)
{
    uint32_t first, parts = heft_file_parts(f, &first);
    for (uint32_t i = 0; i < parts; i++) {
        heft_part p = heft_part_at(f, first + i);
        label(o, i ? "" : "Parts");
        out_name(o, p.role);
        out_text(o, ", ");
        out_size(o, p.length);
        out_format(o, ", %s, at byte %llu\n", encoding_name(p.encoding),
                   (unsigned long long)p.offset);
    }
}

static const char *shard_state(heft_status st)
{
    return st == HEFT_OK ? "present" : st == HEFT_E_FORMAT ? "another file" : "missing";
}

static void put_shards(outbuf *o, const heft_file *f)
{
    for (uint32_t i = 0; i < heft_shard_file_count(f); i++) {
        heft_shard_file s = heft_shard_file_at(f, i);
        if (s.is_assembled)
            continue;
        label(o, i ? "" : pipeline_is(f) ? "Files" : "Shards");
        out_name(o, s.name);
        out_text(o, ", ");
        if (s.size != HEFT_UNKNOWN_LENGTH) {
            out_size(o, s.size);
            out_text(o, ", ");
        }
        out_format(o, "%s\n", shard_state(s.status));
    }
}

typedef struct checksum_sum { /* all checksums of a rule */
    heft_checksum first;
    uint64_t count, bytes;
} checksum_sum;

enum { CHECKSUM_RULES = 16 }; /* more than a format has */

/* Sum the checksums by rule and algorithm. Return the number of sums. */
static size_t sum_checksums(checksum_sum sums[CHECKSUM_RULES], const heft_file *f)
{
    heft_checksum c;
    size_t count = 0;
    for (uint32_t i = 0, n = heft_checksum_count(f); i < n; i++) {
        c = heft_checksum_at(f, i);
        size_t k = 0;
        while (k < count && (strcmp(sums[k].first.rule, c.rule) != 0 ||
                             strcmp(sums[k].first.algorithm, c.algorithm) != 0))
            k++;
        if (k == CHECKSUM_RULES)
            continue;
        if (k == count)
            sums[count++] = (checksum_sum){ c, 0, 0 };
        sums[k].count++;
        sums[k].bytes += c.range.length;
    }
    return count;
}

static void put_checksum(outbuf *o, const heft_file *f, const heft_checksum *c)
{
    out_format(o, "%s, %s, %llu bytes from %llu", c->rule, c->algorithm,
               (unsigned long long)c->range.length, (unsigned long long)c->range.offset);
    if (c->shard) {
        out_text(o, " of ");
        out_name(o, heft_shard_file_at(f, c->shard - 1).name);
    }
    out_char(o, '\n');
}

/* An archive has a checksum for each member: print the sum of more than a few. */
static void put_checksums(outbuf *o, const heft_file *f)
{
    enum { FEW = 4 };
    checksum_sum sums[CHECKSUM_RULES];
    heft_checksum c;
    size_t rules = sum_checksums(sums, f), lines = 0;
    for (size_t k = 0; k < rules; k++) {
        const checksum_sum *s = &sums[k];
        if (s->count > FEW) {
            label(o, lines++ ? "" : "Checksums");
            out_format(o, "%s, %s, %llu checksums of %llu bytes\n", s->first.rule,
                       s->first.algorithm, (unsigned long long)s->count,
                       (unsigned long long)s->bytes);
        }
        for (uint32_t i = 0, n = heft_checksum_count(f); s->count <= FEW && i < n; i++) {
            c = heft_checksum_at(f, i);
            if (!strcmp(c.rule, s->first.rule) && !strcmp(c.algorithm, s->first.algorithm)) {
                label(o, lines++ ? "" : "Checksums");
                put_checksum(o, f, &c);
            }
        }
    }
    if (!lines) {
        label(o, "Checksums");
        out_text(o, "none\n");
    }
}

static void put_vocabulary(outbuf *o, const heft_vocab *v)
{
    if (!v)
        return;
    label(o, "Vocabulary");
    out_format(o, "%u tokens", heft_vocab_count(v));
    for (int i = 0; i < HEFT_SPECIALS; i++)
        if (heft_vocab_special(v, (heft_special)i) != HEFT_NONE)
            out_format(o, ", %s %u", heft_vocab_special_name((heft_special)i),
                       heft_vocab_special(v, (heft_special)i));
    out_char(o, '\n');
}

/* List tensors that share all bytes with an earlier tensor. */
static void put_tied(outbuf *o, const heft_file *f, const uint32_t *tied)
{
    enum { MAX_SHOWN = 8 };
    uint32_t shown = 0, all = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        if (tied[i] == i)
            continue;
        bytes = add_length(bytes, heft_tensor_bytes(f, i));
        if (all++ >= MAX_SHOWN)
            continue;
        label(o, shown++ ? "" : "Tied");
        out_name(o, heft_tensor_at(f, i).name);
        out_text(o, " = ");
        out_name(o, heft_tensor_at(f, tied[i]).name);
        out_char(o, '\n');
    }
    if (!all)
        return;
    label(o, "");
    if (all > shown)
        out_format(o, "... and %u more, ", all - shown);
    out_size(o, bytes);
    out_text(o, " stored only once\n");
}

static void put_generator(outbuf *o, const heft_file *f)
{
    if (!heft_file_generator(f).len)
        return;
    label(o, "Generator");
    out_name(o, heft_file_generator(f));
    out_char(o, '\n');
}

static void print_text(outbuf *o, const session *s, const facts *v)
{
    enum { SHOWN_KEYS = 50 };
    const heft_file *f = v->f;
    label(o, "File");
    out_message(o, stdin_label(v->path));
    out_char(o, '\n');
    put_format(o, heft_file_format(f), heft_file_version(f));
    put_generator(o, f);
    put_bytes(o, "Size", model_size(f));
    label(o, "Tensors");
    out_u64(o, heft_tensor_count(v->view.f));
    put_types(o, &v->sums);
    label(o, "Elements");
    out_format(o, "%llu\n", (unsigned long long)sum_tensors(&v->view).parameters);
    put_bytes(o, "Data", count_bytes(f));
    model_kind_print(o, &v->kind);
    quantised_print(o, v->schemes, v->view.decoded);
    pipeline_print(o, &v->pipeline, f);
    model_sums_print(o, &v->sums);
    put_tied(o, v->view.f, v->tied);
    label(o, "Alignment");
    out_format(o, "%llu\n", (unsigned long long)heft_file_alignment(f));
    put_record(o, f);
    put_metadata(o, f, s->verbose ? UINT32_MAX : SHOWN_KEYS);
    put_vocabulary(o, v->vocab);
    put_parts(o, f);
    put_shards(o, f);
    put_checksums(o, f);
    if (s->verbose)
        put_bytes(o, "Index", heft_file_memory(f));
}

/* ---- JSON ---- */

static void json_checksums(json *j, const heft_file *f)
{
    heft_checksum c;
    json_member_begin(j, "checksums", '[');
    for (uint32_t i = 0, n = heft_checksum_count(f); i < n; i++) {
        c = heft_checksum_at(f, i);
        json_begin(j, '{');
        json_member_str(j, "rule", str_of(c.rule));
        json_member_str(j, "algorithm", str_of(c.algorithm));
        json_member_u64(j, "offset", c.range.offset);
        json_member_u64(j, "length", c.range.length);
        if (c.shard)
            json_member_str(j, "shard", heft_shard_file_at(f, c.shard - 1).name);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void json_vocabulary(json *j, const heft_vocab *v)
{
    json_member_begin(j, "vocabulary", '{');
    json_member_u64(j, "tokens", heft_vocab_count(v));
    json_member_begin(j, "special", '{');
    for (int i = 0; i < HEFT_SPECIALS; i++) {
        uint32_t id = heft_vocab_special(v, (heft_special)i);
        json_member_length(j, heft_vocab_special_name((heft_special)i),
                           id == HEFT_NONE ? HEFT_UNKNOWN_LENGTH : id);
    }
    json_end(j, '}');
    json_end(j, '}');
}

static void json_shards(json *j, const heft_file *f)
{
    json_member_begin(j, "shards", '[');
    for (uint32_t i = 0; i < heft_shard_file_count(f); i++) {
        heft_shard_file s = heft_shard_file_at(f, i);
        if (s.is_assembled)
            continue;
        json_begin(j, '{');
        json_member_str(j, "name", s.name);
        if (s.size != HEFT_UNKNOWN_LENGTH)
            json_member_u64(j, "size", s.size);
        json_member_str(j, "state", str_of(shard_state(s.status)));
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void json_tied(json *j, const heft_file *f, const uint32_t *tied)
{
    bool any = false;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        if (tied[i] == i)
            continue;
        if (!any)
            json_member_begin(j, "tied", '[');
        any = true;
        json_begin(j, '{');
        json_member_str(j, "name", heft_tensor_at(f, i).name);
        json_member_str(j, "with", heft_tensor_at(f, tied[i]).name);
        json_member_length(j, "bytes", heft_tensor_bytes(f, i));
        json_end(j, '}');
    }
    if (any)
        json_end(j, ']');
}

static void json_record(json *j, const heft_file *f)
{
    uint64_t parameters;
    burn_record record = burn_record_of(f, &parameters);
    if (record == BURN_MODEL)
        return;
    json_member_begin(j, "record", '{');
    json_member_str(j, "of", str_of(record == BURN_OPTIMIZER ? "optimizer" : "scheduler"));
    if (record == BURN_OPTIMIZER)
        json_member_u64(j, "parameters", parameters);
    json_end(j, '}');
}

static void print_json(json *j, const session *s, const facts *v)
{
    const heft_file *f = v->f;
    json_begin(j, '{');
    json_file_head(j, f, v->path);
    if (heft_file_generator(f).len)
        json_member_str(j, "generator", heft_file_generator(f));
    model_kind_json(j, &v->kind);
    quantised_json(j, v->schemes, v->view.decoded);
    pipeline_json(j, &v->pipeline, f);
    json_member_u64(j, "tensors", heft_tensor_count(v->view.f));
    json_member_u64(j, "bytes", count_bytes(f));
    model_sums_json(j, &v->sums);
    json_tied(j, v->view.f, v->tied);
    json_member_u64(j, "alignment", heft_file_alignment(f));
    json_record(j, f);
    json_metadata(j, f);
    json_model_parts(j, f);
    if (heft_shard_file_count(f))
        json_shards(j, f);
    json_checksums(j, f);
    if (v->vocab)
        json_vocabulary(j, v->vocab);
    if (s->verbose)
        json_member_u64(j, "memory", heft_file_memory(f));
    json_end(j, '}');
}

/* ---- the command ---- */

static int facts_open(facts *v, const session *s, const char *path)
{
    *v = (facts){ .path = path };
    int code = model_open(s, &v->f, path);
    if (!code)
        code = vocab_find(&v->vocab, v->f, path);
    if (!code)
        code = model_kind_find(&v->kind, v->f, path);
    if (!code)
        code = pipeline_read(&v->pipeline, v->f, path);
    if (!code)
        code = model_view_open(&v->view, s, v->f, path, VIEW_TO_LIST);
    if (!code && s->raw_tensors)
        code = quantised_open(&v->schemes, v->f, path);
    if (code)
        return code;
    v->schemes = v->schemes ? v->schemes : v->view.schemes;
    v->tied = model_find_tied(v->view.f, path);
    return v->tied && model_sums_open(&v->sums, &v->view, path, v->tied) ? CODE_DONE : CODE_SYSTEM;
}

static void facts_close(facts *v)
{
    model_sums_close(&v->sums);
    pipeline_free(&v->pipeline);
    if (v->schemes != v->view.schemes)
        heft_schemes_close(v->schemes);
    model_view_close(&v->view);
    free(v->tied);
    heft_vocab_close(v->vocab);
    heft_file_close(v->f);
}

/* Print the facts of every file, with a line between. A file that cannot be opened does not hide
 * the others. Return the highest exit code. */
static int inform(const session *s, bool as_json)
{
    const opt_args *args = &s->args;
    outbuf o;
    int worst = CODE_DONE;
    uint32_t printed = 0;
    bool is_list = as_json && args->count > 1;
    out_open(&o, STDOUT_FILENO);
    json j = { &o, false };
    if (is_list)
        json_begin(&j, '[');
    for (int i = 0; i < args->count; i++) {
        facts v;
        int code = facts_open(&v, s, args->item[i]);
        if (!code && as_json)
            print_json(&j, s, &v);
        else if (!code && printed++)
            out_char(&o, '\n');
        if (!code && !as_json)
            print_text(&o, s, &v);
        if (!code)
            code = model_check_unchanged(v.f, v.path);
        facts_close(&v);
        worst = code > worst ? code : worst;
    }
    if (is_list)
        json_end(&j, ']');
    if (is_list || (as_json && !worst))
        out_char(&o, '\n');
    return out_end(&o, worst);
}

typedef struct request {
    bool as_json;
} request;

static const opt options[] = {
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL,
      "print one JSON document; a list for several files" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL,
      "also print the memory used by the index, and all metadata" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    const request *r = ctx;
    return inform(s, r->as_json);
}

const command command_info = {
    .name = "info",
    .args = "FILE...",
    .summary = "show format, version, counts, metadata and checksums",
    .description =
        "Shows what a file contains: format and version, kind of model, parameters and bytes\n"
        "by element type and module, alignment, metadata, parts of the file itself, and\n"
        "checksums.",
    .example = "heft info model.bpk",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED,
    .operands = { 0, -1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
