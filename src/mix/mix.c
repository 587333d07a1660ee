/* mix.c - applies a mix to the tensors of a file. */
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/out.h"
#include "base/sized.h"
#include "base/sort.h"
#include "core/read/file.h"
#include "mix/mix_table.h"
#include "model/block_encode.h"
#include "model/dtype.h"

static const char purpose[] = "to choose types";

/* A number of the model; is_known is false if the metadata lack the key. */
typedef struct number {
    uint64_t value;
    bool is_known;
} number;

typedef struct chosen {
    heft_str name;
    uint64_t columns, matrices; /* matrices: the product of all but two dimensions */
    uint64_t block;             /* the number in "blk.N."; HEFT_NOWHERE: none */
    uint32_t kind;
    heft_dtype to, instead_of;
    const char *reason;
    bool is_left_out;
    const float *importance;
} chosen;

struct heft_mix {
    const heft_file *f;
    heft_mix_options opt;
    heft_mix_info info;
    heft_memory mem;
    heft_arena arena;
    chosen *all;
    heft_str architecture;
    number layers, heads, kv_heads;
    uint64_t experts; /* 0: the model has none */
    heft_value metadata[6];
    size_t metadata_count;
    uint32_t v_count, v_at, down_at; /* V tensors, and those that rules have passed so far */
    heft_error *err;
};

/* ---- metadata ---- */

static bool find_value(heft_value *out, const heft_mix *m, heft_str key)
{
    for (size_t i = 0; i < m->opt.set_count; i++)
        if (heft_str_eq(m->opt.set[i].key, key)) {
            *out = m->opt.set[i];
            return true;
        }
    return heft_meta_find(out, m->f, key);
}

/* Return the number at ARCHITECTURE.KEY; of a list, its first. */
static number find_number(heft_mix *m, const char *key)
{
    heft_value v;
    number none = { 0, false };
    heft_str full = heft_arena_join(&m->arena, m->architecture, heft_lit("."), heft_lit(key));
    if (!m->architecture.len || !full.ptr || !find_value(&v, m, full))
        return none;
    if (v.kind == HEFT_KIND_INT && v.as.i >= 0)
        return (number){ (uint64_t)v.as.i, true };
    if (v.kind == HEFT_KIND_UINT)
        return (number){ v.as.u, true };
    double first;
    if (v.kind == HEFT_KIND_ARRAY && v.as.array.count &&
        heft_dtype_to_f64(&first, v.as.array.dtype, v.as.array.ptr, 0, 1) && first >= 0 &&
        first < 4294967296.0)
        return (number){ (uint64_t)first, true };
    return none;
}

static void read_metadata(heft_mix *m)
{
    heft_value v;
    if (find_value(&v, m, heft_lit("general.architecture")) && v.kind == HEFT_KIND_STR)
        m->architecture = v.as.s;
    m->layers = find_number(m, "block_count");
    m->heads = find_number(m, "attention.head_count");
    m->kv_heads = find_number(m, "attention.head_count_kv");
    m->experts = find_number(m, "expert_count").value;
    if (m->heads.is_known && !m->kv_heads.is_known)
        m->kv_heads = m->heads;
}

/* ---- facts ---- */

/* Models of that many layers, perhaps only those whose heads share keys, count as "70B".  *unknown:
 * the metadata do not say. */
static bool is_70b(const heft_mix *m, bool *unknown)
{
    static const struct {
        const char *architecture;
        uint64_t layers;
        bool shares; /* only if heads share keys */
    } rows[] = {
        { "llama", 80, true }, { "qwen2", 80, false }, { "deci", 80, false }, { "jais2", 68, false }
    };
    *unknown = !m->architecture.len;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!heft_str_is(m->architecture, rows[i].architecture))
            continue;
        bool may_be = !m->layers.is_known || m->layers.value == rows[i].layers;
        *unknown = may_be && (!m->layers.is_known || (rows[i].shares && !m->heads.is_known));
        return may_be && !*unknown && (!rows[i].shares || m->heads.value != m->kv_heads.value);
    }
    return false;
}

static void set_fact(uint32_t *facts, uint32_t fact, bool is_true)
{
    *facts |= is_true ? fact : 0;
}

