/* torch_walk.c - flattens the graph of a pickle to lists of tensors and settings, with names of
 * nested containers joined by dots.
 *
 * A container that contains itself is entered once.  A shared container is listed at every use,
 * within the limit of heft_torch_charge().
 */
#include "format/torch/zero.h"
#include "model/values.h"

typedef enum keys { KEYED, COUNTED, PAIRED } keys; /* names of the items of a container */

typedef struct frame { /* an open container */
    heft_pickle_items items;
    uint32_t value;    /* value to unmark at the end, or HEFT_NONE */
    uint32_t path_len; /* length of the container's name */
    uint32_t index;    /* index of the next item */
    uint8_t keys;
    bool skips_scalars; /* scalars are attributes of objects, not settings */
    bool is_argument;   /* arguments of a call that is not made: tensors are left out */
    bool is_module;     /* attributes of a torch.nn module, without those of module_dicts */
    bool skips_listed;  /* tensors that have a name already are not listed again */
} frame;

typedef struct walk {
    heft_torch *t;
    frame *frames;
    uint32_t depth, max_depth;
    heft_vec path; /* char: name of the current value */
} walk;

static const char purpose[] = "for the names of a pickle";

/* ---- names ---- */

static heft_status put(walk *w, heft_str s)
{
    if (!heft_vec_reserve(&w->t->x->mem, &w->path, (uint64_t)s.len + 1, 1))
        return heft_error_no_memory(w->t->x->err, purpose);
    memcpy((char *)w->path.ptr + w->path.len, s.ptr, s.len);
    w->path.len += (uint32_t)s.len;
    return HEFT_OK;
}

static heft_status enter_name(walk *w, const frame *f, uint32_t key, uint32_t item)
{
    char buf[HEFT_F64_TEXT];
    heft_str text = heft_torch_key_text(&w->t->p, key, f->index, buf);
    w->path.len = f->path_len;
    if (f->path_len)
        HEFT_TRY(put(w, heft_lit(".")));
    HEFT_TRY(heft_torch_charge(w->t, text.len, heft_pickle_offset(&w->t->p, item)));
    return put(w, text);
}

/* Copy the path to the index; an empty path at the top level becomes `fallback`. */
static heft_status copy_name(walk *w, uint64_t at, const char *fallback, heft_str *name)
{
    heft_str path = { w->path.ptr, w->path.len };
    if (!path.len && !w->depth)
        path = heft_lit(fallback);
    HEFT_TRY(heft_torch_charge(w->t, path.len, at));
    *name = heft_ix_copy(w->t->x, path);
    return name->ptr ? HEFT_OK : heft_error_no_memory(w->t->x->err, purpose);
}

/* ---- entering containers ---- */

static bool skips_scalars(const walk *w)
{
    return w->depth && w->frames[w->depth - 1].skips_scalars;
}

static bool is_argument(const walk *w)
{
    return w->depth && w->frames[w->depth - 1].is_argument;
}

static heft_status enter(walk *w, uint32_t container, keys how, uint32_t marked, bool skip_scalars)
{
    uint64_t at = heft_pickle_offset(&w->t->p, container);
    const frame outer = w->depth ? w->frames[w->depth - 1] : (frame){ .value = HEFT_NONE };
    if (w->depth == w->max_depth)
        return heft_error_rule(w->t->x->err,
                               heft_error_set(w->t->x->err, HEFT_E_LIMIT, at,
                                              "%s: containers are nested deeper than %U levels",
                                              w->t->p.c.what, (uint64_t)w->t->x->limits.depth),
                               "heft/limit-depth");
    w->frames[w->depth++] = (frame){ .items = heft_pickle_items_of(&w->t->p, container),
                                     .value = marked,
                                     .path_len = w->path.len,
                                     .keys = (uint8_t)how,
                                     .skips_scalars = skip_scalars,
                                     .is_argument = outer.is_argument,
                                     .skips_listed = outer.skips_listed };
    return heft_torch_charge(w->t, 1, at);
}

static bool is_dict(const walk *w, uint32_t value)
{
    return heft_pickle_is(&w->t->p, value, HEFT_PICKLE_DICT);
}

/* Recognise the state_dict() of a torch.optim optimizer; under a key that begins with "optim", it
 * may lack the list of parameters. */
static bool is_optimizer(const walk *w, uint32_t dict)
{
    static const char name[] = "optim";
    const heft_pickle *p = &w->t->p;
    bool is_named = w->path.len >= sizeof name - 1 && !memcmp(w->path.ptr, name, sizeof name - 1);
    return w->depth && heft_pickle_dict_get(p, dict, "state") != HEFT_NONE &&
           (is_named ||
            heft_pickle_is(p, heft_pickle_dict_get(p, dict, "param_groups"), HEFT_PICKLE_LIST));
}

