#include "sign/members.h"

#include "base/error.h"
#include "base/text.h"

static size_t find_member(const heft_member *members, size_t count, heft_str name)
{
    size_t i = 0;
    while (i < count && !heft_str_is(name, members[i].name))
        i++;
    return i;
}

heft_status heft_read_members(heft_member_reader *r, heft_json_kind first,
                              const heft_member *members, size_t count)
{
    heft_json *j = &r->j;
    uint32_t seen = 0; /* a bit per member of the table */
    heft_json_kind k;
    if (first != HEFT_JSON_OBJECT)
        return heft_json_fail(j, "expected an object");
    while ((k = heft_json_next(j)) == HEFT_JSON_KEY) {
        size_t i = find_member(members, count, j->text);
        if (i < count && seen >> i & 1)
            return heft_json_fail(j, "the member '%s' occurs twice", members[i].name);
        heft_status st = i < count ? members[i].read(r, heft_json_next(j)) : heft_json_skip(j, k);
        if (st || j->st)
            return st ? st : j->st;
        seen |= i < count ? 1u << i : 0;
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].is_required && !(seen >> i & 1))
            return heft_json_fail(j, "the member '%s' is missing", members[i].name);
    return j->st;
}

heft_status heft_read_items(heft_member_reader *r, heft_json_kind first, heft_member_fn fn)
{
    heft_json_kind k;
    if (first != HEFT_JSON_ARRAY)
        return heft_json_fail(&r->j, "expected an array");
    while ((k = heft_json_next(&r->j)) != HEFT_JSON_ARRAY_END && !r->j.st) {
        HEFT_TRY(fn(r, k));
    }
    return r->j.st;
}

heft_status heft_read_text(heft_str *out, heft_member_reader *r, heft_json_kind first)
{
    if (first != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "expected a string");
    *out = heft_arena_copy(&r->s->arena, r->j.text);
    return out->ptr ? HEFT_OK : heft_error_no_memory(r->j.err, "for a signature");
}

heft_status heft_read_constant(heft_member_reader *r, heft_json_kind first, const char *text,
                               const char *what, heft_status status)
{
    if (first == HEFT_JSON_STRING && heft_str_is(r->j.text, text))
        return HEFT_OK;
    heft_status st = heft_json_fail(&r->j, "the %s is not %s", what, text);
    if (first == HEFT_JSON_STRING && r->j.err) {
        r->j.err->status = status;
        return status;
    }
    return st;
}

heft_status heft_read_base64(heft_str *out, heft_member_reader *r, heft_json_kind first)
{
    bool is_valid;
    if (first != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "expected a string");
    *out = heft_base64_decode(&is_valid, &r->s->arena, r->j.text);
    if (!is_valid)
        return heft_json_fail(&r->j, "the text is not base64");
    return out->ptr ? HEFT_OK : heft_error_no_memory(r->j.err, "for a signature");
}
