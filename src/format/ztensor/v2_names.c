/* v2_names.c - names in files that look canonical (§6.3), which are in Unicode's normalization form C (§3.5). */
#include "base/nfc.h"
#include "format/ztensor/v2.h"

static bool has_canonical_digest(const heft_index *x, uint32_t part)
{
    static const char begins[] = "xxh3:";
    heft_str digest = heft_ix_digest_of(x, part);
    return digest.len >= sizeof begins - 1 && !memcmp(digest.ptr, begins, sizeof begins - 1);
}

/* Whether everything but its names has the canonical form: one file, its blobs where that form has them, nothing
 * compressed, a digest for each part. */
static bool looks_canonical(const heft_index *x)
{
    bool canonical = !x->shards.len && x->own && x->own % HEFT_ZT2_CANONICAL == 0;
    for (uint32_t i = 0; canonical && i < x->parts.len; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, i);
        canonical = part->encoding == HEFT_RAW && part->offset % HEFT_ZT2_CANONICAL == 0 &&
                    has_canonical_digest(x, i);
    }
    return canonical;
}

static void check_name(heft_check *c, heft_str name, uint32_t tensor, const char *text)
{
    if (heft_str_breaks_nfc(name))
        c->report(c, HEFT_NOTE, "ztensor/nfc", (heft_range){ HEFT_NOWHERE, 0 }, tensor, text);
}

static void check_keys(heft_check *c, uint32_t tensor)
{
    heft_value v;
    for (uint32_t i = 0; heft_ix_attribute(&v, c->x, tensor, i);
         i = heft_value_nests(&v) ? v.as.of.end : i + 1)
        check_name(c, v.key, tensor,
                   "the key of an attribute is not in Unicode's form C, as the canonical form has "
                   "it");
}

void heft_zt2_check_names(heft_check *c)
{
    const heft_index *x = c->x;
    if (!looks_canonical(x))
        return;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        check_name(c, heft_ix_name(x, t), t,
                   "its name is not in Unicode's form C, as the canonical form has it");
        if (heft_ix_row(x, t)->attrs)
            check_keys(c, t);
    }
    for (uint32_t i = 0; i < x->roles.len; i++)
        check_name(c, heft_ix_role(x, i), HEFT_NONE,
                   "the name of a part is not in Unicode's form C, as the canonical form has it");
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        check_name(c, heft_ix_value(x, i)->key, HEFT_NONE,
                   "the key of an attribute is not in Unicode's form C, as the canonical form has "
                   "it");
}
