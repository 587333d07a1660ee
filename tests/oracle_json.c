/* oracle_json.c - compares the JSON parser with jansson on random and damaged documents: both must
 * accept or both refuse, and accepted documents must be equal.
 *
 * Not compared, because jansson cannot represent them: integers of more than 64 bits, reals beyond
 * the range of double, and keys that contain a zero byte.
 *
 *   oracle_json [ROUNDS [SEED]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "grammar/json.h"

enum { CAPACITY = 4096, MAX_DEPTH = 6 };

typedef struct document {
    char text[CAPACITY];
    size_t len;
} document;

static uint64_t random_state = 88172645463325252u;

static uint32_t below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % n;
}

/* ---- random documents ---- */

static void put(document *d, const char *s)
{
    size_t len = strlen(s);
    if (len > CAPACITY - d->len)
        return; /* the truncated document counts as damaged */
    memcpy(d->text + d->len, s, len);
    d->len += len;
}

static void put_space(document *d)
{
    static const char *const spaces[] = { "", "", "", "", "", " ", "\n", "\t\r ", "        " };
    put(d, spaces[below(sizeof spaces / sizeof *spaces)]);
}

static void put_string(document *d)
{
    static const char *const fragments[] = {
        "a",
        "weight",
        "layers.0.",
        "é",
        "€",
        "😀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u0041",
        "\\u00e9",
        "\\u0000",
        "\\ud83d\\ude00",
        "\x7f",
        " ",
        "\\u20AC",
        "data_offsets",
        "0123456789abcdef",
    };
    put(d, "\"");
    for (uint32_t n = below(6); n; n--)
        put(d, fragments[below(sizeof fragments / sizeof *fragments)]);
    put(d, "\"");
}

static void put_number(document *d)
{
    static const char *const numbers[] = {
        "0",   "-0",   "1",       "-17",    "9007199254740993",
        "2.5", "-0.0", "1e5",     "1E-7",   "3.14159e+2",
        "123", "4096", "1048576", "0.0e00", "9223372036854775807"
    };
    put(d, numbers[below(sizeof numbers / sizeof *numbers)]);
}

static void put_value(document *d, uint32_t depth); /* recursive, up to MAX_DEPTH */

static void put_members(document *d, uint32_t depth, bool is_object)
{
    put(d, is_object ? "{" : "[");
    put_space(d);
    for (uint32_t n = below(5), i = 0; i < n; i++) {
        put(d, i ? "," : "");
        put_space(d);
        if (is_object) {
            put_string(d);
            put_space(d);
            put(d, ":");
            put_space(d);
        }
        put_value(d, depth + 1);
        put_space(d);
    }
    put(d, is_object ? "}" : "]");
}

static void put_value(document *d, uint32_t depth)
{
    static const char *const words[] = { "true", "false", "null" };
    uint32_t kind = below(depth < MAX_DEPTH ? 9 : 5);
    if (kind < 1)
        put(d, words[below(3)]);
    else if (kind < 3)
        put_string(d);
    else if (kind < 5)
        put_number(d);
    else
        put_members(d, depth, kind & 1);
}

static void damage(document *d)
{
    static const char significant[] =
        "{}[]\":,\\u0123456789abcdefDE.+-\x80\xC3\xED\xF0\n\t \x01tfn/";
    for (uint32_t n = below(3) + 1; n && d->len; n--) {
        size_t at = below((uint32_t)d->len);
        char c = significant[below(sizeof significant - 1)];
        switch (below(4)) {
        case 0:
            d->text[at] = c;
            break;
        case 1:
            d->len = at;
            break;
        case 2:
            memmove(d->text + at, d->text + at + 1, d->len - at - 1);
            d->len--;
            break;
        default:
            if (d->len == CAPACITY)
                break;
            memmove(d->text + at + 1, d->text + at, d->len - at);
            d->text[at] = c;
            d->len++;
        }
    }
}

/* ---- parser of Heft, with a jansson tree as the result ---- */

typedef struct tree {
    json_t *open[HEFT_JSON_DEPTH + 1];
    uint32_t depth;
    json_t *root;
    char *key;
    size_t key_len;
    bool is_beyond; /* the document contains a value that jansson cannot represent */
} tree;

static json_t *number_of(tree *t, heft_str s)
{
    char text[CAPACITY + 1];
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (strpbrk(text, ".eE")) {
        double v = strtod(text, NULL);
        t->is_beyond = t->is_beyond || v - v != 0;
        return json_real(v - v != 0 ? 0 : v);
    }
    char printed[32];
    int64_t v = strtoll(text, NULL, 10);
    snprintf(printed, sizeof printed, "%" PRId64, v);
    if (strcmp(printed, text) != 0 && strcmp(text, "-0") != 0)
        t->is_beyond = true;
    return json_integer(v);
}