/* Record that the current value is left out. */
static heft_status leave_out(const walk *w, heft_left_out how, const char *rule, uint64_t at,
                             const char *what)
{
    heft_str path = { w->path.len ? w->path.ptr : "value", w->path.len ? w->path.len : 5 };
    heft_ix_left_out(w->t->x, how, rule, (heft_range){ at, 0 }, "%q is left out: %s", path, what);
    return HEFT_OK;
}

/* Record that the current value, which is not a scalar for Heft, is left out. */
static heft_status leave_out_value(const walk *w, uint32_t value)
{
    heft_torch_interpretation m = heft_torch_interpret(w->t, value);
    uint64_t at = heft_pickle_offset(&w->t->p, value);
    bool has_numbers = m.kind == HEFT_TORCH_NUMBERS || m.kind == HEFT_TORCH_NUMBER ||
                       m.kind == HEFT_TORCH_BYTES;
    if (heft_torch_is_storage(&w->t->p, m.value))
        return leave_out(w, HEFT_LEFT_OUT, "torch/storage", at, "a storage without a tensor");
    if (heft_pickle_is(&w->t->p, m.value, HEFT_PICKLE_PERSISTENT))
        return leave_out(w, HEFT_LEFT_OUT, "torch/storage", at, "an object outside of the pickle");
    if (has_numbers)
        return leave_out(w, HEFT_LEFT_OUT, "torch/numbers", at,
                         "numbers or bytes in a form that is not supported");
    heft_ix_note(w->t->x, HEFT_NOTE, "torch/opaque", at, HEFT_NONE,
                 "a value that is neither a tensor nor a simple setting is left out");
    return HEFT_OK;
}

/* Mark a container while the items are listed; return false, with a note, if the container is
 * marked already. */
static bool begin_listing(walk *w, uint32_t value)
{
    heft_pickle_value *v = heft_pickle_at(&w->t->p, value);
    if (v->mark) {
        heft_ix_note(w->t->x, HEFT_WARNING, "torch/cycle", heft_pickle_offset(&w->t->p, value),
                     HEFT_NONE, "a container that contains itself is listed once");
        return false;
    }
    v->mark = true;
    return true;
}

/* The parameters, buffers and submodules of a torch.nn module, whose items have the names of
 * state_dict(). */
static const char *const module_dicts[] = { "_modules", "_buffers", "_parameters" };
enum { MODULE_DICTS = sizeof module_dicts / sizeof *module_dicts };

static bool is_module_dict(const heft_pickle *p, uint32_t key)
{
    for (uint32_t i = 0; i < MODULE_DICTS; i++)
        if (heft_pickle_is(p, key, HEFT_PICKLE_TEXT) &&
            heft_str_is(heft_pickle_at(p, key)->as.s, module_dicts[i]))
            return true;
    return false;
}

/* Enter the attributes of an object.  Those of a module that are none of its dictionaries come
 * last, so that a tensor has the name of state_dict(). */
static heft_status enter_attributes(walk *w, uint32_t state, bool skip_scalars)
{
    const heft_pickle *p = &w->t->p;
    HEFT_TRY(heft_torch_charge(w->t, heft_pickle_at(p, state)->as.items.count,
                               heft_pickle_offset(p, state)));
    bool is_module = heft_pickle_dict_get(p, state, "_modules") != HEFT_NONE &&
                     heft_pickle_dict_get(p, state, "_parameters") != HEFT_NONE;
    HEFT_TRY(enter(w, state, KEYED, HEFT_NONE, skip_scalars || is_module));
    frame *own = &w->frames[w->depth - 1];
    bool skips_listed = own->skips_listed;
    own->is_module = is_module;
    own->skips_listed = skips_listed || is_module;
    for (uint32_t i = 0; i < MODULE_DICTS && is_module; i++) {
        uint32_t dict = heft_pickle_dict_get(p, state, module_dicts[i]);
        if (dict != HEFT_NONE)
            dict = heft_torch_interpret(w->t, dict).value;
        if (!is_dict(w, dict))
            continue;
        HEFT_TRY(enter(w, dict, KEYED, HEFT_NONE, true));
        w->frames[w->depth - 1].skips_listed = skips_listed;
    }
    return HEFT_OK;
}

