/* pipeline_folder.c - open a pipeline of the diffusers library as one model, wherever the files are
 * stored.
 *
 *     FOLDER/model_index.json
 *     FOLDER/unet/diffusion_pytorch_model.safetensors
 *     FOLDER/text_encoder/model.safetensors
 *
 * model_index.json names the components; the model of a component is what the component's folder
 * opens as.  A component that cannot be opened makes the pipeline incomplete. */
#include "local/pipeline_folder.h"

#include <heft/companion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char index_name[] = HEFT_PIPELINE_INDEX;

enum { NAME_BYTES = 65 };

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

/* ---- components ---- */

static bool lacks_memory(heft_status st, const heft_error *why)
{
    return st == HEFT_E_NOMEM || (st && why->os == ENOMEM);
}

static heft_status open_component(pipeline *p, const heft_pipeline_component *c,
                                  const heft_pipeline_store *store, const heft_open_options *opt)
{
    char name[NAME_BYTES]; /* an identifier: see heft_settings_pipeline() */
    heft_pipeline_file *file = &p->files[p->file_count];
    heft_error *why = &p->errors[p->file_count];
    memcpy(name, c->name.ptr, c->name.len);
    name[c->name.len] = '\0';
    *file = (heft_pipeline_file){ .name = c->name };
    heft_status st = store->open_component(&file->file, store->ctx, name, opt, why);
    file->error = st ? why : NULL;
    p->open_count += !st;
    p->file_count++;
    return lacks_memory(st, why) ? HEFT_E_NOMEM : HEFT_OK;
}

static heft_status open_components(pipeline *p, const heft_pipeline_store *store,
                                   const heft_open_options *opt, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < p->count && !st; i++)
        if (p->components[i].has_weights)
            st = open_component(p, &p->components[i], store, opt);
    return st ? heft_error_no_memory(err, "to open the components of a pipeline") : HEFT_OK;
}

/* ---- the pipeline ---- */

/* Join the components, unless no component is open while the folder has other weights. */
static heft_status join_unless(heft_file **out, pipeline *p, heft_folder_listing *l,
                               const heft_open_options *opt, heft_error *err)
{
    heft_error why;
    heft_folder others;
    heft_folder_choice choice;
    heft_open_options o = *opt;
    heft_status st = heft_folder_choose(&choice, l, NULL, &why);
    if (st == HEFT_E_NOMEM)
        return heft_error_no_memory(err, "to list a folder");
    if (!st && !p->open_count)
        return HEFT_OK;
    st = heft_folder_list_forms(&others, l, err);
    if (st)
        return st;
    o.folder = &others;
    st = heft_file_join_pipeline(out, p->index, index_name, p->files, p->file_count, &o, err);
    p->index = NULL;
    return st;
}

static heft_status join(heft_file **out, pipeline *p, const heft_pipeline_store *store,
                        const heft_open_options *opt, heft_error *err)
{
    heft_error why;
    heft_folder_listing l;
    heft_status st = store->list(&l, store->ctx, &why);
    if (!st) {
        st = join_unless(out, p, &l, opt, err);
    } else if (lacks_memory(st, &why)) {
        st = heft_error_no_memory(err, "to list a folder");
    } else {
        heft_error_plain(err, st, "%s", why.message);
        st = heft_error_os(err, st, why.os);
    }
    heft_folder_listing_free(&l);
    return st;
}

heft_status heft_pipeline_open(heft_file **out, const heft_pipeline_store *store,
                               const heft_open_options *opt, heft_error *err)
{
    *out = NULL;
    pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return heft_error_no_memory(err, "to open a folder");
    heft_status st = store->open_index(&p->index, store->ctx, err);
    if (!st && p->index)
        st = parse_index(p, err);
    if (!st)
        st = open_components(p, store, opt, err);
    if (!st && p->file_count)
        st = join(out, p, store, opt, err);
    for (uint32_t i = 0; i < p->file_count; i++)
        heft_file_close(p->files[i].file);
    heft_source_close(p->index);
    heft_settings_close(p->settings);
    free(p);
    return st;
}
