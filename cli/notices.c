#include "notices.h"

#include "message_groups.h"

static heft_str tensor_of(const heft_file *f, const heft_finding *x)
{
    if (x->tensor == HEFT_NONE)
        return (heft_str){ NULL, 0 };
    heft_str name = heft_tensor_at(f, x->tensor).name;
    return name.len ? name : HEFT_STR("");
}

static heft_str shard_of(const heft_file *f, const heft_finding *x)
{
    return x->shard ? heft_shard_file_at(f, x->shard - 1).name : (heft_str){ NULL, 0 };
}

void out_finding(outbuf *o, const heft_file *f, const heft_finding *x)
{
    out_format(o, "%s: ", x->rule);
    out_message(o, x->text);
    out_place(o, tensor_of(f, x), x->where.offset, shard_of(f, x));
}

static void add(message_groups *g, const heft_file *f, const char *path, const heft_finding *x)
{
    message_groups_add(g, &(message){ .kind = (message_kind)x->severity,
                                      .file = path,
                                      .rule = x->rule,
                                      .text = x->text,
                                      .tensor = tensor_of(f, x),
                                      .shard = shard_of(f, x),
                                      .offset = x->where.offset });
}

void notices_say(const heft_file *f, const char *path, bool notes, bool left_out)
{
    heft_finding x;
    message_groups groups = { .lists_all = notes };
    /* The faults of an incomplete model are already in the line about its completeness. */
    bool is_whole = !heft_file_is_complete(f, NULL);
    for (uint32_t i = 0, n = heft_notice_count(f); i < n; i++) {
        x = heft_notice_at(f, i);
        bool is_shown = x.severity == HEFT_NOTE ? notes : x.severity == HEFT_WARNING || is_whole;
        if (is_shown && (left_out || !x.left_out))
            add(&groups, f, path, &x);
    }
    message_groups_print(&groups);
}
