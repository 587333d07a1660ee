/* folder_choice.c - choose the files of a model from the names of the files in a folder.
 *
 * Files with the same name but for their numbers, "m-00001-of-00002.gguf", are one candidate, a
 * set.  One candidate must have the highest rank; the others are reported, so that no weights are
 * left out in silence. */
#include "folder/rank_files.h"

#include "base/error.h"
#include "base/path_risk.h"
#include "base/sort.h"
#include "base/text.h"

/* The sets of further indices are named again, so that the time does not grow with the square of
 * the number of files. */
enum { MOST_INDICES = 64 };

typedef struct candidate {
    const heft_weight_name *first; /* the sorted rows */
    uint32_t count;
} candidate;

typedef struct choosing {
    heft_folder_listing *l;
    heft_weight_name *rows; /* sorted by set, number and name; each name once */
    candidate *all;
    uint32_t count;
    const candidate *indices[MOST_INDICES]; /* the first of the candidates that are an index */
    uint32_t index_count;
    const candidate *chosen;
    bool is_universal; /* the files of a universal checkpoint of DeepSpeed belong to it */
    bool has_ranks;    /* files of ranks of DeepSpeed belong to it */
    bool cuts;         /* they are of ZeRO-3 */
    heft_error *err;
} choosing;

static heft_status no_memory(const choosing *c)
{
    return heft_error_no_memory(c->err, "to list a folder");
}

/* ---- candidates ---- */

/* Return the rank in the name of a piece, "shard-00002-model-00001-of-00004.safetensors". */
static uint64_t rank_of(const heft_weight_name *w)
{
    uint64_t rank = 0;
    for (const char *at = w->name + sizeof "shard-" - 1; *at >= '0' && *at <= '9'; at++)
        rank = rank < UINT32_MAX ? rank * 10 + (uint64_t)(*at - '0') : rank;
    return rank;
}

/* Return the number of a piece among those of its rank; 1 of 1 if its name has none. */
static heft_numbered_name number_of(const heft_weight_name *w)
{
    heft_numbered_name n;
    if (!heft_numbered_name_read(&n, heft_lit(w->name)))
        n = (heft_numbered_name){ .number = 1, .count = 1 };
    return n;
}

/* Compare pieces by rank, then by number. */
static int order_pieces(const heft_weight_name *a, const heft_weight_name *b)
{
    uint64_t one = rank_of(a), other = rank_of(b);
    if (one == other) {
        one = number_of(a).number;
        other = number_of(b).number;
    }
    return one == other ? 0 : one < other ? -1 : 1;
}

/* Compare by the text around the number of a shard, then by the number. */
static int order(const heft_weight_name *a, const heft_weight_name *b)
{
    const heft_numbered_name *m = &a->numbered, *n = &b->numbered;
    if (a->is_piece != b->is_piece)
        return b->is_piece ? -1 : 1;
    heft_str one = m->count ? m->head : heft_lit(a->name);
    heft_str other = n->count ? n->head : heft_lit(b->name);
    int by = a->is_piece && b->is_piece ? order_pieces(a, b) : heft_str_order(one, other);
    if (!by && m->count && n->count)
        by = heft_str_order(m->of, n->of);
    if (!by && m->number != n->number)
        by = m->number < n->number ? -1 : 1;
    return by ? by : heft_str_order(heft_lit(a->name), heft_lit(b->name));
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_weight_name *rows = ctx;
    return order(&rows[a], &rows[b]) < 0;
}

/* Other programs, too, have a file of this name. */
static bool is_index_without_pieces(const choosing *c, const heft_weight_name *w)
{
    return heft_str_is(heft_lit(w->name), HEFT_DCP_INDEX) && !c->l->has_piece_files;
}

static bool are_one_set(const heft_weight_name *a, const heft_weight_name *b)
{
    return (a->is_piece && b->is_piece) ||
           (a->numbered.count && b->numbered.count &&
            heft_numbered_name_is_sibling(&a->numbered, &b->numbered));
}

