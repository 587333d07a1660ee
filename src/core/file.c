/* file.c - opening: windows are filled until the parser is content. */
#include "core/join.h"
#include "core/measure.h"

enum {
    ENDS = 64 << 10, /* bytes of head and tail that are fetched before anything is known */
    PROBE = 64,      /* what a probe may count on, see format.h */
    BEHIND = 4 << 20 /* bytes read that the source is told about at a time */
};

static void release(const heft_host *h, heft_file *f)
{
    h->allocator->resize(h->allocator->ctx, f, sizeof *f, 0, 16);
}

void heft_close(heft_file *f)
{
    if (!f)
        return;
    heft_members_free(f);
    heft_beside_close(f);
    heft_inbox_free(&f->inbox);
    heft_ix_free(&f->x);
    heft_source_close(f->source);
    release(f->host, f);
}

static heft_open_options options_or_default(const heft_open_options *opt)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    return o;
}

heft_status heft_begin(heft_file **out, uint64_t file_size, const heft_open_options *opt,
                       heft_error *err)
{
    const heft_host *host;
    heft_open_options o = options_or_default(opt);
    *out = NULL;
    heft_status st = heft_host_resolve(&host, o.host, err);
    if (st)
        return st;
    const heft_allocator *al = host->allocator;
    heft_file *f = al->resize(al->ctx, NULL, 0, sizeof *f, 16);
    if (!f)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for an open file");
    *f = (heft_file){ .host = host, .format = o.format, .siblings = o.siblings };
    heft_ix_init(&f->x, al, &o.limits);
    f->x.file_bytes = file_size;
    f->x.pick = o.key ? heft_lit(o.key) : (heft_str){ "", 0 };
    heft_host_lend_threads(host, &f->x);
    if (host->entropy)
        host->entropy(f->x.key, sizeof f->x.key);
    heft_inbox_init(&f->inbox, &f->x.mem, file_size, f->x.limits.index_bytes);
    f->inbox.host = host;
    f->inbox.in.decode = heft_inbox_decode;
    *out = f;
    return HEFT_OK;
}

/* Head and tail, or the whole of a small file. */
static bool want_ends(heft_file *f)
{
    uint64_t size = f->inbox.in.size;
    if (f->wanted_ends || f->inbox.whole)
        return false;
    f->wanted_ends = true;
    if (size)
        f->inbox.in.need(&f->inbox.in, 0, size < 2 * ENDS ? size : ENDS);
    if (size >= 2 * ENDS)
        f->inbox.in.need(&f->inbox.in, size - ENDS, ENDS);
    return size;
}

static heft_status detect(heft_file *f, heft_error *err)
{
    uint64_t size = f->inbox.in.size, least = size < PROBE ? size : PROBE, head_len, tail_len;
    heft_in *in = &f->inbox.in;
    const uint8_t *head = in->window(in, 0, ENDS, &head_len);
    uint64_t from = size < ENDS ? 0 : size - ENDS;
    const uint8_t *tail = in->window(in, from, ENDS, &tail_len);
    if (head_len < least)
        in->need(in, 0, least);
    if (tail_len < size - from)
        in->need(in, from, size - from);
    if (f->inbox.needs.len)
        return HEFT_AGAIN;
    f->format = heft_detect(head, (size_t)head_len, tail, (size_t)tail_len, size);
    if (!f->format)
        return heft_detect_stranger(head, (size_t)head_len, size, err);
    return HEFT_OK;
}

/* A parser that wants more than it may have is told so here, where the limit is known. */
static heft_status want_more(const heft_file *f, heft_error *err)
{
    if (f->inbox.over_limit)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the index takes more than the limit of %U bytes", f->inbox.limit);
    if (f->inbox.no_memory)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory to note what is wanted");
    return HEFT_AGAIN;
}

