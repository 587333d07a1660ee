/* cmd_view.c - `heft view`: serve the page that shows a model to a browser on this machine. */
#include <string.h>
#include <unistd.h>

#include <heft/private.h>

#include "models/page_files.h"
#include "options/command.h"
#include "process/textfile.h"

typedef struct request {
    bool as_json;
    uint32_t port; /* 0: a free one */
    heft_server *server;
    served_list files;
} request;

static int prepare(const session *s, void *ctx)
{
    request *r = ctx;
    heft_error err;
    (void)s;
    int code = page_read(&r->files);
    if (!code && heft_server_open(&r->server, (uint16_t)r->port, &err))
        code = say_error(NULL, &err);
    if (code)
        served_free(&r->files);
    return code;
}

static void say_failed(void *ctx, const heft_served_file *file, const heft_error *err)
{
    (void)ctx;
    say(MESSAGE_WARNING, file->location, "%s", err->message);
}

static int print_address(const session *s, const request *r)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    if (r->as_json) {
        json j = { &o, false };
        json_begin(&j, '{');
        json_member_str(&j, "address", str_of(heft_server_address(r->server)));
        json_end(&j, '}');
    } else {
        out_text(&o, heft_server_address(r->server));
    }
    out_char(&o, '\n');
    /* Standard output stays open: a connection with its number would be refused by the sandbox. */
    int code = out_flush(&o) ? CODE_DONE : say_system(o.os, "standard output");
    out_free(&o);
    if (!code && !s->quiet)
        say(MESSAGE_INFO, NULL,
            "open this address in a browser; the command ends with the page, or with Ctrl-C");
    return code;
}

/* The page shows commands to copy, in which a model has the name that this command was given. */
static int add_names(const session *s, request *r, const char *const folders[])
{
    outbuf o;
    out_open(&o, -1);
    json j = json_open(&o);
    for (int i = 0; i < s->args.count; i++)
        if (!stdin_is(s->args.item[i]))
            json_member_str(&j, folders[i], str_of(stdin_label(s->args.item[i])));
    json_close(&j);
    char *text = o.os ? NULL : strndup(o.buf, o.used);
    heft_str data = { text, text ? o.used : 0 };
    out_free(&o);
    return served_add(&r->files, "application/json", text ? strdup("/names.json") : NULL, NULL,
                      data);
}

static int add_models(const session *s, request *r, outbuf *link)
{
    static const char *const folders[] = { "model", "b" };
    static const char *const keys[] = { "/#open=", "&b=" };
    int code = CODE_DONE;
    for (int i = 0; i < s->args.count && !code; i++) {
        out_text(link, keys[i]);
        code = view_files_add(&r->files, link, s, s->args.item[i], folders[i]);
    }
    return code ? code : add_names(s, r, folders);
}

static int serve(const session *s, request *r, const char *start)
{
    heft_error err;
    const heft_served_set set = { .size = sizeof set,
                                  .files = r->files.items,
                                  .count = r->files.count,
                                  .start = start,
                                  .failed = say_failed };
    int code = print_address(s, r);
    if (!code && heft_server_run(r->server, &set, &err))
        code = say_error(NULL, &err);
    return code;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    outbuf link;
    out_open(&link, -1);
    int code = add_models(s, r, &link);
    const char *start = out_cstr(&link);
    if (!code && link.os)
        code = say_status(HEFT_E_NOMEM, NULL, "no memory for a link");
    if (!code)
        code = serve(s, r, start);
    out_free(&link);
    heft_server_close(r->server);
    served_free(&r->files);
    return code;
}

static const opt options[] = {
    { "port", 0, OPT_COUNT, offsetof(request, port), false, NULL, 1, 65535, NAMES_NOTHING, "N",
      "listen at port N of 127.0.0.1 (a free one)" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print the address as one JSON document" },
    { .name = NULL },
};

const command command_view = {
    .name = "view",
    .args = "MODEL [B]",
    .summary = "show a model in the browser, with B a comparison",
    .description =
        "Serves the page that shows models, and the files of the model, to a browser on this\n"
        "machine, and prints the address to open, which is good for one browser. The command\n"
        "ends when the page is closed.",
    .example = "heft view model.safetensors",
    .group = GROUP_LOOK,
    .traits = COMMAND_SERVES,
    .without = WITHOUT(KEY) | WITHOUT(VIEW),
    .operands = { 0, -1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .prepare = prepare,
    .run = run,
};
