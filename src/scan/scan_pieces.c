/* scan_pieces.c - the pieces that a scan has yet to look into, and the work that may be done. */
#include "base/error.h"
#include "scan/scan.h"

void heft_scan_unreadable(heft_scan *s, const heft_scan_piece *p, const char *why)
{
    heft_scan_finding f = { .severity = HEFT_WARNING,
                            .rule = "pickle/unreadable",
                            .member = p->member,
                            .offset = p->at,
                            .is_decoded = p->is_decoded,
                            .text = why };
    s->result.findings++;
    if (s->on_finding)
        s->on_finding(s->ctx, &f);
}

heft_status heft_scan_add(heft_scan *s, const heft_scan_piece *p)
{
    enum { DEPTH = 3 };
    if (p->depth > DEPTH) {
        heft_scan_unreadable(s, p, "lies in too many archives: unpack one first");
        return HEFT_OK;
    }
    return heft_vec_add(&s->mem, &s->pieces, p, sizeof *p)
               ? HEFT_OK
               : heft_error_no_memory(s->err, "to scan the file");
}

bool heft_scan_charge(heft_scan *s, const heft_scan_piece *p, uint64_t bytes)
{
    if (bytes <= s->work && !s->is_spent) {
        s->work -= bytes;
        return true;
    }
    if (!s->is_spent)
        heft_scan_unreadable(
            s, p,
            "the scan ends here: members repeat, or unpack to, far more bytes than the file has");
    s->is_spent = true;
    return false;
}

void heft_scan_overlap(heft_scan *s, const heft_scan_piece *archive, bool is_certain)
{
    enum { RATIO = 4, FREE = 16 << 20 };
    uint64_t most = archive->size < UINT64_MAX / RATIO - FREE ? archive->size * RATIO + FREE
                                                              : UINT64_MAX;
    if (is_certain)
        heft_scan_unreadable(s, archive, "has overlapping members, which no program writes");
    s->work = s->work < most ? s->work : most;
}

void heft_scan_free(heft_scan *s, heft_scan_decoded *d)
{
    heft_mem_free(&s->mem, d->bytes, (size_t)d->capacity);
    *d = (heft_scan_decoded){ 0 };
}

heft_status heft_scan_keep(heft_scan *s, heft_scan_decoded *d)
{
    if (!heft_vec_add(&s->mem, &s->kept, d, sizeof *d))
        return heft_error_no_memory(s->err, "to scan an archive");
    *d = (heft_scan_decoded){ 0 };
    return HEFT_OK;
}
