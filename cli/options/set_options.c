#include "options/rules.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "process/textfile.h"
#include "text/set_list.h"
#include "text/words.h"

/* ---- values without a type ---- */

static bool is_number(const char *s)
{
    s += *s == '-' || *s == '+';
    s += *s == '.';
    return *s >= '0' && *s <= '9' && !(*s == '0' && (s[1] == 'x' || s[1] == 'X'));
}

/* Return true if s consists of decimal digits after an optional sign. */
static bool is_integer_text(const char *s, bool is_signed)
{
    s += *s == '+' || (is_signed && *s == '-');
    return *s && !s[strspn(s, "0123456789")];
}

/* Return false for a number that no type holds: its digits are kept as text. */
static bool set_number(heft_value *v, const char *text)
{
    char *end;
    errno = 0;
    v->kind = HEFT_KIND_INT;
    v->as.i = strtoll(text, &end, 10);
    if (!*end && !errno)
        return true;
    errno = 0;
    v->kind = HEFT_KIND_UINT;
    v->as.u = strtoull(text, &end, 10);
    if (!*end && !errno && *text != '-')
        return true;
    v->kind = HEFT_KIND_FLOAT;
    v->as.f = strtod(text, &end);
    return !*end && isfinite(v->as.f) && !is_integer_text(text, true);
}

static bool set_bool(heft_value *v, const char *text)
{
    v->kind = HEFT_KIND_BOOL;
    v->as.b = *text == 't';
    return !strcmp(text, "true") || !strcmp(text, "false");
}

/* Parse an integer, a float, true or false; anything else is text, with or without quotation
 * marks. */
static void set_value(heft_value *v, const char *text)
{
    size_t len = strlen(text);
    bool is_quoted = len >= 2 && *text == '"' && text[len - 1] == '"';
    if (set_bool(v, text) || (is_number(text) && set_number(v, text)))
        return;
    v->kind = HEFT_KIND_STR;
    v->as.s = is_quoted ? (heft_str){ text + 1, len - 2 } : (heft_str){ text, len };
}

/* ---- values of a type ---- */

typedef struct value_type {
    const char *name;
    heft_kind kind;
    heft_dtype stored;
    int bits; /* width of an integer type, else 0 */
} value_type;

static const value_type types[] = {
    { "bool", HEFT_KIND_BOOL, HEFT_UNTYPED, 0 }, { "str", HEFT_KIND_STR, HEFT_UNTYPED, 0 },
    { "null", HEFT_KIND_NULL, HEFT_UNTYPED, 0 }, { "i8", HEFT_KIND_INT, HEFT_I8, 8 },
    { "i16", HEFT_KIND_INT, HEFT_I16, 16 },      { "i32", HEFT_KIND_INT, HEFT_I32, 32 },
    { "i64", HEFT_KIND_INT, HEFT_I64, 64 },      { "u8", HEFT_KIND_UINT, HEFT_U8, 8 },
    { "u16", HEFT_KIND_UINT, HEFT_U16, 16 },     { "u32", HEFT_KIND_UINT, HEFT_U32, 32 },
    { "u64", HEFT_KIND_UINT, HEFT_U64, 64 },     { "f32", HEFT_KIND_FLOAT, HEFT_F32, 0 },
    { "f64", HEFT_KIND_FLOAT, HEFT_F64, 0 },
};

static const value_type *find_type(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
            return &types[i];
    return NULL;
}

static bool set_integer(heft_value *v, const char *text, int bits)
{
    uint64_t max_value = UINT64_MAX >> (64 - bits);
    int64_t max_signed = (int64_t)(max_value >> 1);
    bool is_signed = v->kind == HEFT_KIND_INT;
    errno = 0;
    if (is_signed)
        v->as.i = strtoll(text, NULL, 10);
    else
        v->as.u = strtoull(text, NULL, 10);
    bool fits = is_signed ? v->as.i <= max_signed && v->as.i >= -max_signed - 1
                          : v->as.u <= max_value;
    return is_integer_text(text, is_signed) && !errno && fits;
}

/* Parse a float. "nan", "inf" and "infinity" are accepted; a finite number that overflows the type
 * is refused rather than rounded to infinity. */
