/* coverage.c - intersects the byte ranges of parts with the byte ranges of checksums.
 *
 * The ends of both are sorted, and walked over together, so that the work is O(n log n) and shared
 * bytes count once.  The ledger does not answer this, because no byte has to be compared. */
#include "core/check/verification.h"

#include "base/checked_math.h"
#include "core/read/input_window.h"
#include "core/read/partial_crcs.h"
#include "core/read/stored_checksum.h"
#include "core/shards/box_file.h"

typedef struct box_check {
    heft_check *check;
    const heft_file *f; /* the model, to which the assembling file was joined, or that file */
    heft_progress *progress;
    heft_verify_result *result;
} box_check;

/* Report what is wrong; an error of the system ends the check. */
static heft_status report(const box_check *k, uint32_t part, heft_status st, const heft_error *why)
{
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM || st == HEFT_E_CANCELLED) {
        *k->check->err = *why;
        return st;
    }
    if (st)
        k->check->report(k->check, HEFT_FAULT, "heft/piece", (heft_range){ HEFT_NOWHERE, 0 },
                         heft_ix_owner(&k->f->x, part), why->message);
    return HEFT_OK;
}

static bool has_replicas(const heft_assembled_part *a)
{
    heft_boxes b = heft_ix_boxes(&a->file->x, a->row);
    uint32_t i = 0;
    while (i < b.count && !heft_box_is_replica(&b.rows[i]))
        i++;
    return !a->file->missing && i < b.count;
}

/* Read the tensor: the source compares copies. */
static heft_status compare_replicas(const box_check *k, uint32_t part, heft_error *why)
{
    heft_chunks c;
    uint64_t length = heft_ix_part_row_at(&k->f->x, part)->length;
    heft_status st = heft_chunks_open(&c, k->f->host->allocator, NULL, length, why);
    while (!st && !heft_progress_halted(k->progress) && heft_chunks_next(&c)) {
        st = heft_part_read(c.buf, k->f, part, c.at, c.len, why);
        heft_progress_add(k->progress, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

/* Count the elements of a box that is a file; those of others are in ranges of checksums. */
static void count_payload(const box_check *k, const heft_assembled_part *a, uint32_t box,
                          bool is_compared)
{
    const heft_index *x = &a->file->x;
    const heft_ix_assembled *row = (const heft_ix_assembled *)x->assembled.ptr + a->row;
    heft_boxes b = heft_ix_boxes(x, a->row);
    uint64_t n = 0;
    if (heft_box_holds(&b.rows[box]) != HEFT_BOX_FILE)
        return;
    (void)heft_product(&n, heft_box_sizes(&b, box), b.rank); /* not more than the tensor has */
    n *= heft_dtype_size(heft_ix_row(x, row->tensor)->dtype);
    k->result->payload_bytes += n;
    k->result->payload_checked += is_compared ? n : 0;
    k->result->bytes_checked += is_compared ? n : 0;
}

static heft_status check_part(const box_check *k, uint32_t part, const heft_assembled_part *a)
{
    heft_error why;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < heft_ix_boxes(&a->file->x, a->row).count; i++) {
        bool is_compared;
        heft_status of_box = heft_box_verify(a->file, a->row, i, &is_compared, &why);
        st = st ? st : of_box;
        count_payload(k, a, i, is_compared);
        HEFT_TRY(report(k, part, of_box, &why));
    }
    if (st || !has_replicas(a))
        return HEFT_OK;
    st = compare_replicas(k, part, &why);
    return report(k, part, st, &why);
}

uint64_t heft_check_boxes_bytes(const heft_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->x.parts.len; i++) {
        heft_assembled_part a = heft_assembled_part_of(f, i);
        if (a.file && has_replicas(&a))
            sum += heft_ix_part_row_at(&f->x, i)->length;
    }
    return sum;
}

heft_status heft_check_boxes(heft_check *c, const heft_file *f, heft_progress *progress,
                             heft_verify_result *result)
{
    box_check k = { c, f, progress, result };
    for (uint32_t i = 0; i < f->x.parts.len && !heft_progress_halted(progress); i++) {
        heft_assembled_part a = heft_assembled_part_of(f, i);
        if (a.file)
            HEFT_TRY(check_part(&k, i, &a));
    }
    return heft_progress_end(progress, c->err);
}

static bool add_range(heft_borders *to, uint64_t offset, uint64_t length)
{
    return length > UINT64_MAX - offset || heft_borders_add(to, (heft_range){ offset, length });
}

/* Add the ranges of an assembled part, which its boxes have. */
static bool add_boxes(heft_borders *to, const heft_assembled_part *a)
{
    const heft_ix_assembled *row = (const heft_ix_assembled *)a->file->x.assembled.ptr + a->row;
    bool has_memory = true;
    heft_range r;
    for (uint32_t i = 0; i < row->box_count && has_memory; i++)
        if (heft_assembled_box(&r, a, i))
            has_memory = add_range(to, r.offset, r.length);
    return has_memory;
}

static bool add_parts(heft_borders *to, const heft_file *f)
{
    bool has_memory = true;
    for (uint32_t i = 0; i < heft_ix_all_parts(&f->x) && has_memory; i++) {
        const heft_ix_part_row *row = heft_ix_part_row_at(&f->x, i);
        heft_assembled_part a = heft_assembled_part_of(f, i);
        has_memory = !HEFT_IS_LEAN && a.file ? add_boxes(to, &a)
                                             : add_range(to, row->offset, row->stored);
    }
    return has_memory;
}

static bool add_checksums(heft_borders *to, const heft_file *f, bool header_only)
{
    bool has_memory = true;
    for (uint32_t i = 0; i < heft_ix_checksums(&f->x) && has_memory; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&f->x, i);
        if (header_only && !c.at_open)
            continue;
        for (size_t k = 0; k < HEFT_CHECKSUM_RANGES && has_memory; k++)
            if (c.range[k].length && heft_file_has_bytes(f, c.range[k].offset) &&
                heft_host_digest(f->host, c.algorithm))
                has_memory = add_range(to, c.range[k].offset, c.range[k].length);
    }
    return has_memory;
}

