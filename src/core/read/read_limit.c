/* read_limit.c - counts the bytes that are read and decoded, up to heft_limits.read_bytes. */
#include "base/compiler.h"
#include "core/read/file.h"

/* Add to the counter; return the sum, UINT64_MAX if the sum overflows.  A lock, because not every
 * processor adds 64 bits atomically. */
static uint64_t add(heft_read_counter *c, uint64_t bytes)
{
    heft_spin_lock(&c->lock);
    c->bytes = c->bytes > UINT64_MAX - bytes ? UINT64_MAX : c->bytes + bytes;
    uint64_t sum = c->bytes;
    heft_spin_unlock(&c->lock);
    return sum;
}

static heft_status limit_error(const heft_file *f, uint32_t part, heft_error *err)
{
    const heft_index *x = &f->x;
    uint32_t tensor = part == HEFT_NONE ? HEFT_NONE : heft_ix_owner(x, part);
    heft_status st = HEFT_E_LIMIT;
    if (tensor == HEFT_NONE)
        heft_error_plain(err, st, "the limit of %U bytes to read (--max-bytes) is reached",
                         x->limits.read_bytes);
    else if (heft_ix_part_row_at(x, part)->length == HEFT_UNKNOWN_LENGTH)
        heft_error_plain(err, st,
                         "tensor %q, of unknown length: the limit of %U bytes to read "
                         "(--max-bytes) is reached",
                         heft_ix_name(x, tensor), x->limits.read_bytes);
    else
        heft_error_plain(
            err, st, "tensor %q, %U bytes: the limit of %U bytes to read (--max-bytes) is reached",
            heft_ix_name(x, tensor), heft_tensor_bytes(f, tensor), x->limits.read_bytes);
    return heft_error_rule(err, st, "heft/limit-read");
}

heft_status heft_file_count_read(const heft_file *f, uint32_t part, uint64_t bytes, heft_error *err)
{
    const heft_limits *l = &f->x.limits;
    if (!l->read_bytes || add(l->read_counter, bytes) <= l->read_bytes)
        return HEFT_OK;
    heft_file_enter(f); /* the name may be mapped */
    return heft_file_leave_after(f, limit_error(f, part, err), err);
}
