/* cmd_ls.c - the tensors of a file: one line each, as text, tab separated or JSON. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "columns.h"
#include "model.h"
#include "opt.h"

typedef struct listing {
    const heft_file *f;
    bool bytes;           /* sizes as numbers */
    const uint32_t *tied; /* the first tensor with the same bytes */
} listing;

/* ---- columns ---- */

/* What stands for the tensor's parts in a single line: its data, else the first. */
static bool first_part(heft_part *p, const table_row *row)
{
    const listing *l = row->ctx;
    uint32_t part = heft_part_find(l->f, row->id, HEFT_STR("data"));
    if (part == HEFT_NONE && !row->tensor.part_count)
        return false;
    *p = heft_part_at(l->f, part == HEFT_NONE ? row->tensor.first_part : part);
    return true;
}

static void cell_name(outbuf *o, const table_row *row)
{
    out_name(o, row->tensor.name);
}

static void cell_dtype(outbuf *o, const table_row *row)
{
    out_dtype(o, row->tensor.dtype);
}

static void cell_shape(outbuf *o, const table_row *row)
{
    out_shape(o, row->tensor.dims, row->tensor.rank);
}

static void cell_size(outbuf *o, const table_row *row)
{
    const listing *l = row->ctx;
    uint64_t bytes = heft_tensor_bytes(l->f, row->id);
    if (bytes == HEFT_NOWHERE)
        out_char(o, '-');
    else if (l->bytes)
        out_u64(o, bytes);
    else
        out_size(o, bytes);
}

static void cell_layout(outbuf *o, const table_row *row)
{
    const listing *l = row->ctx;
    out_name(o, heft_tensor_layout_name(l->f, row->id));
}

static void cell_encoding(outbuf *o, const table_row *row)
{
    heft_part p;
    out_text(o, first_part(&p, row) ? encoding_name(p.encoding) : "-");
}

static void cell_offset(outbuf *o, const table_row *row)
{
    heft_part p;
    if (first_part(&p, row))
        out_u64(o, p.offset);
    else
        out_char(o, '-');
}

static void cell_file(outbuf *o, const table_row *row)
{
    const listing *l = row->ctx;
    heft_part p;
    if (first_part(&p, row) && p.shard)
        out_name(o, heft_shard_file_at(l->f, p.shard - 1).name);
    else
        out_char(o, '-');
}

static void cell_tied(outbuf *o, const table_row *row)
{
    const listing *l = row->ctx;
    if (l->tied[row->id] != row->id)
        out_name(o, heft_tensor_at(l->f, l->tied[row->id]).name);
    else
        out_char(o, '-');
}

static const column columns[] = {
    { "NAME", false, cell_name },     { "DTYPE", false, cell_dtype },
    { "SHAPE", false, cell_shape },   { "SIZE", true, cell_size },
    { "LAYOUT", false, cell_layout }, { "ENCODING", false, cell_encoding },
    { "OFFSET", true, cell_offset },
};
enum { SHORT_COLUMNS = 4, LONG_COLUMNS = sizeof columns / sizeof *columns };
static const column file_column = { "FILE", false, cell_file };
static const column tied_column = { "TIED TO", false, cell_tied };

static bool has_ties(const listing *l)
{
    for (uint32_t i = 0; i < heft_tensor_count(l->f); i++)
        if (l->tied[i] != i)
            return true;
    return false;
}

/* The file matters where there are several, and so do ties. */
static size_t choose_columns(column out[LONG_COLUMNS + 2], const listing *l, bool is_long)
{
    size_t n = is_long ? LONG_COLUMNS : SHORT_COLUMNS;
    memcpy(out, columns, sizeof columns);
    if (is_long && heft_shard_file_count(l->f))
        out[n++] = file_column;
    if (is_long && has_ties(l))
        out[n++] = tied_column;
    return n;
}

/* ---- JSON ---- */

static void json_part(json *j, const heft_file *f, heft_part p)
{
    json_begin(j, '{');
    json_member_str(j, "role", p.role);
    json_key(j, str_of("dtype"));
    json_dtype(j, p.dtype);
    json_member_u64(j, "offset", p.offset);
    json_member_u64(j, "stored", p.stored);
    json_member_length(j, "length", p.length);
    json_member_str(j, "encoding", str_of(encoding_name(p.encoding)));
    json_member_text(j, "digest", p.digest);
    if (p.shard)
        json_member_str(j, "sibling", heft_shard_file_at(f, p.shard - 1).name);
    json_end(j, '}');
}

