/* statement_read.c - reads the signed statement (in-toto Statement 1, predicate of OMS 1.0).
 *
 * Names of resources become paths below the model's folder, so that names that leave the folder
 * are refused here. */
#include "base/error.h"
#include "base/text.h"
#include "sign/signature.h"

/* ---- names ---- */

/* Cut ":NUMBER" from the end of the name. */
static bool cut_number(heft_str *name, uint64_t *out)
{
    size_t at = name->len;
    while (at && name->ptr[at - 1] != ':')
        at--;
    if (!at || !heft_json_u64(out, (heft_str){ name->ptr + at, name->len - at }))
        return false;
    name->len = at - 1;
    return true;
}

/* A resource of the method "shards" has the name PATH:FROM:TO. */
static bool cut_range(heft_resource *x)
{
    return cut_number(&x->name, &x->to) && cut_number(&x->name, &x->from) && x->from < x->to &&
           x->to != HEFT_UNKNOWN_LENGTH;
}

/* ---- resources ---- */

static heft_status read_name(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_text(&r->resource.name, r, first);
}

static const struct {
    const char *name;
    uint32_t bytes;
} algorithms[] = { { "sha256", 32 }, { "blake2b", 64 } };
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

static heft_status read_algorithm(heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "expected a string");
    for (size_t i = 0; i < ALGORITHMS; i++)
        if (heft_str_is(r->j.text, algorithms[i].name)) {
            r->resource.algorithm = heft_lit(algorithms[i].name);
            return HEFT_OK;
        }
    return heft_error_set(r->j.err, HEFT_E_UNSUPPORTED, HEFT_NOWHERE,
                          "the digest %q is not supported", r->j.text);
}

static heft_status read_hex(heft_file_digest *out, heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_STRING || !heft_hex_decode(out, r->j.text))
        return heft_json_fail(&r->j, "expected a digest in hexadecimal digits");
    return HEFT_OK;
}

static heft_status read_digest(heft_member_reader *r, heft_json_kind first)
{
    return read_hex(&r->resource.digest, r, first);
}

/* Compare the length of the digest with the algorithm, which may follow the digest. */
static heft_status check_length(heft_member_reader *r)
{
    size_t i = 0;
    while (i + 1 < ALGORITHMS && !heft_str_is(r->resource.algorithm, algorithms[i].name))
        i++;
    if (r->resource.digest.length != algorithms[i].bytes)
        return heft_json_fail(&r->j, "the digest has another length than %s", algorithms[i].name);
    return HEFT_OK;
}

static heft_status read_resource(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = {
        { "name", read_name, true },
        { "algorithm", read_algorithm, true },
        { "digest", read_digest, true },
    };
    r->resource = (heft_resource){ .to = HEFT_UNKNOWN_LENGTH };
    HEFT_TRY(heft_read_members(r, first, members, sizeof members / sizeof *members));
    HEFT_TRY(check_length(r));
    return heft_vec_add(&r->s->mem, &r->s->resources, &r->resource, sizeof r->resource)
               ? HEFT_OK
               : heft_error_no_memory(r->j.err, "for the resources of a signature");
}

static heft_status read_resources(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_items(r, first, read_resource);
}

/* ---- serialization ---- */

static heft_status read_method(heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "expected a string");
    r->is_sharded = heft_str_is(r->j.text, "shards");
    if (!r->is_sharded && !heft_str_is(r->j.text, "files"))
        return heft_error_set(r->j.err, HEFT_E_UNSUPPORTED, HEFT_NOWHERE,
                              "the serialization method %q is not supported", r->j.text);
    return HEFT_OK;
}

static heft_status read_symlinks(heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_TRUE && first != HEFT_JSON_FALSE)
        return heft_json_fail(&r->j, "expected true or false");
    r->s->allow_symlinks = first == HEFT_JSON_TRUE;
    return HEFT_OK;
}

