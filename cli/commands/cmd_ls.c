/* cmd_ls.c - `heft ls`: list the tensors of a file as a table, tab-separated, or as JSON. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/mapped.h"
#include "models/module_tree.h"
#include "options/command.h"
#include "options/opt.h"
#include "process/columns.h"
#include "values/tree_table.h"

typedef struct listing {
    const model_view *v;
    const heft_file *f;   /* the stored file, which has the parts */
    bool bytes;           /* print sizes in bytes */
    const uint32_t *tied; /* tied[i]: first tensor of v->f with the bytes of tensor i */
} listing;

typedef struct owner { /* a tensor of a file */
    const heft_file *f;
    uint32_t tensor;
} owner;

/* ---- columns ---- */

/* Return the part that the table describes: "data", otherwise the first part; of a quantised tensor
 * that of its first stored tensor. */
static bool first_part(heft_part *p, const listing *l, uint32_t tensor)
{
    uint32_t stored = view_stored(l->v, tensor);
    if (stored == HEFT_NONE)
        return false;
    heft_tensor t = heft_tensor_at(l->f, stored);
    uint32_t part = heft_part_find(l->f, stored, HEFT_STR("data"));
    if (part == HEFT_NONE && !t.part_count)
        return false;
    *p = heft_part_at(l->f, part == HEFT_NONE ? t.first_part : part);
    return true;
}

/* A tensor as it is stored, where that is one with a layout of its own. */
static owner shown(const listing *l, uint32_t tensor)
{
    bool is_own = view_has_own_layout(l->v, tensor);
    return is_own ? (owner){ l->f, view_stored(l->v, tensor) } : (owner){ l->v->f, tensor };
}

static heft_str layout_of(const listing *l, uint32_t tensor)
{
    owner w = shown(l, tensor);
    return heft_tensor_layout_name(w.f, w.tensor);
}

enum { NAME, DTYPE, SHAPE, SIZE, LAYOUT, ENCODING, OFFSET, SHARD, TIED };

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const listing *l = row->ctx;
    const heft_tensor *t = &row->tensor;
    heft_part p = { .encoding = HEFT_RAW };
    bool has = field < ENCODING || first_part(&p, l, row->id);
    uint64_t bytes = field == SIZE ? view_bytes(l->v, row->id) : 0;
    if (field == NAME)
        out_name(o, t->name);
    else if (field == DTYPE)
        view_put_type(o, l->v, row->id);
    else if (field == SHAPE)
        out_shape(o, t->dims, t->rank);
    else if (field == SIZE && bytes != HEFT_UNKNOWN_LENGTH)
        out_size_or_bytes(o, bytes, l->bytes);
    else if (field == LAYOUT)
        out_name(o, layout_of(l, row->id));
    else if (field == ENCODING && has)
        out_text(o, encoding_name(p.encoding));
    else if (field == OFFSET && has)
        out_u64(o, p.offset);
    else if (field == SHARD && has && p.shard)
        out_name(o, heft_shard_file_at(l->f, p.shard - 1).name);
    else if (field == TIED && l->tied[row->id] != row->id)
        out_name(o, heft_tensor_at(l->v->f, l->tied[row->id]).name);
    else
        out_char(o, '-');
}

static const column columns[] = {
    { "NAME", false, NAME },    { "DTYPE", false, DTYPE },   { "SHAPE", false, SHAPE },
    { "SIZE", true, SIZE },     { "LAYOUT", false, LAYOUT }, { "ENCODING", false, ENCODING },
    { "OFFSET", true, OFFSET },
};
enum { SHORT_COLUMNS = 4, LONG_COLUMNS = sizeof columns / sizeof *columns };

/* The column FILE appears only for a model in shards, TIED TO only if tensors are tied. */
static size_t choose_columns(column out[LONG_COLUMNS + 2], const listing *l, bool is_long)
{
    size_t n = is_long ? LONG_COLUMNS : SHORT_COLUMNS;
    bool has_tied = false;
    memcpy(out, columns, sizeof columns);
    for (uint32_t i = 0; is_long && i < heft_tensor_count(l->v->f) && !has_tied; i++)
        has_tied = l->tied[i] != i;
    if (is_long && heft_shard_file_count(l->f))
        out[n++] = (column){ "FILE", false, SHARD };
    if (has_tied)
        out[n++] = (column){ "TIED TO", false, TIED };
    return n;
}

/* ---- JSON ---- */

