/* cmd_edit.c - what a file says around its data, changed where it stands. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assign.h"
#include "gptrs_options.h"
#include "identity.h"
#include "interrupt.h"
#include "model.h"
#include "opt.h"
#include "progress.h"
#include "recover.h"
#include "textfile.h"
#include "vocab.h"

typedef struct request {
    const char *path, *vocab, *special, *config;
    opt_list set, unset, rename;
    identities ids;
    bool dry_run;
    heft_value *values;
    heft_str *keys;
    heft_rename *renames;
    gptrs_rules gptrs;
    heft_vocab *new_vocab;
    specials specials;
    heft_str config_text;
    heft_edit_options options;
} request;

static void on_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                    const char *text)
{
    const request *r = ctx;
    outbuf name;
    (void)rule;
    if (severity == HEFT_NOTE && !model_opening.verbose)
        return;
    out_open(&name, -1);
    out_escaped(&name, tensor);
    static const char *const words[] = { "note", "warning", "error" };
    if (tensor.ptr)
        say(r->path, "%s: %s (tensor \"%s\")", words[severity], text, out_cstr(&name));
    else
        say(r->path, "%s: %s", words[severity], text);
    out_free(&name);
}

static bool is_same_key(const heft_value *a, const heft_value *b)
{
    return a->key.len == b->key.len && !memcmp(a->key.ptr, b->key.ptr, a->key.len);
}

/* A key that is given again counts as given last. */
static int read_set(request *r)
{
    heft_edit_options *o = &r->options;
    int code = CODE_DONE;
    for (size_t i = 0; i < r->set.count && !code; i++) {
        heft_value now;
        size_t k = 0;
        code = assign_value(&now, "edit", r->set.item[i]);
        while (!code && k < o->set_count && !is_same_key(&r->values[k], &now))
            k++;
        if (!code)
            r->values[k] = now;
        o->set_count += k == o->set_count;
    }
    return code;
}

/* What the tensor is called after the edit. */
static heft_str name_after(const request *r, heft_str name)
{
    const heft_edit_options *o = &r->options;
    for (size_t i = 0; i < o->rename_count; i++)
        if (o->rename[i].from.len == name.len && !memcmp(o->rename[i].from.ptr, name.ptr, name.len))
            return o->rename[i].to;
    return name;
}

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    request *r = ctx;
    heft_str name = r->gptrs.base_ids ? name_after(r, t->name) : t->name;
    return identity_of(&r->ids, &r->gptrs, t, name, true, id);
}

/* What stands in files beside the one that is edited. */
static int read_texts(request *r)
{
    heft_edit_options *o = &r->options;
    int code = CODE_DONE;
    if (r->vocab)
        code = vocab_read(&r->new_vocab, r->vocab, TEXT_NAMED);
    if (!code && r->special)
        code = vocab_read_special(&r->specials, "edit", r->special);
    if (!code && r->config)
        code = text_read(&r->config_text, r->config, TEXT_NAMED);
    o->vocab = r->new_vocab;
    o->special = r->specials.id;
    o->special_count = r->specials.count;
    o->config = r->config_text;
    o->identify = identities_are_given(&r->ids) || gptrs_are_given(&r->gptrs) ? identify : NULL;
    o->identify_ctx = r;
    return code ? code : gptrs_prepare(&r->gptrs, "edit");
}

static int read_asked(request *r)
{
    heft_edit_options *o = &r->options;
    r->values = calloc(r->set.count + 1, sizeof *r->values);
    r->keys = calloc(r->unset.count + 1, sizeof *r->keys);
    r->renames = calloc(r->rename.count + 1, sizeof *r->renames);
    if (!r->values || !r->keys || !r->renames) {
        say(NULL, "no memory for the options");
        return CODE_SYSTEM;
    }
    int code = read_set(r);
    for (size_t i = 0; i < r->unset.count; i++)
        r->keys[i] = str_of(r->unset.item[i]);
    for (size_t i = 0; i < r->rename.count && !code; i++)
        code = assign_rename(&r->renames[i], "edit", r->rename.item[i]);
    if (!code)
        code = read_texts(r);
    o->set = r->values;
    o->unset = r->keys;
    o->unset_count = r->unset.count;
    o->rename = r->renames;
    o->rename_count = r->rename.count;
    o->dry_run = r->dry_run;
    o->on_loss = on_loss;
    o->loss_ctx = r;
    return code;
}

static void say_links(const request *r, const heft_edit_result *result)
{
    unsigned n = result->other_names;
    if (!n || !result->changed)
        return;
    const char *verb = n == 1 ? "name of it shows" : "names of it show";
    if (result->in_place)
        say(r->path, "note: %u other %s the change as well", n, verb);
    else
        say(r->path, "warning: %u other %s what was there still", n, verb);
}

static int say_plan(const request *r, const heft_edit_result *result)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    out_message(&o, r->path);
    out_format(&o, ": %llu bytes, %s\n", (unsigned long long)result->size,
               result->in_place ? "in place" : "in a new file");
    return out_end(&o, CODE_DONE);
}

static int say_done(const request *r, const heft_edit_result *result)
{
    if (r->dry_run)
        return say_plan(r, result);
    say_links(r, result);
    if (!model_opening.verbose)
        return CODE_DONE;
    if (!result->changed)
        say(r->path, "it was like that already");
    else if (result->in_place)
        say(r->path, "edited in place");
    else
        say(r->path, "a new file of %llu bytes, %llu of them moved",
            (unsigned long long)result->size, (unsigned long long)result->copied);
    return CODE_DONE;
}

