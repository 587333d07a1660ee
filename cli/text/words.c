#include "text/words.h"

#include "text/outbuf.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Return the character after p that the pattern reads at once: an escaped character or a bracket
 * expression such as [!a-z] is one unit. */
static const char *after_unit(const char *p)
{
    if (*p == '\\')
        return p + (p[1] ? 2 : 1);
    if (*p != '[')
        return p + 1;
    const char *end = p + 1;
    end += *end == '!' || *end == '^';
    end += *end == ']';
    end += strcspn(end, "]");
    return *end ? end + 1 : p + 1;
}

/* Return the end of the alternative that begins at p: a comma or closing brace of the same depth,
 * or NULL. */
static const char *alternative_end(const char *p)
{
    size_t depth = 0;
    for (; *p; p = after_unit(p)) {
        if (!depth && (*p == ',' || *p == '}'))
            return p;
        depth += *p == '{';
        depth -= *p == '}';
    }
    return NULL;
}

/* Return the first opening brace of alternatives, or NULL; *close becomes the closing brace. */
static const char *find_alternatives(const char *glob, const char **close)
{
    for (const char *p = glob; *p; p = after_unit(p)) {
        const char *end = *p == '{' ? alternative_end(p + 1) : NULL;
        if (!end || *end != ',')
            continue;
        while (end && *end == ',')
            end = alternative_end(end + 1);
        *close = end;
        if (end)
            return p;
    }
    return NULL;
}

/* ---- patterns that remain to be tried ---- */

typedef struct patterns {
    char **item;
    size_t count, capacity;
} patterns;

static bool push(patterns *s, char *take)
{
    if (take && s->count == s->capacity) {
        char **item = realloc(s->item, (2 * s->capacity + 8) * sizeof *item);
        if (item) {
            s->item = item;
            s->capacity = 2 * s->capacity + 8;
        }
    }
    if (take && s->count < s->capacity) {
        s->item[s->count++] = take;
        return true;
    }
    free(take);
    return false;
}

/* Push one pattern for each alternative between open and close. */
static bool push_alternatives(patterns *s, const char *glob, const char *open, const char *close)
{
    size_t size = strlen(glob) + 1;
    bool ok = true;
    for (const char *from = open; ok && from != close;) {
        const char *to = alternative_end(from + 1);
        char *text = malloc(size);
        if (text)
            snprintf(text, size, "%.*s%.*s%s", (int)(open - glob), glob, (int)(to - from - 1),
                     from + 1, close + 1);
        ok = push(s, text);
        from = to;
    }
    return ok;
}

static bool matches_plain(bool *no_memory, const char *name, const char *glob)
{
    int found = fnmatch(glob, name, 0);
    *no_memory = *no_memory || (found && found != FNM_NOMATCH);
    return !found;
}

bool glob_matches(bool *no_memory, const char *name, const char *glob)
{
    const char *open, *close = NULL;
    patterns s = { NULL, 0, 0 };
    bool found = false;
    if (!strchr(glob, '{') || !find_alternatives(glob, &close))
        return matches_plain(no_memory, name, glob);
    bool ok = push(&s, strdup(glob));
    while (ok && s.count && !found) {
        char *top = s.item[--s.count];
        open = find_alternatives(top, &close);
        if (open)
            ok = push_alternatives(&s, top, open, close);
        else
            found = matches_plain(no_memory, name, top);
        free(top);
    }
    while (s.count)
        free(s.item[--s.count]);
    free(s.item);
    *no_memory = *no_memory || !ok;
    return found;
}

/* ---- reading ---- */

/* Decode at most `most` octal or hexadecimal digits at p. */
static const char *read_digits(char *out, const char *p, unsigned base, int most)
{
    unsigned value = 0;
    for (; most && hex_digit(*p) < base; most--, p++)
        value = value * base + hex_digit(*p);
    *out = (char)value;
    return p;
}

/* Decode the escape sequence of $'...' after a backslash; return the end of the sequence. */
static const char *read_escape(char *out, const char *p)
{
    static const char letters[] = "abefnrtvE", values[] = "\a\b\033\f\n\r\t\v\033";
    const char *known = strchr(letters, *p);
    if (*p == 'x')
        return read_digits(out, p + 1, 16, 2);
    if (*p >= '0' && *p <= '7')
        return read_digits(out, p, 8, 3);
    *out = known ? values[known - letters] : *p;
    return p + 1;
}

