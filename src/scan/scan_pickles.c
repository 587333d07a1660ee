/* scan_pickles.c - scans the pickles at the beginning of a piece, and words the findings.
 *
 * Any bytes may be taken for a pickle of protocol 0, and Python runs a pickle up to its first
 * damage.  An import that Python would reach counts therefore in any piece, if its names are names
 * of Python; damage alone is a finding only in a piece that promises a pickle.  The first two lines
 * of a list of words may look like an import ("cat", "dog"): an import of an unknown module, which
 * nothing calls before the damage, is none.
 */
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/text.h"
#include "grammar/pickle_scan.h"
#include "scan/scan.h"

typedef struct pickle { /* findings in a pickle so far */
    heft_scan *s;
    const heft_scan_piece *piece;
    uint64_t at;                  /* offset of the pickle in the piece */
    heft_scan_storages *storages; /* NULL: not collected */
    uint32_t element_bytes;       /* of the storages whose class is imported; MIXED: they differ */
    bool begins, hides_broken;
    uint32_t imports, words, computed; /* words: imports that may be two lines of a text */
    bool is_broken, is_broken_at_once;
} pickle;

static const uint32_t MIXED = UINT32_MAX; /* beyond what an enumerator holds */

static const char *const rules[] = {
    [HEFT_PICKLE_IMPORT] = "pickle/import",
    [HEFT_PICKLE_ARGUMENTS] = "pickle/arguments",
    [HEFT_PICKLE_HIDDEN] = "pickle/hidden-import",
    [HEFT_PICKLE_EXTENSION] = "pickle/extension",
    [HEFT_PICKLE_FOREIGN_ID] = "pickle/persistent-id",
    [HEFT_PICKLE_BROKEN] = "pickle/broken",
};

static const char *const texts[] = {
    [HEFT_PICKLE_ARGUMENTS] = "uses an object in a way that no writer of tensors does",
    [HEFT_PICKLE_HIDDEN] = "would import a function whose name the pickle hides",
    [HEFT_PICKLE_EXTENSION] = "would import a function by a number of the extension registry",
    [HEFT_PICKLE_FOREIGN_ID] = "has a persistent id that is not the id of a PyTorch storage",
    [HEFT_PICKLE_BROKEN] = "is damaged; Python would run everything before this opcode",
};

/* ---- wording ---- */

static heft_severity severity_of(const heft_pickle_finding *f)
{
    if (f->danger == HEFT_PICKLE_IMPORT)
        return heft_pickle_is_dangerous(f->module, f->name) ? HEFT_FAULT : HEFT_WARNING;
    return f->danger == HEFT_PICKLE_FOREIGN_ID || f->danger == HEFT_PICKLE_BROKEN ? HEFT_WARNING
                                                                                  : HEFT_FAULT;
}

/* Return the text of a finding, in the message of `to` or static. */
static const char *text_of(heft_error *to, const heft_pickle_finding *f, heft_severity severity)
{
    if (f->danger == HEFT_PICKLE_ARGUMENTS && f->name.len)
        heft_error_plain(to, HEFT_E_FORMAT,
                         "would use %q from %q in a way that no writer of tensors does", f->name,
                         f->module);
    else if (f->danger == HEFT_PICKLE_IMPORT)
        heft_error_plain(to, HEFT_E_FORMAT, "would import %q from %q, %s", f->name, f->module,
                         severity == HEFT_FAULT ? "a way to run code or to reach files"
                                                : "which is not needed for tensors");
    else
        return texts[f->danger];
    return to->message;
}

static void report(const pickle *p, const heft_pickle_finding *f)
{
    heft_error text;
    heft_severity severity = severity_of(f);
    heft_scan_finding out = { .severity = severity,
                              .rule = rules[f->danger],
                              .member = p->piece->member,
                              .offset = p->piece->at + p->at + f->at,
                              .module = f->module,
                              .name = f->name,
                              .is_decoded = p->piece->is_decoded,
                              .text = text_of(&text, f, severity) };
    p->s->result.findings++;
    if (p->s->on_finding)
        p->s->on_finding(p->s->ctx, &out);
}

/* ---- judging ---- */

