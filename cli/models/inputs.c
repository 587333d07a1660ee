#include "models/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "models/quantised.h"
#include "process/textfile.h"

static int parse_type(heft_dtype *out, const session *s, const char *type)
{
    *out = heft_dtype_find(str_of(type));
    bool is_float = *out == HEFT_F32 || *out == HEFT_F16 || *out == HEFT_BF16;
    return !*type || is_float
               ? CODE_DONE
               : say_usage(s->name, "--dequantize takes f32, f16 or bf16, not '%s'", type);
}

/* Count the tensors of block types that are part of no scheme; *first is the type of one. */
static uint32_t count_blocks(heft_dtype *first, const heft_file *f, const heft_schemes *schemes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_dtype type = heft_tensor_at(f, i).dtype;
        const heft_dtype_info *info = heft_dtype_get(type);
        if (!info || info->kind != HEFT_DTYPE_BLOCK || heft_schemes_find(schemes, i) != HEFT_NONE)
            continue;
        *first = count++ ? *first : type;
    }
    return count;
}

/* Say how many tensors were decoded, by scheme or type, in one line. */
static void say_decoded(const session *s, const dequantised *d, const char *path, uint32_t blocks,
                        heft_dtype type)
{
    uint32_t schemes = heft_schemes_count(d->schemes), count = schemes + blocks;
    heft_str scheme = schemes ? heft_schemes_at(d->schemes, 0).scheme : str_of(dtype_name(type));
    if (!s->quiet)
        say(MESSAGE_NOTE, path, "%u quantised tensor%s decoded (%.*s%s)%s", count,
            count == 1 ? " is" : "s are", (int)scheme.len, scheme.ptr, count > 1 ? " ..." : "",
            schemes ? "; scales are left out" : "");
}

int dequantise(dequantised *d, const session *s, const heft_file *f, const char *path,
               const char *type, bool with_blocks)
{
    heft_error err;
    heft_decode_options opt = HEFT_DECODE_OPTIONS_INIT;
    heft_dtype first = HEFT_UNTYPED;
    uint32_t blocks = 0;
    *d = (dequantised){ NULL, NULL };
    int code = parse_type(&opt.as, s, type);
    if (!code)
        code = quantised_open_to_convert(&d->schemes, f, path);
    if (!code && with_blocks)
        blocks = count_blocks(&first, f, d->schemes);
    if (!code && !heft_schemes_count(d->schemes) && !blocks)
        code = say_status(HEFT_E_UNSUPPORTED, path,
                          "no quantised tensor is recognised: --dequantize has nothing to decode");
    opt.verify = !s->no_verify;
    opt.decodes_blocks = with_blocks;
    opt.refuses_infinity = true;
    if (!code && heft_schemes_decode(&d->model, f, d->schemes, &opt, &err))
        code = say_error(path, &err);
    if (!code)
        say_decoded(s, d, path, blocks, first);
    return code;
}

/* nvfp4 with a factor is in GGUF, too. */
static bool has_form(const heft_format *target, const heft_quantised *q)
{
    return heft_format_caps(target) & HEFT_CAN_SCHEMES ||
           str_same(q->variant, str_of(heft_format_title(target)));
}

/* Formats have a layout or lack it: the conversion says so. */
static bool has_own_layout(const heft_file *f, const heft_schemes *found, uint32_t i)
{
    uint32_t tensor = heft_schemes_part_at(found, i, 0).tensor;
    return heft_tensor_at(f, tensor).layout != HEFT_DENSE;
}

static int say_formless(const heft_quantised *q, const session *s, const char *path,
                        const heft_format *target)
{
    bool has_option = !strcmp(s->name, "convert") || !strcmp(s->name, "append");
    heft_error err = { .status = HEFT_E_UNSUPPORTED,
                       .rule = "heft/quantised",
                       .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message,
             "tensor '%.*s' is quantised (%.*s), for which %s files have no form. "
             "--dequantize decodes it%s",
             (int)q->name.len, q->name.ptr, (int)q->scheme.len, q->scheme.ptr,
             heft_format_name(target),
             has_option ? "; --raw-tensors stores the parts as tensors of their own" : "");
    return say_error(path, &err);
}

