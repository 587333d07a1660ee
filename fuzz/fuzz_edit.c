/* fuzz_edit.c - fuzzes edits and appending in memory: the planned extents form a file that opens in
 * the same format with the same tensors; a sound file stays sound, and damage stays damage. */
#include <stdlib.h>
#include <string.h>

#include <heft/editing.h>
#include <heft/vocabulary.h>

#include "fuzz_request.h"

typedef struct edit {
    const heft_host *host;
    const heft_file *f;
    const uint8_t *data;
    size_t size;
    bool is_sound, has_wrong_checksum;
} edit;

/* ---- requests ------------------------------------------------------------------------------- */

typedef struct request {
    heft_edit_options opt;
    heft_value set;
    heft_str unset;
    heft_rename rename[2];
    heft_special_id special;
    heft_vocab *vocab;
    char name[256];
} request;

static void choose_value(request *r, const heft_file *f, uint32_t bits, fuzz_script *s)
{
    heft_value old = heft_meta_at(f, 0);
    r->set = (heft_value){ .kind = HEFT_KIND_STR, .key = heft_str_from("added") };
    r->set.as.s = (heft_str){ r->name, fuzz_next(s) };
    if (bits & 1 && heft_meta_count(f) && old.kind != HEFT_KIND_LIST && old.kind != HEFT_KIND_MAP)
        r->set.key = old.key;
    if (bits & 2) {
        r->set.kind = HEFT_KIND_UINT;
        r->set.as.u = bits;
    }
    r->unset = old.key;
    r->opt.set = &r->set;
    r->opt.set_count = bits >> 2 & 1;
    r->opt.unset = &r->unset;
    r->opt.unset_count = (bits & 24) == 24;
}

/* Rename a tensor, or swap the names of two. */
static void choose_names(request *r, const heft_file *f, fuzz_script *s)
{
    uint32_t count = heft_tensor_count(f), how = fuzz_next(s), first = fuzz_next(s);
    if (!count || how % 4 == 0)
        return;
    heft_str a = heft_tensor_at(f, first % count).name;
    heft_str b = heft_tensor_at(f, (first + 1) % count).name;
    r->rename[0] = (heft_rename){ a, { r->name, how >> 2 } };
    r->rename[1] = (heft_rename){ b, a };
    if (how % 4 == 1 && count > 1)
        r->rename[0].to = b;
    if (how % 4 == 2)
        r->rename[0].to.len = a.len < sizeof r->name ? a.len : sizeof r->name;
    r->opt.rename = r->rename;
    r->opt.rename_count = how % 4 == 1 && count > 1 ? 2 : 1;
}

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    uint32_t answer = fuzz_choice(ctx, t->name, 1);
    id->has = answer % 8;
    id->requires_grad = answer & 8;
    id->param_id = answer >> 4;
    memset(&id->base_id, 0, sizeof id->base_id);
    return answer & 16;
}

static void request_init(request *r, const edit *e, fuzz_script *s)
{
    static const char vocab[] = "[UNK]\nthe\n##s\n";
    uint32_t bits = fuzz_next(s), texts = fuzz_next(s);
    memset(r, 0, sizeof *r);
    memset(r->name, 'Q', sizeof r->name);
    r->opt = (heft_edit_options)HEFT_EDIT_OPTIONS_INIT;
    r->opt.host = e->host;
    r->opt.limits = &fuzz_limits;
    choose_value(r, e->f, bits, s);
    choose_names(r, e->f, s);
    if (texts % 8 == 1)
        fuzz_require(!heft_vocab_parse_lines(&r->vocab, heft_str_from(vocab), e->host, NULL));
    if (texts % 8 == 2)
        r->opt.config = heft_str_from("{\"kind\":\"k\",\"config\":{}}");
    if (texts % 8 == 3)
        r->opt.identify = identify;
    r->special = (heft_special_id){ HEFT_PAD, texts >> 3 };
    r->opt.ctx = s;
    r->opt.vocab = r->vocab;
    r->opt.special = &r->special;
    r->opt.special_count = texts % 8 == 4 || texts % 16 == 1;
}

/* ---- the edited file ------------------------------------------------------------------------ */

static fuzz_bytes bytes_of(const heft_edit *plan, const edit *e, fuzz_bytes added)
{
    const heft_edit_extent *p;
    size_t n = heft_edit_extents(plan, &p), size = (size_t)heft_edit_size(plan);
    fuzz_bytes b = { malloc(size + 1), size, size };
    uint64_t end = 0;
    fuzz_require(b.ptr);
    for (size_t i = 0; i < n; end = p[i].at + p[i].length, i++) {
        const uint8_t *from = p[i].file ? added.ptr : e->data;
        fuzz_require(p[i].at == end && p[i].length <= size - end);
        fuzz_require(p[i].data || (p[i].length <= (p[i].file ? added.len : e->size) &&
                                   p[i].from <= (p[i].file ? added.len : e->size) - p[i].length));
        if (p[i].length)
            memcpy(b.ptr + p[i].at, p[i].data ? p[i].data : from + p[i].from, (size_t)p[i].length);
    }
    fuzz_require(end == size);
    return b;
}

