#include "values/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "options/glob_rules.h"

static int say_no_memory(const comparison *c)
{
    return say_status(HEFT_E_NOMEM, c->path_a, "no memory for the comparison");
}

/* ---- pairs of the same name ---- */

static uint32_t compare_kinds(const comparison *c, const pair *p)
{
    heft_tensor a = heft_tensor_at(c->a, p->a), b = heft_tensor_at(c->b, p->b);
    uint32_t changes = a.dtype != b.dtype ? CHANGED_DTYPE : 0;
    if (a.rank != b.rank || (a.rank && memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) != 0))
        changes |= CHANGED_SHAPE;
    if (!str_same(heft_tensor_layout_name(c->a, p->a), heft_tensor_layout_name(c->b, p->b)))
        changes |= CHANGED_LAYOUT;
    return changes;
}

static pair make_pair(const comparison *c, uint32_t a, uint32_t b)
{
    pair p = { .a = a, .b = b };
    heft_dtype x = heft_tensor_at(c->a, a).dtype, y = heft_tensor_at(c->b, b).dtype;
    p.changes = compare_kinds(c, &p);
    p.has_values = !(p.changes & ~(uint32_t)CHANGED_DTYPE) && compare_suits(x, y);
    if (p.has_values && c->ignore_dtype)
        p.changes = 0;
    return p;
}

static bool is_selected(const comparison *c, heft_str name, bool *no_memory)
{
    bool is = !c->glob_count;
    for (int g = 0; g < c->glob_count && !is; g++)
        is = name_matches(no_memory, name, c->globs[g]);
    return is;
}

static uint32_t *make_partners(uint32_t count)
{
    uint32_t *partner = malloc(((size_t)count + 1) * sizeof *partner);
    for (uint32_t i = 0; partner && i < count; i++)
        partner[i] = HEFT_NONE;
    return partner;
}

static int find_names(comparison *c)
{
    c->names = renames_apply_to_file(&c->rename, c->a);
    if (!c->names)
        return say_no_memory_to_match(c->path_a);
    if (!c->rename.args.count)
        return CODE_DONE;
    unmatched u = { .f = c->a, .path = c->path_a, .strict = c->session->strict };
    renames_check(&u, &c->rename);
    return renames_refuse_collisions(c->a, c->path_a, c->names, NULL, NULL);
}

/* Leave out the tensors whose names no pattern matches. Warn about patterns without a tensor. */
static int leave_out(const comparison *c)
{
    uint32_t count_a = heft_tensor_count(c->a), count_b = heft_tensor_count(c->b);
    bool no_memory = false;
    for (int g = 0; g < c->glob_count; g++) {
        bool has_match = false;
        for (uint32_t i = 0; i < count_a && !has_match; i++)
            has_match = name_matches(&no_memory, c->names[i], c->globs[g]);
        for (uint32_t i = 0; i < count_b && !has_match; i++)
            has_match = name_matches(&no_memory, heft_tensor_at(c->b, i).name, c->globs[g]);
        if (!has_match && !no_memory)
            say(MESSAGE_WARNING, NULL, "no tensor of A or B matches '%s'", c->globs[g]);
    }
    for (uint32_t i = 0; i < count_a; i++)
        if (!is_selected(c, c->names[i], &no_memory))
            c->partner_a[i] = COMPARISON_LEFT_OUT;
    for (uint32_t i = 0; i < count_b; i++)
        if (!is_selected(c, heft_tensor_at(c->b, i).name, &no_memory))
            c->partner_b[i] = COMPARISON_LEFT_OUT;
    return no_memory ? say_no_memory_to_match(c->path_a) : CODE_DONE;
}

static int find_pairs(comparison *c)
{
    uint32_t count = heft_tensor_count(c->a);
    c->pairs = calloc((size_t)count + 1, sizeof *c->pairs);
    c->renamed = calloc((size_t)count + 1, sizeof *c->renamed);
    c->partner_a = make_partners(count);
    c->partner_b = make_partners(heft_tensor_count(c->b));
    if (!c->pairs || !c->renamed || !c->partner_a || !c->partner_b)
        return say_no_memory(c);
    int code = leave_out(c);
    for (uint32_t i = 0; i < count && !code; i++) {
        uint32_t b = heft_tensor_find(c->b, c->names[i]);
        if (b == HEFT_NONE || c->partner_a[i] == COMPARISON_LEFT_OUT)
            continue;
        c->partner_a[i] = b;
        c->partner_b[b] = i;
        c->pairs[c->count++] = make_pair(c, i, b);
    }
    return code;
}

