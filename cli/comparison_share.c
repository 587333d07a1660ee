#include "comparison_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_WORDS = HEFT_HASH_BYTES / 8 };

/* ---- rows ---- */

static result_row row_of(const void *ctx, uint32_t i)
{
    const comparison *c = ctx;
    if (i >= c->count) {
        i -= (uint32_t)c->count;
        bool of_b = i >= c->lonely_a.count;
        uint32_t id = of_b ? c->lonely_b.tensors[i - c->lonely_a.count] : c->lonely_a.tensors[i];
        return of_b ? (result_row){ HEFT_NONE, id, heft_tensor_bytes(c->b, id) }
                    : (result_row){ id, HEFT_NONE, heft_tensor_bytes(c->a, id) };
    }
    const pair *p = &c->pairs[i];
    uint64_t bytes = heft_tensor_bytes(c->a, p->a), more = heft_tensor_bytes(c->b, p->b);
    bytes = bytes > UINT64_MAX - more ? UINT64_MAX : bytes + more;
    return (result_row){ p->a, p->b, p->has_values ? bytes : 0 };
}

static void describe(result_share *r, const comparison *c)
{
    int n = snprintf(r->options, sizeof r->options, "%s%s",
                     c->ignore_dtype ? "--ignore-dtype " : "",
                     c->trusts_digests ? "--trust-digests " : "");
    snprintf(r->options + n, sizeof r->options - (size_t)n, "--atol %.17g --rtol %.17g --ulp %llu",
             c->t.absolute, c->t.relative, (unsigned long long)c->t.ulp);
    r->f = c->a;
    r->path = c->path_a;
    r->other = c->b;
    r->other_path = c->path_b;
    r->rows = (uint32_t)(c->count + c->lonely_a.count + c->lonely_b.count);
    r->row = row_of;
    r->ctx = c;
}

/* ---- words ---- */

enum { FLAG_INCOMPARABLE = 1, FLAG_BYTEWISE = 2 };

static void put_real(uint64_t *word, const double *real)
{
    memcpy(word, real, sizeof *word);
}

static void get_real(double *real, const uint64_t *word)
{
    memcpy(real, word, sizeof *real);
}

/* Copy between a difference and the words of a row. */
static void copy_difference(difference *d, uint64_t words[COMPARISON_WORDS], bool to_words)
{
    uint64_t *const counts[] = { &d->differing, &d->compared, &d->first, &d->finite };
    double *const reals[] = { &d->max_abs,   &d->max_rel,   &d->sum_abs, &d->sum_squares,
                              &d->squares_a, &d->squares_b, &d->products };
    size_t at = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++, at++)
        *(to_words ? &words[at] : counts[i]) = to_words ? *counts[i] : words[at];
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++, at++)
        if (to_words)
            put_real(&words[at], reals[i]);
        else
            get_real(reals[i], &words[at]);
    if (to_words)
        words[at] = (d->incomparable ? FLAG_INCOMPARABLE : 0u) | (d->bytewise ? FLAG_BYTEWISE : 0u);
    d->incomparable = words[at] & FLAG_INCOMPARABLE;
    d->bytewise = words[at] & FLAG_BYTEWISE;
}

static void copy_hash(heft_hash *h, uint64_t *words, bool to_words)
{
    if (to_words)
        memset(words, 0, HASH_WORDS * sizeof *words);
    for (size_t i = 0; i < HEFT_HASH_BYTES; i++)
        if (to_words)
            words[i / 8] = words[i / 8] << 8 | h->bytes[i];
        else
            h->bytes[i] = (uint8_t)(words[i / 8] >> (56 - 8 * (i % 8)));
}

/* Copy between row i and the words of the row. */
static void copy_row(comparison *c, uint32_t i, uint64_t words[COMPARISON_WORDS], bool to_words)
{
    if (i < c->count) {
        copy_difference(&c->pairs[i].d, words, to_words);
        return;
    }
    i -= (uint32_t)c->count;
    bool of_b = i >= c->lonely_a.count;
    copy_hash(of_b ? &c->lonely_b.hashes[i - c->lonely_a.count] : &c->lonely_a.hashes[i], words,
              to_words);
}

/* ---- shares ---- */

static uint32_t clip(uint32_t at, size_t from, uint32_t count)
{
    return at <= from ? 0 : at - from < count ? (uint32_t)(at - from) : count;
}

