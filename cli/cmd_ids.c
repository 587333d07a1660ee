/* cmd_ids.c - parameter identities: what each tensor is called by programs that go by ids. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <heft/params.h>

#include "model.h"
#include "opt.h"

typedef struct identity {
    heft_str name;
    bool has_base, has_burn, is_stored, is_right;
    heft_id128 base;
    uint64_t burn;
} identity;

static bool key_is(heft_str key, const char *name)
{
    heft_str n = str_of(name);
    return key.len == n.len && !memcmp(key.ptr, n.ptr, n.len);
}

static identity identify(const heft_file *f, uint32_t tensor)
{
    identity id = { .name = heft_tensor_at(f, tensor).name };
    heft_value v;
    id.has_base = heft_base_param_id(&id.base, id.name.ptr, id.name.len);
    for (uint32_t i = 0; heft_attribute(&v, f, tensor, i); i++) {
        if (key_is(v.key, "gptrs.base_id") && v.kind == HEFT_KIND_ID128) {
            id.is_stored = true;
            id.is_right = id.has_base && !memcmp(v.as.s.ptr, id.base.bytes, sizeof id.base.bytes);
        } else if (key_is(v.key, "burn.param_id") && v.kind == HEFT_KIND_UINT) {
            id.has_burn = true;
            id.burn = v.as.u;
        }
    }
    return id;
}

/* "-" stands for what there is none of: names that are not ASCII have no base id. */
static void print_text(outbuf *o, const heft_file *f)
{
    out_text(o, "BASE ID                          STORED BURN ID              NAME\n");
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        identity id = identify(f, i);
        char hex[33] = "-", burn[24] = "-";
        if (id.has_base)
            heft_id128_text(hex, id.base);
        if (id.has_burn)
            snprintf(burn, sizeof burn, "%llu", (unsigned long long)id.burn);
        out_format(o, "%-32s %-6s %-20s ", hex,
                   !id.is_stored ? "no"
                   : id.is_right ? "yes"
                                 : "wrong",
                   burn);
        out_name(o, id.name);
        out_char(o, '\n');
    }
}

static void print_json_id(json *j, const identity *id)
{
    char hex[33];
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "name", id->name);
    json_key(j, str_of("base_id"));
    if (id->has_base) {
        heft_id128_text(hex, id->base);
        json_str(j, str_of(hex));
    } else {
        json_null(j);
    }
    json_member_bool(j, "stored", id->is_stored);
    if (id->is_stored)
        json_member_bool(j, "matches", id->is_right);
    json_key(j, str_of("burn_id"));
    if (id->has_burn)
        json_u64(j, id->burn);
    else
        json_null(j);
    json_end(j, '}');
}

static void print_json(outbuf *o, const heft_file *f, const char *path)
{
    json j = { o, false };
    json_begin(&j, '{');
    json_member_str(&j, "file", str_of(path));
    json_member_str(&j, "format", str_of(heft_format_name(heft_file_format(f))));
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        identity id = identify(f, i);
        print_json_id(&j, &id);
    }
    json_end(&j, ']');
    json_end(&j, '}');
    out_char(o, '\n');
}

int cmd_ids(int argc, char **argv)
{
    bool as_json = false;
    const opt options[] = {
        { "json", 0, OPT_FLAG, &as_json, NULL, "one JSON document" },
    };
    const opt_usage usage = {
        "ids",
        "FILE",
        "Lists the identity of every tensor: the base id that gpt-rs derives from its name,\n"
        "whether the file stores it (and whether that is right), and Burn's parameter id.",
        "heft ids model.gptrs",
        options,
        sizeof options / sizeof *options,
        1,
        1,
    };
    opt_args args;
    heft_file *f;
    outbuf o;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    code = model_open(&f, args.item[0]);
    if (code)
        return code;
    out_open(&o, STDOUT_FILENO);
    if (as_json)
        print_json(&o, f, args.item[0]);
    else
        print_text(&o, f);
    heft_close(f);
    return out_end(&o, CODE_DONE);
}