static bool set_float(heft_value *v, const char *text, heft_dtype stored)
{
    static const char *const names[] = { "nan", "inf", "infinity" };
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(digits, names[i])) {
            v->as.f = strtod(text, NULL);
            return true;
        }
    v->as.f = strtod(text, &end);
    if (stored == HEFT_F32)
        v->as.f = (double)(float)v->as.f;
    return is_number(text) && !*end && isfinite(v->as.f);
}

static bool set_typed(heft_value *v, const value_type *t, const char *text)
{
    v->kind = t->kind;
    v->stored = t->stored;
    switch (t->kind) {
    case HEFT_KIND_BOOL:
        return set_bool(v, text);
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
        return set_integer(v, text, t->bits);
    case HEFT_KIND_FLOAT:
        return set_float(v, text, t->stored);
    case HEFT_KIND_STR:
        v->as.s = str_of(text);
        return true;
    default:
        return !*text || !strcmp(text, "null");
    }
}

/* ---- what was given ---- */

/* Return true for a word that is meant as a type: a type of other programs, the letters of a type
 * with a wrong number, or a misspelt type. Other words after a colon belong to the key, as in
 * "tags:en". */
static bool is_like_type(const char *text, size_t len)
{
    static const char *const words[] = { "int",    "uint",   "integer", "float", "double",
                                         "string", "text",   "boolean", "char",  "byte",
                                         "long",   "number", "list",    "array", "none" };
    static const char *const stems[] = { "i", "u", "f", "s", "int", "uint", "float", "bf", "fp" };
    char hint[SUGGESTION_BYTES];
    heft_str word = { text, len };
    suggestion s = { .word = word };
    bool is = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is = is || str_same(word, str_of(words[i]));
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        size_t stem = strlen(stems[i]);
        is = is || (len > stem && !memcmp(text, stems[i], stem) &&
                    strspn(text + stem, "0123456789") >= len - stem);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        suggestion_try(&s, str_of(types[i].name));
    return is || (len && *suggestion_text(hint, &s));
}

