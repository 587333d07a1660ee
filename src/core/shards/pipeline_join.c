/* pipeline_join.c - joins the models of a pipeline to one model.
 *
 * The pipeline's index is file 0 and has no tensors.  Each component is a shard that owns an open
 * file; the shards of a component follow as shards that belong to that file.  Tensors of the
 * component "unet" get the prefix "unet.", so the names of components must differ. */
#include "core/shards/assembly.h"
#include "core/shards/shard_join.h"

static const char purpose[] = "to join the components of a pipeline";

/* ---- names ---- */

/* Return the concatenation of three strings, followed by a NUL; ptr NULL: out of memory. */
static heft_str concat(heft_file *f, heft_str a, heft_str b, heft_str c)
{
    char *to = heft_arena_alloc(&f->x.arena, a.len + b.len + c.len + 1, 1);
    if (!to)
        return (heft_str){ NULL, 0 };
    memcpy(to, a.ptr, a.len);
    memcpy(to + a.len, b.ptr, b.len);
    memcpy(to + a.len + b.len, c.ptr, c.len);
    to[a.len + b.len + c.len] = '\0';
    return (heft_str){ to, a.len + b.len + c.len };
}

/* Return the path of a file of a component, or the name of the component if the file has no
 * name. */
static heft_str path_of(heft_file *f, heft_str component, heft_str file)
{
    heft_str none = { "", 0 };
    return file.len ? concat(f, component, heft_lit("/"), file) : concat(f, component, none, none);
}

/* ---- shards ---- */

/* A component that does not exist is missing: an error of the system. */
static heft_status status_of(const heft_error *e)
{
    return e->status == HEFT_E_NOTFOUND ? HEFT_E_IO : e->status;
}

/* Name the component in the message of a shard that could not be opened. */
static heft_status name_component(heft_file *f, heft_shard *shard, heft_str component,
                                  const heft_error *cause)
{
    heft_error *why = heft_arena_alloc(&f->x.arena, sizeof *why, _Alignof(heft_error));
    if (!why)
        return HEFT_E_NOMEM;
    heft_status st = status_of(cause);
    heft_error_plain(why, st, "component %q: %s", component, cause->message);
    why->os = cause->os;
    shard->error = why;
    shard->status = st;
    return HEFT_OK;
}

static heft_status add_shard(heft_file *f, heft_shard shard, heft_str component, uint64_t size,
                             bool is_model)
{
    uint32_t number;
    heft_str path = path_of(f, component, shard.name);
    if (!path.ptr)
        return HEFT_E_NOMEM;
    shard.name = path;
    if (shard.error)
        HEFT_TRY(name_component(f, &shard, component, shard.error));
    HEFT_TRY(
        heft_ix_shard_add(&f->x, (heft_ix_shard){ path, NULL, size, is_model, NULL }, &number));
    f->opened_shards[f->opened_shard_count++] = shard;
    return HEFT_OK;
}

/* A file that the system could not read may well be intact, as opposed to a missing or invalid
 * one. */
static heft_status add_missing(heft_file *f, const heft_pipeline_file *c)
{
    bool is_absent = status_of(c->error) == HEFT_E_IO;
    heft_error error = *c->error;
    heft_shard shard = { .name = { "", 0 },
                         .error = &error,
                         .rule = is_absent ? "heft/file-missing" : "heft/shard",
                         .is_unreadable = error.os && error.status != HEFT_E_NOTFOUND };
    HEFT_TRY(add_shard(f, shard, c->name, HEFT_UNKNOWN_LENGTH, true));
    heft_file_set_missing(f, f->opened_shards[f->opened_shard_count - 1].error);
    return HEFT_OK;
}