/* Return true if the backslash at p is removed: always outside of quotation, and before some
 * characters in "...". */
static bool is_escape(const char *p, char quote)
{
    if (*p != '\\' || !p[1] || quote == '\'')
        return false;
    return quote != '"' || strchr("\"$`\\", p[1]);
}

/* Return the bytes at p that open or close a quotation, or 0; *quote becomes the open quotation. */
static size_t pass_quote(char *quote, const char *p)
{
    char before = *quote;
    if (before && *p == (before == '$' ? '\'' : before))
        *quote = 0;
    else if (!before && (*p == '\'' || *p == '"'))
        *quote = *p;
    else if (!before && *p == '$' && p[1] == '\'')
        *quote = '$';
    return *quote == before ? 0 : *quote == '$' ? 2 : 1;
}

char shell_unquote(char *word)
{
    char quote = 0, *to = word;
    for (const char *p = word; *p;) {
        size_t mark = pass_quote(&quote, p);
        p += mark;
        if (mark)
            continue;
        if (quote == '$' && *p == '\\' && p[1]) {
            p = read_escape(to++, p + 1);
            continue;
        }
        p += quote != '$' && is_escape(p, quote);
        *to++ = *p++;
    }
    *to = 0;
    return quote;
}

/* ---- writing ---- */

static bool has_control(heft_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7F)
            return true;
    return false;
}

/* Write the text between the marks of $'...'; this quotation can show every byte. */
static void out_escapes(outbuf *o, heft_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ' || c == 0x7F)
            out_format(o, "\\%03o", c);
        else
            out_format(o, c == '\'' || c == '\\' ? "\\%c" : "%c", c);
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80 || strchr("_./:@%+,=-", c);
}

/* Return true if an open quotation cannot show the character: the closing mark, a control
 * character, and the exclamation mark in "...". */
static bool is_apart(char c, char quote)
{
    return c == quote || has_control((heft_str){ &c, 1 }) || (quote == '"' && c == '!');
}

/* Write a character within an open quotation, or apart: the quotation ends before the character and
 * begins again. */
static void out_quoted_char(outbuf *o, char c, char quote)
{
    if (is_apart(c, quote)) {
        out_char(o, quote);
        out_shell_word(o, (heft_str){ &c, 1 }, 0);
        out_char(o, quote);
        return;
    }
    out_text(o, quote == '"' && strchr("$`\\", c) ? "\\" : "");
    out_char(o, c);
}

/* Write a text within an open quotation. Readline closes the quotation, unless the text ends with
 * the mark: then the text has to close the quotation. */
static void out_in_quotation(outbuf *o, heft_str text, char quote)
{
    char last = text.len ? text.ptr[text.len - 1] : 0;
    if (quote == '$')
        out_escapes(o, text);
    for (size_t i = 0; i < text.len && quote != '$'; i++)
        out_quoted_char(o, text.ptr[i], quote);
    if (quote == '$' && last == '\'')
        out_char(o, '\'');
    else if (text.len && quote != '$' && is_apart(last, quote))
        out_char(o, quote);
}

