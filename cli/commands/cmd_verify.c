/* cmd_verify.c - `heft verify`: check a file's structure, checksums, padding and profile. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/heft_ext.h>

#include "commands/verify_hub.h"
#include "commands/verify_share.h"
#include "commands/verify_signature.h"
#include "models/model.h"
#include "models/profile.h"
#include "options/command.h"
#include "process/finding.h"
#include "process/message.h"
#include "process/progress_line.h"
#include "process/textfile.h"

typedef struct report {
    const session *session;
    outbuf *o;
    const char *path;
    const heft_file *f; /* NULL if the file does not parse */
    const heft_format *format;
    const heft_profile *profile; /* NULL without --profile */
    bool as_json, quick;
    verify_shares shares;
    progress bar;
    uint32_t skipped; /* "heft/quick" notes: about checks left out by --quick, not about the file */
    finding_list findings;
    heft_verify_result result;
} report;

/* ---- findings ---- */

static void on_finding(void *ctx, const heft_finding *x)
{
    report *r = ctx;
    bool is_quick = !strcmp(x->rule, "heft/quick"); /* --strict allows what --quick asks for */
    bool is_failure = x->severity == HEFT_FAULT || (r->session->strict && !is_quick);
    r->skipped += is_quick;
    finding y = finding_of(r->f, x);
    y.file = stdin_label(r->path);
    if (r->as_json || is_failure || !r->session->quiet)
        finding_list_add(&r->findings, &y);
}

/* ---- files that do not parse ---- */

/* Feed the ranges that f asks for. buf is borrowed by f until f is closed. */
static bool feed(heft_file *f, heft_source *s, uint8_t *buf, uint64_t capacity)
{
    heft_error err;
    const heft_range *needs;
    for (size_t i = 0, n = heft_file_needs(f, &needs); i < n; i++) {
        heft_range r = needs[i];
        if (r.length > capacity || s->ops->read(s, r.offset, buf, (size_t)r.length, &err) ||
            heft_file_feed(f, r.offset, buf, (size_t)r.length, &err))
            return false;
        buf += r.length;
        capacity -= r.length;
    }
    return true;
}

/* Detect the format from the first and last bytes of a file that does not parse. NULL if
 * unknown. */
static const heft_format *format_of(heft_source *s)
{
    enum { HEAD_AND_TAIL = 1 << 20 };
    heft_error err;
    heft_file *f = NULL;
    const heft_format *format = NULL;
    uint8_t *buf = malloc(HEAD_AND_TAIL);
    if (buf && !heft_file_begin(&f, s->size, NULL, &err) && heft_file_step(f, &err) == HEFT_AGAIN &&
        feed(f, s, buf, HEAD_AND_TAIL) && heft_file_step(f, &err))
        format = heft_file_format(f);
    heft_file_close(f);
    free(buf);
    return format;
}

static const heft_format *recognise(const char *path)
{
    heft_error err;
    heft_source *s;
    if (heft_source_open_file(&s, path, HEFT_ACCESS_READ, &err))
        return NULL;
    const heft_format *format = format_of(s);
    heft_source_close(s);
    return format;
}

static void report_structure(report *r, const heft_error *err)
{
    char rule[64] = "heft/unknown-format";
    if (!r->format)
        r->format = recognise(r->path);
    if (r->format)
        snprintf(rule, sizeof rule, "%s/structure", heft_format_name(r->format));
    heft_finding x = { .severity = HEFT_FAULT,
                       .rule = rule,
                       .where = { err->offset, 0 },
                       .tensor = HEFT_NONE,
                       .text = err->message };
    r->result.faults++;
    on_finding(r, &x);
}

/* ---- one file ---- */

static bool is_ok(const report *r)
{
    const heft_verify_result *v = &r->result;
    return !v->faults && !(r->session->strict && (v->warnings || v->notes > r->skipped));
}