int dequantise_check_target(const session *s, const heft_file *f, const char *path,
                            const heft_format *target)
{
    heft_schemes *found = NULL;
    if (target == heft_file_format(f) || heft_format_caps(target) & HEFT_CAN_SCHEMES)
        return CODE_DONE;
    int code = quantised_open(&found, f, path);
    for (uint32_t i = 0; !code && i < heft_schemes_count(found); i++) {
        heft_quantised q = heft_schemes_at(found, i);
        if (!has_form(target, &q) && !has_own_layout(f, found, i))
            code = say_formless(&q, s, path, target);
    }
    heft_schemes_close(found);
    return code;
}

void dequantised_release(dequantised *d)
{
    heft_file_close(d->model);
    heft_schemes_close(d->schemes);
    *d = (dequantised){ NULL, NULL };
}

bool inputs_contain(char reason[128], heft_status *status, const input *all, size_t count,
                    const struct stat *info)
{
    enum { REASON = 128 };
    for (size_t i = 0; i < count; i++) {
        bool no_memory = false, is = all[i].path && path_is_same(all[i].path, info);
        if (!is && all[i].model)
            is = model_has_file(&no_memory, all[i].model, all[i].path, info);
        if (!is && !no_memory)
            continue;
        if (is)
            snprintf(reason, REASON, "is %s: inputs are never overwritten", all[i].label);
        else
            snprintf(reason, REASON, "no memory to check whether the output is an input");
        *status = is ? HEFT_E_ARGUMENT : HEFT_E_NOMEM;
        return true;
    }
    return false;
}

int inputs_check(const char *name, const input *all, size_t count, const struct stat *info)
{
    char reason[128];
    heft_status status;
    if (inputs_contain(reason, &status, all, count, info))
        return say_status(status, name, "%s", reason);
    return CODE_DONE;
}

int inputs_check_output(const char *out, const input *in, bool force)
{
    struct stat info;
    if (!out || stat(out, &info))
        return CODE_DONE;
    int code = inputs_check(out, in, 1, &info);
    if (code)
        return code;
    if (S_ISDIR(info.st_mode))
        return say_status(HEFT_E_ARGUMENT, out, "is a directory");
    if (S_ISREG(info.st_mode) && !force)
        return say_status(HEFT_E_ARGUMENT, out, "already exists: --force replaces it");
    return CODE_DONE;
}

/* ---- several models as input ---- */

/* Return true if file i is a shard of another input. *no_memory is set if a path could not be
 * built. */
static bool is_shard_of_another(bool *no_memory, const inputs *in, uint32_t i)
{
    struct stat info;
    bool is = false;
    if (stat(in->paths[i], &info) || !S_ISREG(info.st_mode))
        return false;
    for (uint32_t k = 0; k < in->count && !is; k++)
        is = k != i && heft_shard_file_count(in->files[k]) && !path_is_same(in->paths[k], &info) &&
             model_has_file(no_memory, in->files[k], in->paths[k], &info);
    return is;
}

/* Offer the other arguments, in their order, as the shards of the first. */
typedef struct given_shards {
    heft_access access;
    char *const *paths;
    uint32_t count, next;
} given_shards;

static heft_status open_given(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    given_shards *g = ctx;
    (void)name;
    *out = NULL;
    if (g->next == g->count)
        return HEFT_E_NOTFOUND;
    return heft_source_open_file(out, g->paths[g->next++], g->access, err);
}

/* Open the first argument with the others as its shards, if that makes a model whole: the shards
 * may have other names, or lie in several folders. */
static bool open_as_set(inputs *in)
{
    given_shards given = { model_access(in->session), in->paths + 1, in->count - 1, 0 };
    const char *slash = strrchr(in->paths[0], '/');
    heft_shard_folder shards = { sizeof shards, slash ? slash + 1 : in->paths[0],
                                 open_given,    &given,
                                 NULL,          NULL };
    heft_file *f = NULL;
    bool is_set = in->count > 1 && !model_try_open(in->session, &f, in->paths[0], NULL) &&
                  heft_shard_file_count(f) == in->count - 1 && heft_file_is_complete(f, NULL);
    heft_file_close(f);
    f = NULL;
    is_set = is_set && !model_try_open_set(in->session, &f, in->paths[0], &shards, NULL) &&
             !heft_file_is_complete(f, NULL);
    in->files[0] = is_set ? f : NULL;
    if (!is_set)
        heft_file_close(f);
    return is_set;
}

