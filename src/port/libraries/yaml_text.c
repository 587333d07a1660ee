/* yaml_text.c - documents in YAML as JSON, by libyaml, which is loaded when it is first needed: few
 * commands read YAML.
 *
 * The document is read twice: to count the bytes of its JSON, and to write them.  Aliases are
 * refused, since a few of them can stand for any number of bytes. */
#include <stddef.h>
#include <string.h>
#include <yaml.h>

#include <heft/blend.h>

#include "base/arena.h"
#include "base/out.h"
#include "base/sized.h"
#include "base/text.h"
#include "port/port.h"
#include "port/system/loaded_library.h"

enum { LEVELS = 64 };

typedef struct functions {
    __typeof__(yaml_parser_initialize) *initialize;
    __typeof__(yaml_parser_delete) *delete;
    __typeof__(yaml_parser_set_input_string) *set_input;
    __typeof__(yaml_parser_set_encoding) *set_encoding;
    __typeof__(yaml_parser_parse) *parse;
    __typeof__(yaml_event_delete) *event_delete;
} functions;

static functions yaml;
static const heft_library_function names[] = {
    { "yaml_parser_initialize", offsetof(functions, initialize) },
    { "yaml_parser_delete", offsetof(functions, delete) },
    { "yaml_parser_set_input_string", offsetof(functions, set_input) },
    { "yaml_parser_set_encoding", offsetof(functions, set_encoding) },
    { "yaml_parser_parse", offsetof(functions, parse) },
    { "yaml_event_delete", offsetof(functions, event_delete) },
};
static heft_loaded_library library = HEFT_LOADED_LIBRARY("libyaml-0.so.2", yaml, names);

static heft_status load(heft_error *err)
{
    return heft_library_load(&library) == HEFT_LIBRARY_LOADED
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                  "settings in YAML need libyaml, which cannot be loaded: install "
                                  "the package libyaml-0-2, or write them in JSON");
}

/* ---- events to JSON ---- */

typedef struct writer {
    heft_out *o;
    bool is_map[LEVELS + 1];
    uint64_t count[LEVELS + 1]; /* keys and values so far */
    uint32_t depth, documents;
    heft_error *err;
} writer;

static heft_status refuse(const writer *w, const yaml_event_t *e, heft_status st, const char *what)
{
    return heft_error_plain(w->err, st, "YAML, line %U: %s", (uint64_t)e->start_mark.line + 1,
                            what);
}

/* Write what precedes the next key or value; *is_key: it is a key. */
static void begin_item(writer *w, bool *is_key)
{
    uint64_t n = w->count[w->depth]++;
    *is_key = w->is_map[w->depth] && !(n & 1);
    if (!w->depth || !n)
        return;
    heft_out_u8(w->o, w->is_map[w->depth] && n & 1 ? ':' : ',');
}

