/* shard_cut.c - decide where to cut a model into shards.
 *
 * The size of a file is known only after planning, so the search plans trial runs: first as many
 * units as are estimated to fit, then lengths between the longest run known to fit and the
 * shortest run known not to fit.  Every second trial bisects this interval, so that a wrong
 * estimate costs little, and no trial is more than twice as long as a run that fits, so that all
 * trials together plan O(units log units) units. */
#include "core/write/split/shard_cut.h"

#include "base/checked_math.h"
#include "base/path_risk.h"

/* Search for the end of the shard that begins with unit `first`. */
typedef struct search {
    uint32_t first, fits;     /* [first, fits) fits; fits == first: no run is known to fit */
    uint32_t over;            /* [first, over) does not fit, or ends past the last unit */
    uint64_t fits_bytes;      /* planned size of [first, fits) */
    uint64_t over_bytes;      /* planned size of [first, over); 0: not planned */
    uint32_t longest, growth; /* limits of the next run while no run is known not to fit */
    bool halve;               /* the next trial bisects instead of using the estimate */
} search;

static uint64_t estimate(const heft_shard_cut *c, uint32_t unit)
{
    uint64_t bytes;
    return heft_add(&bytes, c->payload[unit], c->header_bytes) ? bytes : UINT64_MAX;
}

/* Return the first unit in [from, to) that is estimated not to fit into `capacity` bytes, or
 * `to`. */
static uint32_t skip_forward(const heft_shard_cut *c, uint32_t from, uint32_t to, uint64_t capacity)
{
    for (; from < to && estimate(c, from) <= capacity; from++)
        capacity -= estimate(c, from);
    return from;
}

/* Return the last end of a run, at least `to`, that is estimated to be `bytes` smaller than a
 * run that ends at `from`. */
static uint32_t skip_back(const heft_shard_cut *c, uint32_t from, uint32_t to, uint64_t bytes)
{
    while (from > to && bytes) {
        uint64_t unit = estimate(c, --from);
        bytes = unit < bytes ? bytes - unit : 0;
    }
    return from;
}