/* Enter the state of an object.  A class may store it in any form, such as a tuple of tensors. */
static heft_status enter_state(walk *w, uint32_t state, bool skip_scalars)
{
    uint32_t dicts[2];
    if (heft_torch_find_attributes(w->t, state, dicts)) {
        for (uint32_t i = 2; i--;)
            if (dicts[i] != HEFT_NONE)
                HEFT_TRY(enter_attributes(w, dicts[i], skip_scalars));
        return HEFT_OK;
    }
    heft_torch_interpretation m = heft_torch_interpret(w->t, state);
    if (heft_torch_is_container(&w->t->p, m.value))
        return enter(w, m.value, COUNTED, HEFT_NONE, true);
    return m.kind == HEFT_TORCH_VALUE || m.kind == HEFT_TORCH_OPAQUE
               ? HEFT_OK
               : leave_out(w, HEFT_LEFT_OUT, "torch/unreadable",
                           heft_pickle_offset(&w->t->p, state),
                           "an object with a state that is no dictionary, tuple or list");
}

/* Enter the attributes and items of an object.  The first frame ends last, and unmarks the
 * object. */
static heft_status enter_object(walk *w, uint32_t object, bool is_known)
{
    const heft_pickle_value *v = heft_pickle_at(&w->t->p, object);
    uint32_t state = v->as.object.state, content = v->as.object.content, args = v->as.object.args;
    uint32_t depth = w->depth;
    bool skip_scalars = skips_scalars(w);
    bool has_arguments = !is_known && heft_pickle_item(&w->t->p, args, 0) != HEFT_NONE;
    heft_status st = HEFT_OK;
    if (!is_known)
        heft_torch_report(w->t, object);
    if ((state == HEFT_NONE && content == HEFT_NONE && !has_arguments) || !begin_listing(w, object))
        return HEFT_OK;
    if (state != HEFT_NONE)
        st = enter_state(w, state, skip_scalars || !is_known);
    if (!st && content != HEFT_NONE)
        st = enter(w, content, is_dict(w, content) ? KEYED : COUNTED, HEFT_NONE, skip_scalars);
    if (!st && has_arguments) {
        st = enter(w, args, COUNTED, HEFT_NONE, true);
        if (!st)
            w->frames[w->depth - 1].is_argument = true;
    }
    if (!st && w->depth == depth)
        heft_pickle_at(&w->t->p, object)->mark = false;
    else if (!st)
        w->frames[depth].value = object;
    return st;
}

/* Enter the attributes of a tensor that consists of other tensors. */
static heft_status enter_wrapper(walk *w, const heft_torch_interpretation *m)
{
    const heft_pickle *p = &w->t->p;
    uint64_t at = heft_pickle_offset(p, m->value);
    uint32_t depth = w->depth;
    if (m->state == HEFT_NONE)
        return leave_out(w, HEFT_LEFT_OUT, "torch/unreadable", at,
                         "a tensor of a subclass has no attributes");
    heft_ix_note_format(w->t->x, HEFT_NOTE, "torch/class", (heft_range){ at, 0 }, HEFT_NONE,
                        "%q: an unknown class of tensors; the tensors in its attributes are listed",
                        heft_pickle_name(p, m->callable));
    if (!begin_listing(w, m->value))
        return HEFT_OK;
    HEFT_TRY(enter_state(w, m->state, true));
    if (w->depth > depth)
        w->frames[depth].value = m->value;
    else
        heft_pickle_at(p, m->value)->mark = false;
    return HEFT_OK;
}

/* ---- metadata ---- */

static heft_status put_meta(walk *w, uint64_t at, heft_value v)
{
    HEFT_TRY(copy_name(w, at, "value", &v.key));
    return heft_ix_meta(w->t->x, v);
}

/* Return true if the list has only scalars, and becomes a single value. */
static bool is_flat(walk *w, uint32_t list)
{
    uint32_t item;
    heft_pickle_items i = heft_pickle_items_of(&w->t->p, list);
    while (heft_pickle_next(&w->t->p, &i, &item)) {
        heft_torch_interpretation m = heft_torch_interpret(w->t, item);
        const heft_pickle_value *v = heft_pickle_at(&w->t->p, m.value);
        bool is_scalar = m.kind == HEFT_TORCH_NUMBER || m.kind == HEFT_TORCH_DEVICE ||
                         m.kind == HEFT_TORCH_BYTES ||
                         (m.kind == HEFT_TORCH_VALUE && v->kind <= HEFT_PICKLE_BYTES);
        if (!is_scalar && !(m.kind == HEFT_TORCH_VALUE && v->kind == HEFT_PICKLE_GLOBAL))
            return false;
    }
    return true;
}

