/* cmd_sbom.c - `heft sbom`: a bill of materials of a model, in CycloneDX 1.6.
 *
 * The document depends on the files alone: no clock, and no random serial number. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "digest_files.h"
#include "model_kind.h"
#include "model_sums.h"
#include "opt.h"
#include "progress_line.h"
#include "stdin_file.h"
#include "textfile.h"

typedef struct bill {
    const char *path;
    heft_file *f;
    model_kind kind;
    model_sums sums;
    uint32_t *tied;
    heft_hash digest;
    digest_request *files; /* the opened file, then the shards */
    size_t file_count;
} bill;

/* ---- metadata ---- */

static heft_str find_text(const heft_file *f, const char *const *keys)
{
    heft_value v;
    for (; *keys; keys++)
        if (heft_meta_find(&v, f, str_of(*keys)) && v.kind == HEFT_KIND_STR && v.as.s.len)
            return v.as.s;
    return (heft_str){ NULL, 0 };
}

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

static void put_licence(json *j, const heft_file *f)
{
    static const char *const keys[] = { "general.license", "license", "modelspec.license", NULL };
    heft_str name = find_text(f, keys);
    const char *id = find_licence(name);
    if (!name.len)
        return;
    json_member_begin(j, "licenses", '[');
    json_begin(j, '{');
    json_member_begin(j, "license", '{');
    json_member_str(j, id ? "id" : "name", id ? str_of(id) : name);
    json_end(j, '}');
    json_end(j, '}');
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
    char name[64], hex[2 * sizeof b->digest.bytes + 1];
    for (size_t i = 0; i < sizeof b->digest.bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", b->digest.bytes[i]);
    json_member_begin(j, "properties", '[');
    put_property(j, "heft:model-digest", str_of(hex));
    put_property(j, "heft:format", str_of(heft_format_name(heft_file_format(b->f))));
    put_count(j, "heft:tensors", heft_tensor_count(b->f));
    put_count(j, "heft:parameters", b->sums.all.parameters);
    put_count(j, "heft:bytes", b->sums.all.bytes);
    for (heft_dtype t = 0; t < HEFT_DTYPES; t++)
        if (b->sums.of_type[t].tensors) {
            const char *type = dtype_name(t);
            snprintf(name, sizeof name, "heft:tensors:%s", type ? type : "untyped");
            put_count(j, name, b->sums.of_type[t].tensors);
        }
    json_end(j, ']');
}

/* A base model: from adapter_config.json, or general.base_model.N.name of GGUF. */
static void put_ancestors(json *j, const bill *b)
{
    enum { MAX_BASES = 64 };
    heft_str names[MAX_BASES + 1];
    uint32_t count = 0;
    char key[64];
    if (*b->kind.adapter_base)
        names[count++] = str_of(b->kind.adapter_base);
    for (uint32_t i = 0; i < MAX_BASES; i++) {
        const char *const keys[] = { key, NULL };
        snprintf(key, sizeof key, "general.base_model.%u.name", i);
        names[count] = find_text(b->f, keys);
        count += names[count].len > 0;
    }
    if (!count)
        return;
    json_member_begin(j, "pedigree", '{');
    json_member_begin(j, "ancestors", '[');
    for (uint32_t i = 0; i < count; i++) {
        json_begin(j, '{');
        json_member_str(j, "type", str_of("machine-learning-model"));
        json_member_str(j, "name", names[i]);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}

static void put_model(json *j, const bill *b)
{
    static const char *const names[] = { "general.name", "modelspec.title", NULL };
    static const char *const versions[] = { "general.version", "modelspec.version", NULL };
    heft_str name = find_text(b->f, names), version = find_text(b->f, versions);
    const char *slash = strrchr(b->path, '/');
    json_member_begin(j, "component", '{');
    json_member_str(j, "type", str_of("machine-learning-model"));
    json_member_str(j, "bom-ref", str_of("model"));
    json_member_str(j, "name",
                    name.len ? name : str_of(slash && slash[1] ? slash + 1 : stdin_name(b->path)));
    if (version.len)
        json_member_str(j, "version", version);
    if (!heft_shard_file_count(b->f))
        put_digest(j, &b->files->digest);
    put_licence(j, b->f);
    put_ancestors(j, b);
    if (*b->kind.kind) {
        json_member_begin(j, "modelCard", '{');
        json_member_begin(j, "modelParameters", '{');
        json_member_str(j, *b->kind.source == 'm' ? "architectureFamily" : "modelArchitecture",
                        str_of(b->kind.kind));
        json_end(j, '}');
        json_end(j, '}');
    }
    put_properties(j, b);
    json_end(j, '}');
}

static void put_files(json *j, const bill *b)
{
    char ref[32];
    json_member_begin(j, "components", '[');
    for (uint32_t i = 0; i <= heft_shard_file_count(b->f); i++) {
        snprintf(ref, sizeof ref, "file-%u", i + 1);
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "type", str_of("file"));
        json_member_str(j, "bom-ref", str_of(ref));
        json_member_str(j, "name", i ? heft_shard_file_at(b->f, i - 1).name : heft_file_name(b->f));
        put_digest(j, &b->files[i].digest);
        json_member_begin(j, "properties", '[');
        put_count(j, "heft:size", b->files[i].size);
        json_end(j, ']');
        json_end(j, '}');
    }
    json_end(j, ']');
}

static int print_bill(const bill *b)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    json j = json_open(&o);
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
    return out_end(&o, CODE_DONE);
}

