/* Each FILE is opened once, the chosen tensors become one model, and the library appends this model
 * in place of the tensors of the file. */
#include "commands/replace_tensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/model.h"
#include "process/interrupt.h"

typedef struct replacement {
    heft_str name;     /* name of the tensor that is replaced */
    char *path;        /* owned */
    const char *inner; /* name of the tensor in the file of the path, or NULL */
    heft_str source;   /* its name, borrowed from the file */
    heft_file *f;      /* NULL: an earlier replacement has the path, and the file */
} replacement;

typedef struct replacing {
    job *j;
    replacement *all; /* sorted by `source` once the files are open */
    const heft_file **files;
    const char **paths;
    uint32_t count, file_count;
    heft_file *target, *joined;
} replacing;

/* ---- what is asked for ---- */

static int read_argument(const replacing *r, replacement *to, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return say_usage(r->j->command, "--tensor takes NAME=FILE[:NAME], not '%s'", text);
    to->name = (heft_str){ text, (size_t)(equals - text) };
    to->path = opt_tensor_file(equals + 1, &to->inner);
    return to->path ? CODE_DONE : say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
}

/* Open the file of replacement i, unless an earlier one has the same path. */
static int open_file(replacing *r, uint32_t i, heft_file **f)
{
    for (uint32_t k = 0; k < i; k++)
        if (r->all[k].f && !strcmp(r->all[k].path, r->all[i].path)) {
            *f = r->all[k].f;
            return CODE_DONE;
        }
    int code = model_open_whole(r->j->session, f, r->all[i].path);
    if (!code) {
        r->all[i].f = *f;
        r->paths[r->file_count] = r->all[i].path;
        r->files[r->file_count++] = *f;
    }
    return code;
}

static int choose(replacing *r, uint32_t i)
{
    replacement *own = &r->all[i];
    heft_file *f = NULL;
    uint32_t t = 0;
    int code = open_file(r, i, &f);
    if (code)
        return code;
    char *name = own->inner ? strdup(own->inner) : strndup(own->name.ptr, own->name.len);
    if (!name)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    if (own->inner || heft_tensor_count(f) != 1)
        t = model_find(f, own->path, name);
    free(name);
    if (t == HEFT_NONE)
        return model_code_of_missing(f);
    own->source = heft_tensor_at(f, t).name;
    return CODE_DONE;
}

static int by_source(const void *a, const void *b)
{
    return str_order(((const replacement *)a)->source, ((const replacement *)b)->source);
}

static int by_name(const void *a, const void *b)
{
    return str_order(((const replacement *)a)->name, ((const replacement *)b)->name);
}

static int refuse_twice(const replacing *r, const char *what, bool by_old_name)
{
    for (uint32_t i = 1; i < r->count; i++) {
        heft_str a = by_old_name ? r->all[i - 1].name : r->all[i - 1].source;
        heft_str b = by_old_name ? r->all[i].name : r->all[i].source;
        if (str_same(a, b))
            return say_usage(r->j->command, "--tensor: tensor '%.*s' %s", (int)a.len, a.ptr, what);
    }
    return CODE_DONE;
}

static int prepare(replacing *r)
{
    const opt_list *args = &r->j->tensors;
    int code = CODE_DONE;
    r->all = calloc(args->count, sizeof *r->all);
    r->files = calloc(args->count, sizeof *r->files);
    r->paths = calloc(args->count, sizeof *r->paths);
    if (!r->all || !r->files || !r->paths)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    r->count = (uint32_t)args->count;
    for (uint32_t i = 0; i < r->count && !code; i++)
        code = read_argument(r, &r->all[i], args->item[i]);
    for (uint32_t i = 0; i < r->count && !code; i++)
        code = choose(r, i);
    if (code)
        return code;
    qsort(r->all, r->count, sizeof *r->all, by_name);
    code = refuse_twice(r, "is replaced twice", true);
    qsort(r->all, r->count, sizeof *r->all, by_source);
    return code ? code
                : refuse_twice(r,
                               "is taken twice, or from two files with a tensor of this name: "
                               "replace one after the other",
                               false);
}

static int join(replacing *r)
{
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    heft_error err;
    o.duplicates = HEFT_DUPLICATES_REFUSE;
    if (r->file_count == 1 || !heft_file_join(&r->joined, r->files, r->file_count, &o, &err))
        return CODE_DONE;
    return say_error(r->j->out, &err);
}

/* Open the file that is changed. */
static int open_target(replacing *r)
{
    int code = model_open_whole(r->j->session, &r->target, r->j->out);
    for (uint32_t i = 0; !code && i < r->count; i++) {
        char *name = strndup(r->all[i].name.ptr, r->all[i].name.len);
        if (!name)
            code = say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
        else if (model_find(r->target, r->j->out, name) == HEFT_NONE)
            code = model_code_of_missing(r->target);
        free(name);
    }
    return code;
}

/* ---- callbacks of the conversion ---- */

