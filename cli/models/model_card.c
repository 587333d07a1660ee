/* model_card.c - reads the part of YAML that model cards use:
 *
 *   ---
 *   license: apache-2.0            # a text, plain or quoted
 *   language: [en, "fr"]           # a list in one line
 *   datasets:                      # a list, one text per line
 *   - owner/name
 *   ---
 *
 * Other keys are skipped with the lines that belong to them, whatever these contain. A wanted key
 * with any other value, such as an anchor, a tag or a block of text, is a warning and has no value.
 * The bytes that are read are limited, and each is looked at a fixed number of times. */
#include "models/model_card.h"

#include <stdlib.h>
#include <string.h>

#include "process/textfile.h"

enum { MAX_FRONT = 256 << 10, MAX_VALUE = 1024 };

static const struct {
    const char *key;
    card_field field;
} keys[] = {
    { "license", CARD_LICENCES },          { "license_name", CARD_LICENCE_NAME },
    { "license_link", CARD_LICENCE_LINK }, { "pipeline_tag", CARD_TASK },
    { "library_name", CARD_LIBRARY },      { "language", CARD_LANGUAGES },
    { "languages", CARD_LANGUAGES },       { "datasets", CARD_DATASETS },
    { "base_model", CARD_BASE_MODELS },
};
enum { KEYS = sizeof keys / sizeof *keys };

typedef struct reader {
    model_card *card;
    const char *path;
    char *at, *end; /* rest of the text, up to the closing line */
    unsigned line;
    bool seen[KEYS];
} reader;

/* ---- lines ---- */

/* Return true if the line from `p` on is the mark, with nothing but white space after it. */
static bool is_mark(const char *p, const char *end, const char *mark)
{
    size_t len = strlen(mark);
    if ((size_t)(end - p) < len || memcmp(p, mark, len) != 0)
        return false;
    for (p += len; p < end && *p != '\n'; p++)
        if (*p != ' ' && *p != '\t' && *p != '\r')
            return false;
    return true;
}

static char *after_line(char *p, const char *end)
{
    char *newline = memchr(p, '\n', (size_t)(end - p));
    return newline ? newline + 1 : p + (end - p);
}

/* Take the next line without its end; zero-terminated, because the newline is overwritten. */
static bool take_line(reader *r, char **out)
{
    if (r->at == r->end)
        return false;
    char *from = r->at, *to;
    r->at = after_line(from, r->end);
    to = r->at;
    while (to > from && (to[-1] == '\n' || to[-1] == '\r' || to[-1] == ' ' || to[-1] == '\t'))
        to--;
    *to = '\0';
    r->line++;
    *out = from;
    return true;
}

/* Return true if the next line belongs to the key above: it is indented, empty, a comment, or an
 * item of a list. */
static bool is_continuation(const reader *r)
{
    const char *p = r->at;
    if (p == r->end)
        return false;
    bool is_item = *p == '-' && (p + 1 == r->end || strchr(" \t\r\n", p[1]));
    return is_item || strchr(" \t\r\n#", *p);
}

/* ---- texts ---- */

static char *skip_space(char *p)
{
    return p + strspn(p, " \t");
}

/* Read a quoted text in place. Return the position after the closing quote, or NULL. */
static char *read_quoted(heft_str *out, char *p)
{
    char quote = *p++, *to = p;
    out->ptr = p;
    for (; *p; *to++ = *p++) {
        bool is_doubled = quote == '\'' && p[0] == quote && p[1] == quote;
        bool is_escape = quote == '"' && *p == '\\';
        if (is_escape && (!p[1] || !strchr("\"\\/", p[1])))
            return NULL;
        if (is_doubled || is_escape)
            p++;
        else if (*p == quote)
            break;
    }
    out->len = (size_t)(to - out->ptr);
    return *p ? p + 1 : NULL;
}

/* Read a text that ends at one of the characters `stop`, at a comment, or with the line. Return the
 * position of the end, or NULL for YAML that is not a plain text. */
static char *read_plain(heft_str *out, char *p, const char *stop)
{
    char *from = p;
    if (*p && strchr("[]{}&*!|>%@`?,\"'", *p))
        return NULL;
    while (*p && !strchr(stop, *p)) {
        bool is_comment = *p == '#' && p > from && strchr(" \t", p[-1]);
        if (*p == ':' && (!p[1] || strchr(" \t", p[1]))) /* a key */
            return NULL;
        if (is_comment || (p == from && *p == '#'))
            break;
        p++;
    }
    size_t len = (size_t)(p - from);
    while (len && strchr(" \t", from[len - 1]))
        len--;
    *out = (heft_str){ from, len };
    bool is_null = (len == 1 && *from == '~') || (len == 4 && !memcmp(from, "null", 4));
    if (is_null)
        out->len = 0;
    return p;
}

/* Read one text; `stop` has the characters that end a plain text. */
static char *read_text(heft_str *out, char *p, const char *stop)
{
    return *p == '"' || *p == '\'' ? read_quoted(out, p) : read_plain(out, p, stop);
}

static bool is_rest_empty(char *p)
{
    p = skip_space(p);
    return !*p || *p == '#';
}

/* ---- values ---- */

static void say_ignored(const reader *r, unsigned line, const char *what)
{
    say(MESSAGE_WARNING, r->path, "line %u is ignored: %s", line, what);
}