/* Sort the rows, drop names that occur twice, and find the sets. */
static heft_status find_candidates(choosing *c)
{
    uint32_t n = c->l->weights.len, kept = 0;
    const heft_weight_name *given = c->l->weights.ptr;
    uint32_t *ids = heft_arena_alloc(&c->l->arena, (2 * (size_t)n + 1) * sizeof *ids,
                                     _Alignof(uint32_t));
    c->rows = heft_arena_alloc(&c->l->arena, ((size_t)n + 1) * sizeof *c->rows,
                               _Alignof(heft_weight_name));
    c->all = heft_arena_alloc(&c->l->arena, ((size_t)n + 1) * sizeof *c->all, _Alignof(candidate));
    if (!ids || !c->rows || !c->all || c->l->has_no_memory)
        return no_memory(c);
    heft_sort_numbers(ids, n, is_before, given);
    for (uint32_t i = 0; i < n; i++) {
        const heft_weight_name *row = &given[ids[i]], *last = kept ? &c->rows[kept - 1] : NULL;
        if ((last && !order(last, row)) || is_index_without_pieces(c, row))
            continue;
        if (!last || !are_one_set(last, row))
            c->all[c->count++] = (candidate){ &c->rows[kept], 0 };
        c->rows[kept++] = *row;
        c->all[c->count - 1].count++;
        if (row->is_index && c->index_count < MOST_INDICES)
            c->indices[c->index_count++] = &c->all[c->count - 1];
    }
    return HEFT_OK;
}

/* ---- choosing ---- */

static heft_str name_of(const candidate *c)
{
    return heft_lit(c->first->name);
}

/* A distributed checkpoint may have other files of PyTorch, such as common.pt, beside the pieces of
 * the tensors; a well-known name is a model of its own. */
static bool is_beside_pieces(const choosing *c, const heft_weight_name *w)
{
    const heft_folder_listing *l = c->l;
    bool has_pieces = l->distributed || (l->has_common && l->has_metadata);
    return has_pieces && w->rank < HEFT_WELL_KNOWN && heft_str_is(heft_lit(w->family), "torch");
}

static bool is_best(const choosing *c, const candidate *one, int rank)
{
    return one->first->rank == rank && !is_beside_pieces(c, one->first);
}

/* The names are sorted, so that the message does not depend on the order of the directory. */
static heft_status report_several(const choosing *c, int rank)
{
    heft_str name[3] = { { "", 0 }, { "", 0 }, { "", 0 } };
    uint64_t count = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (is_best(c, &c->all[i], rank) && count++ < 3)
            name[count - 1] = name_of(&c->all[i]);
    if (count == 2)
        return heft_error_plain(c->err, HEFT_E_IO,
                                "the folder has several weight files, %q and %q: name one of them",
                                name[0], name[1]);
    return heft_error_plain(c->err, HEFT_E_IO,
                            "the folder has %U weight files, among them %q, %q and %q: name one "
                            "of them",
                            count, name[0], name[1], name[2]);
}

static const char unfinished[] =
    "the folder has pieces of a distributed checkpoint (DCP) of PyTorch, such as %q, but not its "
    "index .metadata, which is written last: the checkpoint was not finished, or not copied whole";
static const char distributed[] =
    "the folder has a distributed checkpoint (DCP) of PyTorch in the folder %q: open that folder";
static const char megatron[] =
    "the folder is a distributed checkpoint of Megatron: %q has pieces of the tensors; if it is a "
    "folder with .metadata, open that folder";
static const char megatron_ranks[] =
    "the folder is a checkpoint of Megatron: each folder such as %q has the part of a rank, "
    "without "
    "partition_dim, the dimension that is cut: tools/checkpoint/convert.py of Megatron joins them; "
    "a single model_optim_rng.pt can be opened";
static const char deepspeed_folder[] =
    "the folder has a checkpoint of DeepSpeed in the folder %q: open that folder";

/* The message does not depend on the order of the directory. */
static heft_str first_module(const heft_folder_listing *l)
{
    const char *const *names = l->modules.ptr;
    heft_str first = heft_lit(names[0]);
    for (uint32_t i = 1; i < l->modules.len; i++)
        if (heft_str_order(heft_lit(names[i]), first) < 0)
            first = heft_lit(names[i]);
    return first;
}