/* Add a value to the open container, or as the root. Takes ownership of `v`. */
static void add(tree *t, json_t *v)
{
    if (!t->depth) {
        t->root = v;
        return;
    }
    json_t *container = t->open[t->depth - 1];
    if (json_is_array(container)) {
        json_array_append_new(container, v);
        return;
    }
    json_object_setn_new(container, t->key, t->key_len, v);
    free(t->key);
    t->key = NULL;
}

static void open_container(tree *t, json_t *v)
{
    add(t, v);
    t->open[t->depth++] = v;
}

static void take_token(tree *t, heft_json *j, heft_json_kind k)
{
    switch (k) {
    case HEFT_JSON_OBJECT:
        open_container(t, json_object());
        break;
    case HEFT_JSON_ARRAY:
        open_container(t, json_array());
        break;
    case HEFT_JSON_OBJECT_END:
    case HEFT_JSON_ARRAY_END:
        t->depth--;
        break;
    case HEFT_JSON_KEY:
        t->key = malloc(j->text.len + 1);
        memcpy(t->key, j->text.ptr, j->text.len);
        t->key_len = j->text.len;
        t->is_beyond = t->is_beyond || memchr(t->key, 0, t->key_len);
        break;
    case HEFT_JSON_STRING:
        add(t, json_stringn(j->text.ptr, j->text.len));
        break;
    case HEFT_JSON_NUMBER:
        add(t, number_of(t, j->text));
        break;
    case HEFT_JSON_NULL:
        add(t, json_null());
        break;
    default:
        add(t, json_boolean(k == HEFT_JSON_TRUE));
    }
}

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    (void)old_size;
    (void)align;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

/* Parse with Heft; return the tree, or NULL with `err` if the document is refused. */
static json_t *read_ours(const char *text, size_t len, heft_error *err, bool *is_beyond)
{
    heft_allocator al = { .size = sizeof al, .resize = resize };
    heft_memory m = { .al = &al, .limit = UINT64_MAX };
    heft_arena arena = { .mem = &m };
    tree t = { .depth = 0 };
    heft_json j = heft_json_open((heft_str){ text, len }, 0, HEFT_JSON_DEPTH, &arena, err);
    heft_json_kind k;
    while ((k = heft_json_next(&j)) != HEFT_JSON_END && k != HEFT_JSON_FAILED)
        take_token(&t, &j, k);
    heft_arena_free(&arena);
    free(t.key);
    *is_beyond = t.is_beyond;
    if (k == HEFT_JSON_END)
        return t.root;
    json_decref(t.root);
    return NULL;
}

/* ---- comparison ---- */

typedef struct tally {
    uint64_t accepted, refused, beyond;
} tally;

static bool compare(const document *d, tally *counts)
{
    char *text = malloc(d->len ? d->len : 1); /* no slack: sanitizers see overruns */
    memcpy(text, d->text, d->len);
    heft_error err = { .message = "" };
    json_error_t theirs_err;
    bool is_beyond;
    json_t *ours = read_ours(text, d->len, &err, &is_beyond);
    json_t *theirs = json_loadb(text, d->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &theirs_err);
    bool is_equal = is_beyond || (ours && theirs ? json_equal(ours, theirs) : !ours && !theirs);
    if (!is_equal)
        fprintf(stderr, "disagreement on:\n%.*s\nours: %s\ntheirs: %s\n", (int)d->len, d->text,
                ours ? "accepted" : err.message, theirs ? "accepted" : theirs_err.text);
    *(is_beyond ? &counts->beyond : ours ? &counts->accepted : &counts->refused) += 1;
    json_decref(ours);
    json_decref(theirs);
    free(text);
    return is_equal;
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    if (argc > 2)
        random_state ^= strtoull(argv[2], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15);
    tally counts = { 0 };
    for (uint64_t i = 0; i < rounds; i++) {
        document d = { .len = 0 };
        put_space(&d);
        put_value(&d, 0);
        put_space(&d);
        if (!compare(&d, &counts))
            return 1;
        for (int k = 0; k < 10; k++) {
            document damaged = d;
            damage(&damaged);
            if (!compare(&damaged, &counts))
                return 1;
        }
    }
    printf("accepted by both %" PRIu64 ", refused by both %" PRIu64 ", not compared %" PRIu64 "\n",
           counts.accepted, counts.refused, counts.beyond);
    return counts.accepted && counts.refused ? 0 : 1;
}