/* Write the distinct algorithms of the file's checksums: "crc32c, sha256". */
static void out_algorithms(outbuf *o, const heft_file *f)
{
    enum { DISTINCT = 8 }; /* more than there are algorithms */
    const char *seen[DISTINCT];
    size_t count = 0;
    heft_checksum c;
    for (uint32_t i = 0, n = heft_checksum_count(f); count < DISTINCT && i < n; i++) {
        c = heft_checksum_at(f, i);
        size_t k = 0;
        while (k < count && strcmp(seen[k], c.algorithm) != 0)
            k++;
        if (k < count)
            continue;
        out_format(o, "%s%s", count ? ", " : "", c.algorithm);
        seen[count++] = c.algorithm;
    }
}

/* Return true if --hub could compare the file, or the first file of the folder. */
static bool is_download(const report *r)
{
    hub_name name;
    char path[PATH_MAX];
    heft_str file = heft_file_name(r->f);
    bool is_folder = path_is_folder(r->path);
    int n = snprintf(path, sizeof path, "%s%s%.*s", r->path, is_folder ? "/" : "",
                     is_folder ? (int)file.len : 0, file.ptr);
    return !stdin_is(r->path) && n > 0 && n < PATH_MAX && hub_name_of(&name, path);
}

/* Write the meaning of a good result: the bytes that are compared with checksums. */
static void out_coverage(outbuf *o, const report *r)
{
    uint64_t all = r->result.payload_bytes, checked = r->result.payload_checked;
    if (r->result.origin_digests == 1 + heft_shard_file_count(r->f)) {
        out_text(o, "every byte has the digest that the hub states");
        return;
    }
    if (!heft_checksum_count(r->f) && !checked) {
        out_text(o, "structure only: the file has no checksums");
        if (is_download(r))
            out_text(o, ", and --hub compares the download with the hub's digest");
        return;
    }
    if (all && checked == all)
        out_text(o, "every byte of the tensors has a checksum");
    else if (checked)
        out_format(o, "%llu of the tensors' %llu bytes have a checksum",
                   (unsigned long long)checked, (unsigned long long)all);
    else
        out_text(o, r->quick ? "structure and header only: --quick leaves out the data"
                             : "the header has a checksum, the tensors have none");
    if (!heft_checksum_count(r->f)) /* files inside of others have them */
        return;
    out_text(o, " (");
    out_algorithms(o, r->f);
    out_char(o, ')');
}

/* Print the number of bytes checked, and the coverage of the result. */
static void print_checked(const report *r)
{
    out_format(r->o, " (%s, %u tensors, ", heft_format_name(r->format), heft_tensor_count(r->f));
    if (r->result.bytes_checked)
        out_format(r->o, "%llu bytes checked; ", (unsigned long long)r->result.bytes_checked);
    out_coverage(r->o, r);
    out_text(r->o, ")\n");
}

static void json_coverage(json *j, const report *r)
{
    outbuf text;
    out_open(&text, -1);
    if (r->f && r->format)
        out_coverage(&text, r);
    json_member_u64(j, "payload_bytes", r->result.payload_bytes);
    json_member_u64(j, "payload_checked", r->result.payload_checked);
    json_member_text(j, "covers", (heft_str){ text.buf, is_ok(r) ? text.used : 0 });
    if (text.os)
        j->o->os = text.os;
    out_free(&text);
}

static void print_verdict(const report *r)
{
    outbuf *o = r->o;
    bool ok = is_ok(r);
    verdict_print(o, stdin_label(r->path), ok, verdict_word(ok));
    if (ok)
        print_checked(r);
    else
        out_format(o, " (faults: %u, warnings: %u, notes: %u)\n", r->result.faults,
                   r->result.warnings, r->result.notes);
}

static void json_report(report *r, json *all, const char *failure)
{
    finding_report_begin(all, stdin_name(r->path));
    json_member_text(all, "format", str_of(r->format ? heft_format_name(r->format) : ""));
    json_member_bool(all, "ok", !failure && is_ok(r));
    finding_list_json(all, &r->findings);
    json_member_u64(all, "bytes_checked", r->result.bytes_checked);
    json_coverage(all, r);
    finding_report_end(all, failure);
}

static bool verify_step(void *ctx, uint64_t done, uint64_t total)
{
    report *r = ctx;
    return progress_step(&r->bar, done, total);
}