static const char *const digests[] = { "crc32c", "sha256", "xxh3" };

static const replacement *find(const replacing *r, const heft_tensor *t)
{
    replacement key = { .source = t->name };
    return bsearch(&key, r->all, r->count, sizeof key, by_source);
}

static bool keep(void *ctx, const heft_tensor *t)
{
    return find(ctx, t) != NULL;
}

static heft_str rename_tensor(void *ctx, const heft_tensor *t)
{
    return find(ctx, t)->name;
}

/* Return the type that the tensor has. */
static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    const replacing *r = ctx;
    uint32_t own = heft_tensor_find(r->target, find(r, t)->name);
    return own == HEFT_NONE ? HEFT_UNTYPED : heft_tensor_at(r->target, own).dtype;
}

/* The new part is compressed as the old one is, and has a digest of the same kind. */
static bool store(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how)
{
    replacing *r = ctx;
    uint32_t own = heft_tensor_find(r->target, find(r, t)->name);
    uint32_t part = own == HEFT_NONE ? HEFT_NONE : heft_part_find(r->target, own, role);
    if (part == HEFT_NONE)
        return false;
    heft_part old = heft_part_at(r->target, part);
    how->encoding = old.encoding == HEFT_ZSTD ? HEFT_ZSTD : HEFT_RAW;
    size_t n = 0;
    while (n < old.digest.len && old.digest.ptr[n] != ':')
        n++;
    how->digest = NULL;
    for (size_t i = 0; n < old.digest.len && i < sizeof digests / sizeof *digests; i++)
        if (str_same(str_of(digests[i]), (heft_str){ old.digest.ptr, n }))
            how->digest = digests[i];
    return true;
}

static bool step(void *ctx, uint64_t done, uint64_t total)
{
    replacing *r = ctx;
    return job_step(r->j, done, total);
}

/* ---- the edit ---- */

static int say_done(const job *j, const heft_append_result *result)
{
    const heft_edit_result *edit = &result->edit;
    const char *tensors = result->tensors == 1 ? "tensor" : "tensors";
    if (!j->dry_run) {
        job_say_edited(j->out, edit);
        if (j->session->verbose)
            say(MESSAGE_INFO, j->out, "%u %s replaced %s", result->tensors, tensors,
                edit->in_place ? "in place" : "in a new file");
        return CODE_DONE;
    }
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    out_message(&o, j->out);
    out_format(&o, ": %u %s replaced, %s\n", result->tensors, tensors,
               edit->in_place ? "in place" : "in a new file");
    return out_end(&o, CODE_DONE);
}

static int say_failure(const job *j, heft_error *err)
{
    static const char how[] =
        "; --round rounds to the type of the tensor, --allow-change changes type and shape";
    size_t used = strlen(err->message);
    bool differs = err->rule && !strcmp(err->rule, "heft/replacement-differs");
    if (differs && used + sizeof how <= sizeof err->message)
        memcpy(err->message + used, how, sizeof how);
    int code = model_say_open_error(j->session, job_explain(j, err), err);
    return err->status == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

static int replace(replacing *r)
{
    job *j = r->j;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_convert_options *c = &j->convert;
    heft_append_result result;
    heft_error err;
    c->keep = keep;
    c->rename = rename_tensor;
    c->cast = j->rounds ? cast : NULL;
    c->storage = store;
    c->progress = step;
    c->ctx = r;
    o.convert = c;
    o.replaces = true;
    o.may_differ = j->allow_change;
    o.limits = &j->session->limits;
    interrupt_hold();
    progress_begin(&j->bar, j->out);
    heft_status st = heft_file_append(&result, j->out, r->joined ? r->joined : r->files[0], &o,
                                      &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    if (result.edit.rolled_back)
        say(MESSAGE_NOTE, j->out, "rolled back an interrupted edit");
    if (st)
        return say_failure(j, &err);
    int code = say_done(j, &result);
    if (!code)
        job_say_appended(j, &result);
    return code;
}

int replace_tensors(job *j)
{
    replacing r = { .j = j };
    heft_error err;
    bool undone = false;
    int code = prepare(&r);
    j->source = r.count && r.all[0].path ? r.all[0].path : j->out;
    j->inputs = r.paths;
    j->input_count = r.file_count;
    if (!code)
        code = join(&r);
    if (!code && !j->dry_run && heft_edit_recover(&undone, j->out, &err))
        code = say_error(j->out, &err);
    if (undone)
        say(MESSAGE_NOTE, j->out, "rolled back an interrupted edit");
    if (!code)
        code = open_target(&r);
    if (!code)
        code = replace(&r);
    heft_file_close(r.target);
    heft_file_close(r.joined);
    for (uint32_t i = 0; i < r.count; i++) {
        heft_file_close(r.all[i].f);
        free(r.all[i].path);
    }
    free(r.files);
    free(r.paths);
    free(r.all);
    return code;
}