/* The ids that there are now, which new ones must not meet. */
static int prepare_ids(request *r)
{
    heft_file *f;
    int code = model_load_whole(&f, r->path);
    if (code)
        return code;
    code = identities_prepare(&r->ids, "edit", f, r->path, NULL, NULL);
    heft_file_close(f);
    return code;
}

static int say_short(const request *r)
{
    say(r->path, "got more tensors while it was edited, which have no new ids: try again");
    return CODE_SYSTEM;
}

static int edit(request *r)
{
    heft_edit_result result;
    heft_error err;
    progress bar;
    int code = CODE_DONE;
    model_say_notices_of(r->path);
    if (identities_are_given(&r->ids))
        code = prepare_ids(r);
    if (code)
        return code;
    interrupt_hold();
    progress_begin(&bar, r->path);
    r->options.progress = progress_step;
    r->options.progress_ctx = &bar;
    heft_limits limits = model_limits();
    r->options.limits = &limits;
    heft_status st = heft_file_edit(&result, r->path, &r->options, &err);
    progress_end(&bar);
    if (result.undone)
        say(r->path, "note: an edit that was interrupted has been undone");
    if (st)
        return model_say_not_open(r->path, &err);
    code = r->ids.is_short ? say_short(r) : gptrs_check(&r->gptrs, r->path);
    return code ? code : say_done(r, &result);
}

static int undo(const request *r, bool did)
{
    bool undone;
    heft_error err;
    interrupt_hold();
    if (heft_edit_undo(&undone, r->path, &err))
        return say_error(r->path, &err);
    if (!undone && did)
        return CODE_DONE;
    if (!undone)
        return say_usage("edit", "nothing to change: --set, --unset, --rename or another option");
    say(r->path, "note: an edit that was interrupted has been undone");
    return CODE_DONE;
}

static bool is_asked(const request *r)
{
    bool is_text = r->vocab || r->special || r->config;
    return r->set.count || r->unset.count || r->rename.count || is_text ||
           identities_are_given(&r->ids) || gptrs_are_given(&r->gptrs);
}

static void release(request *r)
{
    identities_release(&r->ids);
    gptrs_release(&r->gptrs);
    heft_vocab_close(r->new_vocab);
    text_free(r->config_text);
    free(r->values);
    free(r->keys);
    free(r->renames);
}

int cmd_edit(int argc, char **argv)
{
    request r = { .options = HEFT_EDIT_OPTIONS_INIT };
    const opt options[] = {
        { "set", 0, OPT_LIST, &r.set, "KEY=VALUE", "metadata; KEY:TYPE=VALUE: u64, f32, str, ..." },
        { "unset", 0, OPT_LIST, &r.unset, "KEY", "metadata that is taken away" },
        { "rename", 0, OPT_LIST, &r.rename, "A=B", "tensor A is called B" },
        { "set-id", 0, OPT_LIST, &r.ids.set, "NAME=ID",
          "Burn's id of a tensor: a number, its text, none" },
        { "new-ids", 0, OPT_FLAG, &r.ids.all_new, NULL,
          "a new random id of Burn's for every tensor" },
        { "fill-ids", 0, OPT_FLAG, &r.ids.fill, NULL, "the same for tensors without one" },
        { "id-seed", 0, OPT_TEXT, &r.ids.seed, "N", "new ids that follow from a number" },
        { "vocab", 0, OPT_TEXT, &r.vocab, "FILE", "the vocabulary: vocab.txt, tokenizer.json" },
        { "special", 0, OPT_TEXT, &r.special, "NAME=ID,...", "pad, unk, cls, sep, mask tokens" },
        { "requires-grad", 0, OPT_LIST, &r.gptrs.grads, "[GLOB=]BOOL",
          "true, false or unset (gpt-rs); first match counts" },
        { "base-ids", 0, OPT_TEXT, &r.gptrs.base_ids, "name|none",
          "ids made from names, or none (gpt-rs)" },
        { "config", 0, OPT_TEXT, &r.config, "FILE", "the model's configuration (gpt-rs)" },
        { "dry-run", 'n', OPT_FLAG, &r.dry_run, NULL, "say what would be done; change nothing" },
        { "verbose", 'v', OPT_FLAG, &model_opening.verbose, NULL,
          "notes, and how it was done, on stderr" },
    };
    const opt_usage usage = {
        "edit",
        "FILE",
        "Changes metadata, names and ids of tensors, vocabulary and configuration in FILE itself:\n"
        "in place where they fit, else in a new file that takes its place.  Format, version and\n"
        "data stay as they are.  A killed edit has not happened: when it leaves a journal beside\n"
        "FILE, the next edit undoes it first, and with no options that is all that is done.  In a\n"
        "folder, or beside FILE, a split that was killed is completed, or else undone.",
        "heft edit --set license=MIT --rename wte=tok_embed.weight model.safetensors",
        options,
        sizeof options / sizeof *options,
        1,
        1,
    };
    opt_args args;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    r.path = args.item[0];
    bool did = false;
    code = read_asked(&r);
    if (!code && !r.dry_run)
        code = recover_set(&did, r.path);
    if (!code)
        code = is_asked(&r) ? edit(&r) : undo(&r, did);
    release(&r);
    opt_release(&usage);
    return code;
}
