/* cmd_hash.c - `heft hash`: content digests of every tensor and of the model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/check.h>

#include "models/model_view.h"
#include "options/command.h"
#include "options/glob_rules.h"
#include "process/progress_line.h"
#include "process/textfile.h"

/* The digests of a file: of the model, unless patterns select tensors, and of tensors. */
typedef struct digests {
    model_view view;
    const heft_file *f; /* the view of the model */
    const char *path;
    selection chosen;
    heft_hash *tensors, model; /* one per selected tensor */
    bool has_model;
    heft_error why; /* why the model has no digest */
} digests;

/* Print lines as sha256sum does; of several files, the names begin with the file. */
static void put_digest(outbuf *o, const heft_hash *hash, const char *label, heft_str name)
{
    out_hex(o, hash->bytes, sizeof hash->bytes);
    out_text(o, "  ");
    if (label) {
        out_message(o, label);
        out_text(o, ": ");
    }
    if (name.ptr)
        out_name(o, name);
    else
        out_text(o, "(model)");
    out_char(o, '\n');
}

static void print_text(outbuf *o, const digests *d, bool is_list)
{
    const char *label = is_list ? stdin_label(d->path) : NULL;
    for (uint32_t i = 0; i < d->chosen.count; i++)
        put_digest(o, &d->tensors[i], label, heft_tensor_at(d->f, selected(&d->chosen, i)).name);
    if (d->has_model)
        put_digest(o, &d->model, label, (heft_str){ NULL, 0 });
}

static void put_json(json *j, const digests *d)
{
    json_begin(j, '{');
    json_member_str(j, "file", str_of(stdin_name(d->path)));
    json_member_str(j, "format", str_of(heft_format_name(heft_file_format(d->f))));
    if (d->has_model)
        json_member_hex(j, "model", d->model.bytes, sizeof d->model.bytes);
    else
        json_member_null(j, "model");
    json_member_begin(j, "tensors", '[');
    for (uint32_t i = 0; i < d->chosen.count; i++) {
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "name", heft_tensor_at(d->f, selected(&d->chosen, i)).name);
        json_member_hex(j, "digest", d->tensors[i].bytes, sizeof d->tensors[i].bytes);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}

/* Content that cannot be read leaves the model without a digest; the tensors have theirs. */
static int end_model(digests *d, heft_status st)
{
    bool is_left_out = st && d->why.rule && !strcmp(d->why.rule, "heft/left-out");
    d->has_model = d->has_model && !st;
    return st && !is_left_out ? say_error(d->path, &d->why) : CODE_DONE;
}

/* Compute the digests of the model and of tensors. */
static int compute(digests *d)
{
    progress p;
    progress_begin(&p, d->path);
    heft_status st = d->has_model
                         ? heft_file_hash(&d->model, d->tensors, d->f, progress_step, &p, &d->why)
                         : heft_tensor_hash_many(d->tensors, d->f, d->chosen.ids, d->chosen.count,
                                                 progress_step, &p, &d->why);
    progress_end(&p);
    return end_model(d, st);
}

/* ---- files and patterns ---- */

typedef struct request {
    const session *session;
    outbuf *o;
    json all;
    bool as_json, is_list; /* is_list: there are several files */
    bool is_logical;       /* hash what quantised tensors represent */
    bool has_document;     /* the digests of a file are printed */
    opt_args files, globs;
    bool *matches; /* by pattern: a tensor of some file matches */
} request;

/* Select the tensors of a file. All of them have a digest of the model. */
static int select_tensors(digests *d, const request *r)
{
    bool no_memory = false;
    d->has_model = !r->globs.count;
    d->chosen = (selection){ NULL, heft_tensor_count(d->f) };
    if (d->has_model)
        return CODE_DONE;
    for (int g = 0; g < r->globs.count; g++)
        for (uint32_t i = 0; i < heft_tensor_count(d->f) && !r->matches[g]; i++)
            r->matches[g] = name_matches(&no_memory, heft_tensor_at(d->f, i).name,
                                         r->globs.item[g]);
    if (no_memory)
        return say_no_memory_to_match(d->path);
    return model_select(r->session, &d->chosen, d->f, d->path, r->globs.item, r->globs.count)
               ? CODE_DONE
               : CODE_SYSTEM;
}