static heft_status read_ignored_path(heft_member_reader *r, heft_json_kind first)
{
    heft_str path;
    HEFT_TRY(heft_read_text(&path, r, first));
    if (!heft_vec_add(&r->s->mem, &r->s->ignored, &path, sizeof path))
        return heft_error_no_memory(r->j.err, "for a signature");
    return HEFT_OK;
}

static heft_status read_ignored(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_items(r, first, read_ignored_path);
}

static heft_status read_serialization(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = {
        { "method", read_method, true },
        { "allow_symlinks", read_symlinks, false },
        { "ignore_paths", read_ignored, false },
    };
    return heft_read_members(r, first, members, sizeof members / sizeof *members);
}

/* ---- the statement ---- */

static heft_status read_model(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_text(&r->s->model, r, first);
}

static heft_status read_root(heft_member_reader *r, heft_json_kind first)
{
    return read_hex(&r->root, r, first);
}

static heft_status read_root_digest(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = { { "sha256", read_root, true } };
    return heft_read_members(r, first, members, 1);
}

static heft_status read_subject(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = {
        { "name", read_model, true },
        { "digest", read_root_digest, true },
    };
    if (r->subjects++)
        return heft_json_fail(&r->j, "there is more than one subject");
    return heft_read_members(r, first, members, sizeof members / sizeof *members);
}

static heft_status read_subjects(heft_member_reader *r, heft_json_kind first)
{
    HEFT_TRY(heft_read_items(r, first, read_subject));
    if (!r->subjects)
        return heft_json_fail(&r->j, "there is no subject");
    return HEFT_OK;
}

static heft_status read_type(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_constant(r, first, HEFT_STATEMENT_TYPE, "type of the statement",
                              HEFT_E_UNSUPPORTED);
}

static heft_status read_predicate_type(heft_member_reader *r, heft_json_kind first)
{
    return heft_read_constant(r, first, HEFT_PREDICATE_TYPE, "predicate type", HEFT_E_UNSUPPORTED);
}

static heft_status read_predicate(heft_member_reader *r, heft_json_kind first)
{
    static const heft_member members[] = {
        { "serialization", read_serialization, true },
        { "resources", read_resources, true },
    };
    return heft_read_members(r, first, members, sizeof members / sizeof *members);
}

/* Check members that need the whole statement: the method may follow the resources. */
static heft_status check_resources(heft_member_reader *r)
{
    heft_resource *x = r->s->resources.ptr;
    uint8_t root[HEFT_HASH_BYTES];
    for (uint32_t i = 0; i < r->s->resources.len; i++) {
        heft_str name = x[i].name;
        if ((r->is_sharded && !cut_range(&x[i])) || !heft_resource_name_is_safe(x[i].name))
            return heft_error_plain(r->j.err, HEFT_E_FORMAT,
                                    "the resource %q is not a path below the model's folder", name);
    }
    HEFT_TRY(heft_signature_sort(r->s, r->j.err));
    HEFT_TRY(heft_signature_root(root, r->s, NULL, r->j.err));
    if (r->root.length != sizeof root || memcmp(root, r->root.bytes, sizeof root) != 0)
        return heft_error_plain(r->j.err, HEFT_E_FORMAT,
                                "the digest of the subject is not that of the listed resources");
    return HEFT_OK;
}

heft_status heft_statement_read(heft_signature *s, heft_error *err)
{
    static const heft_member members[] = {
        { "_type", read_type, true },
        { "subject", read_subjects, true },
        { "predicateType", read_predicate_type, true },
        { "predicate", read_predicate, true },
    };
    heft_member_reader r = { .s = s };
    r.j = heft_json_open(s->statement, 0, HEFT_JSON_DEPTH, &s->arena, err);
    HEFT_TRY(
        heft_read_members(&r, heft_json_next(&r.j), members, sizeof members / sizeof *members));
    if (heft_json_next(&r.j) != HEFT_JSON_END)
        return heft_json_fail(&r.j, "text follows the statement");
    return check_resources(&r);
}
