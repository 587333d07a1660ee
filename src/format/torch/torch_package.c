/* torch_package.c - reads packages of torch.export (.pt2), since PyTorch 2.7: zip archives.
 *
 *   NAME/archive_format                              "pt2"
 *   NAME/archive_version                             "0"
 *   NAME/byteorder                                   of the storages
 *   NAME/models/MODEL.json                           the graph
 *   NAME/data/weights/MODEL.pt                       torch.save() of the weights: 2.7, 2.8
 *   NAME/data/weights/MODEL_weights_config.json      since 2.9: torch_package_config.c
 *   NAME/data/weights/weight_N                       a storage
 *   NAME/data/constants/MODEL.pt, MODEL_constants_config.json, tensor_N, custom_obj_N
 *   NAME/data/aotinductor/MODEL/...                  compiled code: torch_package_compiled.c
 *
 * Without NAME/ in packages of torch._inductor.package.  With several models the names of tensors
 * begin with that of the model.
 *
 * Reference: torch/export/pt2_archive/_package.py and torch/csrc/export/pt2_archive_constants.h. */
#include "format/torch/torch_package.h"
#include "format/zip_archive.h"

static const char format_path[] = "archive_format", weights[] = "data/weights/",
                  constants[] = "data/constants/", code[] = "data/aotinductor/";

enum { MOST_NAME = 255 }; /* bytes of a model's name, which each of its tensors repeats */

typedef enum kind { OTHER, SAVED, CONFIG, COMPILED, UNKNOWN_CONFIG, CODE } kind;

/* The first row that fits counts. */
static const struct {
    const char *folder, *suffix;
    kind kind;
} rows[] = {
    { weights, "_weights_config.json", CONFIG },
    { constants, "_constants_config.json", CONFIG },
    { weights, ".pt", SAVED },
    { constants, ".pt", SAVED },
    { weights, ".json", UNKNOWN_CONFIG },
    { constants, ".json", UNKNOWN_CONFIG },
    { code, "/weights_config.json", COMPILED },
    { code, ".so", CODE },
    { code, ".dll", CODE },
    { code, ".pyd", CODE },
    { code, ".o", CODE },
    { code, ".cpp", CODE },
};

static kind kind_of(heft_str path, heft_str *model)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t skip = heft_lit(rows[i].folder).len, end = heft_lit(rows[i].suffix).len;
        if (path.len < skip + end || !heft_str_begins(path, rows[i].folder) ||
            !heft_str_ends(path, rows[i].suffix))
            continue;
        *model = (heft_str){ path.ptr + skip, path.len - skip - end };
        return rows[i].kind;
    }
    return OTHER;
}

/* ---- recognition ---- */

/* Return true for a member that packages have; *root becomes the prefix of all members. */
static bool is_sign(heft_str name, heft_str *root)
{
    heft_str model;
    for (size_t at = 0; at <= name.len; at++) {
        heft_str path = { name.ptr + at, name.len - at };
        *root = (heft_str){ name.ptr, at };
        if (at && name.ptr[at - 1] != '/')
            continue;
        if (heft_str_is(path, format_path) || heft_str_is(path, HEFT_TORCH_FIRST_WEIGHT) ||
            kind_of(path, &model) == CONFIG)
            return true;
        if (at)
            return false;
    }
    return false;
}

static bool find_root(const heft_zip *z, heft_str *root)
{
    for (uint32_t i = 0; i < z->count; i++)
        if (is_sign(z->entries[i].name, root))
            return true;
    return false;
}

static bool has_slash(const char *text, size_t len)
{
    while (len && text[len - 1] != '/')
        len--;
    return len;
}

/* Return true for the pickle of torch.save(), mostly the first member. */
static bool is_pickle(heft_str name)
{
    static const char pickle[] = "/data.pkl";
    size_t end = sizeof pickle - 1;
    return heft_str_is(name, pickle + 1) ||
           (heft_str_ends(name, pickle) && !has_slash(name.ptr, name.len - end));
}

static bool has_text(heft_str s, const char *text)
{
    const uint8_t *from = (const uint8_t *)s.ptr;
    return heft_str_seek(from, from + s.len, text, heft_lit(text).len);
}

bool heft_torch_looks_like_package(heft_str first, heft_str directory)
{
    return heft_str_ends(first, "/" HEFT_TORCH_FIRST_WEIGHT) ||
           has_text(directory, "/archive_format") ||
           (has_text(directory, format_path) && has_text(directory, weights));
}

