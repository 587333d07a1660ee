/* weight_names.c - the names that programs give to weights, and to other files of a training run.
 *
 * Patterns are those of heft_glob().  A numbered shard counts as its index would: a folder without
 * the index has the same model. */
#include "folder/weight_names.h"

#include "base/text.h"

static bool matches(const char *name, const char *pattern)
{
    return heft_glob(heft_lit(pattern), heft_lit(name));
}

static const char safetensors[] = "safetensors", torch[] = "torch", flax[] = "flax";

/* Names of weight files, the best first: docs/shards.md. */
static const struct preference {
    const char *pattern, *family;
} preferences[] = {
    { "model.safetensors", safetensors },
    { "model.safetensors.index.json", safetensors },
    { "diffusion_pytorch_model.safetensors", safetensors },
    { "diffusion_pytorch_model.safetensors.index.json", safetensors },
    { "consolidated.safetensors", safetensors },
    { "consolidated.safetensors.index.json", safetensors },
    { "adapter_model.safetensors", safetensors },
    { "*.safetensors.index.json", safetensors },
    { "*.safetensors.index.*.json", safetensors },
    { "*.safetensors.*.index.json", safetensors },
    { "pytorch_model.bin", torch },
    { "pytorch_model.bin.index.json", torch },
    { "diffusion_pytorch_model.bin", torch },
    { "diffusion_pytorch_model.bin.index.json", torch },
    { "consolidated.pth", torch },
    { "consolidated.*.pth", torch },
    { "adapter_model.bin", torch },
    { "*.bin.index.json", torch },
    { "*.bin.index.*.json", torch },
    { "*.bin.*.index.json", torch },
    { "flax_model.msgpack", flax },
    { "flax_model.msgpack.index.json", flax },
    { "*.msgpack.index.json", flax },
    { "*.weights.json", "keras" },
    { HEFT_DCP_INDEX, torch },
    { "*.nemo", torch },
    { "*.pt2", torch },
    { "*.llamafile", "gguf" },
};
enum {
    PREFERENCES = sizeof preferences / sizeof *preferences,
    BEST = HEFT_WELL_KNOWN + 2 * PREFERENCES - 1 /* two ranks for each row */
};

/* Files that are not weights in a format of Heft.  format NULL: not the weights of a model. */
static const struct {
    const char *pattern, *format;
} other_files[] = {
    { "training_args.bin", NULL },
    { "optimizer*.bin", NULL },
    { "optim_world_size_*_rank_*.pt", NULL },
    { "extra_state_world_size_*_rank_*.pt", NULL },
    { "*zero_pp_rank_*optim_states.pt", NULL },
    { "expp_rank_*_optim_states.pt", NULL },
    { "optimizer*.pt", NULL },
    { "optimizer*.pth", NULL },
    { "scheduler*.bin", NULL },
    { "scheduler*.pt", NULL },
    { "scheduler*.pth", NULL },
    { "sampler*.bin", NULL },
    { "scaler*.pt", NULL },
    { "rng_state*.pth", NULL },
    { "rng_state*.pt", NULL },
    { "*.onnx", "ONNX" },
    { "tf_model*.h5", "TensorFlow" },
    { "saved_model.pb", "TensorFlow" },
    { "*.ckpt.index", "TensorFlow" },
    { "*.tflite", "TensorFlow Lite" },
    { "*.h5", "Keras" },
    { "*.keras", "Keras" },
    { "openvino_model*.xml", "OpenVINO" },
    { "openvino_model*.bin", "OpenVINO" },
    { "*.mlmodel", "Core ML" },
    { "*.pdparams", "PaddlePaddle" },
};
enum { OTHER_FILES = sizeof other_files / sizeof *other_files };

/* A build may read a format that another does not. */
static size_t find_other(const char *name)
{
    size_t i = 0;
    bool is_read = heft_format_for_path(name);
    while (i < OTHER_FILES &&
           (!matches(name, other_files[i].pattern) || (is_read && other_files[i].format)))
        i++;
    return i;
}