/* Take the open file of a component, whose shards follow. */
static heft_status add_component(heft_file *f, heft_pipeline_file *c)
{
    heft_file *from = c->file;
    heft_shard shard = { .name = from->name,
                         .source = from->source,
                         .whole_file = from->input.whole_file,
                         .model = from };
    heft_str prefix = concat(f, c->name, heft_lit("."), (heft_str){ "", 0 });
    uint32_t number = f->opened_shard_count + 1;
    HEFT_TRY(prefix.ptr ? add_shard(f, shard, c->name, from->input.in.size, true) : HEFT_E_NOMEM);
    c->file = NULL;
    f->joined_files[f->joined_count++] =
        (heft_joined_file){ .file = from, .first_shard = number, .prefix = prefix };
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < from->opened_shard_count && !st; i++) {
        heft_shard own = from->opened_shards[i];
        const heft_ix_shard *row = heft_ix_shard_at(&from->x, i + 1);
        own.model = NULL;
        own.is_borrowed = true;
        st = add_shard(f, own, c->name, row->size, row->is_model);
    }
    if (!st && from->missing) {
        heft_shard named = { .name = { "", 0 } };
        st = name_component(f, &named, c->name, from->missing);
        if (!st)
            heft_file_set_missing(f, named.error);
    }
    f->check_parts = f->check_parts || from->check_parts;
    return st;
}

/* ---- the pipeline ---- */

/* Fail with the error of the first component if no component is open. */
static heft_status check_files(const heft_pipeline_file *c, uint32_t count, heft_error *err)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!c[i].file && !c[i].error)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "component %q has neither a file nor an error", c[i].name);
        if (c[i].file && (!c[i].file->ready || !c[i].file->source))
            return heft_error_plain(err, HEFT_E_ARGUMENT, "component %q has no source", c[i].name);
        open += c[i].file != NULL;
    }
    if (!count)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there are no components to join");
    if (open)
        return HEFT_OK;
    heft_status st = status_of(c->error);
    heft_error_plain(err, st, "component %q: %s", c->name, c->error->message);
    return heft_error_os(err, st, c->error->os);
}

static heft_status reserve(heft_file *f, const heft_pipeline_file *c, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += 1 + (c[i].file ? (uint64_t)c[i].file->opened_shard_count : 0);
    if (total > UINT32_MAX || !heft_join_reserve(f, count))
        return HEFT_E_NOMEM;
    f->opened_shards = heft_mem_alloc(&f->x.mem, (size_t)total * sizeof *f->opened_shards);
    f->opened_shard_capacity = f->opened_shards ? (uint32_t)total : 0;
    return f->opened_shards ? HEFT_OK : HEFT_E_NOMEM;
}

static heft_status add_components(heft_file *f, heft_pipeline_file *c, uint32_t count,
                                  heft_error *err)
{
    const heft_file *first = NULL;
    heft_status st = reserve(f, c, count);
    f->x.err = err;
    for (uint32_t i = 0; i < count && !st; i++) {
        first = first ? first : c[i].file;
        st = c[i].file ? add_component(f, &c[i]) : add_missing(f, &c[i]);
    }
    f->x.err = NULL;
    if (st)
        return heft_error_no_memory(err, purpose);
    f->format = first->format;
    f->x.generator = first->x.generator;
    f->x.strict = first->x.strict;
    return HEFT_OK;
}

/* The step of heft_file_open_one(), for a file without tensors of its own. */
static heft_status join(heft_file *f, const char *name, heft_pipeline_file *c, uint32_t count,
                        heft_error *err)
{
    f->is_pipeline = true;
    f->name = heft_arena_copy(&f->x.arena, heft_lit(name));
    HEFT_TRY(f->name.ptr ? add_components(f, c, count, err) : heft_error_no_memory(err, purpose));
    heft_file_enter(f);
    heft_status st = heft_file_leave_after(f, heft_join_files(f, NULL, err), err);
    if (!st)
        st = heft_note_folder_files(f, err);
    if (!st && !HEFT_IS_LEAN)
        st = heft_assembly_add(f, err);
    if (!st && !heft_ix_list_tensor_checksums(&f->x))
        st = heft_error_no_memory(err, purpose);
    f->ready = !st;
    return st;
}

heft_status heft_file_join_pipeline(heft_file **out, heft_source *take, const char *name,
                                    heft_pipeline_file *take_files, uint32_t count,
                                    const heft_open_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = take ? heft_source_check(take, err)
                          : heft_error_plain(err, HEFT_E_ARGUMENT, "there is no source");
    if (!st)
        st = check_files(take_files, count, err);
    if (!st)
        st = heft_file_begin(out, take->size, opt, err);
    if (!st) {
        (*out)->source = take;
        take = NULL;
        st = join(*out, name, take_files, count, err);
    }
    heft_source_close(take);
    for (uint32_t i = 0; i < count; i++) {
        heft_file_close(take_files[i].file);
        take_files[i].file = NULL;
    }
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return heft_error_end(err, st);
}