bool heft_torch_is_package(const heft_zip *z)
{
    heft_str root;
    for (uint32_t i = 0; i < z->count; i++)
        if (is_pickle(z->entries[i].name))
            return false;
    return find_root(z, &root);
}

/* Refuse versions whose members may mean something else. */
static heft_status check_version(const heft_torch_package *p)
{
    static const struct {
        const char *path, *content;
    } known[] = { { format_path, "pt2" }, { "archive_version", "0" } };
    enum { SHORT = 32 };
    for (uint32_t i = 0; i < p->zip->count; i++) {
        const heft_zip_entry *e = &p->zip->entries[i];
        heft_str path = heft_torch_package_path(p, e), text;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (!heft_str_is(path, known[k].path))
                continue;
            HEFT_TRY(heft_torch_package_text(p, e, SHORT, &text));
            if (!heft_str_is(text, known[k].content))
                return heft_error_set(p->t.x->err, HEFT_E_UNSUPPORTED, e->data,
                                      "the package has %s %q, and only %q is known", known[k].path,
                                      text, heft_lit(known[k].content));
        }
    }
    return HEFT_OK;
}

/* ---- models ---- */

/* Return true for a member that has, or describes, the weights of a model.  Those of compiled code
 * are those of a program, if there is one. */
static bool has_weights(const heft_torch_package *p, const heft_zip_entry *e, heft_str *model)
{
    heft_str path = heft_torch_package_path(p, e);
    kind k = path.ptr ? kind_of(path, model) : OTHER;
    return k == CONFIG || k == SAVED || (k == COMPILED && !p->has_programs);
}

static bool has_programs(const heft_torch_package *p)
{
    heft_str model;
    for (uint32_t i = 0; i < p->zip->count; i++) {
        heft_str path = heft_torch_package_path(p, &p->zip->entries[i]);
        kind k = path.ptr ? kind_of(path, &model) : OTHER;
        if (k == CONFIG || k == SAVED)
            return true;
    }
    return false;
}

/* Return true if the members belong to several models. */
static bool has_several_models(const heft_torch_package *p)
{
    heft_str first = { NULL, 0 }, model;
    for (uint32_t i = 0; i < p->zip->count; i++) {
        if (!has_weights(p, &p->zip->entries[i], &model))
            continue;
        if (first.ptr && !heft_str_eq(first, model))
            return true;
        first = model;
    }
    return false;
}

/* Add the tensors of a member that has weights, if its model is chosen. */
static heft_status read_model(heft_torch_package *p, const heft_zip_entry *e, bool is_prefixed)
{
    heft_str model, pick = p->t.x->pick;
    if (!has_weights(p, e, &model) || (pick.len && !heft_str_eq(pick, model)))
        return HEFT_OK;
    kind k = kind_of(heft_torch_package_path(p, e), &model);
    if (is_prefixed && model.len > MOST_NAME)
        return heft_error_set(p->t.x->err, HEFT_E_UNSUPPORTED, e->name_at,
                              "the name of the model %q has more than %U bytes", model,
                              (uint64_t)MOST_NAME);
    p->has_models = true;
    p->prefix = (heft_str){ "", 0 };
    if (k == SAVED)
        return heft_torch_package_saved(p, e, is_prefixed ? model : p->prefix);
    if (is_prefixed)
        p->prefix = heft_arena_join(&p->t.x->arena, model, heft_lit("."), heft_lit(""));
    if (!p->prefix.ptr)
        return heft_error_no_memory(p->t.x->err, "for the name of a model");
    return k == CONFIG ? heft_torch_package_config(p, e) : heft_torch_package_compiled(p, e);
}

static heft_status add_checksums(const heft_torch_package *p)
{
    for (uint32_t i = 0; i < p->t.storage_count; i++) {
        uint32_t tensor = p->t.storages[i].first_tensor;
        if (tensor != HEFT_NONE)
            HEFT_TRY(heft_torch_checksum(&p->t, p->members[i], tensor, false));
    }
    return HEFT_OK;
}

/* Leave out the members of the folder that no tensor was read from. */
static heft_status leave_rest_out(const heft_torch_package *p)
{
    for (uint32_t i = 0; i < p->t.storage_count; i++) {
        const heft_zip_entry *e = p->members[i];
        if (!p->is_read[i] && e->content)
            HEFT_TRY(heft_torch_package_leave_out(p, i, heft_torch_package_path(p, e),
                                                  "no configuration that is known names it"));
    }
    return HEFT_OK;
}