static heft_status put_list(walk *w, uint32_t list)
{
    const heft_pickle *p = &w->t->p;
    uint32_t item;
    heft_value v = { .kind = HEFT_KIND_LIST };
    heft_status st = put_meta(w, heft_pickle_offset(p, list), v);
    heft_pickle_items i = heft_pickle_items_of(p, list);
    while (!st && heft_pickle_next(p, &i, &item)) {
        st = heft_torch_charge(w->t, 1, heft_pickle_offset(p, item));
        if (!st && heft_torch_scalar(w->t, &v, item))
            st = heft_ix_meta(w->t->x, v);
        else if (!st && !w->t->st)
            st = leave_out_value(w, item);
        st = st ? st : w->t->st;
    }
    if (!st)
        heft_ix_meta_end(w->t->x);
    return st;
}

/* ---- values ---- */

/* Return true for the entry of a dictionary at the root that may hold settings. */
static bool is_settings(const walk *w, uint32_t value)
{
    return w->depth == 1 && !w->t->x->pick.len && is_dict(w, value) &&
           heft_str_is((heft_str){ w->path.ptr, w->path.len }, heft_torch_metadata);
}

static heft_status visit_container(walk *w, uint32_t value)
{
    const heft_pickle_value *v = heft_pickle_at(&w->t->p, value);
    uint64_t at = heft_pickle_offset(&w->t->p, value);
    bool taken = false;
    HEFT_TRY(heft_torch_charge(w->t, v->as.items.count, at));
    if (is_settings(w, value))
        HEFT_TRY(heft_torch_settings(w->t, value, &taken));
    if (taken)
        return HEFT_OK;
    if (v->kind == HEFT_PICKLE_DICT) {
        if (is_optimizer(w, value))
            return leave_out(w, HEFT_LEFT_OUT_READABLE, "torch/optimizer", at,
                             "the state of an optimizer (--key opens it)");
        return begin_listing(w, value) ? enter(w, value, KEYED, value, skips_scalars(w)) : HEFT_OK;
    }
    if (is_flat(w, value))
        return skips_scalars(w) ? HEFT_OK : put_list(w, value);
    return begin_listing(w, value) ? enter(w, value, COUNTED, value, skips_scalars(w)) : HEFT_OK;
}

static heft_status visit_scalar(walk *w, uint32_t value)
{
    heft_value v;
    bool is_persistent = heft_pickle_is(&w->t->p, heft_torch_interpret(w->t, value).value,
                                        HEFT_PICKLE_PERSISTENT);
    if (skips_scalars(w) && !is_persistent)
        return HEFT_OK;
    if (heft_torch_scalar(w->t, &v, value))
        return put_meta(w, heft_pickle_offset(&w->t->p, value), v);
    return w->t->st ? w->t->st : leave_out_value(w, value);
}

/* List a value with the name in w->path. */
static heft_status visit(walk *w, uint32_t value)
{
    heft_str name;
    heft_torch_interpretation m = heft_torch_interpret(w->t, value);
    uint64_t at = heft_pickle_offset(&w->t->p, m.value);
    heft_status st = heft_torch_charge(w->t, 1, at);
    if (st)
        return st;
    switch (m.kind) {
    case HEFT_TORCH_TENSOR:
    case HEFT_TORCH_SPARSE:
    case HEFT_TORCH_PIECE:
        if (is_argument(w))
            return leave_out(w, HEFT_LEFT_OUT, "torch/unreadable", at,
                             "a tensor in the arguments of a call that Heft does not make");
        if (w->depth && w->frames[w->depth - 1].skips_listed &&
            heft_pickle_at(&w->t->p, m.value)->mark)
            return HEFT_OK;
        heft_pickle_at(&w->t->p, m.value)->mark = true;
        st = copy_name(w, at, "tensor", &name);
        if (st)
            return st;
        return m.kind == HEFT_TORCH_TENSOR   ? heft_torch_tensor(w->t, name, &m)
               : m.kind == HEFT_TORCH_SPARSE ? heft_torch_sparse(w->t, name, &m)
                                             : heft_torch_piece(w->t, name, &m);
    case HEFT_TORCH_PAIRS:
        return begin_listing(w, m.value) ? enter(w, m.value, PAIRED, m.value, skips_scalars(w))
                                         : HEFT_OK;
    case HEFT_TORCH_OBJECT:
    case HEFT_TORCH_NAMESPACE:
        return enter_object(w, m.value, m.kind == HEFT_TORCH_NAMESPACE);
    case HEFT_TORCH_ARRAY:
        return leave_out(w, HEFT_LEFT_OUT, "torch/array", at, "an array of NumPy");
    case HEFT_TORCH_META:
        return leave_out(w, HEFT_LEFT_OUT, "torch/unreadable", at,
                         "a tensor of the device 'meta' has no bytes");
    case HEFT_TORCH_WRAPPER:
        return enter_wrapper(w, &m);
    case HEFT_TORCH_REFUSED:
        st = heft_error_set(
            w->t->x->err, HEFT_E_UNSUPPORTED, at, "%q: tensors rebuilt by %q are not supported",
            (heft_str){ w->path.ptr, w->path.len }, heft_pickle_name(&w->t->p, m.callable));
        return heft_torch_leave_unsupported(w->t, st, at);
    default:
        if (m.kind == HEFT_TORCH_VALUE && heft_torch_is_container(&w->t->p, m.value))
            return visit_container(w, m.value);
        return visit_scalar(w, value);
    }
}