static heft_status check(report *r, heft_error *err, int *code)
{
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    o.on_finding = on_finding;
    o.progress = verify_step;
    o.ctx = r;
    o.quick = r->quick;
    progress_begin(&r->bar, r->path);
    r->format = heft_file_format(r->f);
    heft_status st = HEFT_OK;
    *code = CODE_DONE;
    if (r->shares.own.count)
        *code = verify_share_write(&r->shares, r->f, r->path, &o);
    else if (r->shares.join)
        *code = verify_share_join(&r->shares, &r->result, r->f, r->path, on_finding, r);
    else
        st = heft_file_verify(&r->result, r->f, &o, err);
    progress_end(&r->bar);
    if (!st && !*code && r->profile)
        st = heft_profile_check(&r->result, r->profile, r->f, on_finding, r, err);
    return st || *code ? st : heft_file_is_unchanged(r->f, err);
}

/* Verify a file; return the exit code. */
static int verify(report *r, json *all)
{
    heft_error err = { .status = HEFT_OK };
    heft_file *f = NULL;
    int code = CODE_DONE;
    finding_list_begin(&r->findings, r->o, r->as_json);
    heft_status st = model_open_to_verify(r->session, &f, r->path, &err);
    r->f = f;
    code = st ? CODE_DONE : array_types_check(r->session, f, r->path);
    if (code) {
        finding_list_end(&r->findings);
        heft_file_close(f);
        return code;
    }
    if (!st)
        st = check(r, &err, &code);
    /* Invalid bytes are a fault, which is a result of verify and not an error. */
    if (st == HEFT_E_FORMAT || st == HEFT_E_CHECKSUM)
        report_structure(r, &err);
    else if (st)
        code = f ? say_error(r->path, &err) : model_say_open_error(r->session, r->path, &err);
    /* A share prints a record instead; --join has printed the error of a record. */
    bool is_silent = f && (r->shares.own.count || (code && r->shares.join));
    if (!code && !is_ok(r) && !(f && r->shares.own.count))
        code = CODE_FOUND;
    if (!is_silent && r->as_json)
        json_report(r, all, code > CODE_FOUND ? err.message : NULL);
    else if (!is_silent && code <= CODE_FOUND && !(r->session->quiet && is_ok(r)))
        print_verdict(r);
    finding_list_end(&r->findings);
    heft_file_close(f);
    return code;
}

/* Verify every file; return the highest exit code. */
static int verify_all(outbuf *o, const opt_args *args, const report *settings)
{
    json all = { o, false };
    int worst = CODE_DONE;
    bool as_json = settings->as_json;
    if (as_json && args->count > 1)
        json_begin(&all, '[');
    for (int i = 0; i < args->count; i++) {
        report r = *settings;
        r.o = o;
        r.path = args->item[i];
        int code = verify(&r, &all);
        worst = code > worst ? code : worst;
    }
    if (as_json && args->count > 1)
        json_end(&all, ']');
    if (as_json && !settings->shares.own.count)
        out_char(o, '\n');
    return worst;
}

static int say_exclusive(const char *option)
{
    return say_usage("verify", "%s excludes the other checks, --profile and --quick%s", option,
                     strcmp(option, "--hub") ? ", and --hub" : "");
}

static int check_signature(signature_request *r, const report *settings, const opt_args *args)
{
    if (args->count > 1)
        return say_usage("verify", "--signature takes one file or folder");
    if (!r->key == !r->authorities)
        return say_usage("verify", "--signature needs either --public-key or --ca");
    if (r->certificate && !r->authorities)
        return say_usage("verify", "--certificate needs --ca");
    r->session = settings->session;
    r->model = args->item[0];
    r->as_json = settings->as_json;
    return verify_signature(r);
}

typedef struct request {
    report settings;
    const char *profile;
    signature_request signature;
    bool hub;
} request;