static void add_layer_facts(uint32_t *facts, uint64_t i, uint64_t n)
{
    uint64_t eighth = heft_div(n, 8);
    bool is_third = i >= eighth && (i - eighth) - heft_div(i - eighth, 3) * 3 == 2;
    set_fact(facts, HEFT_MIX_MORE, i < eighth || i >= heft_div(7 * n, 8) || is_third);
    set_fact(facts, HEFT_MIX_FIRST_EIGHTH, i < eighth);
    set_fact(facts, HEFT_MIX_FIRST_SIXTEENTH, i < heft_div(n, 16));
}

/* Return what is true of the tensor; *unknown: what the metadata do not say. */
static uint32_t facts_of(const heft_mix *m, const chosen *t, uint32_t *unknown)
{
    enum { LAYERS = HEFT_MIX_MORE | HEFT_MIX_FIRST_EIGHTH | HEFT_MIX_FIRST_SIXTEENTH };
    bool has_architecture = m->architecture.len > 0;
    bool has_heads = m->heads.is_known && m->kv_heads.value;
    uint32_t facts = m->opt.importance ? HEFT_MIX_IMATRIX : HEFT_MIX_NO_IMATRIX;
    bool is_falcon = heft_str_is(m->architecture, "falcon"), is_unknown;
    *unknown = 0;
    set_fact(unknown, HEFT_MIX_FALCON | HEFT_MIX_NOT_FALCON | HEFT_MIX_EIGHT_EXPERTS,
             !has_architecture);
    set_fact(unknown, HEFT_MIX_GQA_4, !m->heads.is_known);
    set_fact(&facts, is_falcon ? HEFT_MIX_FALCON : HEFT_MIX_NOT_FALCON, has_architecture);
    set_fact(&facts, HEFT_MIX_EIGHT_EXPERTS, m->experts == 8);
    set_fact(&facts, HEFT_MIX_GQA_4, has_heads && heft_div(m->heads.value, m->kv_heads.value) >= 4);
    set_fact(&facts, HEFT_MIX_70B, is_70b(m, &is_unknown));
    set_fact(unknown, HEFT_MIX_70B, is_unknown);
    set_fact(&facts, HEFT_MIX_FIRST_TWO, m->v_at < 2);
    set_fact(&facts, HEFT_MIX_FIRST_FOUR, m->v_at < 4);
    set_fact(&facts, HEFT_MIX_STACKED, t->matrices > 1);
    set_fact(&facts, HEFT_MIX_UNDIVIDED, !heft_dtype_fills_blocks(m->info.dtype, t->columns));
    if (t->kind == HEFT_MIX_V) {
        add_layer_facts(&facts, m->v_at, m->v_count);
    } else if (t->kind == HEFT_MIX_DOWN && m->layers.is_known) {
        /* The down tensors of experts are counted by the number in their names. */
        uint64_t i = m->experts > 1 ? t->block : m->down_at;
        add_layer_facts(&facts, i, m->layers.value);
        set_fact(unknown, LAYERS, i == HEFT_NOWHERE || m->layers.value > UINT32_MAX);
        facts &= ~*unknown;
    } else {
        set_fact(unknown, LAYERS, true);
    }
    return facts;
}

static heft_status fail_unknown(const heft_mix *m, const chosen *t, uint32_t unknown)
{
    bool needs_layers = !m->layers.is_known && unknown != HEFT_MIX_GQA_4;
    bool needs_heads = unknown & (HEFT_MIX_GQA_4 | HEFT_MIX_70B);
    const char *key = needs_layers ? ".block_count" : ".attention.head_count";
    if (!m->architecture.len)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: the mix %s needs the metadata "
                                "'general.architecture', which the model lacks",
                                t->name, m->info.name);
    if (!needs_layers && !needs_heads)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: the mix %s needs its layer, and the name does not "
                                "begin with \"blk.\" and a number",
                                t->name, m->info.name);
    heft_str full = heft_arena_join((heft_arena *)&m->arena, m->architecture, heft_lit(key),
                                    heft_lit(""));
    return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                            "tensor %q: the mix %s needs the metadata %q, which the model lacks",
                            t->name, m->info.name, full);
}

/* ---- types ---- */