void out_shell_word(outbuf *o, heft_str text, char quote)
{
    if (quote) {
        out_in_quotation(o, text, quote);
        return;
    }
    if (has_control(text)) {
        out_text(o, "$'");
        out_escapes(o, text);
        out_char(o, '\'');
        return;
    }
    for (size_t i = 0; i < text.len; i++) {
        out_text(o, is_plain(text.ptr[i]) ? "" : "\\");
        out_char(o, text.ptr[i]);
    }
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_same_letter(char a, char b)
{
    return lower(a) == lower(b);
}

/* Return the length of the longer word without the common prefix and suffix. */
static size_t differing_letters(heft_str a, heft_str b)
{
    size_t prefix = 0, suffix = 0, less = a.len < b.len ? a.len : b.len;
    while (prefix < less && is_same_letter(a.ptr[prefix], b.ptr[prefix]))
        prefix++;
    while (suffix < less - prefix &&
           is_same_letter(a.ptr[a.len - 1 - suffix], b.ptr[b.len - 1 - suffix]))
        suffix++;
    return (a.len > b.len ? a.len : b.len) - prefix - suffix;
}

void suggestion_try(suggestion *s, heft_str known)
{
    size_t distance = differing_letters(s->word, known);
    if (s->closest.ptr && distance >= s->distance)
        return;
    s->closest = known;
    s->distance = distance;
}

const char *suggestion_text(char out[SUGGESTION_BYTES], const suggestion *s)
{
    enum { CLOSE = 2, LONGEST = 100 };
    outbuf name;
    *out = '\0';
    /* At least half of the letters must be those of the known word. */
    if (!s->closest.ptr || s->distance > CLOSE || 2 * s->distance > s->closest.len ||
        s->closest.len > LONGEST)
        return out;
    out_open(&name, -1);
    out_escaped(&name, s->closest);
    snprintf(out, SUGGESTION_BYTES, "; did you mean '%s%.120s'?", s->prefix ? s->prefix : "",
             out_cstr(&name));
    out_free(&name);
    return out;
}

const char *suggest_dtype(char out[SUGGESTION_BYTES], const char *word)
{
    suggestion s = { .word = str_of(word) };
    const heft_dtype_info *d;
    for (heft_dtype t = 1; (d = heft_dtype_get(t)) != NULL; t++)
        suggestion_try(&s, str_of(d->name));
    return suggestion_text(out, &s);
}

const char *suggest_format(char out[SUGGESTION_BYTES], const char *word)
{
    suggestion s = { .word = str_of(word) };
    const heft_format *f;
    for (uint32_t i = 0; (f = heft_format_at(i)) != NULL; i++)
        suggestion_try(&s, str_of(heft_format_name(f)));
    return suggestion_text(out, &s);
}

/* ---- formats that Heft does not write ---- */

static const struct {
    const char *names, *writer; /* names are separated by spaces */
} foreign_formats[] = {
    { "tflite litert", "TensorFlow's converter and ai-edge-torch write it from the whole model" },
    { "coreml mlmodel mlpackage", "coremltools writes it from the whole model" },
    { "tensorrt trt engine plan", "trtexec builds an engine from an ONNX file" },
    { "openvino ir", "OpenVINO's ovc writes it from an ONNX file or a PyTorch model" },
    { "tensorflow tf saved_model pb", "transformers and TensorFlow write it from the whole model" },
    { "hdf5 h5 keras", "write npz (--to npz) and load its arrays in Keras" },
    { "pt2 torchscript executorch pte",
      "torch.export and torch.jit write it from the whole model" },
    { "nemo", "NeMo packs it from a .ckpt file: write that file with --to torch" },
    { "llamafile", "llamafile's zipalign adds a GGUF file: write that file with --to gguf" },
    { "ggml ggjt", "programs read its successor now: --to gguf" },
    { "bin ckpt pytorch", "this is PyTorch's format: --to torch" },
    { "hf huggingface transformers", "name the format of the weights: --to safetensors" },
    { "gptq awq exl2 exl3 fp8 nvfp4 mxfp4", "this is a way to quantise: see --quantize" },
    { "mlx", "MLX reads safetensors: --to safetensors" },
    { "orbax tensorstore zarr", "Orbax writes it from JAX; Flax reads msgpack (--to flax)" },
    { "pdparams paddle", "load safetensors in PaddlePaddle: --to safetensors" },
};

static bool has_word(const char *names, heft_str word)
{
    for (const char *p = names, *end; *p; p = *end ? end + 1 : end) {
        end = strchr(p, ' ') ? strchr(p, ' ') : p + strlen(p);
        if ((size_t)(end - p) == word.len && !strncasecmp(p, word.ptr, word.len))
            return true;
    }
    return false;
}

const char *foreign_format_writer(const char *word)
{
    const char *dot = strrchr(word, '.');
    heft_str name = str_of(dot ? dot + 1 : word);
    for (size_t i = 0; i < sizeof foreign_formats / sizeof *foreign_formats; i++)
        if (name.len && has_word(foreign_formats[i].names, name))
            return foreign_formats[i].writer;
    return NULL;
}