/* Hash the lonely tensors of a file among rows [first, end), and add a line with CRCs. */
static int hash_lonely(const comparison *c, bool of_b, uint32_t first, uint32_t end, outbuf *crcs)
{
    const lonely *l = of_b ? &c->lonely_b : &c->lonely_a;
    size_t before = c->count + (of_b ? c->lonely_a.count : 0);
    uint32_t from = clip(first, before, l->count), to = clip(end, before, l->count);
    const char *path = of_b ? c->path_b : c->path_a;
    heft_blob blob = { NULL, 0, NULL };
    heft_error err;
    progress p;
    progress_begin(&p, path);
    heft_status st = from < to
                         ? heft_share_hash(l->hashes + from, &blob, of_b ? c->b : c->a, l->tensors,
                                           l->count, from, to - from, progress_step, &p, &err)
                         : HEFT_OK;
    progress_end(&p);
    if (!model_settings.no_verify)
        out_bytes(crcs, from < to ? blob.data : "[]", from < to ? blob.size : 2);
    out_char(crcs, '\n');
    heft_blob_free(&blob);
    return st ? say_error(path, &err) : CODE_DONE;
}

/* Compute rows [first, end), and lines with CRCs. */
static int compute_rows(comparison *c, uint32_t first, uint32_t end, outbuf *crcs)
{
    uint32_t pairs = (uint32_t)c->count;
    c->checks_a.is_share = c->checks_b.is_share = true;
    int code = comparison_values(c, clip(first, 0, pairs), clip(end, 0, pairs));
    if (!code)
        code = checks_put_crcs(&c->checks_a, crcs, c->path_a);
    if (!code)
        code = checks_put_crcs(&c->checks_b, crcs, c->path_b);
    if (!code)
        code = hash_lonely(c, false, first, end, crcs);
    return code ? code : hash_lonely(c, true, first, end, crcs);
}

static int write_share(comparison *c, result_share *r)
{
    uint32_t first, end;
    outbuf crcs;
    out_open(&crcs, -1);
    result_share_rows(r, r->share.number, r->share.count, &first, &end);
    uint64_t *words = calloc((size_t)(end - first) + 1, COMPARISON_WORDS * sizeof *words);
    int code = words ? compute_rows(c, first, end, &crcs)
                     : say_status(HEFT_E_NOMEM, r->path, "no memory for a record");
    for (uint32_t i = first; !code && i < end; i++)
        copy_row(c, i, words + (size_t)(i - first) * COMPARISON_WORDS, true);
    if (!code)
        code = result_share_write(r, words, &crcs);
    out_free(&crcs);
    free(words);
    return code;
}

/* Begin the checks of the lonely tensors. */
static int begin_lonely(checks *joined, const lonely *l, const heft_file *f, const char *path)
{
    joined->is_share = true;
    for (uint32_t i = 0; i < l->count && !joined->no_memory; i++)
        checks_add_tensor(joined, f, l->tensors[i], false);
    return checks_begin(joined, f, path);
}

static int join_shares(comparison *c, result_share *r)
{
    checks lonely_a = { .read = NULL }, lonely_b = { .read = NULL };
    checks *const joined[] = { &c->checks_a, &c->checks_b, &lonely_a, &lonely_b };
    const char *const paths[] = { c->path_a, c->path_b, c->path_a, c->path_b };
    uint64_t *words = NULL;
    c->checks_a.is_share = c->checks_b.is_share = true;
    int code = comparison_begin_checks(c, 0, 0);
    if (!code)
        code = begin_lonely(&lonely_a, &c->lonely_a, c->a, c->path_a);
    if (!code)
        code = begin_lonely(&lonely_b, &c->lonely_b, c->b, c->path_b);
    if (!code)
        code = result_share_join(r, &words, joined, paths, sizeof joined / sizeof *joined);
    checks_close(&lonely_a);
    checks_close(&lonely_b);
    for (uint32_t i = 0; !code && i < r->rows; i++)
        copy_row(c, i, words + (size_t)i * COMPARISON_WORDS, false);
    free(words);
    return code ? code : comparison_end(c);
}

int comparison_run_shares(comparison *c, result_share *r)
{
    if (!r->share.count && !r->join)
        return comparison_run(c);
    int code = comparison_begin(c);
    describe(r, c);
    if (!code)
        code = result_share_open(r);
    if (!code)
        code = r->join ? join_shares(c, r) : write_share(c, r);
    result_share_close(r);
    return code;
}
