/* gptrs_config.c - checks the config_json of a checkpoint: {"kind": "gpt", "config": ...,
 * "runtime": ...}, or in files of gpt-rs' first weeks a bare GPT configuration. */
#include "format/gptrs/gptrs.h"
#include "grammar/json.h"

enum { KIND = 1, RUNTIME = 2, FIRST_OF_GPT = 4 };

typedef struct member {
    const char *key;
    uint32_t bit;    /* in the set of members found */
    bool is_integer; /* GPT members only; false: any number */
} member;

static const member members[] = {
    { "kind", KIND, false },       { "runtime", RUNTIME, false }, { "vocab_size", 4, true },
    { "context_length", 8, true }, { "embed_dim", 16, true },     { "num_layers", 32, true },
    { "num_heads", 64, true },     { "mlp_ratio", 128, true },    { "dropout", 256, false },
};
enum { GPT = 512 - FIRST_OF_GPT };

/* Set in *found the bits of the members that are present with a value of the required type. */
static heft_status read_members(heft_json *j, heft_gptrs_config *out, uint32_t *found)
{
    enum { MEMBERS = sizeof members / sizeof *members };
    heft_json_kind k;
    uint64_t number;
    while ((k = heft_json_next(j)) == HEFT_JSON_KEY) {
        size_t i = 0;
        while (i < MEMBERS && !heft_str_is(j->text, members[i].key))
            i++;
        if (i < MEMBERS && (k = heft_json_next(j)) != HEFT_JSON_FAILED) {
            const member *m = &members[i];
            if (m->bit == KIND && k != HEFT_JSON_STRING)
                return heft_json_fail(j, "config_json: \"kind\" is not a string");
            if (m->bit == RUNTIME)
                out->has_invalid_runtime = k != HEFT_JSON_NULL && k != HEFT_JSON_OBJECT;
            bool is_number = k == HEFT_JSON_NUMBER &&
                             (!m->is_integer || heft_json_u64(&number, j->text));
            if (m->bit < FIRST_OF_GPT || is_number)
                *found |= m->bit;
        }
        HEFT_TRY(j->st);
        HEFT_TRY(heft_json_skip(j, k));
    }
    return j->st;
}

heft_status heft_gptrs_config_read(heft_gptrs_config *out, heft_str text, uint64_t at,
                                   uint32_t depth, heft_arena *arena, heft_error *err)
{
    *out = (heft_gptrs_config){ false, false };
    heft_json j = heft_json_open(text, at, depth, arena, err);
    uint32_t found = 0;
    heft_json_kind k = heft_json_next(&j);
    if (k == HEFT_JSON_FAILED)
        return j.st;
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&j, "config_json is not an object");
    if (read_members(&j, out, &found) || heft_json_next(&j) == HEFT_JSON_FAILED)
        return j.st;
    out->is_untagged = !(found & KIND);
    if (out->is_untagged && (found & GPT) != GPT)
        return heft_error_set(err, HEFT_E_FORMAT, at,
                              "config_json has no \"kind\" and is not a bare GPT configuration");
    return HEFT_OK;
}