/* An index as large as the memory that it fills need not stay mapped while it is read. */
static void let_go(void *ctx, const char **from, const char *name)
{
    const heft_file *f = ctx;
    uintptr_t whole = (uintptr_t)f->inbox.whole, at = (uintptr_t)name - whole;
    uintptr_t passed = *from ? (uintptr_t)*from - whole : 0;
    if (at >= f->inbox.in.size || at < passed || at - passed < BEHIND) /* huge when it is a copy */
        return;
    f->source->ops->let_go(f->source, passed, at - passed);
    *from = name;
}

/* Over bytes that the parser has just read: they are at hand. */
static heft_status check_claim(heft_file *f, const heft_claim *c, const heft_digest *d,
                               heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    heft_in *in = &f->inbox.in;
    uint64_t have;
    uint8_t got[64];
    const uint8_t *p = in->window(in, c->range[0].offset, c->range[0].length, &have);
    void *state = al->resize(al->ctx, NULL, 0, d->state_bytes, 64);
    if (!state || !d->init(state)) {
        if (state)
            al->resize(al->ctx, state, d->state_bytes, 0, 64);
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory to check a digest");
    }
    d->update(state, p, (size_t)have);
    d->final(got, state);
    al->resize(al->ctx, state, d->state_bytes, 0, 64);
    if (have == c->range[0].length && !memcmp(got, c->expect, d->bytes))
        return HEFT_OK;
    return heft_error_set(err, HEFT_E_CHECKSUM, c->range[0].offset,
                          "%s: the %s digest does not match the bytes it covers", c->rule,
                          c->algorithm);
}

/* Without the algorithm, verify will say that it was not checked. */
static heft_status check_at_open(heft_file *f, heft_error *err)
{
    const heft_claim *claims = f->x.claims.ptr;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < f->x.claims.len && !st; i++) {
        const heft_digest *d = heft_host_digest(f->host, claims[i].algorithm);
        if (claims[i].at_open && d)
            st = check_claim(f, &claims[i], d, err);
    }
    return st;
}

static heft_status parse(heft_file *f, heft_error *err)
{
    if (f->x.pick.len && !(f->format->caps & HEFT_CAN_PICK))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "%s files do not nest: there is no key %q to pick",
                                f->format->title, f->x.pick);
    f->x.err = f->inbox.in.err = err;
    heft_ix_reset(&f->x);
    f->x.passed = f->inbox.whole && f->source && f->source->ops->let_go ? let_go : NULL;
    f->x.passed_ctx = f;
    heft_file_enter(f);
    heft_status st = f->format->parse(&f->inbox.in, &f->x);
    if (!st && !f->x.sealed) /* a format may have looked names up */
        st = heft_ix_seal(&f->x);
    if (!st)
        st = check_at_open(f, err);
    heft_status there = heft_file_leave(f, err);
    f->x.err = f->inbox.in.err = NULL;
    if (there)
        return there;
    return st == HEFT_AGAIN ? want_more(f, err) : st;
}

static heft_status keep_name(heft_file *f, heft_error *err)
{
    if (f->siblings)
        f->name = heft_arena_copy(&f->x.arena, heft_lit(f->siblings->name));
    return f->siblings && !f->name.ptr
               ? heft_error_plain(err, HEFT_E_NOMEM, "no memory for the name of the file")
               : HEFT_OK;
}

heft_status heft_step(heft_file *f, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (f->ready)
        return HEFT_OK;
    heft_inbox_clear(&f->inbox);
    if (want_ends(f))
        return want_more(f, err);
    if (!f->format) {
        heft_file_enter(f);
        st = detect(f, err);
        heft_status there = heft_file_leave(f, err);
        st = there ? there : st == HEFT_AGAIN ? want_more(f, err) : st;
    }
    if (!st)
        st = parse(f, err);
    if (!st)
        st = heft_beside_open(f, err);
    if (!st)
        st = heft_join_siblings(f, err);
    if (!st)
        st = heft_measure(f, err);
    if (!st)
        st = keep_name(f, err);
    f->ready = !st;
    return st;
}

