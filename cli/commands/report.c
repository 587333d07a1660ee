#include "commands/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <heft/heft_ext.h>

#include "commands/report_page.h"
#include "models/model.h"
#include "models/module_tree.h"
#include "process/finding.h"
#include "process/sinkwatch.h"
#include "process/textfile.h"
#include "text/jsonout.h"
#include "text/number_text.h"

void report_add_finding(void *ctx, const heft_finding *x)
{
    report *r = ctx;
    json *j = &r->findings_json;
    if (r->listed == REPORT_FINDINGS) {
        r->omitted++;
        return;
    }
    r->listed++;
    finding y = finding_of(r->f, x);
    json_line(j);
    json_begin(j, '[');
    json_str(j, str_of(severity_name(x->severity)));
    json_str(j, str_of(x->rule));
    if (x->where.offset == HEFT_NOWHERE)
        json_null(j);
    else
        json_u64(j, x->where.offset);
    if (y.tensor.ptr)
        json_str(j, y.tensor);
    else
        json_null(j);
    json_str(j, str_of(x->text));
    json_end(j, ']');
}

/* ---- the page: JSON inside HTML ---- */

/* After the first failure nothing is written. */
typedef struct page {
    heft_sink *sink;
    uint64_t size; /* bytes written so far */
    outbuf o;      /* pending JSON */
    outbuf html;   /* the JSON without "<" */
    heft_status status;
    heft_error *err;
} page;

static void put(page *p, const void *text, size_t len)
{
    if (!p->status)
        p->status = sink_put(p->sink, p->size, text, len, p->err);
    p->size += len;
}

/* Append JSON to the HTML. A "<" occurs in strings only, and could end the script element. */
static void escape_angles(outbuf *html, const char *at, const char *end)
{
    while (at < end) {
        const char *angle = memchr(at, '<', (size_t)(end - at));
        out_bytes(html, at, (size_t)((angle ? angle : end) - at));
        if (angle)
            out_text(html, "\\u003c");
        at = angle ? angle + 1 : end;
    }
}

/* Write the pending JSON. */
static void flush(page *p)
{
    p->html.used = 0;
    if (p->o.used)
        escape_angles(&p->html, p->o.buf, p->o.buf + p->o.used);
    p->o.used = 0;
    if ((p->o.os || p->html.os) && !p->status) {
        *p->err = (heft_error){ .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE };
        strcpy(p->err->message, "no memory for the page");
        p->status = HEFT_E_NOMEM;
    }
    put(p, p->html.buf, p->html.used);
}

static void flush_if_large(page *p)
{
    enum { PENDING = 1 << 16 };
    if (p->o.used >= PENDING)
        flush(p);
}

/* ---- the file ---- */

/* Names of shards that cannot be read, at most REPORT_ITEMS, and their number. */
static void put_missing(json *j, const heft_file *f)
{
    uint32_t missing = 0;
    json_member_begin(j, "missing", '[');
    for (uint32_t i = 0; i < heft_shard_file_count(f); i++) {
        heft_shard_file s = heft_shard_file_at(f, i);
        if (s.status && missing++ < REPORT_ITEMS)
            json_str(j, s.name);
    }
    json_end(j, ']');
    json_member_u64(j, "missing_shards", missing);
}

static void put_file(json *j, const report *r)
{
    totals sum = { 0, 0, 0 };
    for (uint32_t i = 0; i < heft_tensor_count(r->v->f); i++)
        totals_add(&sum, r->v, NULL, i);
    json_member_begin(j, "file", '{');
    json_member_str(j, "name", path_last_component(stdin_label(r->path)));
    json_member_str(j, "path", str_of(stdin_name(r->path)));
    json_member_str(j, "format", str_of(heft_format_title(heft_file_format(r->f))));
    json_member_text(j, "version", heft_file_version(r->f));
    json_member_u64(j, "size", model_size(r->f));
    json_member_u64(j, "shards", heft_shard_file_count(r->f));
    json_member_u64(j, "tensors", heft_tensor_count(r->v->f));
    json_member_u64(j, "elements", sum.parameters);
    json_member_u64(j, "bytes", sum.bytes);
    put_missing(j, r->f);
    json_end(j, '}');
}

static void put_findings(json *j, const report *r)
{
    json_member_begin(j, "verify", '{');
    json_member_u64(j, "faults", r->checked.faults);
    json_member_u64(j, "warnings", r->checked.warnings);
    json_member_u64(j, "bytes_checked", r->checked.bytes_checked);
    json_member_u64(j, "omitted", r->omitted);
    json_member_begin(j, "rows", '[');
    out_bytes(j->o, r->findings.buf, r->findings.used);
    json_end(j, ']');
    json_end(j, '}');
}