int inputs_open(inputs *in)
{
    int code = CODE_DONE;
    bool no_memory = false;
    in->files = calloc(in->count, sizeof *in->files);
    in->distinct = calloc(in->count, sizeof *in->distinct);
    in->distinct_index = calloc(in->count, sizeof *in->distinct_index);
    in->distinct_paths = calloc(in->count, sizeof *in->distinct_paths);
    if (!in->files || !in->distinct || !in->distinct_index || !in->distinct_paths)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for a list of files");
    if (open_as_set(in)) {
        in->distinct[in->distinct_count++] = in->files[0];
        model_say_notices(in->session, in->files[0], in->paths[0]);
        return array_types_check(in->session, in->files[0], in->paths[0]);
    }
    for (uint32_t i = 0; i < in->count && !code; i++)
        code = model_load_whole(in->session, &in->files[i], in->paths[i]);
    if (!code)
        code = array_types_check(in->session, in->files[0], in->paths[0]);
    if (code)
        return code;
    for (uint32_t i = 0; i < in->count; i++)
        if (!is_shard_of_another(&no_memory, in, i)) {
            in->distinct_index[in->distinct_count] = i;
            in->distinct[in->distinct_count++] = in->files[i];
        }
    if (!in->distinct_count)
        in->distinct[in->distinct_count++] = in->files[0];
    if (no_memory)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for a list of files");
    for (uint32_t i = 0; i < in->distinct_count; i++) {
        in->distinct_paths[i] = in->paths[in->distinct_index[i]];
        model_say_notices(in->session, in->distinct[i], in->distinct_paths[i]);
    }
    return CODE_DONE;
}

int inputs_join(inputs *in, const heft_join_options *options, const char *name)
{
    heft_error err;
    if (in->distinct_count < 2 ||
        !heft_file_join(&in->joined, in->distinct, in->distinct_count, options, &err))
        return CODE_DONE;
    int code = model_say_open_error(in->session, name, &err);
    return err.status == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

static const heft_file *joined_model(const inputs *in)
{
    return in->joined ? in->joined : in->distinct[0];
}

/* The folder of a file; a folder is its own. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return path_is_folder(path) ? strlen(path) : slash ? (size_t)(slash - path) : 0;
}

/* Settings belong to the files of their folder; they cannot be told apart after joining. */
static int refuse_settings(const inputs *in)
{
    const char *first = in->paths[in->distinct_index[0]];
    bool is_any = false, is_same = true;
    for (uint32_t i = 0; i < in->distinct_count; i++) {
        bool has_settings;
        const char *path = in->paths[in->distinct_index[i]];
        int code = quantised_has_settings(&has_settings, path);
        if (code)
            return code;
        is_any = is_any || has_settings;
        is_same = is_same && folder_length(path) == folder_length(first) &&
                  !memcmp(path, first, folder_length(first));
    }
    return !is_any || is_same
               ? CODE_DONE
               : say_status(HEFT_E_UNSUPPORTED, first,
                            "the inputs are in several folders, and some have settings of a "
                            "quantised model: convert each with --dequantize first");
}

int inputs_dequantise(inputs *in, const char *type)
{
    int code = in->distinct_count > 1 ? refuse_settings(in) : CODE_DONE;
    return code ? code
                : dequantise(&in->decoded, in->session, joined_model(in),
                             in->paths[in->distinct_index[0]], type, true);
}

int inputs_check_target(const inputs *in, const heft_format *target)
{
    int code = CODE_DONE;
    if (in->decoded.model)
        return code;
    for (uint32_t i = 0; i < in->distinct_count && !code; i++)
        code = dequantise_check_target(in->session, in->distinct[i],
                                       in->paths[in->distinct_index[i]], target);
    if (!code && in->joined) /* parts may be in several files */
        code = dequantise_check_target(in->session, in->joined, in->paths[in->distinct_index[0]],
                                       target);
    return code;
}

const heft_file *inputs_model(const inputs *in)
{
    return in->decoded.model ? in->decoded.model : joined_model(in);
}

void inputs_close(inputs *in)
{
    dequantised_release(&in->decoded);
    heft_file_close(in->joined);
    for (uint32_t i = 0; in->files && i < in->count; i++)
        heft_file_close(in->files[i]);
    free(in->files);
    free(in->distinct);
    free(in->distinct_index);
    free(in->distinct_paths);
}