static void put_string(heft_out *o, heft_str s)
{
    static const char digits[] = "0123456789abcdef";
    heft_out_u8(o, '"');
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = (uint8_t)s.ptr[i];
        if (c < ' ') {
            heft_out_str(o, heft_lit("\\u00"));
            heft_out_u8(o, (uint8_t)digits[c >> 4]);
            heft_out_u8(o, (uint8_t)digits[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\')
            heft_out_u8(o, '\\');
        heft_out_u8(o, c);
    }
    heft_out_u8(o, '"');
}

/* Return true for a number as JSON spells it. */
static bool is_json_number(heft_str s)
{
    size_t i = s.len && *s.ptr == '-', first = i;
    while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
        i++;
    if (i == first || (s.ptr[first] == '0' && i > first + 1))
        return false;
    if (i < s.len && s.ptr[i] == '.') {
        size_t point = ++i;
        while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
            i++;
        if (i == point)
            return false;
    }
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        i++;
        i += i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+');
        size_t digits = i;
        while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
            i++;
        if (i == digits)
            return false;
    }
    return i == s.len;
}

static const char *word_of(heft_str s)
{
    static const char *const words[][2] = {
        { "", "null" },       { "~", "null" },      { "null", "null" },   { "Null", "null" },
        { "NULL", "null" },   { "true", "true" },   { "True", "true" },   { "TRUE", "true" },
        { "false", "false" }, { "False", "false" }, { "FALSE", "false" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (heft_str_is(s, words[i][0]))
            return words[i][1];
    return NULL;
}

static void put_scalar(writer *w, const yaml_event_t *e)
{
    heft_str s = { (const char *)e->data.scalar.value, e->data.scalar.length };
    bool is_key, is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    begin_item(w, &is_key);
    const char *word = is_plain && !is_key ? word_of(s) : NULL;
    if (word)
        heft_out_str(w->o, heft_lit(word));
    else if (is_plain && !is_key && is_json_number(s))
        heft_out_str(w->o, s);
    else
        put_string(w->o, s);
}

static heft_status open_level(writer *w, const yaml_event_t *e, bool is_map)
{
    bool is_key;
    begin_item(w, &is_key);
    if (is_key)
        return refuse(w, e, HEFT_E_UNSUPPORTED, "a key is not a scalar");
    if (w->depth == LEVELS)
        return refuse(w, e, HEFT_E_LIMIT, "more than 64 levels");
    w->depth++;
    w->is_map[w->depth] = is_map;
    w->count[w->depth] = 0;
    heft_out_u8(w->o, is_map ? '{' : '[');
    return HEFT_OK;
}

static heft_status put_event(writer *w, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return w->documents++ ? refuse(w, e, HEFT_E_FORMAT, "a second document begins") : HEFT_OK;
    case YAML_SCALAR_EVENT:
        put_scalar(w, e);
        return HEFT_OK;
    case YAML_ALIAS_EVENT:
        return refuse(w, e, HEFT_E_UNSUPPORTED, "aliases are not supported");
    case YAML_MAPPING_START_EVENT:
        return open_level(w, e, true);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(w, e, false);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        heft_out_u8(w->o, e->type == YAML_MAPPING_END_EVENT ? '}' : ']');
        w->depth--;
        return HEFT_OK;
    default:
        return HEFT_OK;
    }
}

static heft_status say_problem(const yaml_parser_t *p, heft_error *err)
{
    if (p->error == YAML_MEMORY_ERROR)
        return heft_error_no_memory(err, "to read YAML");
    return heft_error_plain(err, HEFT_E_FORMAT, "YAML, line %U: %s",
                            (uint64_t)p->problem_mark.line + 1,
                            p->problem ? p->problem : "it cannot be read");
}

static heft_status write_json(heft_out *o, heft_str text, heft_error *err)
{
    yaml_parser_t p;
    yaml_event_t e;
    writer w = { .o = o, .err = err };
    heft_status st = HEFT_OK;
    bool ends = false;
    if (!yaml.initialize(&p))
        return heft_error_no_memory(err, "to read YAML");
    yaml.set_encoding(&p, YAML_UTF8_ENCODING);
    yaml.set_input(&p, (const unsigned char *)text.ptr, text.len);
    while (!st && !ends) {
        if (!yaml.parse(&p, &e)) {
            st = say_problem(&p, err);
            break;
        }
        ends = e.type == YAML_STREAM_END_EVENT;
        st = put_event(&w, &e);
        yaml.event_delete(&e);
    }
    yaml.delete(&p);
    if (!st && !w.documents)
        st = heft_error_plain(err, HEFT_E_FORMAT, "YAML: there is no document");
    return st;
}

heft_status heft_yaml_to_json(heft_blob *out, heft_str text, const heft_host *host, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = (heft_blob){ .size = 0 };
    heft_out count = heft_out_counting();
    host = host ? host : heft_host_default();
    heft_status st = load(err);
    if (!st)
        st = write_json(&count, text, err);
    if (st)
        return heft_error_end(err, st);
    size_t size = (size_t)count.total;
    *out = (heft_blob){ heft_alloc(host->allocator, size, 64), size, host->allocator };
    heft_out o = { .buf = out->data, .cap = size };
    st = out->data ? write_json(&o, text, err) : heft_error_no_memory(err, "to read YAML");
    if (st)
        heft_blob_free(out);
    return heft_error_end(err, st);
}
