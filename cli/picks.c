#include "picks.h"

#include <stdlib.h>
#include <string.h>

#include "model.h"

/* ---- values ---- */

static int read_cast(pick *p, const char *text, const char *cmd)
{
    p->dtype = heft_dtype_find(heft_str_from(text));
    return p->dtype == HEFT_UNTYPED ? say_usage(cmd, "'%s' is no element type", text) : CODE_DONE;
}

static int read_sparsify(pick *p, const char *text, const char *cmd)
{
    p->layout = !strcmp(text, "csr")   ? HEFT_SPARSE_CSR
                : !strcmp(text, "coo") ? HEFT_SPARSE_COO
                                       : HEFT_DENSE;
    return p->layout ? CODE_DONE : say_usage(cmd, "--sparsify is csr or coo, not '%s'", text);
}

static int read_compress(pick *p, const char *text, const char *cmd)
{
    enum { HIGHEST = 22 };
    const char *level = strchr(text, ':');
    size_t name = level ? (size_t)(level - text) : strlen(text);
    char *end = NULL;
    long n = level ? strtol(level + 1, &end, 10) : 0;
    if (!strcmp(text, "none") || !strcmp(text, "raw"))
        return CODE_DONE;
    if (name != 4 || strncmp(text, "zstd", 4) != 0 ||
        (level && (!level[1] || *end || n < 1 || n > HIGHEST)))
        return say_usage(cmd, "--compress is zstd or zstd:LEVEL, 1 to %d, or none, not '%s'",
                         HIGHEST, text);
    p->how.encoding = HEFT_ZSTD;
    p->how.level = (int)n;
    return CODE_DONE;
}

static int read_digest(pick *p, const char *text, const char *cmd)
{
    static const char *const names[] = { "crc32c", "sha256", "xxh3" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i]))
            p->how.digest = names[i];
    return p->how.digest || !strcmp(text, "none")
               ? CODE_DONE
               : say_usage(cmd, "--digest is crc32c, sha256, xxh3 or none, not '%s'", text);
}

static int read_grad(pick *p, const char *text, const char *cmd)
{
    const char *given = p->glob ? text - strlen(p->glob) - 1 : text;
    p->value = !strcmp(text, "true");
    p->is_known = p->value || !strcmp(text, "false");
    return p->is_known || !strcmp(text, "unset")
               ? CODE_DONE
               : say_usage(cmd, "--requires-grad: '%s' is not [GLOB=]true, false or unset", given);
}

static const struct {
    const char *option;
    int (*read)(pick *p, const char *text, const char *cmd);
} kinds[] = {
    [PICK_CAST] = { "cast", read_cast },
    [PICK_SPARSIFY] = { "sparsify", read_sparsify },
    [PICK_COMPRESS] = { "compress", read_compress },
    [PICK_DIGEST] = { "digest", read_digest },
    [PICK_GRAD] = { "requires-grad", read_grad },
};

/* ---- lists ---- */

/* Of [GLOB=]VALUE the last = counts. */
int picks_prepare(picks *p, pick_kind kind, const char *cmd)
{
    int code = CODE_DONE;
    p->items = calloc(p->given.count + 1, sizeof *p->items);
    for (size_t i = 0; p->items && i < p->given.count && !code; i++) {
        const char *given = p->given.item[i], *equals = strrchr(given, '=');
        pick *to = &p->items[i];
        to->glob = equals ? strndup(given, (size_t)(equals - given)) : NULL;
        code = equals && !to->glob ? CODE_SYSTEM
                                   : kinds[kind].read(to, equals ? equals + 1 : given, cmd);
    }
    return p->items && code != CODE_SYSTEM
               ? code
               : say_code(CODE_SYSTEM, NULL, "no memory for the options");
}

void picks_release(picks *p)
{
    for (size_t i = 0; p->items && i < p->given.count; i++)
        free(p->items[i].glob);
    free(p->items);
    p->items = NULL;
}

const pick *picks_find(bool *no_memory, const picks *p, heft_str name)
{
    for (size_t i = 0; i < p->given.count; i++)
        if (!p->items[i].glob || name_matches(no_memory, name, p->items[i].glob))
            return &p->items[i];
    return NULL;
}

const pick *picks_of_all(const picks *p)
{
    for (size_t i = 0; i < p->given.count; i++)
        if (!p->items[i].glob)
            return &p->items[i];
    return NULL;
}

void pattern_warn(const char *path, const char *option, const char *glob)
{
    say(path, "warning: no tensor matches --%s '%s'", option, glob);
}

void pattern_check(bool *no_memory, const heft_file *f, const char *path, const char *option,
                   const char *glob)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (name_matches(no_memory, heft_tensor_at(f, i).name, glob) || *no_memory)
            return;
    pattern_warn(path, option, glob);
}

void picks_check(bool *no_memory, const picks *p, pick_kind kind, const heft_file *f,
                 const char *path)
{
    for (size_t i = 0; i < p->given.count; i++)
        if (p->items[i].glob)
            pattern_check(no_memory, f, path, kinds[kind].option, p->items[i].glob);
}

/* ---- --compress and --digest together ---- */

int storing_prepare(storing *s, const char *cmd, heft_write_options *o)
{
    int code = picks_prepare(&s->compress, PICK_COMPRESS, cmd);
    if (!code)
        code = picks_prepare(&s->digest, PICK_DIGEST, cmd);
    const pick *encoding = code ? NULL : picks_of_all(&s->compress);
    const pick *digest = code ? NULL : picks_of_all(&s->digest);
    if (encoding) {
        o->encoding = encoding->how.encoding;
        o->encoding_level = encoding->how.level;
    }
    if (digest)
        o->digest = digest->how.digest;
    return code;
}

bool storing_is_given(const storing *s)
{
    return s->compress.given.count || s->digest.given.count;
}

bool storing_choose(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how)
{
    storing *s = ctx;
    (void)role;
    const pick *encoding = picks_find(&s->no_memory, &s->compress, t->name);
    const pick *digest = picks_find(&s->no_memory, &s->digest, t->name);
    if (encoding) {
        how->encoding = encoding->how.encoding;
        how->level = encoding->how.level;
    }
    if (digest)
        how->digest = digest->how.digest;
    if (s->no_memory)
        how->digest = ""; /* none that there is */
    return encoding || digest || s->no_memory;
}

int storing_say_no_memory(const char *path)
{
    return say_code(CODE_SYSTEM, path, "no memory to match the names of tensors");
}

void storing_check(storing *s, const heft_file *f, const char *path)
{
    picks_check(&s->no_memory, &s->compress, PICK_COMPRESS, f, path);
    picks_check(&s->no_memory, &s->digest, PICK_DIGEST, f, path);
}

void storing_release(storing *s)
{
    picks_release(&s->compress);
    picks_release(&s->digest);
}
