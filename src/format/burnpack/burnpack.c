/* burnpack.c - Burn's .bpk files.
 *
 *    0  "NRUB"             4  u16 version, 1             6  u32 n
 *   10  n bytes of CBOR: {"tensors": {name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end],
 *           "param_id": number}, ...}, "metadata": {text: text, ...}, "scalars": {text: scalar, ...}}
 *       zeros up to a multiple of 256, then the data, each tensor's at a multiple of 256
 *
 * data_offsets count from where the data begin.  Burn 0.19 wrote the same version number without any
 * padding; only the size of the file and the offsets tell.  Tensors are listed in the order of their data.
 */
#include "format/burnpack/burnpack.h"

enum { ALIGN = HEFT_BURNPACK_ALIGN, HEADER = HEFT_BURNPACK_HEADER };

/* ---- where the data begin ---- */

static heft_status refuse_size(const heft_index *x, const heft_burnpack_manifest *m,
                               uint64_t data_end, uint64_t size)
{
    if (!heft_ix_tensors(x))
        return heft_error_set(x->err, HEFT_E_FORMAT, size,
                              "the file has %U bytes, but its padding ends at %U", size, data_end);
    return heft_error_set(x->err, HEFT_E_FORMAT, size,
                          "tensor %q: its data end at %U, but the file has only %U bytes",
                          heft_ix_name(x, m->end_tensor), data_end, size);
}

/* Burn's name of the generation that the file is taken for, one of those that read data placed like these. */
static const char *find_generation(heft_index *x, const heft_burnpack_manifest *m, uint32_t placed)
{
    uint32_t which = m->generations & placed, i = 0;
    if (!which)
        heft_ix_note(x, HEFT_WARNING, "burnpack/generations", HEFT_NOWHERE, m->odd_tensor,
                     "no release of Burn is known to read the file: its element types and the "
                     "placement of its data belong to different ones");
    if (!which)
        which = placed;
    if (m->has_scalars && which & HEFT_BURNPACK_SCALARS)
        which &= HEFT_BURNPACK_SCALARS;
    while (!(heft_burnpack_generations[i].bit & which))
        i++;
    return heft_burnpack_generations[i].name;
}

/* padding: what lies between the manifest and where a padded file's data begin, as far as there is a file. */
static heft_status find_data(heft_index *x, const heft_burnpack_manifest *m, heft_range padding,
                             uint64_t aligned, const uint8_t *bytes)
{
    uint64_t size = x->file_bytes, data_end;
    if (m->end > UINT64_MAX - aligned)
        return refuse_size(x, m, UINT64_MAX, size);
    /* In a file of Burn 0.19 the data follow the manifest without padding.  When all data begin at multiples of 256 it
     * may as well be a newer file that was cut short. */
    uint64_t legacy_end = padding.offset + m->end;
    bool legacy = aligned != padding.offset && size != aligned + m->end &&
                  (size == legacy_end || (size > legacy_end && m->is_unaligned));
    bool is_clean = true;
    for (uint64_t i = 0; i < padding.length; i++)
        is_clean = is_clean && !bytes[i];
    x->data_start = legacy ? padding.offset : aligned;
    data_end = x->data_start + m->end;
    if (data_end > size)
        return refuse_size(x, m, data_end, size);
    if (legacy)
        heft_ix_note(x, HEFT_NOTE, "burnpack/legacy", padding.offset, HEFT_NONE,
                     "the data are not aligned, as Burn 0.19 wrote them: newer ones misread them");
    if (legacy && is_clean && m->end && !m->is_unaligned)
        heft_ix_note(x, HEFT_WARNING, "burnpack/legacy-or-cut", padding.offset, HEFT_NONE,
                     "this may as well be a newer file that was cut short: the data begin with "
                     "zeros where its padding would be");
    if (!legacy && !is_clean)
        heft_ix_note(x, HEFT_WARNING, "burnpack/padding", padding.offset, HEFT_NONE,
                     "the padding before the data is not zero");
    for (uint32_t i = 0; i < x->parts.len; i++)
        heft_ix_part_row_at(x, i)->offset += x->data_start;
    uint32_t placed = legacy                     ? HEFT_BURNPACK_0_19
                      : aligned > padding.offset ? HEFT_BURNPACK_ANY & ~HEFT_BURNPACK_0_19
                                                 : HEFT_BURNPACK_ANY;
    x->version = heft_lit(find_generation(x, m, placed));
    return heft_ix_sort(x);
}

/* ---- the file ---- */

static heft_status read_header(heft_window *in, heft_index *x, uint32_t *manifest_bytes)
{
    heft_cur c = heft_cur_whole(in, 0, HEADER, "the header");
    const uint8_t *magic = heft_cur_take(&c, 4);
    uint16_t version = heft_cur_u16(&c);
    *manifest_bytes = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    if (!memcmp(magic, "BURN", 4))
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "it begins with 'BURN', which is 'NRUB' with its bytes swapped");
    if (memcmp(magic, "NRUB", 4) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "it does not begin with 'NRUB'");
    if (version > 1)
        return heft_error_set(x->err, HEFT_E_FORMAT, 4, "version %U is not 1", (uint64_t)version);
    if (!version) {
        heft_ix_omit(x, HEFT_NOTE, "burnpack/version-0", (heft_str){ NULL, 0 },
                     "its version is 0, and is written as 1");
        heft_ix_note(x, HEFT_WARNING, "burnpack/version-0", 4, HEFT_NONE,
                     "its version is 0: all files have 1");
    }
    if (*manifest_bytes > in->size - HEADER)
        return heft_error_set(x->err, HEFT_E_FORMAT, 6,
                              "a manifest of %U bytes is announced, but the file has only %U more",
                              (uint64_t)*manifest_bytes, in->size - HEADER);
    return HEFT_OK;
}