static const opt options[] = {
    { "profile", 'p', OPT_PROFILE, AT(request, profile), "NAME",
      "also check a model's tensors and metadata" },
    { "strict", 0, OPT_FLAG, SETTING(strict), NULL, "any finding is a failure, notes included" },
    { "quick", 0, OPT_FLAG, AT(request, settings.quick), NULL,
      "check structure and header checksums only" },
    { "hub", 0, OPT_FLAG, AT(request, hub), NULL,
      "compare a download from Hugging Face with the digests that the hub states" },
    { "signature", 0, OPT_FILE, AT(request, signature.signature), "SIG",
      "check the signature of a model, and its files, with --public-key or --ca" },
    { "public-key", 0, OPT_FILE, AT(request, signature.key), "KEY",
      "with --signature, the public key" },
    { "ca", 0, OPT_FILE, AT(request, signature.authorities), "CA",
      "with --signature, the certificates that are trusted" },
    { "certificate", 0, OPT_FILE, AT(request, signature.certificate), "CERT",
      "with --ca, the signer's certificate has to be this one" },
    { "json", 0, OPT_FLAG, AT(request, settings.as_json), NULL,
      "print one JSON document; a list for several files" },
    { "share", 0, OPT_TEXT, AT(request, settings.shares.text), "I/N",
      "verify share I of N; auto: as Open MPI, MPICH or Slurm says" },
    { "output", 'o', OPT_OUTPUT, AT(request, settings.shares.out), "STEM",
      "with --share, write the record to STEM.I (default: stdout)" },
    { "join", 0, OPT_RECORDS, AT(request, settings.shares.join), "STEM",
      "print the result of all shares, from STEM.1, STEM.2, ..." },
    { .name = NULL },
};

/* Refuse options that exclude each other. Return an exit code. */
static int check_request(request *r, const opt_args *args)
{
    const signature_request *s = &r->signature;
    const report *settings = &r->settings;
    bool is_share = settings->shares.own.count, has_shares = is_share || settings->shares.join;
    bool is_elsewhere = s->signature || r->hub;
    if (has_shares && (args->count > 1 || is_elsewhere || settings->quick))
        return say_usage(
            "verify",
            "--share and --join take one FILE, and exclude --hub, --signature and --quick");
    if (is_share && r->profile)
        return say_usage("verify", "--profile goes with --join, not with --share");
    if (is_elsewhere && ((s->signature && r->hub) || r->profile || settings->quick))
        return say_exclusive(s->signature ? "--signature" : "--hub");
    if (!s->signature && (s->authorities || s->certificate))
        return say_usage("verify", "--ca and --certificate need --signature");
    if (!s->signature && s->key)
        return say_usage("verify", "--public-key needs --signature");
    return CODE_DONE;
}

static int verify_models(request *r, const opt_args *args)
{
    outbuf o;
    heft_profile *loaded = NULL;
    report *settings = &r->settings;
    int code = r->profile ? profile_read(&loaded, r->profile) : CODE_DONE;
    if (code)
        return code;
    settings->profile = loaded;
    out_open(&o, STDOUT_FILENO);
    code = verify_all(&o, args, settings);
    heft_profile_close(loaded);
    if (!settings->shares.own.count)
        return out_end(&o, code);
    out_free(&o); /* the record was the output */
    return code;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    r->settings.session = s;
    int code = verify_shares_prepare(&r->settings.shares);
    if (!code)
        code = check_request(r, &s->args);
    if (code)
        return code;
    if (r->signature.signature)
        return check_signature(&r->signature, &r->settings, &s->args);
    return r->hub ? verify_hub(s, r->settings.as_json) : verify_models(r, &s->args);
}

static bool writes_shares(const void *ctx)
{
    const request *r = ctx;
    return r->settings.shares.text;
}

const command command_verify = {
    .name = "verify",
    .args = "FILE...",
    .summary = "check structure, checksums, padding and reserved bits",
    .description =
        "Checks structure, every checksum, padding and reserved bits. The exit status is 1\n"
        "if a fault was found or, with --strict, anything at all. --profile also checks the\n"
        "file against a model: the name of a profile, or a JSON file. --hub and --signature\n"
        "check whole files instead. With --quiet, only failures are printed.",
    .example = "heft verify --strict *.zt",
    .group = GROUP_CHECK,
    .without = WITHOUT(NO_VERIFY),
    .operands = { 0, -1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .writes_shares = writes_shares,
    .run = run,
};
