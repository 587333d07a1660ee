/* burnpack.c - the format Burnpack, Burn's .bpk files: parsing and verification.
 *
 *    0  "NRUB"             4  u16 version, 1             6  u32 n
 *   10  n bytes of CBOR:
 *       {"tensors": {name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end],
 *                           "param_id": number}, ...},
 *        "metadata": {text: text, ...}, "scalars": {text: scalar, ...}}
 *       zeros up to a multiple of 256, then the data of the tensors, each at a multiple of 256
 *
 * data_offsets are relative to the start of the data.  Burn 0.19 wrote no padding at all, under
 * the same version number: only the file size and the offsets distinguish the two layouts.
 * Tensors are listed in the order of their data.
 */
#include "format/burnpack/burnpack.h"

enum { ALIGN = HEFT_BURNPACK_ALIGN, HEADER = HEFT_BURNPACK_HEADER };

/* ---- start of the data ---- */

static heft_status fail_truncated(const heft_index *x, const heft_burnpack_manifest *m,
                                  uint64_t data_end, uint64_t size)
{
    if (!heft_ix_tensors(x))
        return heft_error_expect(
            x->err,
            heft_error_set(x->err, HEFT_E_FORMAT, size,
                           "the file is truncated: its padding ends at byte %U, only %U are "
                           "present",
                           data_end, size),
            data_end, 0);
    return heft_error_expect(
        x->err,
        heft_error_set(x->err, HEFT_E_FORMAT, size,
                       "the file is truncated: tensor %q needs data up to byte %U, only %U are "
                       "present",
                       heft_ix_name(x, m->last_tensor), data_end, size),
        data_end, 0);
}

/* Return the name of the generation to report.  `by_layout`: generations that read files with
 * this data layout. */
static const char *choose_generation(heft_index *x, const heft_burnpack_manifest *m,
                                     uint32_t by_layout)
{
    uint32_t candidates = m->generations & by_layout, i = 0;
    if (!candidates)
        heft_ix_note(
            x, HEFT_WARNING, "burnpack/generations", HEFT_NOWHERE, m->conflict_tensor,
            "no known release of Burn reads this file: its element types and the layout of "
            "its data belong to different releases");
    if (!candidates)
        candidates = by_layout;
    if (m->has_scalars && candidates & HEFT_BURNPACK_SCALARS)
        candidates &= HEFT_BURNPACK_SCALARS;
    while (!(heft_burnpack_generations[i].bit & candidates))
        i++;
    return heft_burnpack_generations[i].name;
}

/* Set x->data_start and make part offsets absolute.  `padding` is the range from the end of the
 * manifest to `aligned`, or to the end of the file if that comes first; `bytes` holds the
 * padding. */
static heft_status locate_data(heft_index *x, const heft_burnpack_manifest *m, heft_range padding,
                               uint64_t aligned, const uint8_t *bytes)
{
    uint64_t size = x->file_bytes, data_end;
    if (m->data_bytes > UINT64_MAX - aligned)
        return fail_truncated(x, m, UINT64_MAX, size);
    /* In a file of Burn 0.19 the data follow the manifest without padding.  If all data begin at
     * multiples of 256, the file may also be a truncated newer file. */
    uint64_t legacy_end = padding.offset + m->data_bytes;
    bool legacy = aligned != padding.offset && size != aligned + m->data_bytes &&
                  (size == legacy_end || (size > legacy_end && m->is_unaligned));
    bool is_clean = true;
    for (uint64_t i = 0; i < padding.length; i++)
        is_clean = is_clean && !bytes[i];
    x->data_start = legacy ? padding.offset : aligned;
    data_end = x->data_start + m->data_bytes;
    if (data_end > size)
        return fail_truncated(x, m, data_end, size);
    if (legacy)
        heft_ix_note(
            x, HEFT_NOTE, "burnpack/legacy", padding.offset, HEFT_NONE,
            "the data are not aligned (written by Burn 0.19): newer releases misread the file");
    if (legacy && is_clean && m->data_bytes && !m->is_unaligned)
        heft_ix_note(
            x, HEFT_WARNING, "burnpack/legacy-or-cut", padding.offset, HEFT_NONE,
            "the file may also be a truncated file of a newer release: its data begin with "
            "zeros, like padding");
    if (!legacy && !is_clean)
        heft_ix_note(x, HEFT_WARNING, "burnpack/padding", padding.offset, HEFT_NONE,
                     "the padding before the data is not zero");
    for (uint32_t i = 0; i < x->parts.len; i++)
        heft_ix_part_row_at(x, i)->offset += x->data_start;
    uint32_t by_layout = legacy                     ? HEFT_BURNPACK_0_19
                         : aligned > padding.offset ? HEFT_BURNPACK_ANY & ~HEFT_BURNPACK_0_19
                                                    : HEFT_BURNPACK_ANY;
    x->version = heft_lit(choose_generation(x, m, by_layout));
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
        return heft_error_set(
            x->err, HEFT_E_FORMAT, 0,
            "the file begins with 'BURN': the magic number 'NRUB' is byte-swapped");
    if (memcmp(magic, "NRUB", 4) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "not a Burnpack: the file does not begin with 'NRUB'");
    if (version > 1)
        return heft_error_set(x->err, HEFT_E_FORMAT, 4,
                              "version %U is not supported (Burnpacks have version 1)",
                              (uint64_t)version);
    if (!version) {
        heft_ix_omit(x, HEFT_NOTE, "burnpack/version-0", (heft_str){ NULL, 0 },
                     "version 0 is written as 1");
        heft_ix_note(x, HEFT_WARNING, "burnpack/version-0", 4, HEFT_NONE,
                     "the version is 0 (Burn writes 1)");
    }
    if (*manifest_bytes > in->size - HEADER)
        return heft_error_expect(
            x->err,
            heft_error_set(x->err, HEFT_E_FORMAT, 6,
                           "the header announces a manifest of %U bytes, only %U bytes follow",
                           (uint64_t)*manifest_bytes, in->size - HEADER),
            HEADER, *manifest_bytes);
    return HEFT_OK;
}

