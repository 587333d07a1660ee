/* zero_facts.c - reads what a file of a rank of DeepSpeed says of its tensors.
 *
 *   *_model_states.pt  {"module": {name: tensor}, "param_shapes": [{name: shape}], "buffer_names":
 *                      [name], "shared_params": {name: name}, "frozen_param_shapes": {name: shape},
 *                      "frozen_param_fragments": {name: tensor}, ...}
 *   *_optim_states.pt  {"optimizer_state_dict": {"zero_stage", "partition_count", and
 *                      "single_partition_of_fp32_groups" or "fp32_flat_groups": [tensor]}, ...}
 *
 * A file that cannot be joined is read all the same when it is opened alone: faults are kept. */
#include "format/torch/zero.h"

static const char purpose[] = "for the shapes of a checkpoint";

/* Return the DICT under the key, perhaps an OrderedDict; HEFT_NONE: there is none. */
static uint32_t get(heft_torch *t, uint32_t dict, const char *key)
{
    const heft_pickle *p = &t->p;
    if (!heft_pickle_is(p, dict, HEFT_PICKLE_DICT))
        return HEFT_NONE;
    t->st = heft_torch_charge(t, heft_pickle_at(p, dict)->as.items.count,
                              heft_pickle_offset(p, dict));
    uint32_t value = t->st ? HEFT_NONE : heft_pickle_dict_get(p, dict, key);
    return value == HEFT_NONE ? value : heft_torch_interpret(t, value).value;
}

static bool is_text(const heft_pickle *p, uint32_t value)
{
    return heft_pickle_is(p, value, HEFT_PICKLE_TEXT);
}

static uint32_t count_of(const heft_pickle *p, uint32_t value)
{
    return value == HEFT_NONE || !heft_torch_is_container(p, value)
               ? 0
               : heft_pickle_at(p, value)->as.items.count;
}

/* Reserve `count` records of the arena, and one more. */
static void *reserve(heft_torch *t, uint32_t count, size_t bytes)
{
    bool fits = count < SIZE_MAX / bytes - 1;
    void *records = fits ? heft_arena_alloc(&t->x->arena, ((size_t)count + 1) * bytes, 8) : NULL;
    if (!records)
        t->st = heft_error_no_memory(t->x->err, purpose);
    return records;
}

/* ---- shapes ---- */

/* Read a shape; set *fault, or t->st on error. */
static void read_shape(heft_torch *t, heft_zero_shape *out, uint32_t size, const char **fault)
{
    enum { MAX_RANK = 64 };
    if (!heft_torch_sizes(t, &size, &out->rank) || out->rank > MAX_RANK) {
        *fault = "a shape of a parameter is not a tuple of numbers";
        return;
    }
    uint64_t *dims = reserve(t, out->rank, sizeof *dims);
    if (!dims)
        return;
    for (uint32_t i = 0; i < out->rank; i++)
        (void)heft_pickle_u64(&dims[i], &t->p, heft_pickle_item(&t->p, size, i));
    out->dims = dims;
    if (!heft_product(&out->elements, dims, out->rank))
        *fault = "a shape of a parameter passes 2^64 elements";
}

/* Append the shapes of a dictionary to `to`, which has memory for them. */
static void read_shapes(heft_torch *t, uint32_t dict, heft_zero_shape *to, uint32_t *count,
                        uint32_t group, const char **fault)
{
    const heft_pickle *p = &t->p;
    uint32_t key, value;
    heft_pickle_items i = heft_pickle_items_of(p, dict);
    while (!t->st && !*fault && heft_pickle_next(p, &i, &key) && heft_pickle_next(p, &i, &value)) {
        heft_zero_shape *s = &to[(*count)++];
        *s = (heft_zero_shape){ .group = group };
        if (is_text(p, key))
            s->name = heft_pickle_at(p, key)->as.s;
        else
            *fault = "a name of a parameter is not a text";
        read_shape(t, s, value, fault);
    }
}