/* tensor: name of the stored tensor, for a quantised one. */
static void json_part(json *j, const heft_file *f, heft_part p, heft_str tensor, heft_str role)
{
    json_begin(j, '{');
    json_member_str(j, "role", role);
    if (tensor.ptr)
        json_member_str(j, "tensor", tensor);
    json_member_dtype(j, "dtype", p.dtype);
    json_member_u64(j, "offset", p.offset);
    json_member_u64(j, "stored", p.stored);
    json_member_length(j, "length", p.length);
    json_member_str(j, "encoding", str_of(encoding_name(p.encoding)));
    json_member_text(j, "digest", p.digest);
    if (p.shard)
        json_member_str(j, "shard", heft_shard_file_at(f, p.shard - 1).name);
    json_end(j, '}');
}

static heft_value attribute_at(const void *ctx, uint32_t i)
{
    const owner *w = ctx;
    return heft_attribute_at(w->f, w->tensor, i);
}

static void json_attributes(json *j, const owner *w)
{
    json_member_begin(j, "attributes", '{');
    json_values(j, attribute_at, w, heft_attribute_count(w->f, w->tensor));
    json_end(j, '}');
}

/* A quantised tensor has the parts of its stored tensors, with their roles in the scheme. */
static void json_quantised_parts(json *j, const listing *l, uint32_t quantised)
{
    uint32_t count = heft_schemes_at(l->v->schemes, quantised).part_count;
    for (uint32_t k = 0; k < count; k++) {
        heft_quantised_part q = heft_schemes_part_at(l->v->schemes, quantised, k);
        heft_tensor t = heft_tensor_at(l->f, q.tensor);
        for (uint32_t i = 0; i < t.part_count; i++)
            json_part(j, l->f, heft_part_at(l->f, t.first_part + i), t.name, str_of(q.role));
    }
}

static void json_parts(json *j, const listing *l, uint32_t id)
{
    uint32_t quantised = view_quantised(l->v, id), stored = view_stored(l->v, id);
    heft_tensor t = { .part_count = 0 };
    if (quantised != HEFT_NONE && !view_has_own_layout(l->v, id))
        json_quantised_parts(j, l, quantised);
    else if (stored != HEFT_NONE)
        t = heft_tensor_at(l->f, stored);
    for (uint32_t i = 0; i < t.part_count; i++) {
        heft_part p = heft_part_at(l->f, t.first_part + i);
        json_part(j, l->f, p, (heft_str){ NULL, 0 }, p.role);
    }
}

static void json_tensor(json *j, const listing *l, uint32_t id)
{
    owner w = shown(l, id);
    heft_tensor t = heft_tensor_at(w.f, w.tensor);
    json_begin(j, '{');
    json_member_str(j, "name", t.name);
    json_member_dtype(j, "dtype", t.dtype);
    json_member_shape(j, "shape", t.dims, t.rank);
    json_member_str(j, "layout", heft_tensor_layout_name(w.f, w.tensor));
    json_member_length(j, "nbytes", heft_tensor_bytes(w.f, w.tensor));
    json_member_begin(j, "parts", '[');
    json_parts(j, l, id);
    json_end(j, ']');
    view_json(j, l->v, id);
    json_attributes(j, &w);
    if (l->tied[id] != id)
        json_member_str(j, "tied_to", heft_tensor_at(l->v->f, l->tied[id]).name);
    json_end(j, '}');
}

static void print_json(outbuf *o, const listing *l, const char *path, const selection *s)
{
    const heft_file *f = l->f;
    json j = json_open(o);
    json_file_head(&j, f, path);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < s->count; i++) {
        json_line(&j);
        json_tensor(&j, l, selected(s, i));
    }
    json_end(&j, ']');
    json_model_parts(&j, f);
    json_metadata(&j, f);
    json_close(&j);
}

/* ---- the command ---- */

typedef struct request {
    const session *session;
    bool is_long, json, raw, bytes, tree, totals;
    uint64_t depth;
    listing_order order;
} request;

static void print_table(outbuf *o, const listing *l, const selection *s, const request *r)
{
    column chosen[LONG_COLUMNS + 2];
    table t = { .columns = chosen,
                .width = choose_columns(chosen, l, r->is_long),
                .cell = put_cell,
                .ctx = l,
                .tensors_of = l->v->f,
                .rows = s->ids,
                .count = s->count,
                .threads = r->session->threads,
                .raw = r->raw };
    table_print(o, &t);
}

static void print_totals(outbuf *o, const listing *l, const selection *s, uint32_t shown)
{
    totals sum = { 0, 0, 0 };
    for (uint32_t i = 0; i < s->count; i++)
        totals_add(&sum, l->v, NULL, selected(s, i));
    if (shown < s->count)
        out_format(o, "%u of ", shown);
    out_totals(o, &sum, l->bytes);
}

