/* npz_write.c - plans and writes .npz archives; zip_plan.c writes the archive. */
#include "format/losses.h"
#include "format/numpy/npy.h"
#include "format/zip_plan.h"

/* Emit the array's header.  Existing data may be in Fortran order. */
static void put_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    bool is_fortran = p->existing && heft_ix_part_row_at(p->x, part)->flags & HEFT_P_VIEW;
    heft_npy_put(o, p->x, heft_ix_owner(p->x, part), HEFT_NPY_ALIGN, is_fortran);
}

/* Name the members, and warn about names that are dangerous for unpacking.  In an edit, names that
 * were dangerous before are not reported, so that other members can be renamed. */
static heft_status name_members(heft_plan *p, heft_zip_plan *z)
{
    for (uint32_t t = 0; t < z->count; t++) {
        heft_str name = heft_arena_join(p->arena, heft_ix_name(p->x, t), heft_lit(heft_npz_suffix),
                                        heft_lit(""));
        if (!name.ptr)
            return heft_error_no_memory(p->err, "to plan the file");
        z->members[t] = (heft_zip_plan_member){ .name = name,
                                                .part = heft_ix_row(p->x, t)->first_part };
        const char *risk = heft_npz_risk(name);
        if (risk && !(p->existing && heft_npz_risk(heft_ix_name(p->existing, t))))
            HEFT_TRY(
                heft_loss_report(p, HEFT_WARNING, "npz/name", t,
                                 "the name has %s: unpacking the archive may write elsewhere, or "
                                 "fail (--rename)",
                                 risk));
    }
    return HEFT_OK;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    enum { MAX_NAME = 65535 - HEFT_NPZ_SUFFIX };
    heft_str name = heft_ix_name(p->x, t);
    const char *why = name.len > MAX_NAME      ? "a name of more than 65531 bytes"
                      : heft_str_has_nul(name) ? "a name with a NUL"
                                               : NULL;
    if (!why)
        return heft_npy_plan_tensor(p, t);
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, "npz/name", t, "%s cannot be stored in a zip archive",
                            why);
}

heft_status heft_npz_plan(heft_plan *p)
{
    heft_zip_plan *z = heft_plan_alloc(p, sizeof *z);
    if (!z)
        return HEFT_E_NOMEM;
    p->priv = z;
    HEFT_TRY(heft_zip_plan_align(p, HEFT_NPY_ALIGN));
    HEFT_TRY(heft_loss_parts(p, "npz/parts", NULL, "an .npz file"));
    HEFT_TRY(heft_loss_metadata(p, "npz/metadata", "an .npz file"));
    HEFT_TRY(heft_loss_attributes(p, "npz/attributes", 0));
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        HEFT_TRY(plan_tensor(p, t));
    heft_plan_compact(p);
    z->put_prefix = put_header;
    z->count = heft_ix_tensors(p->x);
    z->members = heft_plan_alloc(p, z->count * sizeof *z->members);
    HEFT_TRY(z->members ? name_members(p, z) : HEFT_E_NOMEM);
    return heft_zip_plan_place(p, z, 0);
}

/* ---- writing ---- */

heft_status heft_npz_write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    return heft_zip_plan_record_header(p, p->priv, part, o);
}

heft_status heft_npz_write_header(const heft_plan *p, heft_out *o)
{
    (void)p; /* the file begins with the first member */
    return o->st;
}

heft_status heft_npz_write_trailer(const heft_plan *p, heft_out *o)
{
    return heft_zip_plan_trailer(p, p->priv, o);
}