static heft_status apply_rules(heft_mix *m, const chosen *t, heft_dtype *to)
{
    uint32_t unknown, facts = facts_of(m, t, &unknown);
    const heft_mix_rule *r = heft_mix_rule_for(m->info.file_type, t->kind, facts, &unknown);
    m->v_at += t->kind == HEFT_MIX_V;
    m->down_at += t->kind == HEFT_MIX_DOWN;
    if (r && unknown)
        return fail_unknown(m, t, unknown);
    if (r && r->dtype)
        *to = r->dtype;
    return HEFT_OK;
}

/* Choose the type before the columns are considered; t->kind of a tied embedding becomes that of
 * the output. */
static heft_status choose(heft_mix *m, chosen *t, heft_dtype from, bool has_output)
{
    const heft_mix_options *o = &m->opt;
    bool is_tied = t->kind == HEFT_MIX_EMBEDDING && !has_output;
    heft_dtype given = o->type ? o->type(o->ctx, t->name, from) : HEFT_UNTYPED;
    bool has_rules = heft_dtype_kind_of(m->info.dtype) == HEFT_DTYPE_BLOCK && !o->pure;
    bool is_output = t->kind == HEFT_MIX_OUTPUT || (is_tied && has_rules && !given);
    t->to = m->info.dtype;
    if (t->kind == HEFT_MIX_EMBEDDING && o->embedding_type)
        t->to = o->embedding_type;
    else if (is_output && o->output_type)
        t->to = o->output_type;
    else if (given)
        t->to = given;
    else if (has_rules) {
        t->kind = is_tied ? HEFT_MIX_OUTPUT : t->kind;
        return apply_rules(m, t, &t->to);
    }
    return HEFT_OK;
}

static void fall_back(chosen *t)
{
    heft_dtype fallback;
    if (heft_dtype_fills_blocks(t->to, t->columns))
        return;
    fallback = heft_mix_fallback(t->to, t->columns);
    t->instead_of = t->to;
    t->to = fallback ? fallback : HEFT_F16;
}

static heft_status check_type(const heft_mix *m, const chosen *t, heft_dtype from)
{
    const char *why = heft_dtype_kind_of(t->to) == HEFT_DTYPE_BLOCK
                          ? heft_block_encode_refusal(t->to)
                          : NULL;
    bool is_exempt = t->kind == HEFT_MIX_OUTPUT || t->kind == HEFT_MIX_EMBEDDING;
    if (why)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: cannot quantise to %s: it %s", t->name,
                                heft_dtype_name(t->to), why);
    if (t->to != from && heft_dtype_kind_of(t->to) != HEFT_DTYPE_FLOAT &&
        !heft_block_can_encode(t->to))
        return heft_error_plain(m->err, HEFT_E_ARGUMENT, "tensor %q: %s is no type for weights",
                                t->name, heft_dtype_name(t->to));
    if (m->info.file_type == HEFT_MIX_Q2_K_S && t->to == HEFT_Q2_K && !is_exempt && !t->importance)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: the mix q2_k_s needs the importance of columns; give "
                                "an imatrix file, or use q2_k",
                                t->name);
    if (!heft_dtype_is_lossy(from) || m->opt.requantise)
        return HEFT_OK;
    heft_status st = heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                      "tensor %q is %s already: quantising it to %s adds a second "
                                      "loss",
                                      t->name, heft_dtype_name(from), heft_dtype_name(t->to));
    return heft_error_rule(m->err, st, "heft/requantise");
}

static heft_status find_importance(const heft_mix *m, chosen *t)
{
    uint64_t count, columns;
    const float *found = m->opt.importance
                             ? heft_importance_find(&count, m->opt.importance, t->name)
                             : NULL;
    if (!found)
        return HEFT_OK;
    if (heft_mul(&columns, t->columns, t->matrices) && columns == count) {
        t->importance = found;
        return HEFT_OK;
    }
    if (heft_mix_kind(t->name) == HEFT_MIX_EMBEDDING) /* never measured */
        return HEFT_OK;
    return heft_error_plain(m->err, HEFT_E_ARGUMENT,
                            "tensor %q has %U matrices of %U columns, and the imatrix has %U "
                            "numbers for it: the imatrix is of another model",
                            t->name, t->matrices, t->columns, count);
}

