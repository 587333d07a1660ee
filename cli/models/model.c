#include "models/model.h"
#include "text/number_text.h"

#include <heft/ids.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft_ext.h>

#include "models/burn.h"
#include "process/message.h"
#include "process/textfile.h"
#include "text/outbuf.h"
#include "text/words.h"

int model_say_open_error(const session *s, const char *path, const heft_error *err)
{
    int code = say_error(path, err);
    const char *rule = err->rule ? err->rule : "";
    static const char *const schemes[] = { "hf:", "s3:", "https:", "http:" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i]);
        const char *rest = path + len;
        if (!strncmp(path, schemes[i], len) && strncmp(rest, "//", 2) != 0)
            say(MESSAGE_INFO, path, "is not an address: did you mean '%s//%s'?", schemes[i],
                rest + strspn(rest, "/"));
    }
    if (!strcmp(rule, "heft/limit-tensors") || !strcmp(rule, "heft/limit-index"))
        say(MESSAGE_INFO, path,
            "--max-tensors N raises this limit (now %u) and the limits on the index",
            s->limits.tensors ? s->limits.tensors : SESSION_TENSORS);
    return code;
}

heft_access model_access(const session *s)
{
    static const heft_access ways[] = { HEFT_ACCESS_AUTO, HEFT_ACCESS_MAP, HEFT_ACCESS_READ,
                                        HEFT_ACCESS_DIRECT };
    return ways[s->access];
}

static heft_open_options open_options(const session *s)
{
    heft_open_options options = HEFT_OPEN_OPTIONS_INIT;
    options.key = s->key;
    options.host = s->threads ? &s->host : NULL;
    options.no_verify = s->no_verify;
    options.check_parts = s->checks_parts && !s->no_verify;
    options.access = (uint8_t)model_access(s);
    options.follow_links = s->follow_links;
    options.folder = s->given.count ? &s->given : NULL;
    options.array_types = array_types_chosen(s);
    options.limits = &s->limits;
    return options;
}

static void say_text(void *ctx, const char *text)
{
    (void)ctx;
    say(MESSAGE_INFO, NULL, "%s", text);
}

/* Open a path or a URL; opened: see heft_url_options, or NULL. */
static heft_status open_any(const session *s, heft_file **out, const char *path,
                            const heft_open_options *options, char *opened, heft_error *err)
{
    heft_url_options how = HEFT_URL_OPTIONS_INIT;
    if (!heft_is_url(path))
        return heft_file_open(out, path, options, err);
    how.say = s->quiet ? NULL : say_text;
    how.opened = opened;
    return heft_file_open_url(out, path, options, &how, err);
}

heft_status model_try_open(const session *s, heft_file **out, const char *path, heft_error *err)
{
    heft_open_options options = open_options(s);
    return open_any(s, out, path, &options, NULL, err);
}

heft_status model_try_open_set(const session *s, heft_file **out, const char *path,
                               const heft_shard_folder *shards, heft_error *err)
{
    heft_open_options options = open_options(s);
    options.shards = shards;
    return heft_file_open(out, path, &options, err);
}

heft_status model_try_open_url(const session *s, heft_file **out, const char *url,
                               const heft_url_options *how, heft_error *err)
{
    heft_open_options options = open_options(s);
    return heft_file_open_url(out, url, &options, how, err);
}

heft_status model_open_to_verify(const session *s, heft_file **out, const char *path,
                                 heft_error *err)
{
    heft_open_options options = open_options(s);
    options.no_verify = true;
    return open_any(s, out, path, &options, NULL, err);
}

void model_say_notices(const session *s, const heft_file *f, const char *path)
{
    if (!s->quiet)
        notices_say(f, path, s->verbose, !s->reports_losses);
}

void model_say_notices_at_path(const session *s, const char *path)
{
    heft_file *f;
    if (model_open_to_verify(s, &f, path, NULL))
        return;
    model_say_notices(s, f, path);
    heft_file_close(f);
}

/* Close the file if an array of it has a type already, but another was chosen. */
static int keep_if_typed(const session *s, heft_file **out, const char *path)
{
    int code = array_types_check(s, *out, path);
    if (code) {
        heft_file_close(*out);
        *out = NULL;
    }
    return code;
}

int model_open_url(const session *s, heft_file **out, const char *path, char *opened)
{
    heft_error err;
    heft_open_options options = open_options(s);
    if (open_any(s, out, path, &options, opened, &err))
        return model_say_open_error(s, path, &err);
    if (heft_file_is_complete(*out, &err))
        say(MESSAGE_WARNING, path, "the model is incomplete: %s", err.message);
    model_say_notices(s, *out, path);
    return keep_if_typed(s, out, path);
}