static heft_status burnpack_parse(heft_window *in, heft_index *x)
{
    uint32_t n;
    uint64_t aligned;
    heft_status st = read_header(in, x, &n);
    if (st)
        return st;
    heft_range padding = { HEADER + (uint64_t)n, 0 };
    heft_align_up(&aligned, padding.offset, ALIGN);
    padding.length = (aligned < in->size ? aligned : in->size) - padding.offset;
    heft_cur cur = heft_cur_whole(in, HEADER, n + padding.length, "the manifest");
    const uint8_t *manifest = heft_cur_take(&cur, n), *rest = heft_cur_take(&cur, padding.length);
    if (cur.st)
        return cur.st;
    heft_burnpack_manifest m;
    if (n > HEFT_BURNPACK_MAX_METADATA)
        heft_ix_note(x, HEFT_WARNING, "burnpack/manifest-size", 6, HEFT_NONE,
                     "the manifest is larger than 100 MiB: Burn will refuse this file");
    if (x->file_bytes > HEFT_BURNPACK_MAX_FILE)
        heft_ix_note(x, HEFT_WARNING, "burnpack/file-size", HEFT_NOWHERE, HEFT_NONE,
                     "the file is larger than 100 GiB: Burn will refuse it");
    st = heft_burnpack_read_manifest(&m, x, manifest, n);
    return st ? st : find_data(x, &m, padding, aligned, rest);
}

/* ---- what is allowed but odd ---- */

static const heft_name_rules odd_rules = { "burnpack/name", "burnpack/nul-in-name",
                                           "a NUL in its name ends it for programs in C",
                                           "burnpack/rank" };

/* Every tensor has one part, of its own number; the parts ascend. */
static heft_status burnpack_notice(heft_index *x)
{
    uint64_t data_end = x->data_start;
    bool is_aligned = !(data_end % ALIGN);
    heft_range reach = { data_end, 0 }; /* that ends furthest so far */
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        heft_range where = { part->offset, part->stored };
        uint64_t end = where.offset + where.length;
        if (is_aligned && where.length && where.offset % ALIGN)
            heft_ix_note_range(x, HEFT_WARNING, "burnpack/align", where, t,
                               "its data do not begin at a multiple of 256");
        if (where.length && where.offset == reach.offset && where.length == reach.length)
            heft_ix_note_range(x, HEFT_WARNING, "burnpack/shared", where, t,
                               "its data are another tensor's as well");
        if (where.length && end > reach.offset + reach.length)
            reach = where;
        data_end = end > data_end ? end : data_end;
    }
    if (data_end < x->file_bytes)
        heft_ix_note_range(x, HEFT_WARNING, "burnpack/tail",
                           (heft_range){ data_end, x->file_bytes - data_end }, HEFT_NONE,
                           "bytes follow the last tensor's");
    return HEFT_OK;
}

/* ---- checking ---- */

static heft_status check_gap(heft_check *c, uint64_t from, uint64_t to)
{
    heft_range gap = { from, to - from };
    return c->padding(c, "burnpack/padding", HEFT_WARNING, gap, 0);
}

/* Data and gaps in the order of their places.  Every tensor has one part, of its own number; those without bytes may
 * lie behind the others. */
static heft_status burnpack_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count;
    uint64_t data_end = c->x->data_start;
    heft_range reach = { c->x->data_start, 0 }; /* that ends furthest so far */
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, order[i]);
        heft_range where = { part->offset, part->stored };
        uint64_t from = reach.offset + reach.length;
        bool is_same = where.offset == reach.offset && where.length == reach.length;
        if (where.offset < from && !is_same)
            c->report(c, HEFT_FAULT, "burnpack/overlap", where, order[i],
                      "its data overlap partly with another tensor's");
        else if (!is_same)
            st = check_gap(c, from, where.offset);
        if (where.offset + where.length > from)
            reach = where;
    }
    if (!st)
        heft_burnpack_check_record(c);
    for (uint32_t t = 0; !st && t < heft_ix_tensors(c->x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, t);
        uint64_t part_end = part->offset + part->stored;
        data_end = part_end > data_end ? part_end : data_end;
    }
    return st ? st : check_gap(c, reach.offset + reach.length, data_end);
}

/* ---- the format ---- */

/* "NRUB" with its bytes swapped. */
static int burnpack_probe(const uint8_t *head, size_t head_len, const uint8_t *tail,
                          size_t tail_len, uint64_t size)
{
    (void)tail;
    (void)tail_len;
    (void)size;
    return head_len >= 6 && !memcmp(head, "BURN", 4) && head[4] <= 1 && head[5] <= 1 ? 24 : 0;
}

const heft_format heft_format_burnpack = {
    .name = "burnpack",
    .title = "Burnpack",
    .structure_rule = "burnpack/structure",
    .suffixes = ".bpk",
    .versions = "0.21 0.20 0.22 0.22-pre.2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_META,
    .align = ALIGN,
    .magics = "NRUB",
    .probe = burnpack_probe,
    .parse = burnpack_parse,
    .name_rules = &odd_rules,
    .notice = burnpack_notice,
    .check = burnpack_check,
    .plan = heft_burnpack_plan,
    .write_header = heft_burnpack_write_header,
    .number_map = heft_burnpack_scalars,
};