/* ---- the facts ---- */

/* Return the path of the opened file, or of a shard, malloc'ed. */
static char *path_of(const bill *b, const char *dir, uint32_t i)
{
    heft_str name = i ? heft_shard_file_at(b->f, i - 1).name : heft_file_name(b->f);
    if (!i && !path_is_folder(b->path))
        return strdup(b->path);
    char *copy = strndup(name.ptr, name.len), *path = copy ? path_in(dir, copy) : NULL;
    free(copy);
    return path;
}

static int digest_all(bill *b)
{
    char *dir = model_dir(b->path);
    b->file_count = (size_t)heft_shard_file_count(b->f) + 1;
    b->files = calloc(b->file_count, sizeof *b->files);
    bool has_memory = dir && b->files;
    for (uint32_t i = 0; has_memory && i < b->file_count; i++) {
        b->files[i] = (digest_request){ .path = path_of(b, dir, i),
                                        .algorithm = "sha256",
                                        .to = HEFT_UNKNOWN_LENGTH };
        has_memory = b->files[i].path != NULL;
    }
    free(dir);
    return has_memory ? digest_files(b->files, b->file_count, b->path)
                      : say_status(HEFT_E_NOMEM, b->path, "no memory for digests");
}

static void free_files(bill *b)
{
    for (size_t i = 0; b->files && i < b->file_count; i++)
        free((char *)b->files[i].path);
    free(b->files);
}

static int collect(bill *b)
{
    heft_error err;
    progress p;
    int code = model_kind_find(&b->kind, b->f, b->path);
    if (code)
        return code;
    b->tied = model_find_tied(b->f, b->path);
    if (!b->tied || !model_sums_open(&b->sums, b->f, b->path, b->tied))
        return CODE_SYSTEM;
    heft_hash *tensors = malloc(((size_t)heft_tensor_count(b->f) + 1) * sizeof *tensors);
    if (!tensors)
        return say_status(HEFT_E_NOMEM, b->path, "no memory for the digests");
    progress_begin(&p, b->path);
    heft_status st = heft_file_hash(&b->digest, tensors, b->f, progress_step, &p, &err);
    progress_end(&p);
    free(tensors);
    return st ? say_error(b->path, &err) : digest_all(b);
}

int cmd_sbom(int argc, char **argv)
{
    const opt_usage usage = {
        "sbom",
        "FILE",
        "Prints a bill of materials of a model as JSON (CycloneDX 1.6): name, licence, base\n"
        "models, architecture, counts, and the SHA-256 of every file.",
        "heft sbom model.gguf > model.cdx.json",
        NULL,
        0,
        1,
        1,
    };
    opt_args args;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    bill b = { .path = args.item[0] };
    code = model_open_whole(&b.f, b.path);
    if (!code)
        code = collect(&b);
    if (!code)
        code = print_bill(&b);
    free_files(&b);
    model_sums_close(&b.sums);
    free(b.tied);
    heft_file_close(b.f);
    return code;
}