/* Return why the tensor keeps its type, or NULL. */
static const char *reason_to_keep(const heft_mix *m, const heft_tensor *t, heft_str name)
{
    heft_dtype_kind kind = heft_dtype_kind_of(t->dtype);
    if (heft_mix_is_vector(t))
        return "one dimension";
    if (kind != HEFT_DTYPE_FLOAT && kind != HEFT_DTYPE_BLOCK)
        return "not floating-point";
    if (t->layout != HEFT_DENSE || t->part_count != 1)
        return "sparse";
    if (m->opt.keeps_output && heft_str_is(name, "output.weight"))
        return "output";
    return heft_mix_keeps(name);
}

/* ---- all tensors ---- */

/* Return the number in "blk.N.", or HEFT_NOWHERE. */
static uint64_t block_of(heft_str name)
{
    enum { PREFIX = 4, DIGITS = 9 };
    uint64_t n = 0;
    size_t i = PREFIX;
    if (!heft_str_begins(name, "blk."))
        return HEFT_NOWHERE;
    for (; i < name.len && i < PREFIX + DIGITS && name.ptr[i] >= '0' && name.ptr[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(name.ptr[i] - '0');
    return i == PREFIX ? HEFT_NOWHERE : n;
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const chosen *l = (const chosen *)ctx + a, *r = (const chosen *)ctx + b;
    uint64_t left = l->block == HEFT_NOWHERE ? 0 : l->block + 1;
    uint64_t right = r->block == HEFT_NOWHERE ? 0 : r->block + 1;
    return left != right ? left < right : heft_str_order(l->name, r->name) < 0;
}

static heft_status describe(heft_mix *m, uint32_t i)
{
    heft_tensor t = heft_tensor_at(m->f, i);
    const heft_mix_options *o = &m->opt;
    chosen *c = &m->all[i];
    c->name = o->rename ? heft_arena_copy(&m->arena, o->rename(o->ctx, &t)) : t.name;
    c->is_left_out = o->keep && !o->keep(o->ctx, &t);
    c->columns = t.rank ? t.dims[t.rank - 1] : 1;
    if (!heft_product(&c->matrices, t.dims, t.rank > 2 ? t.rank - 2 : 0))
        c->matrices = 0;
    c->block = block_of(c->name);
    c->kind = heft_mix_kind(c->name);
    c->to = t.dtype;
    return c->name.ptr ? HEFT_OK : heft_error_no_memory(m->err, purpose);
}

static heft_status choose_type(heft_mix *m, uint32_t i, bool has_output)
{
    heft_tensor t = heft_tensor_at(m->f, i);
    chosen *c = &m->all[i];
    c->reason = c->is_left_out ? NULL : reason_to_keep(m, &t, c->name);
    if (c->is_left_out || c->reason)
        return HEFT_OK;
    HEFT_TRY(choose(m, c, t.dtype, has_output));
    fall_back(c);
    if (c->to == t.dtype)
        return HEFT_OK;
    HEFT_TRY(find_importance(m, c));
    return check_type(m, c, t.dtype);
}

/* Rules count tensors in the order of layers, and of names within a layer. */
static heft_status choose_all(heft_mix *m)
{
    uint32_t count = heft_tensor_count(m->f);
    bool has_output = false;
    uint32_t *order = heft_arena_alloc(&m->arena, 2 * (size_t)count * sizeof *order + 1,
                                       sizeof *order);
    m->all = heft_arena_alloc(&m->arena, count * sizeof *m->all + 1, 64);
    if (!order || !m->all)
        return heft_error_no_memory(m->err, purpose);
    memset(m->all, 0, count * sizeof *m->all);
    for (uint32_t i = 0; i < count; i++) {
        HEFT_TRY(describe(m, i));
        bool is_written = !m->all[i].is_left_out;
        m->v_count += is_written && m->all[i].kind == HEFT_MIX_V;
        has_output |= is_written && m->all[i].kind == HEFT_MIX_OUTPUT;
    }
    heft_sort_numbers(order, count, is_before, m->all);
    for (uint32_t i = 0; i < count; i++)
        HEFT_TRY(choose_type(m, order[i], has_output));
    return HEFT_OK;
}

/* ---- metadata of the output ---- */

static void add_number(heft_mix *m, const char *key, uint32_t value)
{
    m->metadata[m->metadata_count++] = (heft_value){
        .kind = HEFT_KIND_UINT, .stored = HEFT_U32, .key = heft_lit(key), .as.u = value
    };
}

static void add_text(heft_mix *m, const char *key, heft_str value)
{
    if (value.len)
        m->metadata[m->metadata_count++] = heft_value_str(heft_lit(key), value);
}

static void write_metadata(heft_mix *m)
{
    enum { QUANTIZATION_VERSION = 2 };
    const heft_importance *i = m->opt.importance;
    add_number(m, "general.quantization_version", QUANTIZATION_VERSION);
    add_number(m, "general.file_type", m->info.file_type);
    if (!i)
        return;
    add_text(m, "quantize.imatrix.file", m->opt.importance_file);
    add_text(m, "quantize.imatrix.dataset", heft_importance_dataset(i));
    add_number(m, "quantize.imatrix.entries_count", heft_importance_count(i));
    if (heft_importance_chunks(i))
        add_number(m, "quantize.imatrix.chunks_count", heft_importance_chunks(i));
}

const heft_value *heft_mix_metadata(size_t *count, const heft_mix *m)
{
    *count = m->metadata_count;
    return m->metadata;
}

/* ---- the functions of mix.h ---- */

static heft_status fail_unknown_mix(const heft_mix *m)
{
    uint8_t text[512];
    heft_out o = { .buf = text, .cap = sizeof text };
    for (uint32_t i = 0; heft_mix_info_at(i).name; i++) {
        heft_mix_info info = heft_mix_info_at(i);
        if (info.refusal)
            continue;
        heft_out_str(&o, heft_lit(i ? ", " : ""));
        heft_out_str(&o, heft_lit(info.name));
    }
    heft_out_u8(&o, 0);
    return heft_error_plain(m->err, HEFT_E_ARGUMENT, "there is no mix %q; mixes are %s",
                            heft_lit(m->opt.mix ? m->opt.mix : ""), (const char *)text);
}

heft_status heft_mix_open(heft_mix **out, const heft_file *f, const heft_mix_options *opt,
                          heft_error *err)
{
    heft_error own;
    const heft_allocator *al = f->host->allocator;
    *out = NULL;
    err = heft_error_begin(err, &own);
    heft_mix *m = heft_alloc(al, sizeof *m, 64);
    if (!m)
        return heft_error_no_memory(err, purpose);
    *m = (heft_mix){
        .f = f, .opt = HEFT_MIX_OPTIONS_INIT, .mem = { al, UINT64_MAX, 0 }, .err = err
    };
    m->arena.mem = &m->mem;
    heft_status st = heft_sized_copy(&m->opt, sizeof m->opt, opt, err);
    if (!st && !heft_mix_find(&m->info, heft_lit(m->opt.mix ? m->opt.mix : "")))
        st = fail_unknown_mix(m);
    heft_file_enter(f); /* names and metadata are mapped */
    if (!st) {
        read_metadata(m);
        write_metadata(m);
        st = choose_all(m);
    }
    st = heft_file_leave_after(f, st, err);
    m->err = NULL;
    if (st)
        heft_mix_close(m);
    else
        *out = m;
    return heft_error_end(err, st);
}

void heft_mix_close(heft_mix *m)
{
    if (!m)
        return;
    heft_arena_free(&m->arena);
    heft_free(m->mem.al, m, sizeof *m, 64);
}

heft_mix_info heft_mix_chosen(const heft_mix *m)
{
    return m->info;
}

heft_mix_item heft_mix_at(const heft_mix *m, uint32_t tensor)
{
    heft_tensor t = heft_tensor_at(m->f, tensor);
    const chosen *c = &m->all[tensor];
    heft_mix_item item = { .name = c->name,
                           .from = t.dtype,
                           .to = c->to,
                           .instead_of = c->instead_of,
                           .reason = c->reason,
                           .is_left_out = c->is_left_out,
                           .importance = c->importance };
    uint64_t elements;
    for (uint32_t k = 0; k < t.part_count; k++)
        item.bytes += heft_part_at(m->f, t.first_part + k).length;
    item.new_bytes = item.bytes;
    if (c->to != t.dtype && heft_product(&elements, t.dims, t.rank))
        heft_dtype_bytes(&item.new_bytes, c->to, elements);
    return item;
}
