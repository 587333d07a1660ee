/* cmd_sbom.c - `heft sbom`: a bill of materials of a model, in CycloneDX 1.6.
 *
 * The document depends on the files alone: no clock, and no random serial number.  A file is
 * written whole or not at all, so the document is in memory before the output is opened. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/write.h>

#include "models/inputs.h"
#include "models/model_card.h"
#include "models/model_files.h"
#include "models/module_tree.h"
#include "models/pipeline.h"
#include "options/command.h"
#include "process/progress_line.h"
#include "process/sinkwatch.h"
#include "process/textfile.h"
#include "text/outbuf.h"

typedef struct bill {
    const session *session;
    const char *path, *out; /* out: NULL or "-" for stdout */
    bool force, no_sync;
    heft_file *f;
    model_kind kind;
    model_facts facts;
    pipeline pipeline;
    model_view view;
    model_sums sums;
    uint32_t *tied;
    heft_hash digest;
    digest_request *files; /* the opened file, then the shards that are files */
    uint32_t *numbers;     /* of the files: 0, then that of the shard, counted from 1 */
    struct stat *states;   /* of the files, before the model was opened */
    size_t file_count;
} bill;

/* ---- licences ---- */

/* Names of licences in metadata, in lower case, and their SPDX identifiers. */
static const struct {
    const char *name, *id;
} licences[] = {
    { "apache-2.0", "Apache-2.0" },     { "mit", "MIT" },
    { "bsd-2-clause", "BSD-2-Clause" }, { "bsd-3-clause", "BSD-3-Clause" },
    { "cc-by-4.0", "CC-BY-4.0" },       { "cc-by-sa-4.0", "CC-BY-SA-4.0" },
    { "cc-by-nc-4.0", "CC-BY-NC-4.0" }, { "cc0-1.0", "CC0-1.0" },
    { "gpl-3.0", "GPL-3.0-only" },      { "lgpl-3.0", "LGPL-3.0-only" },
    { "agpl-3.0", "AGPL-3.0-only" },    { "mpl-2.0", "MPL-2.0" },
    { "unlicense", "Unlicense" },       { "isc", "ISC" },
};

static const char *find_licence(heft_str name)
{
    for (size_t i = 0; i < sizeof licences / sizeof *licences; i++) {
        bool is = name.len == strlen(licences[i].name);
        for (size_t k = 0; is && k < name.len; k++) {
            char c = name.ptr[k];
            is = (c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) == licences[i].name[k];
        }
        if (is)
            return licences[i].id;
    }
    return NULL;
}

/* ---- JSON ---- */