/* ---- metadata ---- */

/* Write at most REPORT_TEXT bytes of a text; if the text is cut, say how long the value is. */
static void put_cut(json *j, heft_str s, uint64_t length, const char *unit, outbuf *scratch)
{
    size_t shown = s.len < REPORT_TEXT ? s.len : REPORT_TEXT;
    while (shown < s.len && shown && ((uint8_t)s.ptr[shown] & 0xC0) == 0x80)
        shown--;
    scratch->used = 0;
    out_bytes(scratch, s.ptr, shown);
    if (shown < s.len)
        out_format(scratch, "... (%llu %s)", (unsigned long long)length, unit);
    json_str(j, (heft_str){ scratch->buf, scratch->used });
}

/* Write a value as text, so that integers keep all digits. */
static void put_value(json *j, const heft_value *v, outbuf *text, outbuf *scratch)
{
    json inner = { text, false };
    heft_value first = *v;
    uint64_t length = 0;
    if (v->kind == HEFT_KIND_STR) {
        put_cut(j, v->as.s, v->as.s.len, "bytes", scratch);
        return;
    }
    if (v->kind == HEFT_KIND_ARRAY) {
        length = v->as.array.count;
        first.as.array.count = length < REPORT_TEXT ? (uint32_t)length : REPORT_TEXT;
    } else if (v->kind == HEFT_KIND_BYTES) {
        length = v->as.s.len;
        first.as.s.len = length < REPORT_TEXT ? (size_t)length : REPORT_TEXT;
    }
    text->used = 0;
    json_scalar(&inner, &first); /* longer than the text can show if `first` is cut */
    const char *unit = v->kind == HEFT_KIND_ARRAY ? "values" : "bytes";
    put_cut(j, (heft_str){ text->buf, text->used }, length, unit, scratch);
}

/* Set the path of a value: keys and numbers of items, joined by dots.  `parent` has counted the
 * value. */
static void extend_path(outbuf *path, const open_value *parent, const heft_value *v)
{
    path->used = parent ? parent->mark : 0;
    if (parent && path->used)
        out_char(path, '.');
    if (parent && parent->is_list)
        out_u64(path, parent->shown - 1);
    else
        out_bytes(path, v->key.ptr, v->key.len);
}

typedef struct metadata_rows {
    json *j;
    outbuf path, text, scratch;
    uint32_t shown, omitted;
} metadata_rows;

static void put_row(metadata_rows *m, const heft_value *v)
{
    if (m->shown == REPORT_VALUES) {
        m->omitted++;
        return;
    }
    m->shown++;
    json_line(m->j);
    json_begin(m->j, '[');
    put_cut(m->j, (heft_str){ m->path.buf, m->path.used }, m->path.used, "bytes", &m->scratch);
    put_value(m->j, v, &m->text, &m->scratch);
    json_end(m->j, ']');
}

static void put_rows(metadata_rows *m, const heft_file *f)
{
    open_values open;
    open.depth = 0;
    for (uint32_t i = 0; i < heft_meta_count(f); i++) {
        heft_value v = heft_meta_at(f, i);
        while (open_values_leave(&open))
            continue;
        const open_value *parent = open_values_count(&open);
        if (parent && parent->is_list && parent->shown > REPORT_ITEMS) {
            m->omitted++;
            i = heft_meta_next(f, i) - 1;
            continue;
        }
        extend_path(&m->path, parent, &v);
        bool is_empty = !open_values_is_container(&v) || !v.as.container.count;
        if (is_empty || !open_values_enter(&open, &v, m->path.used))
            put_row(m, &v);
    }
}

static void put_metadata(json *j, const heft_file *f)
{
    metadata_rows m = {
        .j = j, .path = { .fd = -1 }, .text = { .fd = -1 }, .scratch = { .fd = -1 }
    };
    json_member_begin(j, "metadata", '{');
    json_member_begin(j, "rows", '[');
    put_rows(&m, f);
    json_end(j, ']');
    json_member_u64(j, "omitted", m.omitted);
    json_end(j, '}');
    if (!j->o->os)
        j->o->os = m.path.os ? m.path.os : m.text.os ? m.text.os : m.scratch.os;
    out_free(&m.path);
    out_free(&m.text);
    out_free(&m.scratch);
}

/* ---- tensors ---- */

static const char *const columns[] = { "name",  "dtype", "shape", "bytes", "elements",
                                       "count", "min",   "max",   "mean",  "std",
                                       "zeros", "nan",   "inf",   "bins" };

static void put_texts(json *j, const char *key, const char *const *texts, size_t count)
{
    json_member_begin(j, key, '[');
    for (size_t i = 0; i < count; i++)
        json_str(j, str_of(texts[i]));
    json_end(j, ']');
}

