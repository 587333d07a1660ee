/* zero_layout.c - assembles the parameters of a checkpoint of DeepSpeed ZeRO from ranges of the
 * flat tensors of ranks, which are not copied. */
#include "format/torch/zero.h"
#include "model/boxes.h"

static const heft_zero_flat *flat_at(const heft_zero_model *j, uint32_t rank, uint32_t group)
{
    return &j->z.flats[(size_t)rank * j->z.groups + group];
}

/* Add n elements of a flat tensor, from element `first` on. */
static heft_status add_of_flat(heft_zero_model *j, uint32_t rank, uint32_t group, uint64_t first,
                               uint64_t at, uint64_t n)
{
    uint64_t size = heft_dtype_size(j->z.type);
    return heft_zero_add_range(j, flat_at(j, rank, group)->offset + first * size, at, n, j->z.type);
}

/* ---- parts of ranks ---- */

uint64_t heft_zero_cut_of(uint64_t elements, uint64_t ranks)
{
    uint64_t each = heft_div(elements, ranks);
    return each + (each * ranks < elements);
}

uint64_t heft_zero_own_of(uint64_t elements, uint64_t each, uint32_t rank)
{
    uint64_t from = each * rank, left = from < elements ? elements - from : 0;
    return left < each ? left : each;
}

/* ---- ZeRO-1 and 2: the parameters of a group lie one after the other ---- */

typedef struct position { /* in a group, which is cut into a part for each rank */
    uint32_t rank;
    uint64_t first;  /* element of the rank's flat tensor */
    uint64_t passed; /* elements of the group */
} position;

static heft_status add_of_group(heft_zero_model *j, const heft_zero_shape *s, position *p)
{
    for (uint64_t at = 0; at < s->elements;) {
        uint64_t left = s->elements - at;
        if (p->rank == j->z.ranks)
            return heft_error_plain(j->x->err, HEFT_E_FORMAT,
                                    "tensor %q: the flat tensors of group %U end after %U of its "
                                    "%U elements",
                                    s->name, (uint64_t)s->group, at, s->elements);
        uint64_t has = flat_at(j, p->rank, s->group)->elements - p->first;
        uint64_t n = has < left ? has : left;
        if (n)
            HEFT_TRY(add_of_flat(j, p->rank, s->group, p->first, at, n));
        at += n;
        p->first += n;
        p->passed += n;
        if (n == has)
            *p = (position){ .rank = p->rank + 1, .passed = p->passed };
    }
    return HEFT_OK;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    uint64_t rest = n - heft_div(n, to) * to;
    return rest ? n + (to - rest) : n;
}

/* All ranks have a part of the size of the first, but for padding that is left out at the end. */
static heft_status check_parts(const heft_zero_model *j, uint32_t group, uint64_t passed)
{
    uint64_t each = flat_at(j, 0, group)->elements;
    for (uint32_t r = 1; r < j->z.ranks; r++) {
        uint64_t own = flat_at(j, r, group)->elements;
        if (own > each || (own < each && own < heft_zero_own_of(passed, each, r)))
            return heft_zero_fail(&j->z, j->z.optims[r], HEFT_E_FORMAT,
                                  "flat tensor %U has %U elements, that of rank 0 has %U: the "
                                  "files do not belong together",
                                  (uint64_t)group, own, each);
    }
    return HEFT_OK;
}

/* The elements are padded to a multiple of twice the number of ranks, and the padding may be left
 * out. */
static heft_status check_group(const heft_zero_model *j, uint32_t group, uint64_t passed)
{
    HEFT_TRY(check_parts(j, group, passed));
    uint64_t all = 0, align = 2 * (uint64_t)j->z.ranks;
    for (uint32_t r = 0; r < j->z.ranks; r++)
        all += flat_at(j, r, group)->elements;
    return round_up(passed, align) == round_up(all, align)
               ? HEFT_OK
               : heft_error_plain(j->x->err, HEFT_E_FORMAT,
                                  "group %U has %U elements in the flat tensors of the ranks, and "
                                  "its parameters take %U: the files do not belong together",
                                  (uint64_t)group, all, passed);
}