static heft_status report_none(const choosing *c)
{
    const heft_folder_listing *l = c->l;
    bool has_ranks = l->megatron && heft_str_begins(heft_lit(l->megatron), "mp_rank_");
    if (l->deepspeed || l->zero.len)
        return heft_rank_files_report(l, c->err);
    if (l->distributed && !heft_format_find(heft_lit("dcp")))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                "the folder has a distributed checkpoint (DCP) of PyTorch, with "
                                "%q, and this build does not read files of PyTorch",
                                heft_lit(l->distributed));
    if (l->distributed)
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                l->has_piece_files ? unfinished : distributed,
                                heft_lit(l->distributed));
    if (l->megatron || (l->has_common && l->has_metadata))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED, has_ranks ? megatron_ranks : megatron,
                                heft_lit(l->megatron ? l->megatron : "common.pt"));
    if (l->deepspeed_folder)
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED, deepspeed_folder,
                                heft_lit(l->deepspeed_folder));
    if (l->foreign.foreign)
        return heft_error_plain(
            c->err, HEFT_E_UNSUPPORTED,
            "the folder has no weight file that this build reads: %q is a file of %s",
            heft_lit(l->foreign.name), l->foreign.foreign);
    if (l->modules.len)
        return heft_error_plain(c->err, HEFT_E_IO,
                                "the folder has weights in folders of modules only, such as %q: "
                                "name that folder or file",
                                first_module(l));
    return heft_error_plain(c->err, HEFT_E_IO, "the folder has no weight file");
}

static bool has_safetensors(const choosing *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (!c->all[i].first->is_index &&
            heft_str_is(heft_lit(c->all[i].first->family), "safetensors"))
            return true;
    return false;
}

static int best_rank(const choosing *c, bool allows_torch)
{
    int best = HEFT_NO_WEIGHTS;
    for (uint32_t i = 0; i < c->count; i++) {
        const heft_weight_name *w = c->all[i].first;
        bool counts = (allows_torch || !w->is_torch) && !is_beside_pieces(c, w);
        if (counts && w->rank > best)
            best = w->rank;
    }
    return best;
}

/* Choose a file that is no candidate. */
static heft_status make(choosing *c, const char *name)
{
    heft_weight_name *w = heft_arena_alloc(&c->l->arena, sizeof *w, _Alignof(heft_weight_name));
    candidate *made = heft_arena_alloc(&c->l->arena, sizeof *made, _Alignof(candidate));
    if (!w || !made)
        return no_memory(c);
    *w = heft_weight_name_of(name);
    *made = (candidate){ w, 1 };
    c->chosen = made;
    c->has_ranks = c->cuts = name == heft_rank_files_main(c->l);
    return HEFT_OK;
}

/* Several candidates may have the highest rank: the manifest of zTensor shards is chosen, which has
 * the shortest name. */
static heft_status choose(choosing *c)
{
    int best = best_rank(c, true);
    if (best >= HEFT_WELL_KNOWN && has_safetensors(c))
        best = best_rank(c, false);
    c->is_universal = heft_rank_files_are_universal(c->l);
    bool are_ranks = c->is_universal || heft_rank_files_are_one(c->l);
    if (c->l->has_no_memory)
        return no_memory(c);
    if (!best)
        return are_ranks && heft_rank_files_main(c->l) ? make(c, heft_rank_files_main(c->l))
                                                       : report_none(c);
    for (uint32_t i = 0; i < c->count; i++) {
        const candidate *one = &c->all[i];
        if (is_best(c, one, best) && (!c->chosen || name_of(one).len < name_of(c->chosen).len))
            c->chosen = one;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const candidate *one = &c->all[i];
        if (is_best(c, one, best) && one != c->chosen &&
            !heft_weight_name_is_manifest_of(c->chosen->first, one->first))
            return report_several(c, best);
    }
    bool is_states = heft_str_is(name_of(c->chosen), HEFT_DEEPSPEED_MODEL);
    c->is_universal = c->is_universal && (is_states || c->cuts);
    c->has_ranks = are_ranks && is_states && !c->l->deepspeed;
    return !c->is_universal && is_states && (c->l->deepspeed || c->l->has_zero)
               ? heft_rank_files_report(c->l, c->err)
               : HEFT_OK;
}

/* Find the candidate with the file that the caller has named, or make one. */
static heft_status choose_named(choosing *c, const char *named)
{
    for (uint32_t i = 0; i < c->count && !c->chosen; i++)
        for (uint32_t k = 0; k < c->all[i].count && !c->chosen; k++)
            if (heft_str_is(heft_lit(c->all[i].first[k].name), named))
                c->chosen = &c->all[i];
    if (c->chosen)
        return HEFT_OK;
    return make(c, named);
}

/* ---- the other files ---- */