static const char not_plain[] = "expected a text, or a list of texts";

static void add_value(reader *r, card_list *to, heft_str value)
{
    if (!value.len)
        return;
    if (value.len > MAX_VALUE)
        say_ignored(r, r->line, "the text is longer than 1024 bytes");
    else if (to->count == CARD_VALUES)
        say_ignored(r, r->line, "the list has more than 256 texts");
    else
        to->value[to->count++] = value;
}

/* Read "[a, b]", with p after the bracket. */
static bool read_flow(reader *r, card_list *to, char *p)
{
    for (p = skip_space(p); *p != ']'; p = skip_space(p)) {
        heft_str value;
        p = read_text(&value, p, ",]");
        if (!p)
            return false;
        add_value(r, to, value);
        p = skip_space(p);
        if (*p == ',')
            p++;
        else if (*p != ']')
            return false;
    }
    return is_rest_empty(p + 1);
}

/* Read the lines "- text" below a key. A text that continues in the next line is dropped. */
static void read_block(reader *r, card_list *to)
{
    char *line;
    uint32_t before = to->count;
    while (is_continuation(r) && take_line(r, &line)) {
        char *p = skip_space(line);
        heft_str value = { "", 0 };
        if (!*p || *p == '#')
            continue;
        bool is_item = *p == '-' && (!p[1] || strchr(" \t", p[1]));
        char *end = is_item ? read_text(&value, skip_space(p + 1), "") : NULL;
        to->count = is_item ? to->count : before;
        before = to->count;
        if (end && is_rest_empty(end))
            add_value(r, to, value);
        else
            say_ignored(r, r->line, not_plain);
    }
}

/* Skip the lines that belong to a key. Return true if one of them has content. */
static bool skip_block(reader *r)
{
    char *line;
    bool has_content = false;
    while (is_continuation(r) && take_line(r, &line)) {
        line = skip_space(line);
        has_content = has_content || (*line && *line != '#');
    }
    return has_content;
}

/* Read the value of a wanted key, with p after the colon. */
static void read_value(reader *r, card_list *to, char *p)
{
    heft_str value = { "", 0 };
    uint32_t before = to->count;
    unsigned line = r->line;
    p = skip_space(p);
    if (!*p || *p == '#') {
        read_block(r, to);
        return;
    }
    bool is_list = *p == '[';
    char *end = is_list ? p : read_text(&value, p, "");
    bool is_good = is_list ? read_flow(r, to, p + 1) : end && is_rest_empty(end);
    if (is_good && !is_list)
        add_value(r, to, value);
    if (!is_good || skip_block(r)) { /* a text of several lines */
        to->count = before;
        say_ignored(r, line, not_plain);
        if (!is_good)
            skip_block(r);
    }
}

static void read_key(reader *r, char *line)
{
    size_t len = strcspn(line, ":"), i = 0;
    while (i < KEYS && (strlen(keys[i].key) != len || memcmp(keys[i].key, line, len) != 0))
        i++;
    if (i == KEYS || !line[len] || (line[len + 1] && !strchr(" \t", line[len + 1]))) {
        skip_block(r);
    } else if (r->seen[i]) {
        say_ignored(r, r->line, "the key occurs twice");
        skip_block(r);
    } else {
        r->seen[i] = true;
        read_value(r, &r->card->field[keys[i].field], line + len + 1);
    }
}

/* ---- the file ---- */

/* Find the text between the marks; false if there is none. */
static bool find_front(reader *r, char *text, size_t len, bool is_cut)
{
    static const char bom[] = "\xEF\xBB\xBF";
    char *p = text, *end = text + len;
    if (len >= 3 && !memcmp(p, bom, 3))
        p += 3;
    if (!is_mark(p, end, "---"))
        return false;
    r->line = 1;
    r->at = p = after_line(p, end);
    for (; p < end && !is_mark(p, end, "---") && !is_mark(p, end, "..."); p = after_line(p, end))
        continue;
    r->end = p;
    if (p < end)
        return true;
    say(MESSAGE_WARNING, r->path,
        is_cut ? "the metadata are ignored: more than 256 KiB"
               : "the metadata are ignored: no line --- ends them");
    return false;
}

static int read_card(model_card *out, const char *path)
{
    heft_str text;
    int code = text_read(&text, path, TEXT_FOUND);
    if (code)
        return code;
    size_t len = text.len < MAX_FRONT ? text.len : MAX_FRONT;
    out->text = malloc(len + 1);
    if (out->text) {
        reader r = { .card = out, .path = path };
        char *line;
        memcpy(out->text, text.ptr, len);
        out->text[len] = '\0';
        if (find_front(&r, out->text, len, len < text.len))
            while (take_line(&r, &line))
                read_key(&r, line);
    }
    text_free(text);
    return out->text ? CODE_DONE : say_status(HEFT_E_NOMEM, path, "no memory for the text");
}

int model_card_read(model_card *out, const char *folder)
{
    *out = (model_card){ .text = NULL };
    char *path = path_in(folder, "README.md");
    int code = !path ? CODE_SYSTEM : path_exists(path) ? read_card(out, path) : CODE_DONE;
    free(path);
    return code;
}

void model_card_free(model_card *card)
{
    free(card->text);
    card->text = NULL;
}
