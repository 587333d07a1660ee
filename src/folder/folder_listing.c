/* folder_listing.c - keeps the names of a folder that matter for the choice of files. */
#include "base/text.h"
#include "folder/rank_files.h"

void heft_folder_listing_init(heft_folder_listing *l, const heft_allocator *al)
{
    *l = (heft_folder_listing){ .mem = { al, UINT64_MAX, 0 } };
    l->arena.mem = &l->mem;
}

void heft_folder_listing_free(heft_folder_listing *l)
{
    heft_vec_free(&l->mem, &l->weights, sizeof(heft_weight_name));
    heft_vec_free(&l->mem, &l->modules, sizeof(const char *));
    heft_vec_free(&l->mem, &l->files, sizeof(heft_folder_file));
    heft_vec_free(&l->mem, &l->ranks, sizeof(heft_rank_row));
    heft_vec_free(&l->mem, &l->zero, sizeof(const char *));
    heft_arena_free(&l->arena);
}

/* Return the length of "2_" at the beginning, or 0. */
static size_t number_length(heft_str name)
{
    size_t digits = 0;
    while (digits < name.len && name.ptr[digits] >= '0' && name.ptr[digits] <= '9')
        digits++;
    return digits && digits < name.len && name.ptr[digits] == '_' ? digits + 1 : 0;
}

bool heft_folder_is_module(heft_str name)
{
    if (number_length(name))
        return true;
    /* A router names its routes: "query_0_Transformer". */
    for (size_t i = 0; i + 1 < name.len; i++) {
        heft_str rest = { name.ptr + i + 1, name.len - i - 1 };
        size_t number = name.ptr[i] == '_' ? number_length(rest) : 0;
        if (number && number < rest.len && rest.ptr[number] >= 'A' && rest.ptr[number] <= 'Z')
            return true;
    }
    return false;
}

static bool is_of_fsdp(heft_str name)
{
    return heft_str_begins(name, "pytorch_model_fsdp_");
}

static bool is_of_deepspeed(heft_str name)
{
    return heft_glob(HEFT_STR("global_step[0-9]*"), name);
}

bool heft_folder_is_zero(heft_str name)
{
    return heft_str_is(name, "zero");
}

bool heft_folder_has_pieces(heft_str name)
{
    return heft_folder_is_zero(name) || is_of_fsdp(name) || is_of_deepspeed(name) ||
           heft_str_begins(name, "mp_rank_") || heft_glob(HEFT_STR("iter_[0-9]*"), name);
}

/* Return true for a file with a rank's part of the tensors: of ZeRO-3, or of a model that is
 * spread by tensor or pipeline parallelism. */
static bool is_part_of_deepspeed(heft_str name)
{
    return heft_glob(HEFT_STR("zero_pp_rank_*_model_states.pt"), name) ||
           heft_glob(HEFT_STR("layer_[0-9]*-model_states.pt"), name) ||
           (heft_glob(HEFT_STR("mp_rank_[0-9]*_model_states.pt"), name) &&
            !heft_str_is(name, HEFT_DEEPSPEED_MODEL));
}

/* Return a copy with a terminator; NULL: no memory. */
static const char *keep(heft_folder_listing *l, heft_str name)
{
    char *copy = heft_arena_alloc(&l->arena, name.len + 1, 1);
    l->has_no_memory = l->has_no_memory || !copy;
    if (!copy)
        return NULL;
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    return copy;
}

/* Keep the first of the names, so that messages do not depend on their order. */
static void keep_first(heft_folder_listing *l, const char **first, heft_str name)
{
    if (!*first || heft_str_order(name, heft_lit(*first)) < 0)
        *first = keep(l, name);
}

/* Keep one file of weights for each module. */
static void add_in_module(heft_folder_listing *l, heft_str name, heft_str folder)
{
    const char *const *known = l->modules.ptr;
    for (uint32_t i = 0; i < l->modules.len; i++)
        if (heft_lit(known[i]).len > folder.len && !memcmp(known[i], folder.ptr, folder.len) &&
            known[i][folder.len] == '/')
            return;
    if (l->modules.len == HEFT_MAX_MODULES || !heft_weight_name_of(name.ptr + folder.len + 1).rank)
        return;
    const char *copy = keep(l, name);
    if (copy && !heft_vec_add(&l->mem, &l->modules, &copy, sizeof copy))
        l->has_no_memory = true;
}