typedef struct owner {
    const heft_file *f;
    uint32_t tensor;
} owner;

static heft_value attribute_at(const void *ctx, uint32_t i)
{
    const owner *w = ctx;
    heft_value v = { .kind = HEFT_NULL };
    return heft_attribute_at(&v, w->f, w->tensor, i) ? v : (heft_value){ .kind = HEFT_NULL };
}

static void json_attributes(json *j, const heft_file *f, uint32_t id)
{
    heft_value v;
    owner w = { f, id };
    uint32_t count = 0;
    while (heft_attribute_at(&v, f, id, count))
        count++;
    json_member_begin(j, "attributes", '{');
    json_values(j, attribute_at, &w, count);
    json_end(j, '}');
}

static void json_tensor(json *j, const listing *l, uint32_t id)
{
    const heft_file *f = l->f;
    heft_tensor t = heft_tensor_at(f, id);
    json_begin(j, '{');
    json_member_str(j, "name", t.name);
    json_key(j, str_of("dtype"));
    json_dtype(j, t.dtype);
    json_key(j, str_of("shape"));
    json_shape(j, t.dims, t.rank);
    json_member_str(j, "layout", heft_tensor_layout_name(f, id));
    json_member_length(j, "nbytes", heft_tensor_bytes(f, id));
    json_member_begin(j, "parts", '[');
    for (uint32_t i = 0; i < t.part_count; i++)
        json_part(j, f, heft_part_at(f, t.first_part + i));
    json_end(j, ']');
    json_attributes(j, f, id);
    if (l->tied[id] != id)
        json_member_str(j, "tied_to", heft_tensor_at(f, l->tied[id]).name);
    json_end(j, '}');
}

static void print_json(outbuf *o, const listing *l, const char *path, const selection *s)
{
    const heft_file *f = l->f;
    json j = { o, false };
    json_begin(&j, '{');
    json_file_head(&j, f, path);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < s->count; i++) {
        json_line(&j);
        json_tensor(&j, l, selected(s, i));
    }
    json_end(&j, ']');
    json_model_parts(&j, f);
    json_key(&j, str_of("metadata"));
    json_metadata(&j, f);
    json_end(&j, '}');
    out_char(o, '\n');
}

/* ---- the command ---- */

static int list(const listing *l, const char *path, const selection *s, const table *how,
                bool as_json)
{
    outbuf o;
    table t = *how;
    t.rows = s->ids;
    t.count = s->count;
    out_open(&o, STDOUT_FILENO);
    if (as_json)
        print_json(&o, l, path, s);
    else
        table_print(&o, &t);
    return out_end(&o, CODE_DONE);
}

int cmd_ls(int argc, char **argv)
{
    bool is_long = false, as_json = false, raw = false, bytes = false;
    const opt options[] = {
        { "long", 'l', OPT_FLAG, &is_long, NULL, "layout, encoding and offset, too" },
        { "bytes", 'b', OPT_FLAG, &bytes, NULL, "sizes in bytes" },
        { "raw", 0, OPT_FLAG, &raw, NULL, "tab separated, sizes in bytes, no titles" },
        { "json", 0, OPT_FLAG, &as_json, NULL, "one JSON document with everything" },
    };
    const opt_usage usage = {
        "ls",
        "FILE [GLOB...]",
        "Lists the tensors of a file: name, element type, shape, size.\n"
        "With patterns, those whose names match one of them.",
        "heft ls -l model.safetensors 'encoder.*.weight'",
        options,
        sizeof options / sizeof *options,
        1,
        -1,
    };
    opt_args args;
    heft_file *f;
    selection s;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    code = model_open(&f, args.item[0]);
    if (code)
        return code;
    uint32_t *tied = is_long || as_json ? model_ties(f, args.item[0]) : NULL;
    column chosen[LONG_COLUMNS + 2];
    listing l = { f, bytes || raw, tied };
    code = CODE_SYSTEM;
    if ((tied || !(is_long || as_json)) &&
        model_select(&s, f, args.item[0], args.item + 1, args.count - 1)) {
        table how = { .columns = chosen,
                      .width = choose_columns(chosen, &l, is_long),
                      .ctx = &l,
                      .tensors_of = f,
                      .raw = raw };
        code = list(&l, args.item[0], &s, &how, as_json);
        free(s.ids);
    }
    free(tied);
    heft_file_close(f);
    return code;
}