/* ---- values ---- */

static void compare_pair(void *ctx, size_t i)
{
    work *w = ctx;
    const comparison *c = w->ctx;
    pair *p = &c->pairs[i];
    side a = { c->a, c->path_a, p->a, c->checks_a.read };
    side b = { c->b, c->path_b, p->b, c->checks_b.read };
    if (!p->has_values)
        return;
    compare_tensors(&p->d, w, &a, &b, c->t);
}

/* Register the parts of the tensors whose values are compared. */
static int begin_checks(comparison *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->count && ok; i++)
        if (c->pairs[i].has_values)
            ok = checks_add_tensor(&c->checks_a, c->a, c->pairs[i].a) &&
                 checks_add_tensor(&c->checks_b, c->b, c->pairs[i].b);
    int code = checks_begin(&c->checks_a, c->session, c->a, c->path_a);
    return code ? code : checks_begin(&c->checks_b, c->session, c->b, c->path_b);
}

/* The digests of decoded tensors are those of their parts, compared one after the other. */
static int verify_quantised(const comparison *c)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < c->count && !code; i++)
        if (c->pairs[i].has_values) {
            code = view_verify(c->view_a, c->session, c->path_a, c->pairs[i].a);
            if (!code)
                code = view_verify(c->view_b, c->session, c->path_b, c->pairs[i].b);
        }
    return code;
}

/* Return whether both files state the same digest for a part. Digests of fewer bytes may agree by
 * chance. */
static bool states_same_digest(const comparison *c, uint32_t part_a, uint32_t part_b)
{
    enum { TRUSTED_BYTES = 16 };
    heft_part_digest a, b;
    return part_b != HEFT_NONE && heft_part_stated_digest(&a, c->a, part_a) &&
           heft_part_stated_digest(&b, c->b, part_b) && a.len >= TRUSTED_BYTES && a.len == b.len &&
           !strcmp(a.algorithm, b.algorithm) && !memcmp(a.bytes, b.bytes, a.len) &&
           heft_part_at(c->a, part_a).dtype == heft_part_at(c->b, part_b).dtype;
}

static bool states_same_digests(const comparison *c, const pair *p)
{
    heft_tensor a = heft_tensor_at(c->a, p->a), b = heft_tensor_at(c->b, p->b);
    bool same = a.part_count == b.part_count;
    for (uint32_t i = 0; i < a.part_count && same; i++) {
        heft_part part = heft_part_at(c->a, a.first_part + i);
        same = states_same_digest(c, a.first_part + i, heft_part_find(c->b, p->b, part.role));
    }
    return same;
}

/* Leave out the values of pairs with equal stated digests. */
static void trust_digests(comparison *c)
{
    for (size_t i = 0; i < c->count && c->trusts_digests; i++)
        if (c->pairs[i].has_values && states_same_digests(c, &c->pairs[i]))
            c->pairs[i].has_values = false;
}

static int compare_values(comparison *c)
{
    work w = { .session = c->session, .ctx = c, .path = c->path_a };
    int code = verify_quantised(c);
    if (!code)
        code = begin_checks(c);
    if (code)
        return code;
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i].has_values)
            w.total = add_length(w.total, heft_tensor_bytes(c->a, c->pairs[i].a));
    if (work_run(&w, c->count, compare_pair))
        return say_error(w.path, &w.err);
    code = checks_end(&c->checks_a, c->path_a);
    return code ? code : checks_end(&c->checks_b, c->path_b);
}

/* ---- tensors with other names ---- */

typedef struct hashed {
    heft_hash hash;
    uint32_t tensor;
} hashed;