static bool add_file(choosing *c, heft_vec *files, const char *name, heft_folder_role role)
{
    heft_folder_file file = { .name = name, .role = (uint8_t)role };
    return heft_vec_add(&c->l->mem, files, &file, sizeof file);
}

/* Return the name of the shard `number` of the chosen set: the given name, or a name for a shard
 * that is missing. */
static const char *shard_name(choosing *c, uint32_t number, uint32_t *at)
{
    const candidate *set = c->chosen;
    const heft_numbered_name *n = &set->first->numbered;
    if (*at < set->count && set->first[*at].numbered.number == number)
        return set->first[(*at)++].name;
    size_t len = heft_numbered_name_write(NULL, n, number, n->digits.len);
    char *name = heft_arena_alloc(&c->l->arena, len + 1, 1);
    if (!name)
        return NULL;
    heft_numbered_name_write(name, n, number, n->digits.len);
    name[len] = '\0';
    return name;
}

/* Without an index the first shard is needed: it may have the metadata. */
static heft_status report_headless(choosing *c)
{
    const candidate *set = c->chosen;
    const heft_numbered_name *n = &set->first->numbered;
    size_t len = heft_numbered_name_write(NULL, n, 1, n->digits.len);
    char *name = heft_arena_alloc(&c->l->arena, len, 1);
    if (!name)
        return no_memory(c);
    heft_numbered_name_write(name, n, 1, n->digits.len);
    return heft_error_plain(
        c->err, HEFT_E_IO,
        "the model is incomplete: the folder has %U of %U numbered shards, and "
        "neither an index nor the first shard %q; name a shard to read it alone",
        (uint64_t)set->count, (uint64_t)n->count, (heft_str){ name, len });
}

/* List the shards of the chosen set after the first shard that exists.  Numbers begin with 0 if
 * there is a shard 0, and no shard with the last number. */
static heft_status add_shards(choosing *c, heft_vec *files)
{
    const candidate *set = c->chosen;
    const heft_numbered_name *n = &set->first->numbered;
    uint32_t at = 1, first = n->number != 0;
    if (n->count > HEFT_MAX_SHARDS)
        return heft_error_plain(c->err, HEFT_E_LIMIT,
                                "%q is numbered as one of %U shards, more than %U", name_of(set),
                                (uint64_t)n->count, (uint64_t)HEFT_MAX_SHARDS);
    if (n->number > 1)
        return report_headless(c);
    for (uint32_t i = 1; i < set->count; i++)
        if (set->first[i].numbered.number == set->first[i - 1].numbered.number ||
            (!first && set->first[i].numbered.number == n->count))
            return heft_error_plain(c->err, HEFT_E_IO,
                                    "the folder has %q and %q, which are not shards of one set: "
                                    "name one of them",
                                    heft_lit(set->first[i - 1].name), heft_lit(set->first[i].name));
    for (uint32_t i = 0; i < n->count; i++) {
        if (first + i == n->number)
            continue;
        const char *name = shard_name(c, first + i, &at);
        if (!name || !add_file(c, files, name, HEFT_FOLDER_SHARD))
            return no_memory(c);
    }
    return HEFT_OK;
}

/* Without a piece, its tensors would be taken for smaller ones. */
static heft_status report_no_piece(const choosing *c, uint64_t rank, uint64_t number,
                                   uint64_t count)
{
    const candidate *set = c->chosen;
    return heft_error_plain(c->err, HEFT_E_IO,
                            "the checkpoint is incomplete: the folder has %U files like %q, but no "
                            "file of rank %U that is number %U of %U",
                            (uint64_t)set->count, name_of(set), rank, number, count);
}

/* List the other files of a distributed checkpoint in safetensors.  Each rank from 1 on has as many
 * files as the first. */
static heft_status add_pieces(choosing *c, heft_vec *files)
{
    const candidate *set = c->chosen;
    uint32_t count = number_of(set->first).count, number = 1;
    uint64_t rank = 1;
    for (uint32_t i = 0; i < set->count; i++) {
        const heft_weight_name *w = &set->first[i];
        heft_numbered_name own = number_of(w);
        if (own.count != count || own.number > count)
            return heft_error_plain(c->err, HEFT_E_IO,
                                    "the folder has %q and %q, which are not pieces of one "
                                    "checkpoint: name one of them",
                                    name_of(set), heft_lit(w->name));
        if (rank_of(w) != rank || own.number != number)
            return report_no_piece(c, rank, number, count);
        if (i && !add_file(c, files, w->name, HEFT_FOLDER_SHARD))
            return no_memory(c);
        rank += number == count;
        number = number == count ? 1 : number + 1;
    }
    return number == 1 ? HEFT_OK : report_no_piece(c, rank, number, count);
}