static uint32_t clamp(uint32_t low, uint32_t v, uint32_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* While every run fits, follow the estimate, but grow by at least twice as much each time. */
static uint32_t next_longer(const heft_shard_cut *c, search *s)
{
    uint32_t known = s->fits - s->first, high = s->over - 1;
    uint32_t longest = known ? known : s->longest;
    if (longest < (high - s->first) / 2)
        high = s->first + 2 * longest;
    uint32_t end = skip_forward(c, s->fits, high, c->max_bytes - s->fits_bytes);
    uint32_t end_min = s->growth < high - s->fits ? s->fits + s->growth : high;
    s->growth = end_min < high ? 2 * s->growth : s->growth;
    return clamp(end_min, end, high);
}

static uint32_t next_end(const heft_shard_cut *c, search *s)
{
    uint32_t low = s->fits + 1, high = s->over - 1, end;
    if (!s->over_bytes)
        return next_longer(c, s);
    s->halve = !s->halve;
    if (!s->halve)
        end = low + (high - low) / 2;
    else if (s->fits == s->first)
        end = skip_back(c, s->over, low, s->over_bytes - c->max_bytes);
    else
        end = skip_forward(c, s->fits, high, c->max_bytes - s->fits_bytes);
    return clamp(low, end, high);
}

static heft_status add_end(heft_shard_cut *c, uint32_t end, uint64_t bytes)
{
    uint32_t *to = heft_vec_push(c->mem, &c->ends, sizeof *to);
    uint64_t *size = heft_vec_push(c->mem, &c->sizes, sizeof *size);
    if (!to || !size)
        return heft_error_no_memory(c->err, "to split a model");
    if (c->ends.len > HEFT_MAX_SHARDS)
        return heft_error_plain(c->err, HEFT_E_LIMIT, "the model would need more than %U files",
                                (uint64_t)HEFT_MAX_SHARDS);
    *to = end;
    *size = bytes;
    return HEFT_OK;
}

/* Cut the shard that begins with unit `first` and ends at `last` or before. */
static heft_status cut_one(heft_shard_cut *c, uint32_t first, uint32_t last)
{
    search s = { .first = first, .fits = first, .over = last + 1, .growth = 1 };
    const uint32_t *ends = c->ends.ptr;
    uint32_t n = c->ends.len;
    heft_status st = HEFT_OK;
    s.longest = n ? ends[n - 1] - (n > 1 ? ends[n - 2] : 0) : c->units; /* as the previous shard */
    while (s.over - s.fits > 1 && !st) {
        uint64_t bytes = 0;
        uint32_t end = next_end(c, &s);
        st = c->plan(c->ctx, first, end, &bytes);
        if (bytes <= c->max_bytes) {
            s.fits = end;
            s.fits_bytes = bytes;
        } else {
            s.over = end;
            s.over_bytes = bytes;
        }
    }
    if (st)
        return st;
    return s.fits > first ? add_end(c, s.fits, s.fits_bytes) : add_end(c, first + 1, s.over_bytes);
}

static heft_status cut_by_size(heft_shard_cut *c, uint32_t first, uint32_t last)
{
    while (first < last) {
        HEFT_TRY(cut_one(c, first, last));
        first = ((const uint32_t *)c->ends.ptr)[c->ends.len - 1];
    }
    return HEFT_OK;
}

/* ---- a number of files ---- */

/* Return the end of the run from `first` on with at most `max` bytes of data, or a single larger
 * unit. */
static uint32_t end_of_run(const heft_shard_cut *c, uint32_t first, uint64_t max)
{
    uint32_t end = first;
    uint64_t sum = 0;
    while (end < c->units && (end == first || c->payload[end] <= max - sum)) {
        sum += c->payload[end];
        end++;
        if (sum > max)
            break;
    }
    return end;
}

/* Count the files if each run has at most `max` bytes. */
static uint32_t count_files(const heft_shard_cut *c, uint64_t max)
{
    uint32_t files = 0;
    for (uint32_t at = 0; at < c->units; files++)
        at = end_of_run(c, at, max);
    return files;
}

/* Find the smallest limit that needs at most `count` files; then give each file a unit or more. */
static heft_status cut_by_count(heft_shard_cut *c, uint32_t count)
{
    uint64_t low = 0, high = 0;
    for (uint32_t u = 0; u < c->units; u++)
        high = heft_add(&high, high, c->payload[u]) ? high : UINT64_MAX;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (count_files(c, mid) <= count)
            high = mid;
        else
            low = mid + 1;
    }
    c->ends.len = c->sizes.len = 0;
    for (uint32_t at = 0; at < c->units; count--) {
        uint32_t end = end_of_run(c, at, low), left = c->units - (count - 1);
        at = end < left ? end : left;
        HEFT_TRY(add_end(c, at, 0));
    }
    return HEFT_OK;
}

/* Cut shards again that exceed the limit despite equal data, because of many tensors with large
 * headers. */
static heft_status cut_oversized(heft_shard_cut *c)
{
    heft_vec ends = c->ends;
    uint32_t first = 0;
    heft_status st = HEFT_OK;
    c->ends = (heft_vec){ .ptr = NULL };
    c->sizes.len = 0;
    for (uint32_t i = 0; i < ends.len && !st; i++) {
        uint32_t end = ((const uint32_t *)ends.ptr)[i];
        st = cut_by_size(c, first, end);
        first = end;
    }
    heft_vec_free(c->mem, &ends, sizeof(uint32_t));
    return st;
}

heft_status heft_shard_cut_model(heft_shard_cut *c, uint32_t count)
{
    if (c->max_bytes)
        HEFT_TRY(cut_by_size(c, 0, c->units));
    if (c->ends.len < count && c->units) {
        HEFT_TRY(cut_by_count(c, count));
        if (c->max_bytes)
            HEFT_TRY(cut_oversized(c));
    }
    return c->units ? HEFT_OK : add_end(c, 0, 0);
}

void heft_shard_cut_free(heft_shard_cut *c)
{
    heft_vec_free(c->mem, &c->ends, sizeof(uint32_t));
    heft_vec_free(c->mem, &c->sizes, sizeof(uint64_t));
}