static bool has_suffix(const char *name, const char *suffix)
{
    heft_str s = heft_lit(name);
    return heft_str_ends(s, suffix) && s.len > heft_lit(suffix).len;
}

/* ---- well-known names ---- */

/* Return true if the shard of a set has the row's index. */
static bool is_shard_of_row(const heft_numbered_name *n, const char *pattern)
{
    heft_str stem = heft_numbered_name_stem(n), row = heft_lit(pattern);
    size_t len = stem.len + n->tail.len;
    return *pattern != '*' && row.len > len && !memcmp(row.ptr, stem.ptr, stem.len) &&
           !memcmp(row.ptr + stem.len, n->tail.ptr, n->tail.len) &&
           heft_str_is(heft_lit(pattern + len), ".index.json");
}

static int find_preference(const char *name, const heft_numbered_name *n)
{
    int i = 0;
    while (i < PREFERENCES && (n->count ? !is_shard_of_row(n, preferences[i].pattern)
                                        : !matches(name, preferences[i].pattern)))
        i++;
    return i;
}

/* A set has at least two shards; other numbers are part of a name. */
static bool read_number(heft_numbered_name *out, const char *name)
{
    if (heft_numbered_name_read(out, heft_lit(name)) && out->count > 1 && out->number <= out->count)
        return true;
    *out = (heft_numbered_name){ .count = 0 };
    return false;
}

static void rank_by_suffix(heft_weight_name *w)
{
    const heft_format *format = heft_format_for_path(w->name);
    bool is_unknown = has_suffix(w->name, ".bin") || has_suffix(w->name, ".ckpt");
    if (format) {
        w->rank = HEFT_WEIGHTS;
        w->family = heft_format_name(format);
    } else if (is_unknown && heft_format_find(heft_str_from(torch))) {
        w->rank = HEFT_UNKNOWN_WEIGHTS;
        w->family = torch;
    }
}

heft_weight_name heft_weight_name_of(const char *name)
{
    heft_weight_name w = { .name = name, .family = "" };
    bool is_hidden = *name == '.' && !heft_str_is(heft_lit(name), HEFT_DCP_INDEX);
    size_t other = is_hidden ? 0 : find_other(name);
    if (is_hidden)
        return w;
    if (other < OTHER_FILES) {
        w.foreign = other_files[other].format;
        return w;
    }
    w.is_piece = matches(name, "shard-[0-9]*-model-*.safetensors");
    if (!w.is_piece)
        read_number(&w.numbered, name);
    w.is_adapter = matches(name, "adapter_model.*") || matches(name, "adapters.safetensors");
    int i = find_preference(name, &w.numbered);
    if (i == PREFERENCES) {
        rank_by_suffix(&w);
        return w;
    }
    w.family = preferences[i].family;
    w.is_torch = w.family == torch;
    w.is_index = !w.numbered.count && has_suffix(name, ".json");
    w.rank = BEST - 2 * i - (w.numbered.count > 0); /* an index comes before its shards */
    if (w.family != safetensors && !heft_format_find(heft_str_from(w.family))) {
        w.rank = HEFT_NO_WEIGHTS;
        w.foreign = w.is_torch ? "PyTorch" : "Flax";
    }
    return w;
}

/* ---- two names ---- */

heft_str heft_weight_name_base(const heft_weight_name *w)
{
    heft_str base = w->numbered.count ? heft_numbered_name_stem(&w->numbered) : heft_lit(w->name);
    size_t len = 0;
    while (len < base.len && base.ptr[len] != '.')
        len++;
    return (heft_str){ base.ptr, len };
}

/* Find the first part between dots that is neither the base nor a suffix; false: there is none. */
static bool find_variant(heft_str *out, heft_str text, bool has_base, bool has_suffix)
{
    size_t from = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.ptr[i] != '.')
            continue;
        heft_str part = { text.ptr + from, i - from };
        bool is_suffix = (has_suffix && i == text.len) || heft_str_is(part, safetensors) ||
                         heft_str_is(part, "bin") || heft_str_is(part, "msgpack") ||
                         heft_str_is(part, "index");
        if (part.len && !is_suffix && (from || !has_base)) {
            *out = part;
            return true;
        }
        from = i + 1;
    }
    return false;
}