static heft_status burnpack_parse(heft_window *in, heft_index *x)
{
    uint32_t n;
    uint64_t aligned;
    HEFT_TRY(read_header(in, x, &n));
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
    HEFT_TRY(heft_burnpack_read_manifest(&m, x, manifest, n));
    return locate_data(x, &m, padding, aligned, rest);
}

/* ---- unusual but allowed content ---- */

static const heft_name_rules name_rules = {
    "burnpack/name", "burnpack/nul-in-name",
    "its name contains a NUL byte, which ends the name for C programs", "burnpack/rank"
};

/* Tensor t has a single part, number t; part offsets ascend. */
static heft_status burnpack_notice(heft_index *x)
{
    uint64_t data_end = x->data_start;
    bool is_aligned = !(data_end % ALIGN);
    heft_range furthest = { data_end, 0 }; /* the range with the largest end so far */
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        heft_range where = { part->offset, part->stored };
        uint64_t end = where.offset + where.length;
        if (is_aligned && where.length && where.offset % ALIGN)
            heft_ix_note_range(x, HEFT_WARNING, "burnpack/align", where, t,
                               "its data are not aligned to 256 bytes");
        if (where.length && where.offset == furthest.offset && where.length == furthest.length)
            heft_ix_note_range(x, HEFT_WARNING, "burnpack/shared", where, t,
                               "its data are shared with another tensor");
        if (where.length && end > furthest.offset + furthest.length)
            furthest = where;
        data_end = end > data_end ? end : data_end;
    }
    if (data_end < x->file_bytes)
        heft_ix_note_range(x, HEFT_WARNING, "burnpack/tail",
                           (heft_range){ data_end, x->file_bytes - data_end }, HEFT_NONE,
                           "bytes follow the data of the last tensor");
    return HEFT_OK;
}

/* ---- checking ---- */

static heft_status check_padding(heft_check *c, uint64_t from, uint64_t to)
{
    heft_range where = { from, to - from };
    return c->padding(c, "burnpack/padding", HEFT_WARNING, where, 0);
}

/* Walk over data and padding by ascending offset.  Tensor t has a single part, number t; empty
 * parts may begin after the end of all data. */
static heft_status burnpack_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count;
    uint64_t data_end = c->x->data_start;
    heft_range furthest = { c->x->data_start, 0 }; /* the range with the largest end so far */
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, order[i]);
        heft_range where = { part->offset, part->stored };
        uint64_t from = furthest.offset + furthest.length;
        bool is_shared = where.offset == furthest.offset && where.length == furthest.length;
        if (where.offset < from && !is_shared)
            c->report(c, HEFT_FAULT, "burnpack/overlap", where, order[i],
                      "its data partly overlap the data of another tensor");
        else if (!is_shared)
            st = check_padding(c, from, where.offset);
        if (where.offset + where.length > from)
            furthest = where;
    }
    if (!st)
        heft_burnpack_check_record(c);
    for (uint32_t t = 0; !st && t < heft_ix_tensors(c->x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, t);
        uint64_t part_end = part->offset + part->stored;
        if (part_end > data_end && !heft_global_offset_file(c->x, part->offset))
            data_end = part_end;
    }
    return st ? st : check_padding(c, furthest.offset + furthest.length, data_end);
}

/* ---- the format ---- */

/* Recognise the byte-swapped magic number "BURN" as well, so that the parser can explain the
 * error. */
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
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_META,
    .align = ALIGN,
    .magics = "NRUB",
    .probe = burnpack_probe,
    .parse = burnpack_parse,
    .name_rules = &name_rules,
    .notice = burnpack_notice,
    .check = burnpack_check,
    .number_map = heft_burnpack_scalars,
};

const heft_format_writer heft_format_writer_burnpack = {
    .plan = heft_burnpack_plan,
    .write_header = heft_burnpack_write_header,
};
