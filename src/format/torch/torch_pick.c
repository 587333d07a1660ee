/* torch_pick.c - finds the value that --key names: keys and numbers joined by dots. */
#include "format/torch/torch.h"
#include "model/values.h"

/* Return the item with the longest key that the path begins with; *rest becomes the rest of the
 * path. */
static uint32_t pick_member(const heft_torch *t, uint32_t dict, heft_str path, heft_str *rest)
{
    const heft_pickle *p = &t->p;
    char buf[HEFT_F64_TEXT];
    uint32_t key, value, found = HEFT_NONE, index = 0;
    size_t best = 0;
    heft_pickle_items i = heft_pickle_items_of(p, dict);
    bool is_keyed = heft_pickle_is(p, dict, HEFT_PICKLE_DICT);
    for (; heft_pickle_next(p, &i, &key); index++) {
        value = key;
        if (is_keyed)
            heft_pickle_next(p, &i, &value);
        heft_str text = heft_torch_key_text(p, is_keyed ? key : HEFT_NONE, index, buf);
        bool fits = text.len <= path.len && !memcmp(text.ptr, path.ptr, text.len) &&
                    (text.len == path.len || path.ptr[text.len] == '.');
        if (!fits || (found != HEFT_NONE && text.len < best))
            continue;
        found = value;
        best = text.len;
    }
    size_t used = best + (best < path.len);
    *rest = (heft_str){ path.ptr + used, path.len - used };
    return found;
}

heft_status heft_torch_pick(const heft_torch *t, uint32_t *root)
{
    heft_str path_left = t->x->pick;
    *root = t->p.root;
    while (path_left.len) {
        heft_str rest;
        heft_torch_interpretation m = heft_torch_interpret(t, *root);
        const heft_pickle_value *v = heft_pickle_at(&t->p, m.value);
        uint32_t container = HEFT_NONE;
        if (m.kind == HEFT_TORCH_OBJECT || m.kind == HEFT_TORCH_NAMESPACE) {
            container = heft_torch_attributes(t, m.value);
            container = container != HEFT_NONE ? container : v->as.object.content;
        } else if (m.kind == HEFT_TORCH_VALUE && heft_torch_is_container(&t->p, m.value)) {
            container = m.value;
        }
        uint32_t found = container == HEFT_NONE ? container
                                                : pick_member(t, container, path_left, &rest);
        if (found == HEFT_NONE)
            return heft_error_rule(t->x->err,
                                   heft_error_plain(t->x->err, HEFT_E_NOTFOUND,
                                                    "there is nothing under the key %q: no %q",
                                                    t->x->pick, path_left),
                                   "heft/no-key");
        *root = found;
        path_left = rest;
    }
    return HEFT_OK;
}
