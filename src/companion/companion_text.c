/* companion_text.c - helpers for readers of companions: JSON and text files next to the weights. */
#include "companion/companion_text.h"

#include "base/error.h"
#include "base/sized.h"

const heft_allocator *heft_companion_allocator(const heft_host **host, heft_error *err)
{
    if (!*host)
        *host = heft_host_default();
    return heft_host_check(*host, err) ? NULL : (*host)->allocator;
}

heft_status heft_companion_no_memory(heft_error *err)
{
    return heft_error_no_memory(err, "for a companion file");
}

heft_status heft_companion_expect(heft_json *j, heft_json_kind kind, const char *what)
{
    static const char *const names[] = { "",          "the end of the document",
                                         "an object", "the end of the object",
                                         "a list",    "the end of the list",
                                         "a key",     "a string",
                                         "a number",  "true",
                                         "false",     "null" };
    heft_json_kind k = heft_json_next(j);
    if (k == kind || j->st)
        return j->st;
    return heft_json_fail(j, "%s: %s is expected here", what, names[kind]);
}

bool heft_companion_next_key(heft_json *j)
{
    return heft_json_next(j) == HEFT_JSON_KEY;
}

bool heft_companion_next_item(heft_json *j, heft_json_kind *k)
{
    *k = heft_json_next(j);
    return *k != HEFT_JSON_ARRAY_END && !j->st;
}