static heft_str variant_of(const heft_weight_name *w)
{
    const heft_numbered_name *n = &w->numbered;
    heft_str out = { "", 0 };
    if (!n->count)
        find_variant(&out, heft_lit(w->name), true, true);
    else if (!find_variant(&out, heft_numbered_name_stem(n), true, false))
        find_variant(&out, n->tail, false, true);
    return out;
}

bool heft_weight_name_is_related(const heft_weight_name *a, const heft_weight_name *b)
{
    return heft_str_is(heft_lit(a->family), b->family);
}

/* Return true if the part of a name says how numbers are stored, or that they are averages: a file
 * with another word, as in model.mtp.safetensors, may have further weights. */
static bool is_other_form(heft_str variant)
{
    static const char *const forms[] = { "fp*", "bf16",  "f16",   "f32",  "*int[0-9]*", "*[0-9]bit",
                                         "nf4", "mxfp*", "nvfp*", "*ema", "*ema_only",  "half" };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (heft_glob(heft_lit(forms[i]), variant))
            return true;
    return !variant.len;
}

heft_str heft_weight_name_variant(const heft_weight_name *w)
{
    heft_str variant = variant_of(w);
    return is_other_form(variant) ? variant : (heft_str){ "", 0 };
}

static bool is_number(heft_str s)
{
    size_t i = 0;
    while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
        i++;
    return s.len && i == s.len;
}

bool heft_weight_name_is_variant(const heft_weight_name *a, const heft_weight_name *b)
{
    heft_str one = variant_of(a), other = variant_of(b);
    return heft_weight_name_is_related(a, b) &&
           heft_str_eq(heft_weight_name_base(a), heft_weight_name_base(b)) &&
           !heft_str_eq(one, other) && is_other_form(one) && is_other_form(other);
}

bool heft_weight_name_may_list(const heft_weight_name *index, const heft_weight_name *shard)
{
    return index->is_index && shard->numbered.count && heft_weight_name_is_related(index, shard) &&
           heft_str_eq(heft_weight_name_base(index), heft_weight_name_base(shard)) &&
           heft_str_eq(variant_of(index), variant_of(shard));
}

bool heft_weight_name_is_manifest_of(const heft_weight_name *root, const heft_weight_name *shard)
{
    static const char suffix[] = ".zt";
    enum { SUFFIX = sizeof suffix - 1 };
    heft_str r = heft_lit(root->name), s = heft_lit(shard->name);
    if (!heft_str_ends(r, suffix) || !heft_str_ends(s, suffix) || s.len <= r.len + 1)
        return false;
    size_t stem = r.len - SUFFIX;
    heft_str number = { s.ptr + stem + 1, s.len - SUFFIX - stem - 1 };
    return !memcmp(r.ptr, s.ptr, stem) && s.ptr[stem] == '-' && is_number(number);
}

/* Return true for a name such as "model-1.zt" if the root is "model.zt". */
static bool is_numbered_shard_of(heft_str name, heft_str root)
{
    size_t stem = root.len;
    while (stem && root.ptr[stem - 1] != '.')
        stem--;
    if (stem < 2)
        return false;
    heft_str suffix = { root.ptr + stem - 1, root.len - stem + 1 };
    return name.len > root.len && !memcmp(name.ptr, root.ptr, stem - 1) &&
           name.ptr[stem - 1] == '-' &&
           !memcmp(name.ptr + name.len - suffix.len, suffix.ptr, suffix.len);
}

bool heft_weight_name_may_be_index_of(const char *index, const char *shard)
{
    heft_weight_name w = heft_weight_name_of(index);
    return (w.is_index && heft_weight_name_base(&w).len) ||
           is_numbered_shard_of(heft_str_from(shard), heft_str_from(index));
}
