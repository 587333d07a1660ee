/* jsonout.h - writes one JSON document.  Commas come by themselves; a key is followed by its
 * value.  Whatever text contains, the document is valid JSON in valid UTF-8. */
#ifndef HEFT_CLI_JSONOUT_H
#define HEFT_CLI_JSONOUT_H
#include "escape.h"

typedef struct json {
    outbuf *o;
    bool comma; /* the next value follows another one */
} json;

/* A document that is one object, and the line that it ends. */
json json_open(outbuf *o);
void json_close(json *j);
void json_begin(json *j, char bracket); /* '{' or '[' */
void json_end(json *j, char bracket);   /* '}' or ']' */
/* The next value begins a line of its own. */
void json_line(json *j);
void json_key(json *j, const char *key);
void json_str(json *j, heft_str s);
void json_u64(json *j, uint64_t v);
void json_i64(json *j, int64_t v);
void json_bool(json *j, bool v);
void json_null(json *j);
/* The shortest decimal that reads back as v; "NaN", "Infinity", "-Infinity" as strings. */
void json_f64(json *j, double v);

/* A key and its value. */
void json_member_str(json *j, const char *key, heft_str s);
void json_member_u64(json *j, const char *key, uint64_t v);
void json_member_null(json *j, const char *key);
/* null for HEFT_UNKNOWN_LENGTH. */
void json_member_length(json *j, const char *key, uint64_t v);
void json_member_f64(json *j, const char *key, double v);
void json_member_hex(json *j, const char *key, const void *p, size_t n);
void json_member_bool(json *j, const char *key, bool v);
/* null for text that is empty. */
void json_member_text(json *j, const char *key, heft_str s);
void json_member_begin(json *j, const char *key, char bracket);

/* The flat list of values that metadata and attributes are: the first count values of at(ctx, i),
 * as members of the object that is open. */
typedef heft_value (*json_value_at)(const void *ctx, uint32_t i);
void json_values(json *j, json_value_at at, const void *ctx, uint32_t count);
/* The metadata of a file as one member. */
void json_metadata(json *j, const heft_file *f);
/* A value that is no container. */
void json_scalar(json *j, const heft_value *v);

#endif
