/* flax_array.c - reads the extension in which Flax stores an array; flax.c shows the layout. */
#include "format/flax/flax.h"

heft_status heft_flax_expect(heft_msgpack_tree *t, heft_msgpack_kind kind, const char *name,
                             heft_msgpack_item *it)
{
    *it = heft_msgpack_next(&t->c);
    if (!t->c.st && it->kind != kind)
        heft_cur_fail_at(&t->c, it->at, "an array of Flax: %s is missing", name);
    return t->c.st;
}

/* Read the name of the type, which writers of old store as bytes. */
static heft_status read_type(heft_msgpack_tree *t, heft_str *out)
{
    heft_msgpack_item it = heft_msgpack_next(&t->c);
    if (!t->c.st && it.kind != HEFT_MSGPACK_TEXT && it.kind != HEFT_MSGPACK_BYTES)
        heft_cur_fail_at(&t->c, it.at, "an array of Flax: the name of its type is missing");
    *out = heft_msgpack_text(&t->c, &it);
    return t->c.st;
}

heft_status heft_flax_read_array(heft_msgpack_tree *t, const heft_msgpack_item *ext,
                                 heft_flax_array *a)
{
    enum { MEMBERS = 3 };
    heft_msgpack_item it;
    *a = (heft_flax_array){ .at = ext->at, .end = heft_cur_pos(&t->c) + ext->u };
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_ARRAY, "the list of shape, type and bytes", &it));
    if (it.u != MEMBERS)
        return heft_cur_fail_at(&t->c, it.at, "an array of Flax has %U members instead of 3", it.u);
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_ARRAY, "the shape", &it));
    a->shape = t->c;
    a->rank = it.u;
    heft_msgpack_skip(&t->c, &it);
    HEFT_TRY(t->c.st ? t->c.st : read_type(t, &a->type));
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_BYTES, "its data", &it));
    a->data = (heft_range){ heft_cur_pos(&t->c), it.u };
    heft_cur_skip(&t->c, it.u);
    if (!t->c.st && heft_cur_pos(&t->c) != a->end)
        heft_cur_fail_at(&t->c, a->at, "an array of Flax ends at %U, its extension at %U",
                         heft_cur_pos(&t->c), a->end);
    return t->c.st;
}
