#include "core/write/plan/plan.h"

#include <string.h>

#include <heft/write.h>

#include "base/error.h"

static heft_status blame(heft_error *err, heft_status st)
{
    return heft_error_about(err, st, HEFT_ABOUT_TARGET);
}

heft_status heft_sink_put(heft_sink *s, uint64_t at, const void *data, size_t len, heft_error *err)
{
    if (!len)
        return HEFT_OK;
    return blame(err, s->ops->write_at ? s->ops->write_at(s, at, data, len, err)
                                       : s->ops->write(s, data, len, err));
}

heft_status heft_sink_fill(heft_sink *s, uint64_t at, uint64_t len, uint8_t byte, heft_error *err)
{
    uint8_t block[512];
    memset(block, byte, sizeof block);
    for (uint64_t done = 0; done < len; done += sizeof block)
        HEFT_TRY(heft_sink_put(s, at + done, block,
                               len - done < sizeof block ? (size_t)(len - done) : sizeof block,
                               err));
    return HEFT_OK;
}

heft_status heft_sink_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    return s->ops->reserve ? blame(err, s->ops->reserve(s, size, err)) : HEFT_OK;
}

heft_status heft_sink_read_back(heft_sink *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    return blame(err, s->ops->read_at(s, at, buf, len, err));
}

heft_status heft_sink_finish(heft_sink *take, heft_error *err)
{
    return blame(err, take->ops->finish(take, err));
}

void heft_sink_discard(heft_sink *s)
{
    if (s)
        s->ops->discard(s);
}

heft_status heft_sink_end(heft_sink *take, heft_status st, heft_error *err)
{
    if (!st)
        return heft_sink_finish(take, err);
    heft_sink_discard(take);
    return st;
}