/* Keep the file with the weights of a tensor, in a folder with the name of the tensor. */
static void add_in_zero(heft_folder_listing *l, heft_str name, heft_str folder)
{
    size_t end = folder.len + 1;
    while (end < name.len && name.ptr[end] != '/')
        end++;
    heft_str rest = { name.ptr + end, name.len - end };
    l->has_zero = true;
    if (heft_str_is(rest, "/"))
        keep_first(l, &l->zero_gap, name);
    if (!heft_str_is(rest, "/fp32.pt"))
        return;
    const char *copy = keep(l, name);
    if (copy && !heft_vec_add(&l->mem, &l->zero, &copy, sizeof copy))
        l->has_no_memory = true;
}

static void add_in_folder(heft_folder_listing *l, heft_str name, heft_str folder)
{
    heft_str rest = { name.ptr + folder.len + 1, name.len - folder.len - 1 };
    if (heft_folder_is_zero(folder))
        add_in_zero(l, name, folder);
    else if (heft_folder_has_pieces(folder))
        keep_first(l,
                   is_of_fsdp(folder)        ? &l->distributed
                   : is_of_deepspeed(folder) ? &l->deepspeed_folder
                                             : &l->megatron,
                   folder);
    l->module_folders += !rest.len && heft_folder_is_module(folder);
    bool is_deep = heft_str_seek((const uint8_t *)rest.ptr, (const uint8_t *)rest.ptr + rest.len,
                                 "/", 1);
    if (rest.len && !is_deep && heft_folder_is_module(folder))
        add_in_module(l, name, folder);
}

/* Keep a file of a rank of DeepSpeed. */
static void add_rank(heft_folder_listing *l, heft_str name)
{
    heft_rank_name n;
    bool is_cut = heft_rank_name_read(&n, name);
    l->has_experts = l->has_experts || heft_str_begins(name, "expp_rank_");
    if (is_cut ? n.parallel > 0 : is_part_of_deepspeed(name))
        keep_first(l, &l->parallel, name);
    const char *copy = is_cut ? keep(l, name) : NULL;
    if (copy && !heft_rank_files_keep(l, copy))
        l->has_no_memory = true;
}

static void add_file(heft_folder_listing *l, heft_str name)
{
    heft_weight_name w = heft_weight_name_of(name.ptr);
    l->is_pipeline = l->is_pipeline || heft_str_is(name, "model_index.json");
    l->has_modules = l->has_modules || heft_str_is(name, "modules.json");
    l->has_metadata = l->has_metadata || heft_str_is(name, "metadata.json");
    l->has_common = l->has_common || heft_str_is(name, "common.pt");
    add_rank(l, name);
    if (is_part_of_deepspeed(name)) {
        keep_first(l, &l->deepspeed, name);
        return;
    }
    if (name.ptr[0] != '.' && heft_str_ends(name, ".distcp")) {
        l->has_piece_files = true;
        keep_first(l, &l->distributed, name);
        return;
    }
    if (!w.rank && !w.foreign)
        return;
    const char *copy = keep(l, name);
    if (!copy)
        return;
    w = heft_weight_name_of(copy);
    bool is_first = !l->foreign.name || heft_str_order(name, heft_lit(l->foreign.name)) < 0;
    if (w.foreign && is_first)
        l->foreign = w;
    if (w.rank && !heft_vec_add(&l->mem, &l->weights, &w, sizeof w))
        l->has_no_memory = true;
}

void heft_folder_listing_add(heft_folder_listing *l, const char *text)
{
    heft_str name = heft_lit(text), folder = { text, 0 };
    while (folder.len < name.len && text[folder.len] != '/')
        folder.len++;
    if (folder.len < name.len)
        add_in_folder(l, name, folder);
    else
        add_file(l, name);
}