/* Require that the result opens; return the number of its tensors. */
static uint32_t check(const edit *e, fuzz_bytes b, bool has_same_names)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *after = NULL;
    opt.host = e->host;
    fuzz_require(!fuzz_open(&after, b.ptr, b.len, &opt));
    fuzz_require(heft_file_format(after) == heft_file_format(e->f));
    fuzz_require(!e->is_sound || !fuzz_faults(after));
    fuzz_require(!e->has_wrong_checksum || fuzz_faults(after));
    if (e->is_sound && has_same_names)
        fuzz_require_same(e->f, after);
    uint32_t count = heft_tensor_count(after);
    heft_file_close(after);
    return count;
}

static void try_edit(const edit *e, fuzz_script *s)
{
    request r;
    heft_edit *plan = NULL;
    heft_error err = fuzz_no_error();
    request_init(&r, e, s);
    heft_status st = heft_edit_plan(&plan, e->f, &r.opt, &err);
    fuzz_require_error(st, &err);
    if (!st) {
        fuzz_bytes b = bytes_of(plan, e, (fuzz_bytes){ .ptr = NULL });
        fuzz_require(check(e, b, !r.opt.rename_count) == heft_tensor_count(e->f));
        free(b.ptr);
    }
    heft_edit_close(plan);
    heft_vocab_close(r.vocab);
}

/* ---- appending ------------------------------------------------------------------------------ */

static heft_str prefix(void *ctx, const heft_tensor *t)
{
    static const char names[][4] = { "a.0", "a.1", "a.2", "a.3", "a.4", "a.5", "a.6", "a.7" };
    (void)ctx;
    return (heft_str){ names[fuzz_choice(ctx, t->name, 0) % 8], 3 };
}

/* Append the tensors of the file to the file itself, under other names, or in their own place. */
static void try_append(const edit *e, fuzz_script *s)
{
    heft_append_options opt = HEFT_APPEND_OPTIONS_INIT;
    fuzz_request r;
    fuzz_bytes bytes = { .ptr = NULL };
    heft_file *added = NULL;
    heft_edit *plan = NULL;
    uint32_t tensors = 0;
    fuzz_request_init(&r, e->host, heft_file_format(e->f), s);
    r.opt.rename = prefix;
    r.opt.ctx = s;
    r.opt.keep = NULL;
    r.opt.cast = NULL;
    r.opt.transpose = r.opt.densify = NULL;
    r.opt.sparsify = NULL;
    r.opt.identify = NULL;
    r.opt.storage = NULL;
    opt.convert = &r.opt;
    opt.limits = &fuzz_limits;
    opt.duplicates = fuzz_next(s) % 2 ? HEFT_DUPLICATES_FIRST : HEFT_DUPLICATES_REFUSE;
    opt.replaces = fuzz_next(s) % 3 == 0;
    r.opt.rename = opt.replaces ? NULL : prefix;
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    open.host = e->host;
    heft_status st = heft_append_convert(&tensors, e->f, e->f, fuzz_sink_at(&bytes), &opt, NULL);
    if (!st && tensors) {
        st = fuzz_open(&added, bytes.ptr, bytes.len, &open);
        fuzz_require(!st || !e->is_sound);
        st = st ? st : heft_append_plan(&plan, e->f, added, &opt, NULL);
        if (!st) {
            fuzz_bytes b = bytes_of(plan, e, bytes);
            edit now = *e;
            now.has_wrong_checksum = e->has_wrong_checksum && !opt.replaces; /* digests are new */
            uint32_t more = opt.replaces ? 0 : tensors;
            fuzz_require(check(&now, b, false) == heft_tensor_count(e->f) + more);
            free(b.ptr);
        }
        heft_edit_close(plan);
        heft_file_close(added);
    }
    free(bytes.ptr);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    fuzz_memory_init(&m, UINT32_MAX);
    edit e = { .host = &m.host, .data = data, .size = size };
    e.f = fuzz_open_model(&m.host, data, size);
    if (e.f) {
        e.is_sound = fuzz_is_sound(e.f);
        e.has_wrong_checksum = !e.is_sound && fuzz_has_wrong_checksum(e.f);
        if (fuzz_next(s) % 4)
            try_edit(&e, s);
        else
            try_append(&e, s);
    }
    heft_file_close((heft_file *)(uintptr_t)e.f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = FUZZ_SCRIPT, .takes_models = true };