/* Get the next item of the innermost container; HEFT_NONE at the end. */
static heft_status advance(walk *w, uint32_t *value)
{
    frame *f = &w->frames[w->depth - 1];
    const heft_pickle *p = &w->t->p;
    uint32_t key = HEFT_NONE, item;
    do { /* the dictionaries of a module were entered already */
        *value = HEFT_NONE;
        if (!heft_pickle_next(p, &f->items, &item))
            return HEFT_OK;
        *value = item;
        if (f->keys == KEYED)
            heft_pickle_next(p, &f->items, value);
    } while (f->is_module && is_module_dict(p, item));
    if (f->keys == KEYED) {
        key = item;
    } else if (f->keys == PAIRED) { /* each item is a tuple or list of a key and a value */
        bool is_pair = heft_pickle_is_sequence(p, item);
        heft_pickle_items pair = { .next = HEFT_NONE };
        if (is_pair)
            pair = heft_pickle_items_of(p, item);
        if (!heft_pickle_next(p, &pair, &key) || !heft_pickle_next(p, &pair, value))
            return heft_error_set(w->t->x->err, HEFT_E_FORMAT, heft_pickle_offset(p, item),
                                  "%s: an item of a dictionary is not a pair", p->c.what);
    }
    heft_status st = enter_name(w, f, key, item);
    f->index++;
    return st;
}

static heft_status walk_from(walk *w, uint32_t root)
{
    heft_status st = visit(w, root);
    while (!st && w->depth) {
        uint32_t value;
        st = advance(w, &value);
        if (st)
            return st;
        if (value != HEFT_NONE) {
            st = visit(w, value);
            continue;
        }
        const frame *f = &w->frames[--w->depth];
        if (f->value != HEFT_NONE)
            heft_pickle_at(&w->t->p, f->value)->mark = false;
    }
    return st;
}

heft_status heft_torch_walk(heft_torch *t)
{
    enum { EXTRA_FRAMES = 6 }; /* attributes, dictionaries, items and arguments share a level */
    walk w = { .t = t, .max_depth = t->x->limits.depth + EXTRA_FRAMES };
    uint32_t root = t->p.root, dropped = 0;
    w.frames = heft_arena_alloc(&t->x->arena, w.max_depth * sizeof *w.frames, 8);
    if (!w.frames)
        return heft_error_no_memory(w.t->x->err, purpose);
    bool is_member = !HEFT_IS_LEAN && t->member.length; /* other members may have tensors */
    heft_status st = is_member ? HEFT_OK : heft_torch_pick(t, &root);
    if (!st && is_member && t->prefix.len)
        st = put(&w, t->prefix);
    if (!st)
        st = walk_from(&w, root);
    heft_vec_free(&t->x->mem, &w.path, 1);
    if (!st)
        st = heft_torch_end_pieces(t);
    if (!st && !HEFT_IS_LEAN && !is_member)
        st = heft_zero_read_facts(t);
    if (!st && !is_member && !heft_ix_tensors(t->x) && !t->x->left_out)
        heft_ix_left_out(t->x, HEFT_LEFT_OUT_READABLE, "torch/no-tensor",
                         (heft_range){ heft_pickle_offset(&t->p, root), 0 },
                         "the file has no tensor");
    if (!st)
        st = heft_ix_meta_keep_last(t->x, HEFT_NONE, &dropped);
    if (!st && dropped)
        heft_ix_note(t->x, HEFT_WARNING, "torch/key-twice", heft_pickle_offset(&t->p, root),
                     HEFT_NONE, "a setting has several values; the last value counts");
    return st;
}
