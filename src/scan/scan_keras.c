/* scan_keras.c - models of Keras that run code when they are loaded.
 *
 * The configuration of a model is JSON: config.json in .keras archives, an attribute in HDF5 files,
 * which is searched for in their bytes.  "class_name" may be "Lambda", a layer of a function, and
 * "__lambda__" the function; functions are bytecode of marshal in Base64, and "module" is what
 * Keras imports for an object.  Texts may have escapes ("\u004cambda"), and any quote may begin
 * one. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "scan/scan.h"

enum { MOST = 64 }; /* characters of a text that matter */

typedef struct text {
    char s[MOST];
    size_t len;   /* characters, at most MOST */
    uint64_t end; /* offset after the quote, or after what was read */
} text;

/* ---- texts of JSON ---- */

static unsigned digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - (unsigned)'0'
           : c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10
           : c >= 'A' && c <= 'F' ? c - (unsigned)'A' + 10
                                  : 0;
}

/* Read the character at an offset; *at becomes the offset after it. */
static char read_character(const heft_scan_piece *p, uint64_t *at)
{
    enum { ESCAPE = 6 }; /* \u004c */
    const uint8_t *c = p->bytes + *at;
    uint64_t left = p->size - *at;
    if (*c != '\\' || left < 2) {
        (*at)++;
        return (char)*c;
    }
    bool is_code = c[1] == 'u' && left >= ESCAPE;
    *at += is_code ? ESCAPE : 2;
    if (!is_code)
        return (char)c[1];
    unsigned code = digit(c[2]) << 12 | digit(c[3]) << 8 | digit(c[4]) << 4 | digit(c[5]);
    return code < 0x80 ? (char)code : '?';
}

/* Read the text after the quote at an offset. */
static text read_text(const heft_scan_piece *p, uint64_t quote)
{
    text t = { .len = 0, .end = quote + 1 };
    while (t.end < p->size && t.len < MOST && p->bytes[t.end] != '"')
        t.s[t.len++] = read_character(p, &t.end);
    t.end += t.end < p->size && p->bytes[t.end] == '"';
    return t;
}

static heft_str str_of(const text *t)
{
    return (heft_str){ t->s, t->len };
}

/* Read the text that is the value of a key; false: its value is no text. */
static bool read_value(text *out, const heft_scan_piece *p, uint64_t at)
{
    bool has_colon = false;
    for (; at < p->size; at++) {
        uint8_t c = p->bytes[at];
        if (c == '"' && has_colon) {
            *out = read_text(p, at);
            return true;
        }
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n' && (c != ':' || has_colon))
            return false;
        has_colon = has_colon || c == ':';
    }
    return false;
}

/* ---- findings ---- */

static void report(heft_scan *s, const heft_scan_piece *p, uint64_t at, const char *rule,
                   const char *format, heft_str name)
{
    heft_error said;
    heft_error_plain(&said, HEFT_E_FORMAT, format, name);
    heft_scan_finding f = { .severity = HEFT_FAULT,
                            .rule = rule,
                            .member = p->member,
                            .offset = p->at + at,
                            .module = HEFT_STR("keras"),
                            .name = name,
                            .is_decoded = p->is_decoded,
                            .text = said.message };
    s->result.findings++;
    if (s->on_finding)
        s->on_finding(s->ctx, &f);
}

/* Modules that are those of Keras; "builtins" stands for functions that the program registers. */
static bool is_own_module(heft_str name)
{
    static const char *const own[] = { "keras",     "tf_keras", "keras_hub",
                                       "keras_nlp", "keras_cv", "builtins" };
    size_t root = 0;
    while (root < name.len && name.ptr[root] != '.')
        root++;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (heft_str_is((heft_str){ name.ptr, root }, own[i]))
            return true;
    return false;
}

/* Bytecode of marshal begins with E3 or 63 and a number of 32 bits below 256. */
static bool is_bytecode(const text *t)
{
    enum { SHOWN = 8 };
    if (t->len < MOST || (t->s[0] != '4' && t->s[0] != 'Y'))
        return false;
    for (size_t i = 3; i < SHOWN; i++)
        if (t->s[i] != 'A')
            return false;
    char low = t->s[1]; /* the low bits of the first byte are 11 */
    return (low >= 'w' && low <= 'z') || (low >= '0' && low <= '9') || low == '+' || low == '/';
}

/* ---- the search ---- */

/* At most one finding of each kind for a piece. */
enum { LAMBDA = 1, BYTECODE = 2, MODULE = 4 };

static void look_at(heft_scan *s, const heft_scan_piece *p, uint64_t at, unsigned *found)
{
    text key = read_text(p, at), value;
    if (!(*found & BYTECODE) && is_bytecode(&key)) {
        *found |= BYTECODE;
        report(s, p, at, "keras/bytecode",
               "has a function as bytecode of Python: Keras would run it", (heft_str){ "", 0 });
    }
    bool is_class = heft_str_is(str_of(&key), "class_name");
    if ((!is_class && !heft_str_is(str_of(&key), "module")) || !read_value(&value, p, key.end))
        return;
    heft_str name = str_of(&value);
    if (is_class && !(*found & LAMBDA) &&
        (heft_str_is(name, "Lambda") || heft_str_is(name, "__lambda__"))) {
        *found |= LAMBDA;
        report(s, p, at, "keras/lambda", "has a layer of the class %q: Keras would run its code",
               name);
    } else if (!is_class && name.len && !(*found & MODULE) && !is_own_module(name)) {
        *found |= MODULE;
        report(s, p, at, "keras/import", "has an object of the module %q, which Keras would import",
               name);
    }
}

static bool has_text(const heft_scan_piece *p, const char *wanted)
{
    for (uint64_t at = 0; at < p->size; at++)
        if (p->bytes[at] == '"') {
            text t = read_text(p, at);
            if (heft_str_is(str_of(&t), wanted))
                return true;
        }
    return false;
}

void heft_scan_keras(heft_scan *s, const heft_scan_piece *p)
{
    unsigned found = 0;
    if (!heft_scan_charge(s, p, p->size) || !has_text(p, "class_name"))
        return;
    for (uint64_t at = 0; at < p->size; at++)
        if (p->bytes[at] == '"')
            look_at(s, p, at, &found);
}

/* ---- looks ---- */

bool heft_scan_is_hdf5(const uint8_t *p, uint64_t size)
{
    enum { USER_BLOCK = 512, SIGNATURE = 8 };
    for (uint64_t at = 0; at < size && size - at >= SIGNATURE; at = at ? 2 * at : USER_BLOCK)
        if (!memcmp(p + at, "\x89HDF\r\n\x1a\n", SIGNATURE))
            return true;
    return false;
}
