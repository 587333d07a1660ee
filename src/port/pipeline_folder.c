/* pipeline_folder.c - open a pipeline of the diffusers library as one model.
 *
 *     FOLDER/model_index.json
 *     FOLDER/unet/diffusion_pytorch_model.safetensors
 *     FOLDER/text_encoder/model.safetensors
 *
 * model_index.json names the components; the model of a component is what the component's folder
 * opens as.  A component that cannot be opened makes the pipeline incomplete. */
#include "port/pipeline_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char index_name[] = "model_index.json";

typedef struct pipeline {
    heft_pipeline_component components[HEFT_PIPELINE_COMPONENTS];
    heft_pipeline_file files[HEFT_PIPELINE_COMPONENTS];
    heft_error errors[HEFT_PIPELINE_COMPONENTS];
    heft_source *index;
    heft_settings *settings;
    uint32_t count, file_count, open_count;
} pipeline;

bool heft_is_pipeline_index(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !strcmp(slash ? slash + 1 : path, index_name);
}

/* ---- model_index.json ---- */

static heft_status parse_index(pipeline *p, heft_error *err)
{
    enum { MAX_BYTES = 1 << 20 };
    heft_error why;
    if (p->index->size > MAX_BYTES)
        return heft_error_plain(err, HEFT_E_LIMIT, "%s has %U bytes, more than %U", index_name,
                                p->index->size, (uint64_t)MAX_BYTES);
    size_t size = (size_t)p->index->size;
    char *text = malloc(size + 1);
    if (!text)
        return heft_error_no_memory(err, "for model_index.json");
    heft_status st = p->index->ops->read(p->index, 0, text, size, &why);
    if (!st)
        st = heft_settings_parse_json(&p->settings, (heft_str){ text, size }, NULL, &why);
    if (!st)
        st = heft_settings_pipeline(p->components, &p->count, p->settings, &why);
    free(text);
    if (!st)
        return HEFT_OK;
    heft_error_set(err, st, why.offset, "%s: %s", index_name, why.message);
    return heft_error_os(err, st, why.os);
}

/* Tell a missing index (no error) from a broken link. */
static heft_status check_absence(const char *path, heft_error *err)
{
    struct stat info;
    int dir = heft_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int failed = dir < 0 ? -1 : fstatat(dir, index_name, &info, AT_SYMLINK_NOFOLLOW), os = errno;
    if (dir >= 0)
        close(dir);
    if (failed && dir >= 0 && os == ENOENT)
        return HEFT_OK;
    return failed ? heft_os_error(err, os, "model_index.json cannot be looked for")
                  : heft_os_error(err, ENOENT,
                                  "model_index.json is a symbolic link that cannot be resolved");
}

/* Leave p->index NULL if the folder has no index. */
static heft_status open_index(pipeline *p, const char *path, heft_error *err)
{
    heft_error why;
    heft_status st = heft_source_open_in_folder(&p->index, path, index_name, HEFT_ACCESS_READ,
                                                &why);
    if (!st)
        return parse_index(p, err);
    p->index = NULL;
    if (why.os == ENOENT)
        return check_absence(path, err);
    if (st == HEFT_E_NOMEM)
        heft_error_plain(err, st, "%s", why.message);
    else
        heft_error_plain(err, st, "%s %s", index_name, why.message);
    return heft_error_os(err, st, why.os);
}

/* ---- components ---- */

static bool lacks_memory(heft_status st, const heft_error *why)
{
    return st == HEFT_E_NOMEM || (st && why->os == ENOMEM);
}

static heft_status open_component(pipeline *p, const heft_pipeline_component *c, const char *path,
                                  heft_component_opener open, const heft_open_options *opt)
{
    size_t len = strlen(path);
    char *folder = malloc(len + c->name.len + 2);
    heft_pipeline_file *file = &p->files[p->file_count];
    heft_error *why = &p->errors[p->file_count];
    if (!folder)
        return HEFT_E_NOMEM;
    memcpy(folder, path, len);
    folder[len] = '/';
    char *name = folder + len + 1;
    memcpy(name, c->name.ptr, c->name.len);
    name[c->name.len] = '\0';
    *file = (heft_pipeline_file){ .name = c->name };
    heft_status st = open(&file->file, folder, name, opt, why);
    free(folder);
    file->error = st ? why : NULL;
    p->open_count += !st;
    p->file_count++;
    return lacks_memory(st, why) ? HEFT_E_NOMEM : HEFT_OK;
}

static heft_status open_components(pipeline *p, const char *path, heft_component_opener open,
                                   const heft_open_options *opt, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < p->count && !st; i++)
        if (p->components[i].has_weights)
            st = open_component(p, &p->components[i], path, open, opt);
    return st ? heft_error_no_memory(err, "to open the components of a pipeline") : HEFT_OK;
}

/* ---- the pipeline ---- */

/* Join the components, unless the folder has no open component, but other weights. */
static heft_status join(heft_file **out, pipeline *p, const char *path,
                        const heft_open_options *opt, heft_error *err)
{
    char *other;
    const char *unused;
    heft_open_options o = *opt;
    heft_error why;
    heft_status st = heft_folder_main_file(&other, &unused, path, &why);
    bool has_other = !st;
    if (lacks_memory(st, &why))
        return heft_error_no_memory(err, "to list a folder");
    if (st && why.os && why.os != ENOENT) {
        heft_error_plain(err, st, "%s", why.message);
        return heft_error_os(err, st, why.os);
    }
    st = HEFT_OK;
    if (has_other)
        o.passed_over = strrchr(other, '/') + 1;
    if (p->open_count || !has_other) {
        st = heft_file_join_pipeline(out, p->index, index_name, p->files, p->file_count, &o, err);
        p->index = NULL;
    }
    free(other);
    return st;
}

heft_status heft_pipeline_folder_open(heft_file **out, const char *path, heft_component_opener open,
                                      const heft_open_options *opt, heft_error *err)
{
    *out = NULL;
    pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return heft_error_no_memory(err, "to open a folder");
    heft_status st = open_index(p, path, err);
    if (!st)
        st = open_components(p, path, open, opt, err);
    if (!st && p->file_count)
        st = join(out, p, path, opt, err);
    for (uint32_t i = 0; i < p->file_count; i++)
        heft_file_close(p->files[i].file);
    heft_source_close(p->index);
    heft_settings_close(p->settings);
    free(p);
    return st;
}