static int list(const listing *l, const char *path, const selection *s, const request *r)
{
    outbuf o;
    bool ok = true;
    uint32_t most = r->order.limit && r->order.limit < s->count ? (uint32_t)r->order.limit
                                                                : s->count;
    selection shown = { s->ids, most };
    out_open(&o, STDOUT_FILENO);
    if (r->json)
        print_json(&o, l, path, &shown);
    else if (r->tree)
        ok = tree_table_print(&o, l->v, path, s,
                              &(tree_style){ r->depth, r->raw, r->bytes, r->session->threads });
    else
        print_table(&o, l, &shown, r);
    if (ok && !r->json && !r->raw && (r->totals || term_is_stdout()))
        print_totals(&o, l, s, shown.count);
    return out_end(&o, ok ? model_check_unchanged(l->f, path) : CODE_SYSTEM);
}

/* Refuse options that contradict each other. Return an exit code. */
static int check_request(const request *r)
{
    if (r->tree && (r->json || r->is_long || r->order.sort || r->order.limit))
        return say_usage("ls", "--tree is a table in the order of names: use it without --json, "
                               "--long, --sort and --limit");
    if (r->depth && !r->tree)
        return say_usage("ls", "--depth needs --tree");
    if (r->totals && (r->json || r->raw))
        return say_usage("ls", "--totals is a line for readers: use it without --json and --raw");
    return listing_order_check(&r->order, "ls");
}

static int open_and_list(const session *s, const request *r)
{
    const opt_args *args = &s->args;
    const char *path = args->item[0];
    bool needs_tied = r->is_long || r->json;
    heft_file *stored = NULL;
    mapped m = { .model = NULL };
    model_view v = { .f = NULL };
    selection chosen = { NULL, 0 };
    int code = model_open(s, &stored, path);
    if (!code)
        code = mapped_open(&m, s, stored, path, MAPPED_OTHER);
    const heft_file *f = m.model ? m.model : stored;
    if (!code)
        code = model_view_open(&v, s, f, path, VIEW_TO_LIST);
    uint32_t *tied = !code && needs_tied ? model_find_tied(v.f, path) : NULL;
    listing l = { &v, f, r->bytes || r->raw, tied };
    if (!code)
        code = (tied || !needs_tied) &&
                       model_select(s, &chosen, v.f, path, args->item + 1, args->count - 1) &&
                       listing_order_apply(&chosen, &r->order, &v, path)
                   ? list(&l, path, &chosen, r)
                   : CODE_SYSTEM;
    free(chosen.ids);
    free(tied);
    model_view_close(&v);
    mapped_release(&m);
    heft_file_close(stored);
    return code;
}

static const opt options[] = {
    { "long", 'l', OPT_FLAG, AT(request, is_long), NULL, "show layout, encoding and offset, too" },
    { "tree", 0, OPT_FLAG, AT(request, tree), NULL, "show the modules with sums" },
    { "depth", 0, OPT_NUMBER, AT(request, depth), "N", "fold modules at this depth of --tree" },
    { "map", 0, OPT_FILE, SETTING(map), "NAME|FILE", MAP_HELP },
    { "allow-unmatched", 0, OPT_FLAG, SETTING(allow_unmatched), NULL,
      "keep tensors that no rule of the map matches" },
    { "sort", 0, OPT_TEXT, AT_WORD(request, order.sort, "name size offset dtype"), "KEY",
      "sort by name, size, offset or dtype" },
    { "dtype", 0, OPT_LIST, AT_NAME(request, order.dtypes, NAMES_DTYPE), "DTYPE",
      "only this element type; repeatable" },
    { "limit", 0, OPT_NUMBER, AT(request, order.limit), "N", "show at most N tensors" },
    { "totals", 0, OPT_FLAG, AT(request, totals), NULL, "print the sums, as on a terminal" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "bytes", 'b', OPT_FLAG, AT(request, bytes), NULL, "print sizes in bytes" },
    { "raw", 0, OPT_FLAG, AT(request, raw), NULL,
      "print tab-separated rows, sizes in bytes, no titles" },
    { "json", 0, OPT_FLAG, AT(request, json), NULL, "print everything as one JSON document" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    int code = check_request(r);
    r->session = s;
    if (!code && s->is_cache)
        code = hub_print(r->json);
    else if (!code)
        code = open_and_list(s, r);
    return code;
}

const command command_ls = {
    .name = "ls",
    .args = "FILE [GLOB...]",
    .summary = "list the tensors of a file",
    .description =
        "Lists the tensors of a file: name, element type, shape and size. With patterns,\n"
        "only the tensors whose names match one of them: * ? [a-z] {a,b}. hub: lists the\n"
        "models of the Hugging Face cache.",
    .example = "heft ls -l model.safetensors 'encoder.*.{weight,bias}'",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED,
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