static int say_no_type(const char *cmd, const char *arg, const char *name, size_t len)
{
    outbuf names;
    out_open(&names, -1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        out_format(&names, "%s%s", i ? ", " : "", types[i].name);
    int code = say_usage(cmd,
                         "'%s': there is no type '%.*s', only %s, and [TYPE] for lists (a key with "
                         "a colon needs a type: KEY:%.*s:str=VALUE)",
                         arg, (int)len, name, out_cstr(&names), (int)len, name);
    out_free(&names);
    return code;
}

/* Parse KEY=VALUE, KEY:TYPE=VALUE or KEY:[TYPE]=VALUE. The first '=' ends the key. The last ':'
 * before '=' begins the type, if the name of a type follows, and belongs to the key otherwise; a
 * word that looks like the name of a type is an error. The key and text values point into arg.
 * Return an exit code; cmd is the command named in the error line. */
static int assign_parse(assignment *out, const char *cmd, const char *arg)
{
    const char *equals = strchr(arg, '='), *colon = equals;
    heft_value *v = &out->value;
    *out = (assignment){ .value = { .kind = HEFT_KIND_NULL } };
    if (!equals || equals == arg)
        return say_usage(cmd, "'%s' is not KEY=VALUE", arg);
    while (colon > arg && *colon != ':')
        colon--;
    const char *name = colon + 1;
    size_t len = *colon == ':' ? (size_t)(equals - name) : 0;
    bool is_list = len > 2 && *name == '[' && name[len - 1] == ']';
    const value_type *t = is_list ? find_type(name + 1, len - 2) : find_type(name, len);
    if (is_list && t && t->kind == HEFT_KIND_NULL)
        t = NULL;
    if (!t && (is_list || is_like_type(name, len)))
        return say_no_type(cmd, arg, name, len);
    v->key = (heft_str){ arg, (size_t)((t ? colon : equals) - arg) };
    out->text = equals + 1;
    out->is_typed = t;
    out->is_list = t && is_list;
    out->element = t ? t->kind : HEFT_KIND_NULL;
    out->stored = t ? t->stored : (heft_dtype)HEFT_UNTYPED;
    if (!v->key.len)
        return say_usage(cmd, "'%s' has a type, but no key", arg);
    if (!t || is_list) {
        v->kind = HEFT_KIND_STR;
        v->as.s = str_of(equals + 1);
        if (!t)
            set_value(v, equals + 1);
        return CODE_DONE;
    }
    return set_typed(v, t, equals + 1)
               ? CODE_DONE
               : say_usage(cmd, "'%s': '%s' is not a value of type %s", arg, equals + 1, t->name);
}

static int no_memory(void)
{
    return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
}

/* ---- arguments ---- */

static void add(set_options *s, const assignment *a)
{
    size_t i = 0;
    while (i < s->count && !str_same(s->given[i].value.key, a->value.key))
        i++;
    s->given[i] = *a;
    s->count += i == s->count;
}

static int read_file(assignment *out, heft_str *text, const char *cmd, const char *arg)
{
    const char *equals = strchr(arg, '=');
    if (!equals || equals == arg || !equals[1])
        return say_usage(cmd, "'%s' is not KEY=FILE", arg);
    int code = text_read(text, equals + 1, TEXT_NAMED);
    *out = (assignment){
        .value = { .kind = HEFT_KIND_STR, .key = { arg, (size_t)(equals - arg) }, .as.s = *text }
    };
    return code;
}

int set_options_prepare(set_options *s, const char *cmd)
{
    assignment one;
    int code = CODE_DONE;
    s->given = calloc(s->args.count + s->files.count + 1, sizeof *s->given);
    s->texts = calloc(s->files.count + 1, sizeof *s->texts);
    if (!s->given || !s->texts)
        return no_memory();
    for (size_t i = 0; i < s->args.count && !code; i++) {
        code = assign_parse(&one, cmd, s->args.item[i]);
        if (!code)
            add(s, &one);
    }
    for (size_t i = 0; i < s->files.count && !code; i++) {
        code = read_file(&one, &s->texts[i], cmd, s->files.item[i]);
        if (!code)
            add(s, &one);
    }
    return code;
}

bool set_options_add(set_options *s, const heft_value *values, size_t count)
{
    set_options all = { .given = calloc(s->count + count + 1, sizeof *all.given) };
    if (!all.given)
        return false;
    for (size_t i = 0; i < count; i++)
        add(&all, &(assignment){ .value = values[i], .is_typed = true });
    for (size_t i = 0; i < s->count; i++)
        add(&all, &s->given[i]);
    free(s->given);
    s->given = all.given;
    s->count = all.count;
    return true;
}

/* ---- the metadata of the file ---- */

static const char *name_of(const heft_value *v)
{
    static const char *const names[] = {
        [HEFT_KIND_NULL] = "null",      [HEFT_KIND_BOOL] = "a boolean",
        [HEFT_KIND_INT] = "an integer", [HEFT_KIND_UINT] = "an integer",
        [HEFT_KIND_FLOAT] = "a number", [HEFT_KIND_STR] = "a text",
        [HEFT_KIND_BYTES] = "bytes",    [HEFT_KIND_ID128] = "an id",
        [HEFT_KIND_ARRAY] = "a list",   [HEFT_KIND_LIST] = "a list",
        [HEFT_KIND_MAP] = "a map",
    };
    return names[v->kind];
}

static bool is_integer(const heft_value *v)
{
    return v->kind == HEFT_KIND_INT || v->kind == HEFT_KIND_UINT;
}

/* Return true if a value can take the place of the file's value without another kind. */
static bool suits(const heft_value *v, const heft_value *old)
{
    bool becomes_number = old->kind == HEFT_KIND_FLOAT && is_integer(v);
    return v->kind == old->kind || (is_integer(v) && is_integer(old)) || becomes_number ||
           old->kind == HEFT_KIND_NULL;
}

static int refuse(const assignment *a, const heft_value *old, const char *path)
{
    outbuf key;
    out_open(&key, -1);
    out_escaped(&key, a->value.key);
    const char *name = out_cstr(&key);
    const heft_dtype_info *d = heft_dtype_get(old->stored);
    int code =
        say_status(HEFT_E_ARGUMENT, path,
                   "metadata '%s' is %s%s%s, and %s%s%s is no such value; '%s:TYPE=...' changes "
                   "the type",
                   name, name_of(old), d ? " of type " : "", d ? d->name : "", a->text ? "'" : "",
                   a->text ? a->text : "the text of the file", a->text ? "'" : "", name);
    out_free(&key);
    return code;
}

/* Return true if the elements of the list at `now` have the same kind as in the file. */
static bool has_same_elements(const heft_value *now, const heft_value *old, const heft_file *f)
{
    if (!old || old->kind != HEFT_KIND_LIST || !old->as.container.count)
        return true;
    heft_value first = heft_meta_at(f, old->as.container.end - old->as.container.count);
    bool is_number = first.kind != HEFT_KIND_STR && first.kind != HEFT_KIND_BOOL;
    bool is_empty = now->kind == HEFT_KIND_LIST && !now->as.container.count;
    return is_empty ||
           (now->kind == HEFT_KIND_ARRAY ? is_number : !is_number && now[1].kind == first.kind);
}

static const char *element_name(const assignment *a)
{
    const heft_dtype_info *d = heft_dtype_get(a->stored);
    return d ? d->name : a->element == HEFT_KIND_BOOL ? "booleans" : "texts";
}

/* Append the values of one assignment. */
static int resolve(set_options *s, const assignment *a, const heft_value *old, bool can_list,
                   const heft_file *f, const char *path)
{
    heft_value *to = &s->values[s->value_count];
    bool is_list = old && (old->kind == HEFT_KIND_LIST || old->kind == HEFT_KIND_ARRAY);
    bool may_be_list = a->text && !a->is_typed && a->value.kind == HEFT_KIND_STR;
    bool wants_list = a->is_list || (may_be_list && (is_list || (!old && can_list)));
    *to = a->value;
    if (wants_list) {
        list_elements elements = { a->element, a->stored, can_list };
        size_t more = 0;
        heft_dtype own = is_list && !a->is_list ? set_list_dtype(old) : HEFT_UNTYPED;
        if (own == HEFT_BOOL)
            elements.kind = HEFT_KIND_BOOL;
        else if (own)
            elements.stored = own;
        list_result r = set_list_read(&s->lists, to, &more, (uint32_t)s->value_count, a->value,
                                      elements);
        if (r == LIST_NO_MEMORY)
            return no_memory();
        if (r == LIST_READ && (a->is_list || has_same_elements(to, old, f))) {
            s->value_count += 1 + more;
            return CODE_DONE;
        }
        *to = a->value;
        if (a->is_list)
            return say_status(HEFT_E_ARGUMENT, path, "metadata '%.*s': '%s' is not a list of %s",
                              (int)a->value.key.len, a->value.key.ptr, a->text, element_name(a));
        if (is_list)
            return refuse(a, old, path);
    }
    if (old && !a->is_typed && old->kind == HEFT_KIND_STR && a->text) {
        to->kind = HEFT_KIND_STR; /* a text that looks like a number stays a text */
        to->as.s = a->value.kind == HEFT_KIND_STR ? a->value.as.s : str_of(a->text);
    } else if (old && !a->is_typed && !suits(to, old)) {
        return refuse(a, old, path);
    }
    s->value_count++;
    return CODE_DONE;
}

int set_options_resolve(set_options *s, const heft_file *f, bool can_list, const char *path)
{
    size_t most = s->count;
    int code = CODE_DONE;
    for (size_t i = 0; i < s->count; i++)
        if (s->given[i].value.kind == HEFT_KIND_STR)
            most += s->given[i].value.as.s.len / 2 + 1; /* an element takes two bytes at least */
    free(s->values);
    s->value_count = 0;
    s->values = calloc(most + 1, sizeof *s->values);
    if (!s->values)
        return no_memory();
    for (size_t i = 0; i < s->count && !code; i++) {
        heft_value old;
        bool has = heft_meta_find(&old, f, s->given[i].value.key);
        code = resolve(s, &s->given[i], has ? &old : NULL, can_list, f, path);
    }
    return code;
}

void set_options_release(set_options *s)
{
    for (size_t i = 0; s->texts && i < s->files.count; i++)
        text_free(s->texts[i]);
    free(s->texts);
    free(s->given);
    free(s->values);
    set_list_free(s->lists);
    *s = (set_options){ .args = s->args, .files = s->files };
}