static void put_licences(json *j, const model_facts *facts)
{
    const card_list *l = &facts->licences;
    if (!l->count)
        return;
    json_member_begin(j, "licenses", '[');
    for (uint32_t i = 0; i < l->count; i++) {
        const char *id = find_licence(l->value[i]);
        json_begin(j, '{');
        json_member_begin(j, "license", '{');
        json_member_str(j, id ? "id" : "name", id ? str_of(id) : l->value[i]);
        if (!id && facts->licence_link.len)
            json_member_str(j, "url", facts->licence_link);
        json_end(j, '}');
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void put_digest(json *j, const heft_file_digest *d)
{
    json_member_begin(j, "hashes", '[');
    json_begin(j, '{');
    json_member_str(j, "alg", str_of("SHA-256"));
    json_member_hex(j, "content", d->bytes, d->length);
    json_end(j, '}');
    json_end(j, ']');
}

static void put_property(json *j, const char *name, heft_str value)
{
    json_begin(j, '{');
    json_member_str(j, "name", str_of(name));
    json_member_str(j, "value", value);
    json_end(j, '}');
}

static void put_count(json *j, const char *name, uint64_t n)
{
    char text[DIGITS + 1];
    *put_u64(text, n) = '\0';
    put_property(j, name, str_of(text));
}

static void put_properties(json *j, const bill *b)
{
    char name[128], hex[2 * sizeof b->digest.bytes + 1];
    hex_text(hex, b->digest.bytes, sizeof b->digest.bytes);
    json_member_begin(j, "properties", '[');
    put_property(j, "heft:model-digest", str_of(hex));
    put_property(j, "heft:format", str_of(heft_format_name(heft_file_format(b->f))));
    put_count(j, "heft:tensors", heft_tensor_count(b->view.f));
    put_count(j, "heft:parameters", b->sums.all.parameters);
    put_count(j, "heft:bytes", b->sums.all.bytes);
    for (uint32_t i = 0; i < b->sums.type_count; i++) {
        outbuf type;
        out_open_fixed(&type, -1, name, sizeof name - 1);
        out_text(&type, "heft:tensors:");
        model_sums_put_type(&type, &b->sums, i);
        name[type.used] = '\0';
        put_count(j, name, b->sums.types[i].sum.tensors);
    }
    if (b->facts.library.len)
        put_property(j, "heft:library", b->facts.library);
    for (uint32_t i = 0; i < b->facts.languages.count; i++)
        put_property(j, "heft:language", b->facts.languages.value[i]);
    for (uint32_t i = 0; b->pipeline.settings && i < b->pipeline.count; i++) {
        const heft_pipeline_component *c = &b->pipeline.component[i];
        snprintf(name, sizeof name, "heft:component:%.*s", (int)c->name.len, c->name.ptr);
        if (c->is_present)
            put_property(j, name, c->class_name);
    }
    json_end(j, ']');
}

static void put_named(json *j, const char *type, const card_list *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        json_begin(j, '{');
        json_member_str(j, "type", str_of(type));
        json_member_str(j, "name", l->value[i]);
        json_end(j, '}');
    }
}

/* Base models: of adapter_config.json, metadata, and the model card. */
static void put_ancestors(json *j, const bill *b)
{
    card_list all = { .count = 0 };
    card_list_add(&all, str_of(b->kind.adapter_base));
    for (uint32_t i = 0; i < b->facts.bases.count; i++)
        card_list_add(&all, b->facts.bases.value[i]);
    if (!all.count)
        return;
    json_member_begin(j, "pedigree", '{');
    json_member_begin(j, "ancestors", '[');
    put_named(j, "machine-learning-model", &all);
    json_end(j, ']');
    json_end(j, '}');
}

static void put_card(json *j, const bill *b)
{
    const card_list *datasets = &b->facts.datasets;
    if (!*b->kind.kind && !b->facts.task.len && !datasets->count)
        return;
    json_member_begin(j, "modelCard", '{');
    json_member_begin(j, "modelParameters", '{');
    if (b->facts.task.len)
        json_member_str(j, "task", b->facts.task);
    if (*b->kind.kind)
        json_member_str(j, *b->kind.source == 'm' ? "architectureFamily" : "modelArchitecture",
                        str_of(b->kind.kind));
    if (datasets->count) {
        json_member_begin(j, "datasets", '[');
        put_named(j, "dataset", datasets);
        json_end(j, ']');
    }
    json_end(j, '}');
    json_end(j, '}');
}

/* Return the name of the opened file, or of a shard. */
static heft_str name_of_file(const bill *b, uint32_t i)
{
    if (i)
        return heft_shard_file_at(b->f, i - 1).name;
    heft_str name = heft_file_name(b->f);
    return name.len ? name : path_last_component(stdin_name(b->path));
}

static void put_model(json *j, const bill *b)
{
    heft_str name = b->facts.name, version = b->facts.version;
    json_member_begin(j, "component", '{');
    json_member_str(j, "type", str_of("machine-learning-model"));
    json_member_str(j, "bom-ref", str_of("model"));
    json_member_str(j, "name", name.len ? name : path_last_component(stdin_name(b->path)));
    if (version.len)
        json_member_str(j, "version", version);
    if (!heft_shard_file_count(b->f))
        put_digest(j, &b->files->digest);
    put_licences(j, &b->facts);
    put_ancestors(j, b);
    put_card(j, b);
    put_properties(j, b);
    json_end(j, '}');
}

static void put_files(json *j, const bill *b)
{
    char ref[32];
    json_member_begin(j, "components", '[');
    for (uint32_t i = 0; i < b->file_count; i++) {
        snprintf(ref, sizeof ref, "file-%u", i + 1);
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "type", str_of("file"));
        json_member_str(j, "bom-ref", str_of(ref));
        json_member_str(j, "name", name_of_file(b, b->numbers[i]));
        put_digest(j, &b->files[i].digest);
        json_member_begin(j, "properties", '[');
        put_count(j, "heft:size", b->files[i].size);
        json_end(j, ']');
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void put_bill(outbuf *o, const bill *b)
{
    json j = json_open(o);
    json_member_str(&j, "bomFormat", str_of("CycloneDX"));
    json_member_str(&j, "specVersion", str_of("1.6"));
    json_member_u64(&j, "version", 1);
    json_line(&j);
    json_member_begin(&j, "metadata", '{');
    put_model(&j, b);
    json_end(&j, '}');
    json_line(&j);
    put_files(&j, b);
    json_close(&j);
}

/* ---- output ---- */

static int check_output(const bill *b)
{
    const input in = { b->path, "the input itself", b->f };
    return inputs_check_output(b->out, &in, b->force);
}

static int write_file(bill *b, const outbuf *text)
{
    heft_error err;
    heft_sink *sink;
    heft_status st = sink_open(&sink, b->out, b->force, b->no_sync, NULL, &err);
    if (st)
        return say_error(b->out, &err);
    st = sink_write_whole(sink, text->buf, text->used, &err);
    return st ? say_error(b->out, &err) : CODE_DONE;
}

static int write_bill(bill *b)
{
    outbuf o;
    out_open(&o, b->out ? -1 : STDOUT_FILENO);
    put_bill(&o, b);
    int code = model_check_unchanged(b->f, b->path);
    if (!b->out)
        return out_end(&o, code);
    if (!code)
        code = o.os ? say_system(o.os, b->out) : write_file(b, &o);
    out_free(&o);
    return code;
}

/* ---- the facts ---- */

/* Return the path of the opened file, or of a shard, malloc'ed. */
static char *path_of(const bill *b, const char *dir, bool is_folder, uint32_t i)
{
    heft_str name = name_of_file(b, i);
    if (!i && !is_folder)
        return strdup(b->path);
    char *copy = strndup(name.ptr, name.len), *path = copy ? path_in(dir, copy) : NULL;
    free(copy);
    return path;
}

static int list_files(bill *b)
{
    char *dir;
    bool is_folder;
    int code = path_find_folder(&is_folder, b->path);
    if (!code)
        code = model_find_dir(&dir, b->path);
    if (code)
        return code;
    size_t most = (size_t)heft_shard_file_count(b->f) + 1;
    b->files = calloc(most, sizeof *b->files);
    b->numbers = calloc(most, sizeof *b->numbers);
    bool has_memory = b->files && b->numbers;
    for (uint32_t i = 0; has_memory && i < most; i++) {
        if (i && heft_shard_file_at(b->f, i - 1).is_assembled)
            continue;
        digest_request *file = &b->files[b->file_count];
        b->numbers[b->file_count++] = i;
        *file = (digest_request){ .path = path_of(b, dir, is_folder, i),
                                  .algorithm = "sha256",
                                  .to = HEFT_UNKNOWN_LENGTH };
        has_memory = file->path != NULL;
    }
    free(dir);
    return has_memory ? CODE_DONE : say_status(HEFT_E_NOMEM, b->path, "no memory for digests");
}

static void free_files(bill *b)
{
    for (size_t i = 0; b->files && i < b->file_count; i++)
        free((char *)b->files[i].path);
    free(b->files);
    free(b->numbers);
    free(b->states);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int find_states(bill *b)
{
    b->states = calloc(b->file_count, sizeof *b->states);
    if (!b->states)
        return say_status(HEFT_E_NOMEM, b->path, "no memory for digests");
    for (size_t i = 0; i < b->file_count; i++)
        if (stat(b->files[i].path, &b->states[i]))
            return say_system(errno, b->files[i].path);
    return CODE_DONE;
}

static int check_states(const bill *b)
{
    struct stat now;
    for (size_t i = 0; i < b->file_count; i++) {
        const struct stat *old = &b->states[i];
        if (stat(b->files[i].path, &now))
            return say_system(errno, b->files[i].path);
        if (now.st_dev != old->st_dev || now.st_ino != old->st_ino || now.st_size != old->st_size ||
            !is_same_time(&now.st_mtim, &old->st_mtim))
            return say_status(HEFT_E_IO, b->files[i].path,
                              "the file was replaced while it was being read");
    }
    return CODE_DONE;
}

/* Refuse a model that has other files than when the files were listed. */
static int check_list(const bill *b)
{
    bill now = { .path = b->path, .f = b->f };
    int code = list_files(&now);
    bool is_same = now.file_count == b->file_count;
    for (size_t i = 0; !code && is_same && i < now.file_count; i++)
        is_same = !strcmp(now.files[i].path, b->files[i].path);
    free_files(&now);
    return code || is_same
               ? code
               : say_status(HEFT_E_IO, b->path, "the model changed while it was being read");
}

/* The digests are of the files at the paths, the other facts of the open model. check_states()
 * therefore compares the files with their states before the model was opened. Opening the model the
 * first time tells the names of the files; --max-bytes limits that opening by itself. */
static int open_model(bill *b)
{
    session first = *b->session;
    heft_read_counter counter = { 0 };
    first.limits.read_counter = &counter;
    int code = model_open_whole(&first, &b->f, b->path);
    if (!code)
        code = list_files(b);
    if (!code)
        code = find_states(b);
    heft_file_close(b->f);
    b->f = NULL;
    if (!code)
        code = model_load_whole(b->session, &b->f, b->path);
    return code ? code : check_list(b);
}

static int collect(bill *b)
{
    heft_error err;
    progress p;
    int code = model_kind_find(&b->kind, b->f, b->path);
    if (!code)
        code = model_facts_find(&b->facts, b->f, b->path);
    if (!code)
        code = pipeline_read(&b->pipeline, b->f, b->path);
    if (code)
        return code;
    code = model_view_open(&b->view, b->session, b->f, b->path, VIEW_TO_LIST);
    if (code)
        return code;
    b->tied = model_find_tied(b->view.f, b->path);
    if (!b->tied || !model_sums_open(&b->sums, &b->view, b->path, b->tied))
        return CODE_SYSTEM;
    heft_hash *tensors = malloc(((size_t)heft_tensor_count(b->f) + 1) * sizeof *tensors);
    if (!tensors)
        return say_status(HEFT_E_NOMEM, b->path, "no memory for the digests");
    progress_begin(&p, b->path);
    heft_status st = heft_file_hash(&b->digest, tensors, b->f, progress_step, &p, &err);
    progress_end(&p);
    free(tensors);
    if (st)
        return say_error(b->path, &err);
    code = digest_files(b->session, b->files, b->file_count, b->path);
    return code ? code : check_states(b);
}

static const opt options[] = {
    { "output", 'o', OPT_OUTPUT, AT(bill, out), "OUT", "write the bill here; - is stdout" },
    { "force", 'f', OPT_FLAG, AT(bill, force), NULL, "replace OUT" },
    { "no-sync", 0, OPT_FLAG, AT(bill, no_sync), NULL, "do not wait for the disk" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    bill *b = ctx;
    int code;
    b->session = s;
    b->path = s->args.item[0];
    if (b->out && !strcmp(b->out, "-"))
        b->out = NULL;
    code = check_output(b);
    if (!code)
        code = open_model(b);
    if (!code)
        code = check_output(b);
    if (!code)
        code = collect(b);
    if (!code)
        code = write_bill(b);
    free_files(b);
    model_sums_close(&b->sums);
    model_facts_free(&b->facts);
    pipeline_free(&b->pipeline);
    free(b->tied);
    model_view_close(&b->view);
    heft_file_close(b->f);
    return code;
}

const command command_sbom = {
    .name = "sbom",
    .args = "FILE",
    .summary = "print a bill of materials (CycloneDX)",
    .description =
        "Prints a bill of materials of a model as JSON (CycloneDX 1.6): name, licence, base\n"
        "models, datasets, task, architecture, counts, and the SHA-256 of every file, from\n"
        "metadata and the model card README.md.",
    .example = "heft sbom model.gguf -o model.cdx.json",
    .group = GROUP_SHARE,
    .options = options,
    .request_bytes = sizeof(bill),
    .run = run,
};