size_t heft_needs(const heft_file *f, const heft_range **out)
{
    *out = f->inbox.needs.ptr;
    return f->inbox.needs.len;
}

heft_status heft_feed(heft_file *f, uint64_t offset, const void *data, size_t len, heft_error *err)
{
    heft_range r = { offset, len };
    if (f->source || f->ready)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "this file takes no more bytes");
    if (!heft_range_in(r, f->inbox.in.size))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%U bytes at %U pass the end of the file, %U",
                                (uint64_t)len, offset, f->inbox.in.size);
    if (!offset && len == f->inbox.in.size) {
        f->inbox.whole = data;
        return HEFT_OK;
    }
    if (f->inbox.whole)
        return HEFT_OK;
    if (len > f->inbox.limit - f->inbox.held)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "the index takes more than the limit of %U bytes", f->inbox.limit);
    return heft_inbox_feed(&f->inbox, offset, data, len, err);
}

/* ---- with a source ---- */

static heft_status fetch(heft_file *f, heft_error *err)
{
    const heft_range *needs;
    size_t n = heft_needs(f, &needs);
    for (size_t i = 0; i < n; i++) {
        uint8_t *to;
        heft_range r = needs[i];
        if (r.length > SIZE_MAX)
            return heft_error_plain(err, HEFT_E_LIMIT, "%U bytes at once", r.length);
        heft_status st = heft_inbox_room(&f->inbox, r.offset, (size_t)r.length, &to, err);
        if (!st)
            st = f->source->ops->read(f->source, r.offset, to, (size_t)r.length, err);
        if (!st)
            st = heft_inbox_join(&f->inbox, r.offset, err);
        if (st)
            return st;
    }
    return HEFT_OK;
}

static heft_status drive(heft_file *f, heft_error *err)
{
    heft_source *s = f->source;
    if (s->ops->lend && s->size)
        f->inbox.whole = s->ops->lend(s, 0, s->size);
    for (;;) {
        heft_status st = heft_step(f, err);
        if (st == HEFT_AGAIN)
            st = fetch(f, err);
        else
            return st;
        if (st)
            return st;
    }
}

heft_status heft_open_source(heft_file **out, heft_source *take, const heft_open_options *opt,
                             heft_error *err)
{
    heft_error own; /* parsers and sources write into it when the caller gave none */
    err = err ? err : &own;
    heft_status st = heft_begin(out, take->size, opt, err);
    if (st) {
        heft_source_close(take);
        return st;
    }
    (*out)->source = take;
    st = drive(*out, err);
    if (st) {
        heft_close(*out);
        *out = NULL;
    }
    return st;
}

void heft_source_close(heft_source *s)
{
    if (s)
        s->ops->close(s);
}

/* ---- getters ---- */

const heft_format *heft_file_format(const heft_file *f)
{
    return f->format;
}

heft_str heft_file_name(const heft_file *f)
{
    return f->name;
}

heft_str heft_file_version(const heft_file *f)
{
    return f->x.version;
}

uint64_t heft_file_size(const heft_file *f)
{
    return f->inbox.in.size;
}

uint64_t heft_file_memory(const heft_file *f)
{
    return f->x.mem.used + sizeof *f;
}

uint64_t heft_file_alignment(const heft_file *f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < f->x.parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, i);
        bits |= p->stored ? p->offset | 64 << 10 : 0;
    }
    return bits & (~bits + 1);
}

uint32_t heft_tensor_count(const heft_file *f)
{
    return heft_ix_tensors(&f->x);
}

heft_tensor heft_tensor_at(const heft_file *f, uint32_t id)
{
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, id);
    return (heft_tensor){
        .name = { row->name, row->name_len },
        .dims = heft_ix_dims(&f->x, id),
        .rank = row->rank,
        .first_part = row->first_part,
        .part_count = row->part_count,
        .dtype = row->dtype,
        .layout = row->layout < HEFT_OTHER ? row->layout : (uint8_t)HEFT_OTHER,
    };
}

