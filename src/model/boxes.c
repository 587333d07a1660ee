/* boxes.c - the geometry of boxes: whether they tile a tensor, and the runs of a box.
 *
 * Whether boxes tile a tensor is decided at their corners.  The number of boxes that have an
 * element, minus one, is a function on the elements that is zero everywhere if the boxes tile the
 * tensor.  Its difference along every dimension is zero except at corners: each box adds 1 or -1 at
 * its corners, the tensor takes away the same.  A function is zero if its differences are, and the
 * first difference that is not zero is at the first element where the function is not. */
#include "model/boxes.h"

#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/sort.h"
#include "base/text.h"

/* ---- corners ---- */

enum { MAX_CUT = 16 }; /* dimensions along which a tensor may be cut */

typedef struct corners {
    const heft_boxes *b;
    uint32_t axes[MAX_CUT], cut; /* dimensions along which some box is a part */
    uint64_t steps[MAX_CUT];     /* factors of keys, which order corners as elements */
    uint64_t *keys;              /* key * 2, plus 1 for a corner that counts -1 */
    uint32_t count;
} corners;

/* Return true for a box that does not count: without elements, or a replica. */
static bool is_empty(const heft_boxes *b, uint32_t box)
{
    const uint64_t *sizes = heft_box_sizes(b, box);
    uint32_t i = 0;
    if (b->rows && heft_box_is_replica(&b->rows[box]))
        return true;
    while (i < b->rank && sizes[i])
        i++;
    return i < b->rank;
}

/* Add a dimension, unless it is there; the last come first.  false: there are too many. */
static bool add_axis(corners *c, uint32_t axis)
{
    uint32_t at = 0;
    while (at < c->cut && c->axes[at] > axis)
        at++;
    if (at < c->cut && c->axes[at] == axis)
        return true;
    if (c->cut == MAX_CUT)
        return false;
    memmove(c->axes + at + 1, c->axes + at, (c->cut++ - at) * sizeof *c->axes);
    c->axes[at] = axis;
    return true;
}

/* Find the dimensions that matter, and the steps of keys; false: there are too many. */
static bool find_axes(corners *c)
{
    const heft_boxes *b = c->b;
    uint64_t step = 1;
    for (uint32_t box = 0; box < b->count; box++) {
        const uint64_t *sizes = heft_box_sizes(b, box);
        for (uint32_t i = 0, n = is_empty(b, box) ? 0 : b->rank; i < n; i++)
            if (sizes[i] != b->dims[i] && !add_axis(c, i))
                return false;
    }
    for (uint32_t i = 0; i < c->cut; i++) {
        c->steps[i] = step;
        if (!heft_mul(&step, step, b->dims[c->axes[i]] + 1) || step >> 63)
            return false;
    }
    return true;
}

/* Add the corners of a range of each dimension; offsets NULL: of the tensor. */
static void add_corners(corners *c, const uint64_t *offsets, const uint64_t *sizes, bool is_less)
{
    for (uint32_t corner = 0; corner < UINT32_C(1) << c->cut; corner++) {
        uint64_t key = 0;
        bool minus = is_less;
        for (uint32_t i = 0; i < c->cut; i++) {
            bool is_end = corner >> i & 1;
            uint64_t at = offsets ? offsets[c->axes[i]] : 0;
            key += (at + (is_end ? sizes[c->axes[i]] : 0)) * c->steps[i];
            minus = minus != is_end;
        }
        c->keys[c->count++] = key << 1 | minus;
    }
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const uint64_t *keys = ctx;
    return keys[a] < keys[b];
}

/* Find the first corner whose numbers do not cancel out; *sum: their sum, 0 if there is none. */
static uint64_t first_difference(const corners *c, const uint32_t *order, int64_t *sum)
{
    uint64_t key = 0;
    *sum = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t k = c->keys[order[i]];
        if (*sum && k >> 1 != key)
            break;
        key = k >> 1;
        *sum += k & 1 ? -1 : 1;
    }
    return key;
}

/* ---- faults ---- */

static bool has_element(const heft_boxes *b, uint32_t box, const uint64_t *indices)
{
    const uint64_t *offsets = heft_box_offsets(b, box), *sizes = heft_box_sizes(b, box);
    uint32_t i = 0;
    if (is_empty(b, box))
        return false;
    while (i < b->rank && indices[i] >= offsets[i] && indices[i] - offsets[i] < sizes[i])
        i++;
    return i == b->rank;
}

/* Describe the fault at a corner; the indices along dimensions that are not cut are 0. */
static void describe(heft_box_fault *out, const corners *c, uint64_t key, uint64_t *indices)
{
    const heft_boxes *b = c->b;
    uint64_t step = 1;
    uint32_t found = 0;
    memset(indices, 0, b->rank * sizeof *indices);
    for (uint32_t i = c->cut; i--;) {
        indices[c->axes[i]] = heft_div(key, c->steps[i]);
        key -= indices[c->axes[i]] * c->steps[i];
    }
    for (uint32_t i = b->rank; i--; step *= b->dims[i])
        out->element += indices[i] * step;
    for (uint32_t i = 0; i < b->count && found < 2; i++) {
        if (!has_element(b, i, indices))
            continue;
        *(found ? &out->second : &out->first) = i;
        found++;
    }
}