heft_status heft_zero_add_groups(heft_zero_model *j)
{
    const heft_zero_facts *f = j->z.facts;
    if (f->groups != j->z.groups)
        return heft_zero_fail(&j->z, j->z.optims[0], HEFT_E_FORMAT,
                              "there are %U flat tensors, and %U groups of parameters in "
                              "param_shapes",
                              (uint64_t)j->z.groups, (uint64_t)f->groups);
    for (uint32_t g = 0, i = 0; g < f->groups; g++) {
        position p = { .rank = 0 };
        uint32_t id;
        for (; i < f->param_count && f->params[i].group == g; i++) {
            HEFT_TRY(heft_zero_begin(j, &f->params[i], j->z.type, true, &id));
            HEFT_TRY(add_of_group(j, &f->params[i], &p));
            HEFT_TRY(heft_ix_assembled_end(j->x, HEFT_NOWHERE));
        }
        HEFT_TRY(check_group(j, g, p.passed));
    }
    return HEFT_OK;
}

/* ---- ZeRO-3: each parameter is cut ---- */

/* A part of a rank, whose groups follow each other. */
typedef struct cut_place {
    uint32_t group;
    uint64_t first; /* element of the group's flat tensor */
} cut_place;

/* Move the place behind n elements; false: the flat tensors end before. */
static bool pass(const heft_zero_model *j, cut_place *p, uint64_t n)
{
    while (p->group < j->z.groups && flat_at(j, 0, p->group)->elements - p->first <= n) {
        n -= flat_at(j, 0, p->group)->elements - p->first;
        *p = (cut_place){ .group = p->group + 1 };
    }
    p->first += n;
    return p->group < j->z.groups || !n;
}

/* Add what a rank has of a parameter, which begins at the place and may reach into more groups. */
static heft_status add_of_rank(heft_zero_model *j, cut_place p, uint32_t rank, uint64_t at,
                               uint64_t own)
{
    while (own) {
        uint64_t has = flat_at(j, rank, p.group)->elements - p.first, n = has < own ? has : own;
        if (n)
            HEFT_TRY(add_of_flat(j, rank, p.group, p.first, at, n));
        at += n;
        own -= n;
        p = (cut_place){ .group = p.group + 1 };
    }
    return HEFT_OK;
}

static heft_status add_cut(heft_zero_model *j, const heft_zero_shape *s, cut_place *p)
{
    uint32_t id;
    cut_place begin = *p;
    uint64_t each = heft_zero_cut_of(s->elements, j->z.ranks);
    if (!pass(j, p, each))
        return heft_error_plain(j->x->err, HEFT_E_FORMAT,
                                "tensor %q: the flat tensors of the ranks end within its %U "
                                "elements: the files do not belong together",
                                s->name, s->elements);
    HEFT_TRY(heft_zero_begin(j, s, j->z.type, true, &id));
    for (uint32_t r = 0; r < j->z.ranks; r++)
        HEFT_TRY(add_of_rank(j, begin, r, each * r, heft_zero_own_of(s->elements, each, r)));
    return heft_ix_assembled_end(j->x, HEFT_NOWHERE);
}

static heft_status check_cut_sizes(const heft_zero_model *j)
{
    for (uint32_t r = 1; r < j->z.ranks; r++)
        for (uint32_t g = 0; g < j->z.groups; g++)
            if (flat_at(j, r, g)->elements != flat_at(j, 0, g)->elements)
                return heft_zero_fail(&j->z, j->z.optims[r], HEFT_E_FORMAT,
                                      "flat tensor %U has %U elements, that of rank 0 has %U",
                                      (uint64_t)g, flat_at(j, r, g)->elements,
                                      flat_at(j, 0, g)->elements);
    return HEFT_OK;
}

heft_status heft_zero_add_cuts(heft_zero_model *j)
{
    const heft_zero_facts *f = j->z.facts;
    cut_place p = { .group = 0 };
    HEFT_TRY(check_cut_sizes(j));
    (void)pass(j, &p, 0); /* empty groups */
    for (uint32_t i = 0; i < f->param_count; i++)
        HEFT_TRY(add_cut(j, &f->params[i], &p));
    return p.group == j->z.groups
               ? HEFT_OK
               : heft_zero_fail(&j->z, j->z.optims[0], HEFT_E_FORMAT,
                                "the flat tensors have more elements than the parameters in "
                                "param_shapes: the files do not belong together");
}
