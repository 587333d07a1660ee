
#include <heft/split.h>

#include <stdlib.h>

#include "models/profile.h"
#include "models/quantised_model.h"
#include "options/command.h"
#include "text/words.h"

/* ---- one candidate ---- */

void candidates_begin(candidates *c, const char *what)
{
    out_text(c->o, what);
    out_char(c->o, c->shell == SHELL_BASH ? '\n' : '\0');
}

static bool has_char(heft_str text, char c)
{
    return text.len && memchr(text.ptr, c, text.len);
}

/* Return true if the shell can complete the word: no word of a shell contains a zero byte, fish
 * ends a word at a tab, and an argument that begins with - would be an option. */
static bool can_be_completed(const candidates *c, heft_str word)
{
    bool is_empty = !word.len && !c->before.len;
    return !is_empty && !has_char(word, 0) && (c->shell != SHELL_FISH || !has_char(word, '\t'));
}

static bool begins_with(heft_str word, heft_str start)
{
    return word.len >= start.len && (!start.len || !memcmp(word.ptr, start.ptr, start.len));
}

/* Write the candidate quoted for bash, without the bytes that bash keeps. */
static void out_for_bash(candidates *c, heft_str word)
{
    outbuf whole;
    out_open(&whole, -1);
    out_bytes(&whole, c->before.ptr, c->before.len);
    out_bytes(&whole, word.ptr, word.len);
    if (whole.used >= c->kept)
        out_shell_word(c->o, (heft_str){ whole.buf + c->kept, whole.used - c->kept }, c->quote);
    out_char(c->o, '\n');
    out_free(&whole);
}

void candidates_add(candidates *c, heft_str word, const char *description)
{
    enum { MOST = 10000 }; /* nobody reads more */
    if (!begins_with(word, c->typed) || !can_be_completed(c, word) || c->count == MOST)
        return;
    c->count++;
    if (c->shell == SHELL_BASH) {
        out_for_bash(c, word);
        return;
    }
    out_bytes(c->o, c->before.ptr, c->before.len);
    out_bytes(c->o, word.ptr, word.len);
    out_char(c->o, c->shell == SHELL_ZSH ? '\0' : '\t');
    out_text(c->o, description ? description : "");
    out_char(c->o, '\0');
}

/* ---- words that are known without a file ---- */

/* Write each of the words that spaces separate. */
static void add_words(candidates *c, const char *words)
{
    for (const char *p = words; p && *p;) {
        size_t len = strcspn(p, " ");
        candidates_add(c, (heft_str){ p, len }, NULL);
        p += len + (p[len] == ' ');
    }
}

static void add_formats(candidates *c, const char *unused)
{
    const heft_format *f;
    (void)unused;
    for (uint32_t i = 0; (f = heft_format_at(i)) != NULL; i++)
        if (heft_format_caps(f) & HEFT_CAN_WRITE || heft_format_can_split(f))
            candidates_add(c, str_of(heft_format_name(f)), heft_format_title(f));
}

/* Write the generations of the target or, before --to, of all formats. */
static void add_versions(candidates *c, const char *unused)
{
    const heft_format *f;
    (void)unused;
    for (uint32_t i = 0; (f = heft_format_at(i)) != NULL; i++)
        if (!c->target || !strcmp(c->target, heft_format_name(f)))
            add_words(c, heft_format_versions(f));
}

static void add_dtypes(candidates *c, const char *unused)
{
    const heft_dtype_info *d;
    (void)unused;
    for (heft_dtype t = 1; (d = heft_dtype_get(t)) != NULL; t++)
        candidates_add(c, str_of(d->name), NULL);
}

static void add_quantisation(void *ctx, const char *name, const char *summary)
{
    candidates_add(ctx, str_of(name), summary);
}

static void add_quantisations(candidates *c, const char *none)
{
    quantise_each_method(add_quantisation, c);
    add_words(c, none);
}

static void add_profile(void *ctx, heft_str name)
{
    candidates_add(ctx, name, NULL);
}

/* ---- names in a file ---- */

/* Open the first argument in the sandbox; return NULL on failure. Checksums are left to the command
 * that will run. */
static heft_file *open_model(candidates *c)
{
    heft_file *f = NULL;
    session *s = &c->session;
    char *item[] = { (char *)c->file };
    static const command reader = { .name = "ls" };
    if (!c->file || !strcmp(c->file, "-"))
        return NULL;
    session_begin(s, &reader);
    s->key = c->key;
    s->no_verify = true;
    s->args = (opt_args){ item, 1 };
    if (session_complete(s))
        return NULL;
    sandbox_enter(s);
    return model_try_open(s, &f, c->file, NULL) ? NULL : f;
}

/* Write a name followed by `end`; before characters of `escaped` put a backslash. */
static void add_name(candidates *c, heft_str name, const char *escaped, const char *end)
{
    outbuf word;
    out_open(&word, -1);
    for (size_t i = 0; i < name.len; i++) {
        bool is_special = name.ptr[i] && strchr(escaped, name.ptr[i]);
        out_text(&word, is_special ? "\\" : "");
        out_char(&word, name.ptr[i]);
    }
    out_text(&word, end);
    bool is_option = name.len && *name.ptr == '-' && !c->options_ended && !c->before.len;
    if (name.len && !word.os && !is_option)
        candidates_add(c, (heft_str){ word.buf, word.used }, NULL);
    out_free(&word);
}

