#include "options/glob_rules.h"

#include <stdlib.h>
#include <string.h>

#include "models/model.h"

/* ---- values ---- */

static int read_sparsify(glob_rule *p, const char *text, const char *cmd)
{
    p->layout = !strcmp(text, "csr")   ? HEFT_SPARSE_CSR
                : !strcmp(text, "coo") ? HEFT_SPARSE_COO
                                       : HEFT_DENSE;
    return p->layout ? CODE_DONE : say_usage(cmd, "--sparsify must be csr or coo, not '%s'", text);
}

static int read_compress(glob_rule *p, const char *text, const char *cmd)
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
        return say_usage(cmd, "--compress must be zstd, zstd:LEVEL (1 to %d) or none, not '%s'",
                         HIGHEST, text);
    p->storage.encoding = HEFT_ZSTD;
    p->storage.level = (int)n;
    return CODE_DONE;
}

static int read_digest(glob_rule *p, const char *text, const char *cmd)
{
    static const char *const names[] = { "crc32c", "sha256", "xxh3" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i]))
            p->storage.digest = names[i];
    return p->storage.digest || !strcmp(text, "none")
               ? CODE_DONE
               : say_usage(cmd, "--digest must be crc32c, sha256, xxh3 or none, not '%s'", text);
}

static int read_grad(glob_rule *p, const char *text, const char *cmd)
{
    const char *arg = p->glob ? text - strlen(p->glob) - 1 : text;
    p->value = !strcmp(text, "true");
    p->is_known = p->value || !strcmp(text, "false");
    return p->is_known || !strcmp(text, "unset")
               ? CODE_DONE
               : say_usage(cmd, "--requires-grad: '%s' is not [GLOB=]true, false or unset", arg);
}

static const struct {
    const char *option;
    int (*read)(glob_rule *p, const char *text, const char *cmd);
} kinds[] = {
    [GLOB_SPARSIFY] = { "sparsify", read_sparsify },
    [GLOB_COMPRESS] = { "compress", read_compress },
    [GLOB_DIGEST] = { "digest", read_digest },
    [GLOB_GRAD] = { "requires-grad", read_grad },
};

/* ---- lists ---- */

/* The last '=' of [GLOB=]VALUE separates the pattern from the value. */
int glob_rules_prepare(glob_rules *p, glob_rule_kind kind, const char *cmd)
{
    int code = CODE_DONE;
    p->items = calloc(p->args.count + 1, sizeof *p->items);
    for (size_t i = 0; p->items && i < p->args.count && !code; i++) {
        const char *arg = p->args.item[i], *equals = strrchr(arg, '=');
        glob_rule *to = &p->items[i];
        to->glob = equals ? strndup(arg, (size_t)(equals - arg)) : NULL;
        code = equals && !to->glob ? CODE_SYSTEM
                                   : kinds[kind].read(to, equals ? equals + 1 : arg, cmd);
    }
    return p->items && code != CODE_SYSTEM
               ? code
               : say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
}

void glob_rules_release(glob_rules *p)
{
    for (size_t i = 0; p->items && i < p->args.count; i++)
        free(p->items[i].glob);
    free(p->items);
    p->items = NULL;
}

const glob_rule *glob_rules_find(bool *no_memory, const glob_rules *p, heft_str name)
{
    for (size_t i = 0; i < p->args.count; i++)
        if (!p->items[i].glob || name_matches(no_memory, name, p->items[i].glob))
            return &p->items[i];
    return NULL;
}

const glob_rule *glob_rules_find_default(const glob_rules *p)
{
    for (size_t i = 0; i < p->args.count; i++)
        if (!p->items[i].glob)
            return &p->items[i];
    return NULL;
}

void glob_rules_check(unmatched *u, const glob_rules *p, glob_rule_kind kind)
{
    for (size_t i = 0; i < p->args.count; i++)
        if (p->items[i].glob)
            unmatched_check(u, kinds[kind].option, p->items[i].glob);
}

/* ---- --compress and --digest together ---- */

int storage_rules_prepare(storage_rules *s, const char *cmd, heft_write_options *o)
{
    int code = glob_rules_prepare(&s->compress, GLOB_COMPRESS, cmd);
    if (!code)
        code = glob_rules_prepare(&s->digest, GLOB_DIGEST, cmd);
    const glob_rule *encoding = code ? NULL : glob_rules_find_default(&s->compress);
    const glob_rule *digest = code ? NULL : glob_rules_find_default(&s->digest);
    if (encoding) {
        o->storage.encoding = encoding->storage.encoding;
        o->storage.level = encoding->storage.level;
    }
    if (digest)
        o->storage.digest = digest->storage.digest;
    return code;
}

bool storage_rules_are_given(const storage_rules *s)
{
    return s->compress.args.count || s->digest.args.count;
}

bool storage_rules_choose(void *ctx, const heft_tensor *t, heft_str role, heft_storage *out)
{
    storage_rules *s = ctx;
    (void)role;
    const glob_rule *encoding = glob_rules_find(&s->no_memory, &s->compress, t->name);
    const glob_rule *digest = glob_rules_find(&s->no_memory, &s->digest, t->name);
    if (encoding) {
        out->encoding = encoding->storage.encoding;
        out->level = encoding->storage.level;
    }
    if (digest)
        out->digest = digest->storage.digest;
    if (s->no_memory)
        out->digest = ""; /* an unknown digest, which makes the conversion fail */
    return encoding || digest || s->no_memory;
}

int say_no_memory_to_match(const char *path)
{
    return say_status(HEFT_E_NOMEM, path, "no memory to match tensor names");
}

void storage_rules_check(unmatched *u, const storage_rules *s)
{
    glob_rules_check(u, &s->compress, GLOB_COMPRESS);
    glob_rules_check(u, &s->digest, GLOB_DIGEST);
}

void storage_rules_release(storage_rules *s)
{
    glob_rules_release(&s->compress);
    glob_rules_release(&s->digest);
}