static heft_status read_folder(heft_torch_package *p, const char *folder, bool is_prefixed)
{
    heft_str model;
    HEFT_TRY(heft_torch_package_list(p, folder));
    for (uint32_t i = 0; i < p->t.storage_count; i++) {
        if (!has_weights(p, p->members[i], &model))
            continue;
        p->is_read[i] = true;
        HEFT_TRY(read_model(p, p->members[i], is_prefixed));
    }
    return HEFT_OK;
}

static heft_status read_compiled(heft_torch_package *p, bool is_prefixed)
{
    heft_str model;
    for (uint32_t i = 0; i < p->zip->count; i++) {
        const heft_zip_entry *e = &p->zip->entries[i];
        heft_str path = heft_torch_package_path(p, e);
        if (path.ptr && kind_of(path, &model) == COMPILED)
            HEFT_TRY(read_model(p, e, is_prefixed));
    }
    return HEFT_OK;
}

static heft_status end_folder(const heft_torch_package *p)
{
    if (!p->t.x->pick.len)
        HEFT_TRY(leave_rest_out(p));
    return add_checksums(p);
}

static heft_status read_models(heft_torch_package *p)
{
    bool is_prefixed = has_several_models(p) && !p->t.x->pick.len;
    HEFT_TRY(check_version(p));
    HEFT_TRY(read_folder(p, weights, is_prefixed));
    HEFT_TRY(read_compiled(p, is_prefixed));
    HEFT_TRY(end_folder(p));
    HEFT_TRY(read_folder(p, constants, is_prefixed));
    return end_folder(p);
}

/* ---- what is not read ---- */

static void report_rest(const heft_torch_package *p)
{
    heft_str model, first = { NULL, 0 };
    heft_range where = { HEFT_NOWHERE, 0 };
    uint64_t count = 0;
    heft_ix_note(p->t.x, HEFT_NOTE, "torch/package", p->zip->directory.offset, HEFT_NONE,
                 "a .pt2 package of torch.export: its graphs, inputs and extra files are not read");
    for (uint32_t i = 0; i < p->zip->count; i++) {
        const heft_zip_entry *e = &p->zip->entries[i];
        heft_str path = heft_torch_package_path(p, e);
        if (!path.ptr || kind_of(path, &model) != CODE)
            continue;
        if (!count++) {
            first = path;
            where = (heft_range){ e->data, e->stored };
        }
    }
    if (count)
        heft_ix_note_format(p->t.x, HEFT_NOTE, "torch/package-code", where, HEFT_NONE,
                            "the package has %U files of code, %q among them, which PyTorch runs",
                            count, first);
}

static heft_status end(const heft_torch_package *p)
{
    heft_index *x = p->t.x;
    if (!p->has_models && x->pick.len)
        return heft_error_rule(x->err,
                               heft_error_plain(x->err, HEFT_E_NOTFOUND,
                                                "there is nothing under the key %q: the package "
                                                "has no model of this name",
                                                x->pick),
                               "heft/no-key");
    if (!p->has_models && p->zip->is_recovered)
        return heft_error_set(x->err, HEFT_E_FORMAT, x->present,
                              "the archive ends before the configuration of its weights");
    if (!p->has_models)
        return heft_error_plain(x->err, HEFT_E_UNSUPPORTED, HEFT_ZIP_PT2);
    if (!heft_ix_tensors(x) && !x->left_out)
        heft_ix_left_out(x, HEFT_LEFT_OUT_READABLE, "torch/no-tensor",
                         (heft_range){ p->zip->directory.offset, 0 }, "the package has no tensor");
    x->version = heft_lit("pt2");
    return HEFT_OK;
}

heft_status heft_torch_parse_package(const heft_torch *t, const heft_zip *z)
{
    heft_torch_package p = { .zip = z, .t = { .in = t->in, .x = t->x } };
    p.t.is_big_endian = t->is_big_endian;
    p.t.budget = UINT64_MAX; /* nothing is shared */
    (void)find_root(z, &p.root);
    p.has_programs = has_programs(&p);
    report_rest(&p); /* the number of notes is limited */
    heft_status st = read_models(&p);
    if (p.lacks_bytes && st != HEFT_E_NOMEM) /* the first error in the file is that of a member */
        return HEFT_AGAIN;
    return st ? st : end(&p);
}