static heft_status compare_corners(heft_box_fault *out, corners *c, uint32_t *order,
                                   uint64_t *indices)
{
    int64_t sum;
    add_corners(c, NULL, c->b->dims, true);
    for (uint32_t i = 0; i < c->b->count; i++)
        if (!is_empty(c->b, i))
            add_corners(c, heft_box_offsets(c->b, i), heft_box_sizes(c->b, i), false);
    heft_sort_numbers(order, c->count, is_before, c->keys);
    uint64_t key = first_difference(c, order, &sum);
    if (!sum)
        return HEFT_OK;
    out->kind = sum < 0 ? HEFT_BOXES_GAP : HEFT_BOXES_OVERLAP;
    describe(out, c, key, indices);
    return HEFT_OK;
}

/* Return true if the tensor has no element, or one box has all of them. */
static bool is_one(const heft_boxes *b)
{
    uint64_t elements;
    if (heft_product(&elements, b->dims, b->rank) && !elements)
        return true;
    uint32_t i = 0;
    while (b->count == 1 && i < b->rank && heft_box_sizes(b, 0)[i] == b->dims[i])
        i++;
    return b->count == 1 && i == b->rank;
}

heft_status heft_boxes_check(heft_box_fault *out, const heft_boxes *b, heft_memory *m)
{
    enum { PER_CORNER = sizeof(uint64_t) + 2 * sizeof(uint32_t) };
    corners c = { .b = b };
    uint64_t all, bytes;
    *out = (heft_box_fault){ .kind = HEFT_BOXES_TILE };
    if (is_one(b))
        return HEFT_OK;
    if (!find_axes(&c))
        return HEFT_E_LIMIT;
    all = ((uint64_t)b->count + 1) << c.cut;
    if (all > UINT32_MAX / 2 || !heft_mul(&bytes, all, PER_CORNER))
        return HEFT_E_LIMIT;
    bytes += b->rank * sizeof(uint64_t);
    if (bytes > SIZE_MAX || !(c.keys = heft_mem_alloc(m, (size_t)bytes)))
        return HEFT_E_NOMEM;
    uint64_t *indices = c.keys + all;
    heft_status st = compare_corners(out, &c, (uint32_t *)(void *)(indices + b->rank), indices);
    heft_mem_free(m, c.keys, (size_t)bytes);
    return st;
}

/* ---- messages ---- */

heft_str heft_element_indices(char buf[HEFT_INDICES_TEXT], const uint64_t *dims, uint32_t rank,
                              uint64_t element)
{
    enum { DIGITS = 20, SHOWN = (HEFT_INDICES_TEXT - 9) / (DIGITS + 2) };
    uint32_t shown = rank < SHOWN ? rank : SHOWN;
    char *to = buf;
    uint64_t step = 1;
    for (uint32_t i = 1; i < rank; i++)
        step *= dims[i];
    *to++ = '[';
    for (uint32_t i = 0; i < shown; i++) {
        uint64_t index = step ? heft_div(element, step) : 0;
        element -= index * step;
        if (i + 1 < rank)
            step = dims[i + 1] ? heft_div(step, dims[i + 1]) : 0;
        to += heft_u64_text(to, index);
        memcpy(to, ", ", 2);
        to += i + 1 < shown ? 2 : 0;
    }
    if (shown < rank) {
        memcpy(to, ", ...", 5);
        to += 5;
    }
    *to++ = ']';
    *to = '\0';
    return (heft_str){ buf, (size_t)(to - buf) };
}

/* ---- runs ---- */

heft_box_runs heft_box_runs_of(const heft_boxes *b, uint32_t box)
{
    heft_box_runs r = { .dims = b->dims,
                        .offsets = heft_box_offsets(b, box),
                        .sizes = heft_box_sizes(b, box),
                        .count = 1,
                        .run = 1,
                        .step = 1 };
    if (!b->rank)
        return r;
    r.axis = b->rank - 1;
    while (r.axis && r.sizes[r.axis] == r.dims[r.axis])
        r.step *= r.dims[r.axis--];
    r.run = r.sizes[r.axis] * r.step;
    (void)heft_product(&r.count, r.sizes, r.axis);
    return r;
}

uint64_t heft_box_run_at(const heft_box_runs *r, uint64_t i)
{
    uint64_t step = r->step, at = r->offsets ? r->offsets[r->axis] * step : 0;
    for (uint32_t k = r->axis; k--;) {
        step *= r->dims[k + 1];
        uint64_t next = k ? heft_div(i, r->sizes[k]) : 0;
        at += (r->offsets[k] + (i - next * r->sizes[k])) * step;
        i = next;
    }
    return at;
}
