/* cmd_sign.c - `heft sign`: sign the files of a model with a private key. */
#include <heft/sign.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "models/model_files.h"
#include "options/command.h"
#include "options/opt.h"
#include "process/sinkwatch.h"
#include "process/textfile.h"

typedef struct request {
    const session *session;
    const char *model; /* a file or a folder */
    const char *out;
    char *default_out, *own_name; /* own_name: path of the signature in the folder, or NULL */
    bool is_folder, force, no_sync;
    secret key, password;
    const char *certificate, *chain; /* files in PEM form, or NULL */
    opt_list ignore;
    char **found; /* the paths of --ignore, relative to the folder */
    heft_str *ignored;
    size_t ignored_count;
} request;

/* ---- names ---- */

/* Choose model.sig in the folder of the model. */
static int choose_output(request *r)
{
    int code = path_find_folder(&r->is_folder, r->model);
    if (code || r->out)
        return code;
    code = model_find_beside(&r->default_out, r->model, "model.sig");
    r->out = r->default_out;
    return code;
}

static int check_output(const request *r)
{
    struct stat info;
    if (stat(r->out, &info))
        return CODE_DONE;
    if (path_is_same(r->model, &info))
        return say_status(HEFT_E_ARGUMENT, r->out, "is the input itself");
    if (S_ISDIR(info.st_mode))
        return say_status(HEFT_E_ARGUMENT, r->out, "is a directory");
    return r->force ? CODE_DONE
                    : say_status(HEFT_E_ARGUMENT, r->out, "already exists: --force replaces it");
}

/* Collect the paths that are not signed: the signature, paths of git, and --ignore. */
static int collect_ignored(request *r)
{
    int code = CODE_DONE;
    r->ignored = calloc(r->ignore.count + GIT_PATHS + 1, sizeof *r->ignored);
    r->found = calloc(r->ignore.count + 1, sizeof *r->found);
    if (!r->ignored || !r->found)
        return say_status(HEFT_E_NOMEM, r->model, "no memory for the ignored paths");
    if (!r->is_folder)
        return r->ignore.count
                   ? say_usage("sign", "--ignore needs a folder, and %s is a file", r->model)
                   : CODE_DONE;
    r->own_name = path_below(r->model, r->out);
    if (r->own_name)
        r->ignored[r->ignored_count++] = str_of(r->own_name);
    for (size_t i = 0; i < GIT_PATHS; i++)
        r->ignored[r->ignored_count++] = str_of(git_paths[i]);
    for (size_t i = 0; i < r->ignore.count && !code; i++) {
        code = model_files_find(&r->found[i], r->model, r->ignore.item[i]);
        if (!code)
            r->ignored[r->ignored_count++] = str_of(r->found[i]);
    }
    return code;
}

/* Return the name of the file, or that of the folder without links, malloc'ed. */
static char *model_name(const request *r)
{
    char *real = r->is_folder ? realpath(r->model, NULL) : NULL;
    heft_str name = path_last_component(real ? real : r->model);
    char *copy = name.len ? strndup(name.ptr, name.len) : strdup("model");
    free(real);
    return copy;
}

/* ---- signing ---- */

static heft_status make_statement(heft_signature **out, const request *r, const model_files *m,
                                  const digest_request *digests, heft_error *err)
{
    heft_signature_options o = { .size = sizeof o, .allow_symlinks = m->has_links };
    char *name = model_name(r);
    heft_resource *resources = calloc(m->count, sizeof *resources);
    for (size_t i = 0; resources && i < m->count; i++)
        resources[i] = (heft_resource){ .name = str_of(m->name[i]),
                                        .algorithm = str_of("sha256"),
                                        .digest = digests[i].digest,
                                        .to = HEFT_UNKNOWN_LENGTH };
    *err = (heft_error){ .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE, .message = "no memory" };
    *out = NULL;
    heft_status st = HEFT_E_NOMEM;
    if (name && resources) {
        o.model = str_of(name);
        o.resources = resources;
        o.resource_count = (uint32_t)m->count;
        o.ignored = r->ignored;
        o.ignored_count = (uint32_t)r->ignored_count;
        st = heft_signature_new(out, &o, err);
    }
    free(resources);
    free(name);
    return st;
}

/* Give the signature the certificates of the options. */
static int certify(const request *r, heft_signature *s)
{
    heft_error err;
    heft_str first = { NULL, 0 }, rest = { NULL, 0 };
    if (!r->certificate)
        return CODE_DONE;
    int code = text_read(&first, r->certificate, TEXT_NAMED);
    if (!code && r->chain)
        code = text_read(&rest, r->chain, TEXT_NAMED);
    char *both = code ? NULL : malloc(first.len + rest.len + 1);
    if (both) {
        memcpy(both, first.len ? first.ptr : "", first.len);
        both[first.len] = '\n';
        memcpy(both + first.len + 1, rest.len ? rest.ptr : "", rest.len);
        if (heft_signature_certify(s, (heft_str){ both, first.len + rest.len + 1 }, &err))
            code = say_error(r->certificate, &err);
    } else if (!code)
        code = say_status(HEFT_E_NOMEM, r->certificate, "no memory for the certificates");
    free(both);
    text_free(first);
    text_free(rest);
    return code;
}

static int apply_signer(const request *r, heft_signature *s)
{
    heft_error err;
    int code = certify(r, s);
    if (!code && heft_signature_sign(s, r->key.text, r->password.text, &err))
        code = say_error(r->key.path, &err);
    return code;
}