static void add_tensors(candidates *c, const char *escaped, const char *end, const char *forbidden)
{
    heft_file *f = open_model(c);
    for (uint32_t i = 0; f && i < heft_tensor_count(f); i++) {
        heft_str name = heft_tensor_at(f, i).name;
        if (!*forbidden || !has_char(name, *forbidden))
            add_name(c, name, escaped, end);
    }
    heft_file_close(f);
}

static void add_names(candidates *c, const char *end)
{
    add_tensors(c, "", end, end);
}

static void add_globs(candidates *c, const char *end)
{
    add_tensors(c, "*?[{}\\", end, "");
}

static void add_part_roles(candidates *c, const heft_file *f, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_name(c, heft_part_at(f, first + i).role, "", "");
}

/* Write the roles of the parts of the file and of the first tensor. */
static void add_roles(candidates *c, const char *unused)
{
    uint32_t first = 0;
    heft_file *f = open_model(c);
    (void)unused;
    if (f) {
        uint32_t count = heft_file_parts(f, &first);
        add_part_roles(c, f, first, count);
    }
    if (f && heft_tensor_count(f)) {
        heft_tensor t = heft_tensor_at(f, 0);
        add_part_roles(c, f, t.first_part, t.part_count);
    }
    heft_file_close(f);
}

/* Write the keys of the metadata, each followed by `end`. */
static void add_keys(candidates *c, const char *end)
{
    heft_file *f = open_model(c);
    for (uint32_t i = 0; f && i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        heft_str key = heft_meta_at(f, i).key;
        if (!*end || !has_char(key, *end))
            add_name(c, key, "", end);
    }
    heft_file_close(f);
}

/* ---- options and arguments ---- */

/* Values by what they name: by a function, with a text for the function. A pattern before the value
 * ends with the last =. */
static const struct {
    void (*add)(candidates *c, const char *text);
    const char *text;
    bool has_glob;
} values[] = {
    [NAMES_NOTHING] = { NULL, "", false },
    [NAMES_DTYPE] = { add_dtypes, "", false },
    [NAMES_DTYPE_OF] = { add_dtypes, "", true },
    [NAMES_DECODED] = { add_words, "bf16 f16 f32", false },
    [NAMES_QUANTISATION] = { add_quantisations, "none", true },
    [NAMES_ENCODING] = { add_words, "zstd none", true },
    [NAMES_DIGEST] = { add_words, "crc32c sha256 xxh3 none", true },
    [NAMES_LAYOUT] = { add_words, "csr coo", true },
    [NAMES_STATE] = { add_words, "true false unset", true },
    [NAMES_FORMAT] = { add_formats, "", false },
    [NAMES_VERSION] = { add_versions, "", false },
    [NAMES_GLOB] = { add_globs, "", false },
    [NAMES_TENSOR] = { add_names, "=", false },
    [NAMES_ROLE] = { add_roles, "", false },
    [NAMES_KEY] = { add_keys, "", false },
    [NAMES_KEY_TO_SET] = { add_keys, "=", false },
};

static bool names_file(const candidates *c, const opt *option)
{
    bool is_path = has_char(c->typed, '/');
    return option->kind == OPT_FILE || option->kind == OPT_MODEL || option->kind == OPT_MODELS ||
           option->kind == OPT_OUTPUT || option->kind == OPT_RECORDS ||
           (option->kind == OPT_PROFILE && is_path);
}

/* Move the pattern at the beginning of the typed text, up to the last =, before the candidates. */
static void pass_glob(candidates *c)
{
    while (has_char(c->typed, '=')) {
        const char *after = (const char *)memchr(c->typed.ptr, '=', c->typed.len) + 1;
        size_t passed = (size_t)(after - c->typed.ptr);
        c->before = (heft_str){ after - passed - c->before.len, c->before.len + passed };
        c->typed = (heft_str){ after, c->typed.len - passed };
    }
}

void candidates_of_option(candidates *c, const opt *option)
{
    if (names_file(c, option)) {
        candidates_begin(c, "files");
        return;
    }
    opt_names names = option->names;
    if (names == NAMES_VIEW)
        names = has_char(c->typed, '=') ? NAMES_DTYPE_OF : NAMES_TENSOR;
    candidates_begin(c, *values[names].text == '=' ? "stems" : "words");
    if (values[names].has_glob)
        pass_glob(c);
    if (option->kind == OPT_PROFILE)
        profile_list(add_profile, c);
    else if (values[names].add)
        values[names].add(c, values[names].text);
    else
        add_words(c, option->words);
}

/* Values of arguments; an argument that is not listed is a file. */
static const struct {
    const char *argument, *what;
    void (*add)(candidates *c, const char *text);
} arguments[] = {
    { "GLOB", "words", add_globs },
    { "OUTDIR", "folders", NULL },
    { "TENSOR", "words", add_names },
};

/* Find word i of the usage, or the last word, without brackets and dots. */
static heft_str argument_name(const char *args, size_t i)
{
    heft_str name = { args, 0 };
    for (const char *p = args + strspn(args, " []."); *p; p += strspn(p, " [].")) {
        name = (heft_str){ p, strcspn(p, " [].") };
        p += name.len;
        if (!i--)
            break;
    }
    return name;
}

void candidates_of_argument(candidates *c, const char *args, size_t i)
{
    heft_str name = argument_name(args, i);
    for (size_t k = 0; k < sizeof arguments / sizeof *arguments; k++) {
        if (!str_same(name, str_of(arguments[k].argument)))
            continue;
        candidates_begin(c, arguments[k].what);
        if (arguments[k].add)
            arguments[k].add(c, "");
        return;
    }
    candidates_begin(c, name.len ? "files" : "words");
}