static int by_hash(const void *a, const void *b)
{
    const hashed *x = a, *y = b;
    int order = memcmp(&x->hash, &y->hash, sizeof x->hash);
    return order ? order : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int by_tensor(const void *a, const void *b)
{
    const renamed *x = a, *y = b;
    return (x->a > y->a) - (x->a < y->a);
}

static size_t count_lonely(const uint32_t *partner, uint32_t count)
{
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += partner[i] == HEFT_NONE;
    return n;
}

/* List the tensors without a partner. */
static bool list_lonely(lonely *l, const heft_file *f, const uint32_t *partner)
{
    uint32_t all = heft_tensor_count(f);
    l->tensors = malloc(((size_t)all + 1) * sizeof *l->tensors);
    for (uint32_t i = 0; l->tensors && i < all; i++)
        if (partner[i] == HEFT_NONE)
            l->tensors[l->count++] = i;
    l->hashes = calloc((size_t)l->count + 1, sizeof *l->hashes);
    return l->tensors && l->hashes;
}

static int find_lonely(comparison *c)
{
    if (!count_lonely(c->partner_a, heft_tensor_count(c->a)) ||
        !count_lonely(c->partner_b, heft_tensor_count(c->b)))
        return CODE_DONE;
    bool ok = list_lonely(&c->lonely_a, c->a, c->partner_a) &&
              list_lonely(&c->lonely_b, c->b, c->partner_b);
    return ok ? CODE_DONE : say_no_memory(c);
}

static int hash_lonely(comparison *c, bool of_b)
{
    const char *path = of_b ? c->path_b : c->path_a;
    lonely *l = of_b ? &c->lonely_b : &c->lonely_a;
    heft_error err;
    progress p;
    if (!l->count)
        return CODE_DONE;
    progress_begin(&p, path);
    heft_status st = heft_tensor_hash_many(l->hashes, of_b ? c->b : c->a, l->tensors, l->count,
                                           progress_step, &p, &err);
    progress_end(&p);
    return st ? say_error(path, &err) : CODE_DONE;
}

/* Return the lonely tensors sorted by hash, which the caller frees. NULL without memory. */
static hashed *sort_lonely(const lonely *l)
{
    hashed *sorted = calloc((size_t)l->count + 1, sizeof *sorted);
    for (uint32_t i = 0; sorted && i < l->count; i++)
        sorted[i] = (hashed){ l->hashes[i], l->tensors[i] };
    if (sorted && l->count)
        qsort(sorted, l->count, sizeof *sorted, by_hash);
    return sorted;
}

static void match(comparison *c, const hashed *a, uint32_t count_a, const hashed *b,
                  uint32_t count_b)
{
    for (uint32_t i = 0, k = 0; i < count_a && k < count_b;) {
        int order = memcmp(&a[i].hash, &b[k].hash, sizeof a->hash);
        if (!order) {
            c->renamed[c->renamed_count++] = (renamed){ a[i].tensor, b[k].tensor };
            c->partner_a[a[i].tensor] = b[k].tensor;
            c->partner_b[b[k].tensor] = a[i].tensor;
        }
        i += order <= 0;
        k += order >= 0;
    }
    qsort(c->renamed, c->renamed_count, sizeof *c->renamed, by_tensor);
}

static int find_renamed(comparison *c)
{
    hashed *a = sort_lonely(&c->lonely_a), *b = sort_lonely(&c->lonely_b);
    bool has_memory = a && b;
    if (has_memory)
        match(c, a, c->lonely_a.count, b, c->lonely_b.count);
    free(a);
    free(b);
    return has_memory ? CODE_DONE : say_no_memory(c);
}

/* ---- all of it ---- */

static void count_results(comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i].d.incomparable || c->pairs[i].d.differing)
            c->pairs[i].changes |= CHANGED_VALUE;
    c->only_a = count_lonely(c->partner_a, heft_tensor_count(c->a));
    c->only_b = count_lonely(c->partner_b, heft_tensor_count(c->b));
    for (size_t i = 0; i < c->count; i++)
        c->equal_count += !c->pairs[i].changes;
    c->all_count = c->count + c->renamed_count + c->only_a + c->only_b;
    c->equal = c->equal_count == c->count && !c->only_a && !c->only_b && !c->renamed_count &&
               !c->left_out;
}

