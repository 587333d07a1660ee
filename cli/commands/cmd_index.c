/* cmd_index.c - `heft index`: write or repair the index of shards that exist. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/split.h>

#include "models/model.h"
#include "options/command.h"
#include "text/jsonout.h"

typedef struct request {
    bool dry_run, as_json;
} request;

/* Return the name of a file in the folder, which the caller may give with the folder; or NULL. */
static const char *name_in(const char *folder, const char *file)
{
    const char *slash = strrchr(file, '/');
    size_t len = strlen(folder);
    while (len && folder[len - 1] == '/')
        len--;
    if (!slash)
        return file;
    bool is_in = (size_t)(slash - file) >= len && !strncmp(file, folder, len) &&
                 strspn(file + len, "/") == (size_t)(slash - file) - len + 1;
    return is_in ? slash + 1 : NULL;
}

static void print_json(const heft_index_result *r, bool dry_run)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    json j = json_open(&o);
    json_member_str(&j, "index", str_of(r->name));
    json_member_u64(&j, "shards", r->shards);
    json_member_u64(&j, "tensors", r->tensors);
    json_member_u64(&j, "bytes", r->bytes);
    json_member_bool(&j, "existed", r->existed);
    json_member_bool(&j, "changed", r->changed && !dry_run);
    json_close(&j);
    out_end(&o, CODE_DONE);
}

static void print(const heft_index_result *r, bool dry_run)
{
    const char *done = !r->changed  ? "is right"
                       : dry_run    ? r->existed ? "would be repaired" : "would be written"
                       : r->existed ? "repaired"
                                    : "written";
    printf("%s: %s (%u shards, %u tensors, %llu bytes)\n", r->name, done, r->shards, r->tensors,
           (unsigned long long)r->bytes);
}

static int write_index(const session *s, const request *r, const char *folder,
                       const char *const *files, uint32_t count)
{
    heft_index_options o = HEFT_INDEX_OPTIONS_INIT;
    heft_index_result result;
    heft_error err;
    o.shards = count ? files : NULL;
    o.shard_count = count;
    o.dry_run = r->dry_run;
    o.limits = &s->limits;
    if (heft_index_folder(&result, folder, &o, &err))
        return say_error(folder, &err);
    if (result.is_unreadable)
        say(MESSAGE_WARNING, folder, "%s could not be read: texts of its metadata are lost",
            result.name);
    if (r->as_json)
        print_json(&result, r->dry_run);
    else
        print(&result, r->dry_run);
    return CODE_DONE;
}

static int run(const session *s, void *ctx)
{
    const char *folder = s->args.item[0];
    uint32_t count = (uint32_t)s->args.count - 1;
    const char **files = calloc(count + 1U, sizeof *files);
    int code = files ? CODE_DONE : say_status(HEFT_E_NOMEM, folder, "no memory for the names");
    for (uint32_t i = 0; i < count && !code; i++) {
        files[i] = name_in(folder, s->args.item[i + 1]);
        if (!files[i])
            code = say_usage("index", "'%s' is not a file in the folder %s", s->args.item[i + 1],
                             folder);
    }
    if (!code)
        code = write_index(s, ctx, folder, files, count);
    free(files);
    return code;
}

static const opt options[] = {
    { "dry-run", 'n', OPT_FLAG, AT(request, dry_run), NULL,
      "print what would be done; change nothing" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

const command command_index = {
    .name = "index",
    .args = "FOLDER [FILE...]",
    .summary = "write or repair the index of shards that exist",
    .description =
        "Writes the index of the shards in FOLDER, or repairs it: model.safetensors.index.json\n"
        "and its like. The shards are read, and stay as they are. They are the numbered files\n"
        "(NAME-00001-of-00002.SUFFIX), or the FILEs. The index keeps its name and the texts of\n"
        "its metadata. An index that is right is left unchanged.",
    .example = "heft index checkpoints/model",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES,
    .operands = { 0, 0, 0, FOLDER_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