/* Read the groups of parameters; versions before the list of groups had one dictionary. */
static void read_groups(heft_torch *t, uint32_t groups, heft_zero_facts *z)
{
    const heft_pickle *p = &t->p;
    bool is_list = heft_pickle_is(p, groups, HEFT_PICKLE_LIST);
    uint64_t most = is_list ? 0 : count_of(p, groups) / 2;
    uint32_t item;
    heft_pickle_items i = heft_pickle_items_of(p, groups);
    while (is_list && heft_pickle_next(p, &i, &item))
        most += count_of(p, heft_torch_interpret(t, item).value) / 2;
    t->st = heft_torch_charge(t, most, heft_pickle_offset(p, groups)); /* groups may be shared */
    z->params = t->st ? NULL : reserve(t, (uint32_t)most, sizeof *z->params);
    if (t->st)
        return;
    if (!is_list)
        read_shapes(t, groups, z->params, &z->param_count, z->groups++, &z->fault);
    i = heft_pickle_items_of(p, groups);
    while (is_list && !t->st && !z->fault && heft_pickle_next(p, &i, &item)) {
        item = heft_torch_interpret(t, item).value;
        if (heft_pickle_is(p, item, HEFT_PICKLE_DICT))
            read_shapes(t, item, z->params, &z->param_count, z->groups++, &z->fault);
        else if (!count_of(p, item)) /* an OrderedDict without items */
            z->groups++;
        else
            z->fault = "a group of param_shapes is not a dictionary";
    }
}

/* ---- model_states ---- */

static void read_frozen(heft_torch *t, uint32_t dict, heft_zero_facts *z)
{
    if (!heft_pickle_is(&t->p, dict, HEFT_PICKLE_DICT)) /* None: no parameter is frozen */
        return;
    z->frozen = reserve(t, count_of(&t->p, dict) / 2, sizeof *z->frozen);
    if (z->frozen)
        read_shapes(t, dict, z->frozen, &z->frozen_count, 0, &z->fault);
}

static void read_ties(heft_torch *t, uint32_t dict, heft_zero_facts *z)
{
    const heft_pickle *p = &t->p;
    uint32_t key, value;
    if (!heft_pickle_is(p, dict, HEFT_PICKLE_DICT))
        return;
    z->ties = reserve(t, count_of(p, dict) / 2, sizeof *z->ties);
    heft_pickle_items i = heft_pickle_items_of(p, dict);
    while (z->ties && heft_pickle_next(p, &i, &key) && heft_pickle_next(p, &i, &value)) {
        if (!is_text(p, key) || !is_text(p, value)) {
            z->fault = "a name in shared_params is not a text";
            return;
        }
        z->ties[z->tie_count++] = (heft_zero_tie){ heft_pickle_at(p, key)->as.s,
                                                   heft_pickle_at(p, value)->as.s };
    }
}

static void read_buffers(heft_torch *t, uint32_t list, heft_zero_facts *z)
{
    const heft_pickle *p = &t->p;
    uint32_t item, count = count_of(p, list);
    bool is_list = list != HEFT_NONE && heft_torch_is_container(p, list) &&
                   !heft_pickle_is(p, list, HEFT_PICKLE_DICT);
    z->buffers = is_list ? reserve(t, count, sizeof *z->buffers) : NULL;
    if (!z->buffers)
        return;
    heft_pickle_items i = heft_pickle_items_of(p, list);
    while (heft_pickle_next(p, &i, &item)) {
        if (is_text(p, item))
            z->buffers[z->buffer_count++] = heft_pickle_at(p, item)->as.s;
        else
            z->fault = "a name in buffer_names is not a text";
    }
}

static void read_states(heft_torch *t, uint32_t root, uint32_t shapes, heft_zero_facts *z)
{
    static void (*const readers[])(heft_torch *, uint32_t,
                                   heft_zero_facts *) = { read_frozen, read_ties, read_buffers };
    static const char *const keys[] = { "frozen_param_shapes", "shared_params", "buffer_names" };
    uint32_t parallel = get(t, root, "mp_world_size");
    if (parallel != HEFT_NONE)
        (void)heft_pickle_u64(&z->parallel, &t->p, parallel);
    z->is_states = true;
    read_groups(t, shapes, z);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !t->st && !z->fault; i++) {
        uint32_t value = get(t, root, keys[i]);
        if (!t->st && value != HEFT_NONE)
            readers[i](t, value, z);
    }
}

/* ---- optim_states ---- */

/* Read the stage: a number, or a member of ZeroStageEnum.  That is a call of the class with the
 * number or, in Python 3.11, getattr(class, name). */
static bool read_stage(const heft_pickle *p, uint32_t value, uint64_t *out)
{
    static const char *const stages[] = { "disabled", "optimizer_states", "gradients", "weights" };
    bool is_member = heft_pickle_is(p, value, HEFT_PICKLE_OBJECT);
    uint32_t args = is_member ? heft_pickle_at(p, value)->as.object.args : HEFT_NONE;
    uint32_t name = heft_pickle_item(p, args, 1);
    for (uint32_t i = 0; i < sizeof stages / sizeof *stages && is_text(p, name); i++) {
        *out = i;
        if (heft_str_is(heft_pickle_at(p, name)->as.s, stages[i]))
            return true;
    }
    return heft_pickle_u64(out, p, is_member ? heft_pickle_item(p, args, 0) : value);
}