/* Compare the contents that are left out of both models. */
static int compare_left_out(comparison *c)
{
    heft_hash a, b;
    bool has_a, has_b;
    heft_error err_a, err_b;
    heft_status st_a = heft_left_out_hash(&a, &has_a, c->view_a->stored, &err_a);
    heft_status st_b = heft_left_out_hash(&b, &has_b, c->view_b->stored, &err_b);
    if (st_a && st_a != HEFT_E_UNSUPPORTED)
        return say_error(c->path_a, &err_a);
    if (st_b && st_b != HEFT_E_UNSUPPORTED)
        return say_error(c->path_b, &err_b);
    if (has_a != has_b || (has_a && !st_a && !st_b && memcmp(&a, &b, sizeof a) != 0))
        c->left_out = "differs";
    else if (st_a || st_b)
        c->left_out = "unknown";
    return CODE_DONE;
}

int comparison_run(comparison *c)
{
    c->a = c->view_a->f;
    c->b = c->view_b->f;
    int code = find_names(c);
    if (!code)
        code = find_pairs(c);
    if (!code)
        code = find_lonely(c);
    if (!code)
        trust_digests(c);
    if (!code)
        code = compare_values(c);
    if (!code)
        code = hash_lonely(c, false);
    if (!code)
        code = hash_lonely(c, true);
    if (!code)
        code = find_renamed(c);
    if (!code && !c->glob_count)
        code = compare_left_out(c);
    if (!code)
        count_results(c);
    return code;
}

void comparison_release(comparison *c)
{
    free(c->names);
    free(c->pairs);
    free(c->renamed);
    free(c->partner_a);
    free(c->partner_b);
    free(c->lonely_a.tensors);
    free(c->lonely_a.hashes);
    free(c->lonely_b.tensors);
    free(c->lonely_b.hashes);
    checks_close(&c->checks_a);
    checks_close(&c->checks_b);
    renames_release(&c->rename);
}

/* ---- quantised tensors ---- */

static bool is_quantised(const model_view *v, uint32_t tensor)
{
    return view_quantised(v, tensor) != HEFT_NONE;
}

/* Return whether a tensor of the pair is quantised. */
static bool has_quantised(const comparison *c, const pair *p)
{
    return is_quantised(c->view_a, p->a) || is_quantised(c->view_b, p->b);
}

static bool has_blocks(const heft_file *f, uint32_t tensor)
{
    const heft_dtype_info *d = heft_dtype_get(heft_tensor_at(f, tensor).dtype);
    return d && d->block_elems > 2; /* two elements of F4_E2M1 share a byte */
}

bool comparison_changes_type(const comparison *c, const pair *p)
{
    char a[VIEW_TYPE_BYTES], b[VIEW_TYPE_BYTES];
    return has_quantised(c, p) &&
           !str_same(view_type(a, c->view_a, p->a), view_type(b, c->view_b, p->b));
}

bool comparison_is_lossy(const comparison *c, const pair *p)
{
    return has_quantised(c, p) || has_blocks(c->a, p->a) || has_blocks(c->b, p->b);
}

/* Return the number of quantised tensors whose values are compared. */
static size_t count_quantised(const comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++)
        n += c->pairs[i].has_values && has_quantised(c, &c->pairs[i]);
    return n;
}

/* ---- the summary ---- */

void comparison_put_summary(outbuf *o, const comparison *c)
{
    size_t all = c->all_count, differ = c->count - c->equal_count;
    const struct {
        size_t count;
        const char *singular, *plural;
    } rows[] = {
        { c->equal_count, "equal", "equal" },       { differ, "differs", "differ" },
        { c->renamed_count, "renamed", "renamed" }, { c->only_a, "only in A", "only in A" },
        { c->only_b, "only in B", "only in B" },
    };
    const char *separator = ": ";
    out_format(o, "%zu %s", all, all == 1 ? "tensor" : "tensors");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].count) {
            out_format(o, "%s%zu %s", separator, rows[i].count,
                       rows[i].count == 1 ? rows[i].singular : rows[i].plural);
            separator = ", ";
        }
    size_t quantised = count_quantised(c);
    if (quantised)
        out_format(o, "; %zu quantised %s compared by value", quantised,
                   quantised == 1 ? "tensor is" : "tensors are");
    if (c->left_out)
        out_text(o, !strcmp(c->left_out, "differs")
                        ? "; the contents that are left out differ"
                        : "; contents that cannot be read are not compared");
}