/* Return the number of a tensor's type: those of quantised tensors follow the element types. Beyond
 * the capacity, a quantised tensor has the element type of its numbers. */
static uint32_t type_number(view_types *q, const report *r, uint32_t tensor)
{
    bool is_quantised = view_quantised(r->v, tensor) != HEFT_NONE;
    uint32_t k = is_quantised ? view_types_add(q, r->v, tensor) : VIEW_TYPES;
    return k < VIEW_TYPES ? HEFT_DTYPES + k : heft_tensor_at(r->v->f, tensor).dtype;
}

static void put_quantised_types(json *j, view_types *q, const report *r)
{
    char buf[VIEW_TYPE_BYTES];
    for (uint32_t i = 0; i < heft_tensor_count(r->v->f); i++)
        (void)type_number(q, r, i);
    for (uint32_t k = 0; k < q->count; k++)
        json_str(j, view_type(buf, r->v, q->first[k]));
}

static void put_dtypes(json *j, view_types *q, const report *r)
{
    json_member_begin(j, "dtypes", '[');
    for (heft_dtype t = 0; t < HEFT_DTYPES; t++)
        if (dtype_name(t))
            json_str(j, str_of(dtype_name(t)));
        else
            json_null(j);
    put_quantised_types(j, q, r);
    json_end(j, ']');
}

static void put_count(json *j, const summary *s, uint64_t n)
{
    if (s->numeric)
        json_u64(j, n);
    else
        json_null(j);
}

static void put_real(json *j, const summary *s, double v)
{
    if (s->numeric && s->finite)
        json_f64(j, v);
    else
        json_null(j);
}

/* Write the columns from "count" to "bins". */
static void put_statistics(json *j, const summary *s)
{
    put_count(j, s, s->count);
    put_real(j, s, s->min);
    put_real(j, s, s->max);
    put_real(j, s, s->mean);
    put_real(j, s, s->deviation);
    put_count(j, s, s->zeros);
    put_count(j, s, s->nans);
    put_count(j, s, s->infinities);
    json_begin(j, '[');
    for (size_t i = 0; s->numeric && s->finite && i < SUMMARY_BINS; i++)
        json_u64(j, s->bins[i]);
    json_end(j, ']');
}

static void put_length(json *j, uint64_t bytes)
{
    if (bytes == HEFT_UNKNOWN_LENGTH)
        json_null(j);
    else
        json_u64(j, bytes);
}

static void put_tensor(json *j, const report *r, view_types *q, uint32_t i)
{
    static const summary none;
    heft_tensor t = heft_tensor_at(r->v->f, i);
    json_line(j);
    json_begin(j, '[');
    json_str(j, t.name);
    json_u64(j, type_number(q, r, i));
    json_begin(j, '[');
    for (uint32_t k = 0; k < t.rank; k++)
        json_u64(j, t.dims[k]);
    json_end(j, ']');
    put_length(j, view_bytes(r->v, i));
    json_u64(j, view_parameters(r->v, i));
    put_statistics(j, r->sums ? &r->sums[i] : &none);
    json_end(j, ']');
}

static void put_tensors(page *p, json *j, const report *r)
{
    view_types q = { .count = 0 };
    put_dtypes(j, &q, r);
    put_texts(j, "columns", columns, sizeof columns / sizeof *columns);
    json_member_bool(j, "has_statistics", r->sums);
    json_member_begin(j, "tensors", '[');
    for (uint32_t i = 0; i < heft_tensor_count(r->v->f) && !p->status; i++) {
        put_tensor(j, r, &q, i);
        flush_if_large(p);
    }
    json_end(j, ']');
}

static void put_document(page *p, const report *r)
{
    uint32_t v = heft_version();
    char version[32];
    snprintf(version, sizeof version, "%u.%u.%u", v >> 16, v >> 8 & 0xFF, v & 0xFF);
    json j = json_open(&p->o);
    json_member_str(&j, "heft", str_of(version));
    put_file(&j, r);
    if (r->other)
        compared_put(&j, r->other);
    put_findings(&j, r);
    put_metadata(&j, r->f);
    put_tensors(p, &j, r);
    json_close(&j);
    flush(p);
}

heft_status report_write(heft_sink *sink, const report *r, heft_error *err)
{
    page p = { .sink = sink, .o = { .fd = -1 }, .html = { .fd = -1 }, .err = err };
    put(&p, report_head, report_head_bytes);
    put_document(&p, r);
    put(&p, report_tail, report_tail_bytes);
    out_free(&p.o);
    out_free(&p.html);
    return p.status;
}
