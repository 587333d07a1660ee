#include "notices.h"

#include "finding.h"
#include "message_groups.h"

static void add(message_groups *g, const heft_file *f, const char *path, const heft_finding *x)
{
    finding y = finding_of(f, x);
    message_groups_add(g, &(message){ .kind = (message_kind)y.severity,
                                      .file = path,
                                      .rule = y.rule,
                                      .text = y.text,
                                      .tensor = y.tensor,
                                      .shard = y.shard,
                                      .offset = y.where.offset });
}

void notices_say(const heft_file *f, const char *path, bool notes, bool left_out)
{
    heft_finding x;
    message_groups groups = { .lists_all = notes };
    /* The faults of an incomplete model are already in the line about its completeness. */
    bool is_whole = !heft_file_is_complete(f, NULL);
    for (size_t i = 0; heft_notice_at(&x, f, i); i++) {
        bool is_shown = x.severity == HEFT_NOTE ? notes : x.severity == HEFT_WARNING || is_whole;
        if (is_shown && (left_out || !x.left_out))
            add(&groups, f, path, &x);
    }
    message_groups_print(&groups);
}