uint32_t heft_find(const heft_file *f, const char *name, size_t len)
{
    heft_file_enter(f);
    uint32_t id = heft_ix_find(&f->x, (heft_str){ name, len });
    heft_file_disarm(f); /* whoever reads the tensor is told */
    return id;
}

heft_str heft_layout_name(const heft_file *f, uint32_t tensor)
{
    return heft_ix_layout(&f->x, tensor);
}

uint64_t heft_tensor_bytes(const heft_file *f, uint32_t id)
{
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, id);
    uint32_t data = heft_ix_part_find(&f->x, id, heft_lit("data"));
    if (data != HEFT_NONE)
        return heft_ix_part_row_at(&f->x, data)->length;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < row->part_count; i++) {
        uint64_t length = heft_ix_part_row_at(&f->x, row->first_part + i)->length;
        if (length == HEFT_NOWHERE)
            return HEFT_NOWHERE;
        sum += length;
    }
    return sum;
}

uint32_t heft_part_find(const heft_file *f, uint32_t owner, const char *role, size_t len)
{
    return heft_ix_part_find(&f->x, owner, (heft_str){ role, len });
}

heft_part heft_part_at(const heft_file *f, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    return (heft_part){
        .role = heft_ix_role(&f->x, p->role),
        .offset = heft_ix_place_offset(&f->x, p->offset),
        .sibling = heft_ix_place_file(&f->x, p->offset),
        .stored = p->stored,
        .length = p->length,
        .digest = heft_ix_digest_of(&f->x, part),
        .dtype = p->dtype,
        .encoding = p->encoding,
    };
}

uint32_t heft_model_parts(const heft_file *f, uint32_t *first)
{
    *first = f->x.parts.len;
    return f->x.model_parts.len;
}

uint32_t heft_meta_count(const heft_file *f)
{
    return f->x.values.len;
}

heft_value heft_meta_at(const heft_file *f, uint32_t i)
{
    return *heft_ix_value(&f->x, i);
}

uint32_t heft_meta_next(const heft_file *f, uint32_t i)
{
    return heft_ix_value_next(&f->x, i);
}

bool heft_meta_find(heft_value *out, const heft_file *f, const char *key)
{
    for (uint32_t i = 0; i < f->x.values.len; i = heft_ix_value_next(&f->x, i)) {
        if (heft_str_is(heft_ix_value(&f->x, i)->key, key)) {
            *out = *heft_ix_value(&f->x, i);
            return true;
        }
    }
    return false;
}

bool heft_attribute(heft_value *out, const heft_file *f, uint32_t tensor, uint32_t i)
{
    return heft_ix_attribute(out, &f->x, tensor, i);
}

static heft_checksum checksum_of(const heft_file *f, const heft_claim *c)
{
    heft_range r = { heft_ix_place_offset(&f->x, c->range[0].offset), c->range[0].length };
    return (heft_checksum){ c->rule, c->algorithm, r,
                            heft_ix_place_file(&f->x, c->range[0].offset) };
}

bool heft_checksum_at(heft_checksum *out, const heft_file *f, size_t i)
{
    const heft_claim *claims = f->x.claims.ptr;
    uint32_t alone = f->x.has_readings ? 0 : f->x.claims.len; /* each a checksum by itself */
    if (i < alone) {
        *out = checksum_of(f, &claims[i]);
        return true;
    }
    i -= alone;
    for (uint32_t k = alone; k < f->x.claims.len; k++) {
        if (k && claims[k - 1].or_next)
            continue;
        if (!i--) {
            *out = checksum_of(f, &claims[k]);
            return true;
        }
    }
    if (i >= f->x.digests.len)
        return false;
    heft_claim c = heft_ix_claim_at(&f->x, f->x.claims.len + (uint32_t)i);
    *out = checksum_of(f, &c);
    return true;
}