/* Return true if an index that is not chosen lists the set, which need not be named again. */
static bool is_listed_elsewhere(const choosing *c, const candidate *set)
{
    for (uint32_t i = 0; i < c->index_count; i++)
        if (c->indices[i] != c->chosen &&
            heft_weight_name_may_list(c->indices[i]->first, set->first))
            return true;
    return false;
}

/* An adapter is never part of the model.  Other formats and precisions are forms of the model, of
 * which one is enough. */
static heft_folder_role role_of(const heft_weight_name *chosen, const heft_weight_name *w)
{
    bool is_form = !heft_weight_name_is_related(chosen, w) ||
                   (w->is_adapter && !chosen->is_adapter) || heft_weight_name_is_variant(chosen, w);
    return is_form ? HEFT_FOLDER_ALTERNATIVE : HEFT_FOLDER_LEFT_OUT;
}

/* Other forms of a model that the caller has named are not reported. */
static heft_status add_others(choosing *c, heft_vec *files, bool is_named)
{
    const heft_folder_listing *l = c->l;
    bool fits = true;
    for (uint32_t i = 0; i < c->count && fits; i++) {
        const candidate *one = &c->all[i];
        heft_folder_role role = role_of(c->chosen->first, one->first);
        bool is_own = one == c->chosen || is_beside_pieces(c, one->first);
        bool is_skipped = role == HEFT_FOLDER_ALTERNATIVE && is_named;
        if (is_own || is_skipped || is_listed_elsewhere(c, one))
            continue;
        for (uint32_t k = 0; k < one->count && fits; k++)
            fits = add_file(c, files, one->first[k].name, role);
    }
    bool has_index = heft_str_is(heft_lit(c->chosen->first->name), HEFT_DCP_INDEX);
    if (fits && l->distributed && !has_index)
        fits = add_file(c, files, l->distributed, HEFT_FOLDER_LEFT_OUT);
    if (fits && l->megatron)
        fits = add_file(c, files, l->megatron, HEFT_FOLDER_LEFT_OUT);
    for (uint32_t i = 0; i < l->modules.len && l->has_modules && fits; i++)
        fits = add_file(c, files, ((const char *const *)l->modules.ptr)[i], HEFT_FOLDER_LEFT_OUT);
    return fits ? HEFT_OK : no_memory(c);
}

heft_status heft_folder_choose(heft_folder_choice *out, heft_folder_listing *l, const char *named,
                               heft_error *err)
{
    choosing c = { .l = l, .err = err };
    *out = (heft_folder_choice){ .main = NULL };
    HEFT_TRY(find_candidates(&c));
    HEFT_TRY(named ? choose_named(&c, named) : choose(&c));
    if (!named && c.chosen->first->numbered.count)
        HEFT_TRY(add_shards(&c, &l->files));
    if (!named && c.chosen->first->is_piece)
        HEFT_TRY(add_pieces(&c, &l->files));
    if (!named && c.is_universal)
        HEFT_TRY(heft_rank_files_add_universal(l, c.chosen->first->name, err));
    else if (!named && c.has_ranks)
        HEFT_TRY(heft_rank_files_add(l, c.chosen->first->name, c.cuts, err));
    HEFT_TRY(add_others(&c, &l->files, named));
    out->main = named ? named : c.chosen->first->name;
    out->folder = (heft_folder){ l->files.ptr, l->files.len, NULL };
    return HEFT_OK;
}

heft_status heft_folder_list_forms(heft_folder *out, heft_folder_listing *l, heft_error *err)
{
    choosing c = { .l = l, .err = err };
    heft_status st = find_candidates(&c);
    l->files.len = 0;
    for (uint32_t i = 0; i < c.count && !st; i++)
        for (uint32_t k = 0; k < c.all[i].count && !st; k++)
            if (!is_listed_elsewhere(&c, &c.all[i]) &&
                !add_file(&c, &l->files, c.all[i].first[k].name, HEFT_FOLDER_ALTERNATIVE))
                st = no_memory(&c);
    *out = (heft_folder){ l->files.ptr, l->files.len, NULL };
    return st;
}
