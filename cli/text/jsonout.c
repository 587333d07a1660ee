#include "text/jsonout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/number_text.h"

static void separate(json *j)
{
    if (j->comma)
        out_bytes(j->o, ", ", 2);
    j->comma = true;
}

void json_begin(json *j, char bracket)
{
    separate(j);
    out_char(j->o, bracket);
    j->comma = false;
}

void json_end(json *j, char bracket)
{
    out_char(j->o, bracket);
    j->comma = true;
}

json json_open(outbuf *o)
{
    json j = { o, false };
    json_begin(&j, '{');
    return j;
}

void json_close(json *j)
{
    json_end(j, '}');
    out_char(j->o, '\n');
}

void json_line(json *j)
{
    if (j->comma)
        out_char(j->o, ',');
    out_bytes(j->o, "\n ", 2);
    j->comma = false;
}

static void put_key(json *j, heft_str key)
{
    separate(j);
    out_json_string(j->o, key);
    out_bytes(j->o, ": ", 2);
    j->comma = false;
}

void json_key(json *j, const char *key)
{
    put_key(j, str_of(key));
}

void json_str(json *j, heft_str s)
{
    separate(j);
    out_json_string(j->o, s);
}

void json_u64(json *j, uint64_t v)
{
    separate(j);
    out_u64(j->o, v);
}

void json_i64(json *j, int64_t v)
{
    separate(j);
    out_i64(j->o, v);
}

void json_bool(json *j, bool v)
{
    separate(j);
    out_text(j->o, v ? "true" : "false");
}

void json_null(json *j)
{
    separate(j);
    out_text(j->o, "null");
}

void json_f64(json *j, double v)
{
    char text[40];
    separate(j);
    if (!isfinite(v)) {
        out_text(j->o, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    snprintf(text, sizeof text, "%.*g", number_digits(v, HEFT_F64), v);
    out_text(j->o, text);
    if (!strpbrk(text, ".e"))
        out_text(j->o, ".0");
}

static void put_hex(json *j, const void *p, size_t n)
{
    separate(j);
    out_char(j->o, '"');
    out_hex(j->o, p, n);
    out_char(j->o, '"');
}

void json_member_str(json *j, const char *key, heft_str s)
{
    json_key(j, key);
    json_str(j, s);
}

void json_member_u64(json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_member_null(json *j, const char *key)
{
    json_key(j, key);
    json_null(j);
}

void json_member_length(json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    if (v == HEFT_UNKNOWN_LENGTH)
        json_null(j);
    else
        json_u64(j, v);
}

void json_member_f64(json *j, const char *key, double v)
{
    json_key(j, key);
    json_f64(j, v);
}

void json_member_hex(json *j, const char *key, const void *p, size_t n)
{
    json_key(j, key);
    put_hex(j, p, n);
}

void json_member_bool(json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}

void json_member_text(json *j, const char *key, heft_str s)
{
    json_key(j, key);
    if (s.len)
        json_str(j, s);
    else
        json_null(j);
}

void json_member_begin(json *j, const char *key, char bracket)
{
    json_key(j, key);
    json_begin(j, bracket);
}

void json_number(json *j, const number *n)
{
    switch (n->kind) {
    case NUMBER_NONE:
        json_null(j);
        break;
    case NUMBER_BOOL:
        json_bool(j, n->u != 0);
        break;
    case NUMBER_INT:
        json_i64(j, n->i);
        break;
    case NUMBER_UINT:
        json_u64(j, n->u);
        break;
    case NUMBER_REAL:
        json_f64(j, n->f);
        break;
    case NUMBER_COMPLEX:
        json_begin(j, '[');
        json_f64(j, n->f);
        json_f64(j, n->imaginary);
        json_end(j, ']');
        break;
    }
}

static void json_array(json *j, const heft_value *v)
{
    json_begin(j, '[');
    for (uint32_t i = 0; i < v->as.array.count; i++) {
        number n = number_at(v->as.array.dtype, v->as.array.ptr, i);
        json_number(j, &n);
    }
    json_end(j, ']');
}

void json_scalar(json *j, const heft_value *v)
{
    /* ids are stored least significant byte first, and printed most significant first */
    char reversed[16] = { 0 };
    switch (v->kind) {
    case HEFT_KIND_BOOL:
        json_bool(j, v->as.b);
        break;
    case HEFT_KIND_INT:
        json_i64(j, v->as.i);
        break;
    case HEFT_KIND_UINT:
        json_u64(j, v->as.u);
        break;
    case HEFT_KIND_FLOAT:
        json_f64(j, v->as.f);
        break;
    case HEFT_KIND_STR:
        json_str(j, v->as.s);
        break;
    case HEFT_KIND_BYTES:
        put_hex(j, v->as.s.ptr, v->as.s.len);
        break;
    case HEFT_KIND_ID128:
        for (size_t i = 0; i < v->as.s.len && i < sizeof reversed; i++)
            reversed[sizeof reversed - 1 - i] = v->as.s.ptr[i];
        put_hex(j, reversed, sizeof reversed);
        break;
    case HEFT_KIND_ARRAY:
        json_array(j, v);
        break;
    case HEFT_KIND_NULL:
    case HEFT_KIND_LIST:
    case HEFT_KIND_MAP:
        json_null(j);
        break;
    }
}

void json_values(json *j, json_value_at at, const void *ctx, uint32_t count)
{
    open_values open;
    open.depth = 0;
    for (uint32_t i = 0; i < count; i++) {
        heft_value v = at(ctx, i);
        const open_value *closed, *parent = open_values_count(&open);
        if (!parent || !parent->is_list)
            put_key(j, v.key);
        if (open_values_enter(&open, &v, 0))
            json_begin(j, v.kind == HEFT_KIND_MAP ? '{' : '[');
        else
            json_scalar(j, &v);
        while ((closed = open_values_leave(&open)))
            json_end(j, closed->is_list ? ']' : '}');
    }
}

static heft_value meta_at(const void *ctx, uint32_t i)
{
    return heft_meta_at(ctx, i);
}

void json_metadata(json *j, const heft_file *f)
{
    json_member_begin(j, "metadata", '{');
    json_values(j, meta_at, f, heft_meta_count(f));
    json_end(j, '}');
}