typedef struct walk { /* over sorted borders */
    const heft_border *next, *end;
    int64_t covering; /* ranges that have begun and not ended */
} walk;

static walk walk_over(const heft_borders *b)
{
    const heft_border *all = b->at.ptr;
    return (walk){ all, b->at.len ? all + b->at.len : all, 0 };
}

static uint64_t next_at(const walk *w)
{
    return w->next < w->end ? w->next->at : UINT64_MAX;
}

static void pass(walk *w, uint64_t at)
{
    for (; w->next < w->end && w->next->at == at; w->next++)
        w->covering += w->next->change;
}

/* Count the bytes in ranges of parts, and those that lie in ranges of checksums, too. */
static void count(const heft_borders *of_parts, const heft_borders *of_sums, uint64_t *payload,
                  uint64_t *checked)
{
    walk parts = walk_over(of_parts), sums = walk_over(of_sums);
    for (uint64_t at = 0; parts.next < parts.end;) {
        uint64_t to = next_at(&parts) < next_at(&sums) ? next_at(&parts) : next_at(&sums);
        *payload += parts.covering ? to - at : 0;
        *checked += parts.covering && sums.covering ? to - at : 0;
        at = to;
        pass(&parts, at);
        pass(&sums, at);
    }
}

/* Return the number of ranges of parts and of boxes. */
static uint64_t ranges_of(const heft_file *f)
{
    uint64_t all = heft_ix_all_parts(&f->x);
    for (uint32_t i = 0; !HEFT_IS_LEAN && i < f->x.parts.len; i++) {
        heft_assembled_part a = heft_assembled_part_of(f, i);
        if (a.file)
            all += ((const heft_ix_assembled *)a.file->x.assembled.ptr + a.row)->box_count;
    }
    return all;
}

heft_status heft_file_coverage(heft_verify_result *to, const heft_file *f, bool header_only,
                               heft_error *err)
{
    uint64_t parts = ranges_of(f);
    uint64_t sums = (uint64_t)HEFT_CHECKSUM_RANGES * heft_ix_checksums(&f->x);
    heft_borders of_parts, of_sums;
    heft_borders_init(&of_parts, f->host);
    heft_borders_init(&of_sums, f->host);
    bool has_memory = parts + sums + (parts > sums ? parts : sums) <= UINT32_MAX / 2 &&
                      heft_vec_reserve(&of_sums.mem, &of_sums.at, 2 * sums, sizeof(heft_border)) &&
                      add_parts(&of_parts, f) && add_checksums(&of_sums, f, header_only) &&
                      heft_borders_sort(&of_parts) && heft_borders_sort(&of_sums);
    if (has_memory)
        count(&of_parts, &of_sums, &to->payload_bytes, &to->payload_checked);
    heft_borders_free(&of_parts);
    heft_borders_free(&of_sums);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, "to relate checksums and parts");
}