static int hash_open(request *r, digests *d)
{
    int code = select_tensors(d, r);
    if (!code)
        code = view_verify_selected(&d->view, r->session, d->path, &d->chosen);
    d->tensors = code ? NULL : malloc(((size_t)d->chosen.count + 1) * sizeof *d->tensors);
    if (!code && !d->tensors)
        code = say_status(HEFT_E_NOMEM, d->path, "no memory for the digests");
    if (!code)
        code = compute(d);
    r->has_document = r->has_document || !code;
    if (!code && r->as_json)
        put_json(&r->all, d);
    else if (!code)
        print_text(r->o, d, r->is_list);
    if (!code)
        code = model_check_unchanged(d->view.stored, d->path);
    return code || d->has_model || r->globs.count ? code : say_error(d->path, &d->why);
}

static int hash_file(request *r, const char *path)
{
    heft_file *f = NULL;
    digests d = { .path = path };
    int code = model_open_whole(r->session, &f, path);
    d.view = model_view_of_stored(f);
    if (!code && r->is_logical)
        code = model_view_open(&d.view, r->session, f, path, VIEW_TO_READ);
    d.f = d.view.f;
    if (!code)
        code = hash_open(r, &d);
    free(d.tensors);
    free(d.chosen.ids);
    model_view_close(&d.view);
    heft_file_close(f);
    return code;
}

/* Hash every file; return the highest exit code. */
static int hash_all(request *r)
{
    int worst = CODE_DONE;
    if (r->as_json && r->is_list)
        json_begin(&r->all, '[');
    for (int i = 0; i < r->files.count; i++) {
        int code = hash_file(r, r->files.item[i]);
        worst = code > worst ? code : worst;
    }
    if (r->as_json && r->is_list)
        json_end(&r->all, ']');
    if (r->as_json && (r->is_list || r->has_document))
        out_char(r->o, '\n');
    for (int g = 0; g < r->globs.count && !worst; g++)
        if (!r->matches[g])
            worst = say_status(HEFT_E_ARGUMENT, r->globs.item[g],
                               "is neither a file nor a pattern that a tensor matches");
    return worst;
}

/* An argument that exists, or is on a server, is a file; the others are patterns, except for the
 * first. Files come first in `args` afterwards. */
static void divide(request *r, const opt_args *args)
{
    int files = 0;
    for (int i = 0; i < args->count; i++) {
        struct stat info;
        char *item = args->item[i];
        if (i && !heft_is_url(item) && stat(item, &info))
            continue;
        memmove(&args->item[files + 1], &args->item[files], (size_t)(i - files) * sizeof item);
        args->item[files++] = item;
    }
    r->files = (opt_args){ args->item, files };
    r->globs = (opt_args){ args->item + files, args->count - files };
    r->is_list = files > 1;
}

static int hash(request *r)
{
    r->matches = calloc((size_t)r->globs.count + 1, sizeof *r->matches);
    if (!r->matches)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the patterns");
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    r->o = &o;
    r->all = (json){ &o, false };
    int code = hash_all(r);
    free(r->matches);
    return out_end(&o, code);
}

static const opt options[] = {
    { "logical", 0, OPT_FLAG, AT(request, is_logical), NULL,
      "decode quantised tensors, and hash what they represent" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL,
      "print one JSON document; a list for several files" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    r->session = s;
    divide(r, &s->args);
    return hash(r);
}

const command command_hash = {
    .name = "hash",
    .args = "FILE... [GLOB...]",
    .summary = "print content digests, which are the same in every format",
    .description =
        "Prints a digest of every tensor and of the model, equal for equal tensors in any\n"
        "format. A tensor's digest covers element type, shape, layout and decoded bytes; the\n"
        "model's digest covers the sorted names and digests. An argument after the first that\n"
        "is not a file is a pattern: only the tensors that match one of them are hashed.\n"
        "Quantised tensors are hashed as they are stored, unless --logical is given.",
    .example = "heft hash model.zt",
    .group = GROUP_CHECK,
    .traits = COMMAND_PAGED | COMMAND_CHECKS_PARTS,
    .operands = { 0, -1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