/* Read the number of ranks: one for all groups, or a list.  Groups of experts have another. */
static void read_count(heft_torch *t, uint32_t value, heft_zero_facts *z)
{
    const heft_pickle *p = &t->p;
    uint32_t item;
    uint64_t one;
    if (heft_pickle_u64(&z->ranks, p, value))
        return;
    if (!heft_pickle_is_sequence(p, value) || !count_of(p, value)) {
        z->fault = "partition_count is not the number of ranks";
        return;
    }
    heft_pickle_items i = heft_pickle_items_of(p, value);
    for (bool is_first = true; heft_pickle_next(p, &i, &item); is_first = false) {
        if (!heft_pickle_u64(&one, p, item) || (!is_first && one != z->ranks))
            z->fault = "partition_count differs by group: the parameters of experts are cut in "
                       "another way";
        z->ranks = one;
    }
}

/* Groups of ZeRO-3 may have fewer ranks each, which newer versions state. */
static void check_groups(heft_torch *t, uint32_t list, heft_zero_facts *z)
{
    const heft_pickle *p = &t->p;
    uint32_t item;
    uint64_t one;
    if (!heft_pickle_is_sequence(p, list))
        return;
    heft_pickle_items i = heft_pickle_items_of(p, list);
    while (!t->st && heft_pickle_next(p, &i, &item)) {
        uint32_t count = get(t, heft_torch_interpret(t, item).value, "partition_count");
        if (count != HEFT_NONE && heft_pickle_u64(&one, p, count) && one != z->ranks)
            z->fault = "ds_zero_partition_groups states groups that are cut among fewer ranks";
    }
}

static bool read_optim(heft_torch *t, uint32_t dict, heft_zero_facts *z)
{
    static const char *const keys[] = { "single_partition_of_fp32_groups", "fp32_flat_groups" };
    static const char *const names[] = { "optimizer_state_dict.single_partition_of_fp32_groups",
                                         "optimizer_state_dict.fp32_flat_groups" };
    const heft_pickle *p = &t->p;
    uint32_t list = HEFT_NONE, last = sizeof keys / sizeof *keys - 1, stage;
    for (uint32_t i = 0; i <= last && list == HEFT_NONE && !t->st; i++) {
        list = get(t, dict, keys[i]);
        z->flats = names[i];
        z->stage = i == last ? 3 : 1;
    }
    if (!heft_pickle_is(p, list, HEFT_PICKLE_LIST) || t->st)
        return false;
    z->groups = count_of(p, list);
    bool is_three = z->stage == 3;
    stage = get(t, dict, "zero_stage");
    if (stage != HEFT_NONE &&
        (!read_stage(p, stage, &z->stage) || (z->stage == 3) != is_three || z->stage > 3))
        z->fault = "zero_stage and the names of the flat tensors contradict each other";
    uint32_t count = t->st ? HEFT_NONE : get(t, dict, "partition_count");
    if (count == HEFT_NONE)
        z->fault = "partition_count, the number of ranks, is missing";
    else
        read_count(t, count, z);
    if (!t->st)
        check_groups(t, get(t, dict, "ds_zero_partition_groups"), z);
    return true;
}

heft_status heft_zero_read_facts(heft_torch *t)
{
    heft_zero_facts facts = { .fault = NULL }, *kept;
    uint32_t root = heft_torch_interpret(t, t->p.root).value;
    bool is_found = false;
    t->st = HEFT_OK;
    facts.at = heft_pickle_offset(&t->p, root);
    uint32_t optim = get(t, root, "optimizer_state_dict");
    if (!t->st && optim != HEFT_NONE)
        is_found = read_optim(t, optim, &facts);
    uint32_t shapes = is_found || t->st ? HEFT_NONE : get(t, root, "param_shapes");
    bool has_module = shapes != HEFT_NONE && get(t, root, "module") != HEFT_NONE;
    if (has_module && !t->st && heft_torch_is_container(&t->p, shapes)) {
        read_states(t, root, shapes, &facts);
        is_found = true;
    }
    kept = is_found && !t->st ? reserve(t, 1, sizeof *kept) : NULL;
    if (kept)
        *kept = facts;
    t->x->rank_facts = kept;
    t->x->rank_has_states = facts.is_states && !facts.frozen_count && !facts.buffer_count;
    return t->st;
}