/* Sign an empty list, so that a wrong password is reported before large files are read. */
static int try_signer(const request *r)
{
    heft_error err;
    heft_signature *s;
    const heft_signature_options o = { .size = sizeof o, .model = HEFT_STR("model") };
    if (heft_signature_new(&s, &o, &err))
        return say_error(r->model, &err);
    int code = apply_signer(r, s);
    heft_signature_close(s);
    return code;
}

static int write_signature(request *r, const heft_signature *s)
{
    heft_error err;
    heft_sink *sink;
    heft_status st = sink_open(&sink, r->out, r->force, r->no_sync, NULL, &err);
    if (!st)
        st = heft_signature_write(s, sink, &err);
    return st ? say_error(r->out, &err) : CODE_DONE;
}

static void say_result(const request *r, const digest_request *digests, size_t count)
{
    result_line line;
    uint64_t bytes = 0;
    if (!result_begin(&line, r->out))
        return;
    for (size_t i = 0; i < count; i++)
        bytes += digests[i].size;
    json_member_u64(&line.json, "files", count);
    json_member_u64(&line.json, "bytes", bytes);
    result_end(&line);
}

/* Refuse files that are not signed and not ignored either. */
static int check_odd(const model_files *m)
{
    for (size_t i = 0; i < m->odd_count; i++)
        if (m->odd[i].kind != ODD_LINK)
            return say_status(HEFT_E_ARGUMENT, m->odd[i].path,
                              m->odd[i].kind == ODD_SPECIAL
                                  ? "is not a regular file: move the file, or use --ignore"
                                  : "is a symbolic link to a missing file: remove the link, or "
                                    "use --ignore");
    return CODE_DONE;
}

static int sign_files(request *r, const model_files *m)
{
    heft_error err;
    heft_signature *s = NULL;
    digest_request *digests = calloc(m->count, sizeof *digests);
    if (!digests)
        return say_status(HEFT_E_NOMEM, r->model, "no memory for the digests");
    for (size_t i = 0; i < m->count; i++)
        digests[i] = (digest_request){ .path = m->path[i],
                                       .algorithm = "sha256",
                                       .to = HEFT_UNKNOWN_LENGTH };
    int code = try_signer(r);
    if (!code)
        code = digest_files(r->session, digests, m->count, r->model);
    if (!code && make_statement(&s, r, m, digests, &err))
        code = say_error(r->model, &err);
    if (!code)
        code = apply_signer(r, s);
    if (!code)
        code = write_signature(r, s);
    if (!code)
        say_result(r, digests, m->count);
    heft_signature_close(s);
    free(digests);
    return code;
}

static void cut_line_end(heft_str *text)
{
    while (text->len && (text->ptr[text->len - 1] == '\n' || text->ptr[text->len - 1] == '\r'))
        text->len--;
}

static int sign(request *r)
{
    model_files m = { .count = 0 };
    cut_line_end(&r->password.text);
    int code = choose_output(r);
    if (!code)
        code = check_output(r);
    if (!code)
        code = collect_ignored(r);
    if (!code)
        code = model_files_list(&m, r->model, r->ignored, r->ignored_count);
    if (!code)
        code = check_odd(&m);
    if (!code && !m.count)
        code = say_status(HEFT_E_ARGUMENT, r->model, "has no files to sign");
    if (!code)
        code = sign_files(r, &m);
    model_files_free(&m);
    free(r->default_out);
    free(r->own_name);
    for (size_t i = 0; r->found && i < r->ignore.count; i++)
        free(r->found[i]);
    free(r->found);
    free(r->ignored);
    return code;
}

static const opt options[] = {
    { "key", 'k', OPT_SECRET, AT(request, key), "KEY", "private key on a NIST curve, a PEM file" },
    { "password-file", 0, OPT_SECRET, AT(request, password), "FILE",
      "file with the password of the key; otherwise Heft asks on the terminal" },
    { "certificate", 0, OPT_FILE, AT(request, certificate), "CERT",
      "certificate of the key, a PEM file; the signature will contain it" },
    { "chain", 0, OPT_FILE, AT(request, chain), "CHAIN",
      "certificates of the issuers, that of the key's first" },
    { "output", 'o', OPT_OUTPUT, AT(request, out), "SIG",
      "write the signature here (model.sig in the folder of the model)" },
    { "ignore", 0, OPT_LIST, AT(request, ignore), "PATH",
      "leave out a file or folder of the model; may be repeated" },
    { "force", 'f', OPT_FLAG, AT(request, force), NULL, "replace SIG" },
    { "no-sync", 0, OPT_FLAG, AT(request, no_sync), NULL, "do not wait for the disk" },
    { .name = NULL },
};

static void begin(const session *s, void *ctx)
{
    (void)s;
    request *r = ctx;
    r->key.password = &r->password;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    int code;
    r->session = s;
    r->model = s->args.item[0];
    if (!r->key.path)
        code = say_usage("sign", "--key KEY is missing");
    else if (r->chain && !r->certificate)
        code = say_usage("sign", "--chain needs --certificate");
    else
        code = sign(r);
    secret_free(&r->key);
    secret_free(&r->password);
    return code;
}

const command command_sign = {
    .name = "sign",
    .args = "FILE|FOLDER",
    .summary = "sign the files of a model with a private key",
    .description =
        "Signs a file, or all files of a folder, in the format of OpenSSF Model Signing 1.0.\n"
        "The signature holds the SHA-256 of every file; heft verify --signature checks it.",
    .example = "heft sign --key key.pem model/",
    .group = GROUP_SHARE,
    .traits = COMMAND_WRITES,
    .without = NOT_OF_RAW_FILES,
    .operands = { 0, 0, 0, FILE_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .begin = begin,
    .run = run,
};