int model_open(const session *s, heft_file **out, const char *path)
{
    return model_open_url(s, out, path, NULL);
}

static int keep_if_whole(heft_file **out, heft_file *f, const char *path)
{
    heft_error err;
    *out = f;
    if (!heft_file_is_complete(f, &err))
        return CODE_DONE;
    heft_file_close(f);
    *out = NULL;
    return say_error(path, &err);
}

int model_load_whole(const session *s, heft_file **out, const char *path)
{
    heft_error err;
    heft_file *f;
    *out = NULL;
    return model_try_open(s, &f, path, &err) ? model_say_open_error(s, path, &err)
                                             : keep_if_whole(out, f, path);
}

int model_open_whole(const session *s, heft_file **out, const char *path)
{
    int code = model_load_whole(s, out, path);
    if (!code)
        model_say_notices(s, *out, path);
    return code ? code : keep_if_typed(s, out, path);
}

int model_check_unchanged(const heft_file *f, const char *path)
{
    heft_error err;
    return heft_file_is_unchanged(f, &err) ? say_error(path, &err) : CODE_DONE;
}

int model_open_key_optional(const session *s, heft_file **out, const char *path)
{
    heft_file *f = NULL;
    heft_open_options options = open_options(s);
    options.key = NULL;
    bool is_open = s->key && !heft_file_open(&f, path, &options, NULL);
    bool is_nested = is_open && heft_format_caps(heft_file_format(f)) & HEFT_CAN_OPEN_KEY;
    if (is_nested)
        heft_file_close(f); /* reopened below, with the key */
    int code = is_open && !is_nested ? keep_if_whole(out, f, path) : model_load_whole(s, out, path);
    if (!code)
        model_say_notices(s, *out, path);
    return code;
}

/* ---- its files ---- */