/* Python looks for a module of any name, but the modules that exist have names of letters. */
static bool is_python_name(heft_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c & 0x80;
        if (!is_letter && c != '.' && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return s.len && heft_str_is_utf8(s);
}

/* The module runs when it is imported, whatever name is taken from it. */
static bool is_import(const heft_pickle_finding *f)
{
    return is_python_name(f->module) && f->module.len > 1 &&
           (is_python_name(f->name) || heft_pickle_is_dangerous(f->module, f->name));
}

static void count_finding(void *context, const heft_pickle_finding *f)
{
    pickle *p = context;
    bool imports = f->danger == HEFT_PICKLE_IMPORT && (p->begins || is_import(f));
    bool is_word = imports && !p->begins && !heft_pickle_is_dangerous(f->module, f->name);
    bool is_certain = f->danger == HEFT_PICKLE_ARGUMENTS || f->danger == HEFT_PICKLE_HIDDEN ||
                      (imports && !is_word);
    p->imports += is_certain && !f->after_foreign_id;
    p->words += is_word && !f->after_foreign_id;
    p->computed += f->danger == HEFT_PICKLE_EXTENSION || (is_certain && f->after_foreign_id);
    if (f->danger == HEFT_PICKLE_BROKEN) {
        p->is_broken = true;
        p->is_broken_at_once = !f->at;
    }
}

static void report_finding(void *context, const heft_pickle_finding *f)
{
    const pickle *p = context;
    if (f->danger != HEFT_PICKLE_BROKEN || !p->hides_broken)
        report(p, f);
}

/* ---- scanning ---- */

typedef void found_fn(void *context, const heft_pickle_finding *finding);

static bool add_storage(void *context, heft_str key, uint32_t element_bytes)
{
    pickle *p = context;
    return !p->storages || heft_scan_storage(p->s, p->storages, key, element_bytes);
}

static void note_class(void *context, uint32_t element_bytes)
{
    pickle *p = context;
    bool is_same = !p->element_bytes || p->element_bytes == element_bytes;
    p->element_bytes = is_same ? element_bytes : MIXED;
}

static heft_status run(heft_pickle_scanned *out, pickle *p, found_fn *found, bool is_joblib)
{
    const heft_scan_piece *piece = p->piece;
    heft_pickle_scanner scanner = { .memory = &p->s->mem,
                                    .found = found,
                                    .context = p,
                                    .storage = add_storage,
                                    .storage_class = note_class,
                                    .is_script = piece->is_in_torchscript,
                                    .is_joblib = is_joblib };
    heft_status st = heft_pickle_scan(out, &scanner, piece->bytes + p->at, piece->size - p->at);
    return st ? heft_error_no_memory(p->s->err, "to scan a pickle") : HEFT_OK;
}

/* Scan one pickle as a reader reads it, and report the findings if the bytes are a pickle. */
static heft_status scan_as(heft_pickle_scanned *out, pickle *p, bool is_promised, bool is_joblib)
{
    heft_status st = run(out, p, count_finding, is_joblib);
    if (st || !heft_scan_charge(p->s, p->piece, out->end))
        return st;
    bool is_found = p->imports || (p->words && (out->uses_unknown || !p->is_broken)) ||
                    (p->computed && (p->begins || !p->is_broken)) ||
                    (is_promised && !p->is_broken_at_once);
    bool is_likely = p->begins && !p->is_broken;
    p->storages = NULL;
    p->hides_broken = !is_joblib && out->has_arrays;
    p->s->result.pickles += !is_joblib && (is_found || is_likely || out->has_arrays);
    return is_found ? run(out, p, report_finding, is_joblib) : HEFT_OK;
}

/* Add what follows at an offset, where programs go on to read.  The piece is scanned as a file
 * without a name, since other bytes may follow. */
static heft_status add_rest(heft_scan *s, const heft_scan_piece *piece, uint64_t at)
{
    heft_scan_piece rest = *piece;
    rest.bytes += at;
    rest.size -= at;
    rest.at += at;
    rest.name = (heft_str){ 0 };
    rest.is_open_ended = true; /* an archive at the end has been found at the beginning */
    return rest.size ? heft_scan_add(s, &rest) : HEFT_OK;
}

/* Add what programs read after a pickle, beyond the opcodes: Python takes a frame as a whole, and
 * PyTorch the storages that the pickle before has mentioned. */
static heft_status add_followers(heft_scan *s, const heft_scan_piece *piece, uint64_t at,
                                 const heft_pickle_scanned *done, const heft_scan_storages *before)
{
    heft_range list = { at, done->end };
    uint64_t end = at + done->end, after = end;
    if (done->taken > done->end)
        HEFT_TRY(add_rest(s, piece, at + done->taken));
    if (before->rows.len && end < piece->size)
        HEFT_TRY(heft_scan_follow_storages(&after, s, piece, list, before));
    return after == end ? HEFT_OK : add_rest(s, piece, after);
}

/* Scan a pickle as Python reads it, and as joblib does, if joblib reads it in another way. */
static heft_status scan_both(heft_pickle_scanned *done, bool *is_broken, pickle *p,
                             bool is_promised)
{
    pickle of_joblib = *p;
    of_joblib.storages = NULL;
    heft_status st = scan_as(done, p, is_promised, false);
    *is_broken = p->is_broken;
    if (st || !done->has_arrays)
        return st;
    st = scan_as(done, &of_joblib, is_promised, true);
    *is_broken = of_joblib.is_broken;
    return st;
}

/* Return the offset of the next pickle after one that ends at `end`.  In the tar archives of early
 * PyTorch, numbers follow each pickle but the first in the members "storages" and "tensors". */
static uint64_t next_pickle(const pickle *p, uint64_t end)
{
    enum { LENGTH = 8, DIMENSION = 16 }; /* a size and a stride */
    const heft_scan_piece *piece = p->piece;
    bool has_storages = heft_str_is(piece->name, "storages") && p->element_bytes,
         has_tensors = heft_str_is(piece->name, "tensors");
    uint64_t bytes = LENGTH, size = piece->size;
    if (!p->at || (!has_storages && !has_tensors) || size - end < LENGTH)
        return end;
    if (has_tensors ? !heft_mul(&bytes, heft_le32(piece->bytes + end), DIMENSION)
                    : !heft_mul(&bytes, heft_le64(piece->bytes + end), p->element_bytes))
        return size;
    bytes += has_tensors && bytes < size ? LENGTH : 0; /* the offset in the storage */
    return bytes < size - end - LENGTH ? end + LENGTH + bytes : size;
}

heft_status heft_scan_pickles(heft_scan *s, const heft_scan_piece *piece, bool is_promised)
{
    heft_status st = HEFT_OK;
    heft_scan_storages before = { 0 };
    bool has_next = piece->size;
    for (uint64_t at = 0; has_next && !st && !s->is_spent;) {
        heft_scan_storages mentioned = { 0 };
        pickle p = { .s = s, .piece = piece, .at = at, .storages = &mentioned };
        heft_pickle_scanned done;
        bool is_broken;
        p.begins = heft_scan_begins_pickle(piece->bytes + at, piece->size - at);
        st = scan_both(&done, &is_broken, &p, is_promised && !at);
        if (!st && !is_broken)
            st = add_followers(s, piece, at, &done, &before);
        else if (!st && at && heft_scan_npy_data(piece->bytes + at, piece->size - at))
            st = add_rest(s, piece, at);
        uint64_t next = is_broken ? piece->size : next_pickle(&p, at + done.end);
        if (p.element_bytes == MIXED && heft_str_is(piece->name, "storages"))
            heft_scan_unreadable(s, piece,
                                 "has storages whose lengths cannot be followed: what "
                                 "follows them was not searched");
        has_next = done.end && next < piece->size;
        at = next;
        heft_scan_storages_free(s, &before);
        before = mentioned;
    }
    heft_scan_storages_free(s, &before);
    return st;
}

/* ---- beginnings ---- */

typedef struct beginning {
    bool is_broken, has_more; /* more than opcodes follows a pickle */
} beginning;

static void count_breaks(void *context, const heft_pickle_finding *f)
{
    ((beginning *)context)->is_broken |= f->danger == HEFT_PICKLE_BROKEN;
}

static bool note_storage(void *context, heft_str key, uint32_t element_bytes)
{
    (void)key, (void)element_bytes;
    ((beginning *)context)->has_more = true;
    return true;
}

heft_status heft_scan_is_pickle_cut(bool *goes_on, heft_scan *s, const uint8_t *p, uint64_t size)
{
    heft_status st = HEFT_OK;
    beginning b = { 0 };
    heft_pickle_scanner scanner = {
        .memory = &s->mem, .found = count_breaks, .context = &b, .storage = note_storage
    };
    *goes_on = false;
    for (uint64_t at = 0; at < size && !st && !b.is_broken;) {
        heft_pickle_scanned done = { 0 };
        st = heft_pickle_scan(&done, &scanner, p + at, size - at);
        b.has_more |= b.is_broken ? heft_scan_npy_data(p + at, size - at) > 0
                                  : done.taken > done.end;
        *goes_on = done.is_cut || done.has_arrays || !b.is_broken || b.has_more;
        b.is_broken |= done.has_arrays;
        at += done.end;
    }
    return st ? heft_error_no_memory(s->err, "to scan a pickle") : HEFT_OK;
}
