/* jsonout.h - write a JSON document. Commas are inserted automatically; a key must be followed by
 * its value. The output is valid JSON in valid UTF-8, whatever the strings contain. */
#ifndef HEFT_CLI_JSONOUT_H
#define HEFT_CLI_JSONOUT_H
#include <heft/heft.h>

#include "text/number_text.h"
#include "text/outbuf.h"

typedef struct json {
    outbuf *o;
    bool comma; /* a comma goes before the next value */
} json;

/* Begin and end a document: an object and a newline. */
json json_open(outbuf *o);
void json_close(json *j);
void json_begin(json *j, char bracket); /* '{' or '[' */
void json_end(json *j, char bracket);   /* '}' or ']' */
/* Begin a new line before the next value. */
void json_line(json *j);
void json_key(json *j, const char *key);
void json_str(json *j, heft_str s);
void json_u64(json *j, uint64_t v);
void json_i64(json *j, int64_t v);
void json_bool(json *j, bool v);
void json_null(json *j);
/* Write the shortest decimal that reads back as v; "NaN", "Infinity" and "-Infinity" are
 * strings. */
void json_f64(json *j, double v);
/* Write a number; a complex number is a list of real and imaginary part. */
void json_number(json *j, const number *n);

/* Write a key and its value. */
void json_member_str(json *j, const char *key, heft_str s);
void json_member_u64(json *j, const char *key, uint64_t v);
void json_member_null(json *j, const char *key);
/* Write null for HEFT_UNKNOWN_LENGTH. */
void json_member_length(json *j, const char *key, uint64_t v);
void json_member_f64(json *j, const char *key, double v);
void json_member_hex(json *j, const char *key, const void *p, size_t n);
void json_member_bool(json *j, const char *key, bool v);
/* Write null for an empty string. */
void json_member_text(json *j, const char *key, heft_str s);
void json_member_begin(json *j, const char *key, char bracket);

/* Write metadata or attributes as members of the open object. at(ctx, i) for i < count gives the
 * values in depth-first order: a list or map is followed by its items. */
typedef heft_value (*json_value_at)(const void *ctx, uint32_t i);
void json_values(json *j, json_value_at at, const void *ctx, uint32_t count);
/* Write a file's metadata as the member "metadata". */
void json_metadata(json *j, const heft_file *f);
/* Write a value that is not a list or map. */
void json_scalar(json *j, const heft_value *v);

/* ---- the lists and maps that are open while values in depth-first order are shown ---- */

typedef struct open_value {
    uint32_t remaining, shown; /* items to come, and shown */
    size_t mark;               /* number that the walk stores when the list or map opens */
    bool is_list;
} open_value;

typedef struct open_values {
    uint32_t depth;
    open_value level[256]; /* heft_limits.depth is at most 256 */
} open_values;

static inline bool open_values_is_container(const heft_value *v)
{
    return v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP;
}

/* Count an item of the innermost list or map; return that list or map, or NULL. */
static inline const open_value *open_values_count(open_values *o)
{
    open_value *top = o->depth ? &o->level[o->depth - 1] : NULL;
    if (top) {
        top->remaining--;
        top->shown++;
    }
    return top;
}

/* Open `v` if it is a list or map; return true if so. */
static inline bool open_values_enter(open_values *o, const heft_value *v, size_t mark)
{
    if (!open_values_is_container(v) || o->depth == sizeof o->level / sizeof *o->level)
        return false;
    o->level[o->depth++] = (open_value){ v->as.container.count, 0, mark,
                                         v->kind == HEFT_KIND_LIST };
    return true;
}

/* Close the innermost list or map if no items remain; return the closed one, or NULL. */
static inline const open_value *open_values_leave(open_values *o)
{
    if (!o->depth || o->level[o->depth - 1].remaining)
        return NULL;
    return &o->level[--o->depth];
}

#endif