static char *dir_of(const char *path, bool is_folder)
{
    const char *slash = strrchr(path, '/');
    if (is_folder)
        return strdup(path);
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

int model_find_dir(char **dir, const char *path)
{
    bool is_folder;
    int code = path_find_folder(&is_folder, path);
    *dir = code ? NULL : dir_of(path, is_folder);
    return code || *dir ? code : say_status(HEFT_E_NOMEM, path, "no memory for a path");
}

int model_find_beside(char **file, const char *path, const char *name)
{
    char *dir;
    int code = model_find_dir(&dir, path);
    *file = code ? NULL : path_in(dir, name);
    free(dir);
    return code || *file ? code : CODE_SYSTEM;
}

static bool is_in(bool *no_memory, const char *dir, heft_str name, const struct stat *file)
{
    char *text = strndup(name.ptr, name.len), *path = text ? path_in(dir, text) : NULL;
    bool is = path && path_is_same(path, file);
    *no_memory = *no_memory || !path;
    free(text);
    free(path);
    return is;
}

bool model_has_file(bool *no_memory, const heft_file *f, const char *path, const struct stat *file)
{
    char *dir = dir_of(path, path_is_folder(path));
    bool has = path_is_same(path, file) || (dir && is_in(no_memory, dir, heft_file_name(f), file));
    for (uint32_t i = 0; dir && !has && i < heft_shard_file_count(f); i++)
        has = is_in(no_memory, dir, heft_shard_file_at(f, i).name, file);
    *no_memory = *no_memory || !dir;
    free(dir);
    return has;
}

uint64_t model_size(const heft_file *f)
{
    uint64_t size = heft_file_size(f);
    for (uint32_t i = 0; i < heft_shard_file_count(f); i++) {
        heft_shard_file s = heft_shard_file_at(f, i);
        if (!s.status && !s.is_assembled)
            size += s.size;
    }
    return size;
}

/* ---- choosing ---- */

bool name_matches(bool *no_memory, heft_str name, const char *glob)
{
    char small[512];
    char *copy = name.len < sizeof small ? small : malloc(name.len + 1);
    if (!copy) {
        *no_memory = true;
        return false;
    }
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = 0;
    bool found = glob_matches(no_memory, copy, glob);
    if (copy != small)
        free(copy);
    return found;
}

/* Return true if any pattern matches the name; set used[k] if pattern k does. */
static bool matches_any(bool *no_memory, bool *used, heft_str name, char *const *globs, int count)
{
    bool matches = false;
    for (int k = 0; k < count; k++)
        if (name_matches(no_memory, name, globs[k]))
            matches = used[k] = true;
    return matches;
}

bool model_select(const session *s, selection *out, const heft_file *f, const char *path,
                  char *const *globs, int glob_count)
{
    uint32_t count = heft_tensor_count(f);
    *out = (selection){ NULL, count };
    if (!glob_count)
        return true;
    *out = (selection){ malloc(((size_t)count + 1) * sizeof *out->ids), 0 };
    bool *used = calloc((size_t)glob_count, sizeof *used), no_memory = !used || !out->ids;
    for (uint32_t i = 0; i < count && !no_memory; i++)
        if (matches_any(&no_memory, used, heft_tensor_at(f, i).name, globs, glob_count))
            out->ids[out->count++] = i;
    for (int k = 0; k < glob_count && !no_memory; k++)
        if (!used[k])
            unmatched_say(&(unmatched){ .f = f, .path = path, .strict = s->strict }, NULL,
                          globs[k]);
    free(used);
    if (!no_memory)
        return true;
    say_status(HEFT_E_NOMEM, path, "no memory for a list of %u tensors", count);
    free(out->ids);
    out->ids = NULL;
    return false;
}

uint32_t model_find(const heft_file *f, const char *path, const char *name)
{
    char hint[SUGGESTION_BYTES];
    suggestion s = { .word = str_of(name) };
    uint32_t id = heft_tensor_find(f, s.word);
    for (uint32_t i = 0; id == HEFT_NONE && i < heft_tensor_count(f); i++)
        suggestion_try(&s, heft_tensor_at(f, i).name);
    if (id == HEFT_NONE && !model_check_unchanged(f, path))
        say_status(HEFT_E_NOTFOUND, path, "no tensor named '%s'%s (`heft ls` lists the names)",
                   name, suggestion_text(hint, &s));
    return id;
}

/* Parse 32 hexadecimal digits, most significant first. */
static bool parse_base(heft_id *id, const char *text)
{
    heft_id found = { .kind = HEFT_ID_BASE };
    enum { BYTES = sizeof found.base.bytes };
    bool is_id = strlen(text) == (size_t)2 * BYTES;
    for (size_t i = 0; i < BYTES && is_id; i++, text += 2) {
        unsigned high = hex_digit(text[0]), low = hex_digit(text[1]);
        is_id = high < 16 && low < 16;
        found.base.bytes[BYTES - 1 - i] = (uint8_t)(high << 4 | low);
    }
    *id = is_id ? found : *id;
    return is_id;
}

uint32_t model_find_id(const heft_file *f, const char *path, const char *text)
{
    heft_id id = { .kind = HEFT_ID_BURN };
    bool is_hex = text[0] == '0' && (text[1] | 0x20) == 'x';
    uint32_t count = 0, tensor = HEFT_NONE;
    if (!parse_base(&id, text + (is_hex ? 2 : 0)) && !burn_read_id(&id.burn, text)) {
        say_status(
            HEFT_E_ARGUMENT, path,
            "'%s' is not an id: expected 32 hexadecimal digits (gpt-rs), a number below 2^64, or "
            "the 13 characters that Burn prints",
            text);
        return HEFT_NONE;
    }
    tensor = heft_tensor_find_id(f, &id, &count);
    if (!count && !model_check_unchanged(f, path))
        say_status(HEFT_E_NOTFOUND, path, "no tensor has the id '%s' (`heft ids` lists the ids)",
                   text);
    else if (count > 1)
        say_status(HEFT_E_ARGUMENT, path,
                   "%u tensors have the id '%s': choose one by name (`heft ids` lists the ids)",
                   count, text);
    return count == 1 ? tensor : HEFT_NONE;
}

/* Return the number of parts of a tensor, or of the file for HEFT_NONE, and the first part's
 * index. */
static uint32_t parts_of(const heft_file *f, uint32_t tensor, uint32_t *first)
{
    if (tensor == HEFT_NONE)
        return heft_file_parts(f, first);
    heft_tensor t = heft_tensor_at(f, tensor);
    *first = t.first_part;
    return t.part_count;
}

static void say_parts(const heft_file *f, const char *path, uint32_t tensor, const char *role)
{
    enum { MAX_LISTED = 8 };
    uint32_t first, count = parts_of(f, tensor, &first);
    outbuf list;
    out_open(&list, -1);
    for (uint32_t i = 0; i < count && i < MAX_LISTED; i++) {
        heft_part p = heft_part_at(f, first + i);
        out_text(&list, i ? ", " : "");
        out_escaped(&list, p.role);
    }
    out_text(&list, !count ? "none" : count > MAX_LISTED ? ", ..." : "");
    const char *owner = tensor == HEFT_NONE ? "the file" : "the tensor";
    if (role)
        say_status(HEFT_E_NOTFOUND, path, "%s has no part '%s' (parts: %s)", owner, role,
                   out_cstr(&list));
    else
        say_status(HEFT_E_NOTFOUND, path,
                   "%s has no part 'data': choose another with --part (parts: %s)", owner,
                   out_cstr(&list));
    out_free(&list);
}

uint32_t model_part(const heft_file *f, const char *path, uint32_t tensor, const char *role)
{
    const char *wanted = role ? role : "data";
    uint32_t first, count = parts_of(f, tensor, &first);
    uint32_t part = heft_part_find(f, tensor, heft_str_from(wanted));
    if (part == HEFT_NONE && !role && count == 1)
        return first;
    if (part == HEFT_NONE && !model_check_unchanged(f, path))
        say_parts(f, path, tensor, role);
    return part;
}

int model_code_of_missing(const heft_file *f)
{
    return heft_file_is_unchanged(f, NULL) ? CODE_SYSTEM : CODE_USAGE;
}

uint32_t model_values(const heft_file *f, uint32_t tensor)
{
    uint32_t part = heft_part_find(f, tensor, HEFT_STR("data"));
    return part != HEFT_NONE ? part : heft_part_find(f, tensor, HEFT_STR("values"));
}

uint64_t elements_in(heft_dtype t, uint64_t length, uint64_t max)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    if (!d)
        return 0;
    uint64_t blocks = length / d->block_bytes;
    uint64_t elements = blocks > UINT64_MAX / d->block_elems ? max : blocks * d->block_elems;
    return elements < max ? elements : max;
}

