/* scan_pickles.c - scans the pickles at the beginning of a piece, and words the findings.
 *
 * Any bytes may be taken for a pickle of protocol 0.  Damage is therefore a finding only in a piece
 * whose name promises a pickle; in other pieces an import counts if its names are names of Python.
 */
#include "base/error.h"
#include "base/text.h"
#include "grammar/pickle_scan.h"
#include "scan/scan.h"

typedef struct pickle { /* findings in a pickle so far */
    heft_scan *s;
    const heft_scan_piece *piece;
    uint64_t at; /* offset of the pickle in the piece */
    uint32_t imports, computed;
    bool is_broken, is_broken_at_once;
} pickle;

static const char *const rules[] = {
    [HEFT_PICKLE_IMPORT] = "pickle/import",       [HEFT_PICKLE_HIDDEN] = "pickle/hidden-import",
    [HEFT_PICKLE_EXTENSION] = "pickle/extension", [HEFT_PICKLE_FOREIGN_ID] = "pickle/persistent-id",
    [HEFT_PICKLE_BROKEN] = "pickle/broken",
};

static const char *const texts[] = {
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
    return f->danger == HEFT_PICKLE_HIDDEN || f->danger == HEFT_PICKLE_EXTENSION ? HEFT_FAULT
                                                                                 : HEFT_WARNING;
}

/* Return the text of a finding, in the message of `to` or static. */
static const char *text_of(heft_error *to, const heft_pickle_finding *f, heft_severity severity)
{
    if (f->danger != HEFT_PICKLE_IMPORT)
        return texts[f->danger];
    heft_error_plain(to, HEFT_E_FORMAT, "would import %q from %q, %s", f->name, f->module,
                     severity == HEFT_FAULT ? "a way to run code or to reach files"
                                            : "which is not needed for tensors");
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

static bool is_python_name(heft_str s)
{
    enum { MOST = 200 };
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && c != '.' && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return s.len && s.len <= MOST;
}

static void count_finding(void *context, const heft_pickle_finding *f)
{
    pickle *p = context;
    p->imports += f->danger == HEFT_PICKLE_IMPORT && f->module.len > 1 &&
                  is_python_name(f->module) && is_python_name(f->name);
    p->computed += f->danger == HEFT_PICKLE_HIDDEN || f->danger == HEFT_PICKLE_EXTENSION;
    if (f->danger == HEFT_PICKLE_BROKEN) {
        p->is_broken = true;
        p->is_broken_at_once = !f->at;
    }
}

static void report_finding(void *context, const heft_pickle_finding *f)
{
    report(context, f);
}

/* Python unpickles whatever a file of such a name holds; other programs use .bin and .ckpt for raw
 * bytes, too. */
static bool promises_pickle(const heft_scan_piece *p)
{
    bool is_shared = heft_str_ends(p->name, ".bin") || heft_str_ends(p->name, ".ckpt");
    return heft_scan_is_pickle_name(p->name) ||
           (is_shared && heft_scan_begins_pickle(p->bytes, p->size));
}

/* ---- scanning ---- */

static heft_status run(pickle *p, void (*found)(void *, const heft_pickle_finding *), uint64_t *end)
{
    const heft_scan_piece *piece = p->piece;
    heft_pickle_scanner scanner = { &p->s->mem, found, p, piece->is_in_torchscript };
    heft_status st = heft_pickle_scan(&scanner, piece->bytes + p->at, piece->size - p->at, end);
    return st ? heft_error_no_memory(p->s->err, "to scan a pickle") : HEFT_OK;
}

/* Scan one pickle, and report the findings if the bytes are a pickle beyond doubt. */
static heft_status scan_one(pickle *p, bool is_promised, uint64_t *end)
{
    heft_status st = run(p, count_finding, end);
    if (st || !heft_scan_charge(p->s, p->piece, *end))
        return st;
    bool is_pickle = is_promised ? !p->is_broken_at_once
                                 : p->imports || (p->computed && !p->is_broken);
    bool is_likely = !p->is_broken && heft_scan_begins_pickle(p->piece->bytes + p->at, *end);
    p->s->result.pickles += is_pickle || is_likely;
    return is_pickle ? run(p, report_finding, end) : HEFT_OK;
}

heft_status heft_scan_pickles(heft_scan *s, const heft_scan_piece *piece)
{
    bool is_promised = promises_pickle(piece);
    heft_status st = HEFT_OK;
    bool has_next = piece->size;
    for (uint64_t at = 0, end = 0; has_next && !st && s->work; at += end) {
        pickle p = { .s = s, .piece = piece, .at = at };
        st = scan_one(&p, is_promised && !at, &end);
        has_next = !p.is_broken && end;
    }
    return st;
}
