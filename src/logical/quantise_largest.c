/* quantise_largest.c - finds the largest magnitudes that scales of whole tensors need, before the
 * first byte is encoded.
 *
 * Programs join some tensors of a module to one matrix with one scale: these get the same, from the
 * largest of their magnitudes. */
#include "base/error.h"
#include "base/text.h"
#include "logical/quantisation.h"

enum { ALIGN = 64, JOINED = 3 };

/* ---- magnitudes of tensors ---- */

typedef struct search {
    heft_quantisation *q;
    size_t has_failed; /* atomic */
} search;

static heft_status find_largest(const heft_quantisation *q, heft_encoded *e, heft_error *err)
{
    const heft_allocator *al = q->f->host->allocator;
    heft_encoder *r = heft_alloc(al, sizeof *r, ALIGN);
    if (!r)
        return heft_error_no_memory(err, "to quantise a model");
    memset(r, 0, sizeof *r);
    heft_encoder_begin(r, e, err);
    heft_file_enter(e->f);
    heft_status st = heft_encoder_largest(r, 0, e->stack * e->rows, &e->largest);
    st = heft_file_leave_after(e->f, st, err);
    heft_encoder_free(r, al);
    heft_free(al, r, sizeof *r, ALIGN);
    return st;
}

static void run_search(void *arg, size_t i)
{
    search *s = arg;
    heft_encoded *e = &s->q->all[i];
    heft_error err;
    if (e->needs_largest && find_largest(s->q, e, &err))
        heft_atomic_publish(&s->has_failed, 1);
}

/* ---- joined tensors ---- */

static const char *const joined[][JOINED] = {
    { "q_proj", "k_proj", "v_proj" },
    { "gate_proj", "up_proj", NULL },
    { "w1", "w3", NULL },
};

/* Return the encoding of the tensor with `word` in place of the component before ".weight", or
 * NULL. */
static heft_encoded *find_other(heft_quantisation *q, heft_str prefix, const char *word)
{
    enum { LONGEST = 1024 };
    static const char end[] = ".weight";
    char name[LONGEST];
    size_t len = heft_lit(word).len, total = prefix.len + len + sizeof end - 1;
    if (total > sizeof name)
        return NULL;
    if (prefix.len)
        memcpy(name, prefix.ptr, prefix.len);
    memcpy(name + prefix.len, word, len);
    memcpy(name + prefix.len + len, end, sizeof end - 1);
    uint32_t tensor = heft_ix_find(&q->f->x, (heft_str){ name, total });
    return tensor != HEFT_NONE && q->number[tensor] ? &q->all[q->number[tensor] - 1] : NULL;
}

/* Return the largest magnitude of the tensor and those it is joined with. */
static float largest_of(heft_quantisation *q, const heft_encoded *e)
{
    heft_str module = e->name;
    float most = e->largest;
    if (!heft_str_ends(module, ".weight"))
        return most;
    module.len -= sizeof ".weight" - 1;
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
        for (size_t k = 0; k < JOINED && joined[i][k]; k++) {
            heft_str word = heft_lit(joined[i][k]), prefix = { module.ptr, 0 };
            prefix.len = module.len - word.len;
            bool is_it = heft_str_ends(module, word.ptr) &&
                         (module.len == word.len || module.ptr[prefix.len - 1] == '.');
            for (size_t n = 0; is_it && n < JOINED && joined[i][n]; n++) {
                const heft_encoded *other = find_other(q, prefix, joined[i][n]);
                bool is_more = other && other->needs_largest && other->largest > most;
                most = is_more ? other->largest : most;
            }
        }
    return most;
}

heft_status heft_quantise_largest(heft_quantisation *q, heft_error *err)
{
    search s = { .q = q };
    heft_host_run(q->f->host, q->count, run_search, &s);
    /* The first tensor that fails is named, whatever the order of the threads. */
    for (uint32_t i = 0; s.has_failed && i < q->count; i++)
        if (q->all[i].needs_largest)
            HEFT_TRY(find_largest(q, &q->all[i], err));
    for (uint32_t i = 0; i < q->count; i++)
        if (q->all[i].needs_largest)
            q->all[i].shared_largest = largest_of(q, &q->all[i]);
    for (uint32_t i = 0; i < q->count; i++)
        if (q->all[i].needs_largest) {
            q->all[i].largest = q->all[i].shared_largest;
            q->all[i].encoder->begin(&q->all[i]);
        }
    return HEFT_OK;
}