uint64_t tensor_elements(const heft_tensor *t)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!t->dims[i])
            return 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (product > UINT64_MAX / t->dims[i])
            return UINT64_MAX;
        product *= t->dims[i];
    }
    return product;
}

uint32_t tensor_position(uint64_t at[POSITION_RANK], const heft_tensor *t, uint64_t element)
{
    at[0] = element;
    if (t->layout != HEFT_DENSE || t->rank > POSITION_RANK)
        return 1;
    for (uint32_t axis = t->rank; axis-- > 0; element /= t->dims[axis])
        at[axis] = element % t->dims[axis];
    return t->rank;
}

uint32_t *model_find_tied(const heft_file *f, const char *path)
{
    heft_error err;
    uint32_t *tied = malloc(((size_t)heft_tensor_count(f) + 1) * sizeof *tied);
    if (!tied)
        say_status(HEFT_E_NOMEM, path, "no memory for a list of tensors");
    else if (heft_tensor_find_tied(tied, f, &err)) {
        say_error(path, &err);
        free(tied);
        tied = NULL;
    }
    return tied;
}

/* ---- spelling ---- */

const char *encoding_name(uint8_t encoding)
{
    static const char *const names[] = { "raw", "zstd", "deflate", "other", "msgpack", "protobuf" };
    return encoding < sizeof names / sizeof *names ? names[encoding] : "unknown";
}

void out_shape(outbuf *o, const uint64_t *dims, uint32_t rank)
{
    if (!out_reserve(o, (size_t)rank * (DIGITS + 1) + 2))
        return;
    char *to = o->buf + o->used;
    *to++ = '[';
    for (uint32_t i = 0; i < rank; i++) {
        if (i)
            *to++ = ',';
        to = put_u64(to, dims[i]);
    }
    *to++ = ']';
    o->used = (size_t)(to - o->buf);
}

void json_member_dtype(json *j, const char *key, heft_dtype t)
{
    const char *name = dtype_name(t);
    json_member_text(j, key, str_of(name ? name : ""));
}

void json_member_shape(json *j, const char *key, const uint64_t *dims, uint32_t rank)
{
    json_member_begin(j, key, '[');
    for (uint32_t i = 0; i < rank; i++)
        json_u64(j, dims[i]);
    json_end(j, ']');
}

void json_model_parts(json *j, const heft_file *f)
{
    uint32_t first, count = heft_file_parts(f, &first);
    json_member_begin(j, "parts", '[');
    for (uint32_t i = 0; i < count; i++) {
        heft_part p = heft_part_at(f, first + i);
        json_begin(j, '{');
        json_member_str(j, "role", p.role);
        json_member_u64(j, "offset", p.offset);
        json_member_u64(j, "stored", p.stored);
        json_member_length(j, "length", p.length);
        json_member_str(j, "encoding", str_of(encoding_name(p.encoding)));
        json_end(j, '}');
    }
    json_end(j, ']');
}

void json_file_head(json *j, const heft_file *f, const char *path)
{
    json_member_str(j, "file", str_of(stdin_name(path)));
    json_member_str(j, "format", str_of(heft_format_name(heft_file_format(f))));
    json_member_text(j, "version", heft_file_version(f));
    json_member_u64(j, "size", model_size(f));
}
