#include "model_config.h"

#include <heft/companion.h>

#include <stdlib.h>

#include "model.h"
#include "textfile.h"

/* Warn about a file that is not valid JSON; missing memory is an error. Return an exit code. */
static int say_unreadable(const char *path, const heft_error *err)
{
    if (err->status == HEFT_E_NOMEM)
        return say_error(path, err);
    say(MESSAGE_WARNING, path, "is ignored: %s", err->message);
    return CODE_DONE;
}

static int parse(heft_settings **out, const char *path, bool warns)
{
    heft_error err;
    heft_str text;
    int code = text_read(&text, path, TEXT_FOUND);
    if (code)
        return code;
    if (heft_settings_parse_json(out, text, NULL, &err))
        code = warns || err.status == HEFT_E_NOMEM ? say_unreadable(path, &err) : CODE_DONE;
    text_free(text);
    return code;
}

int model_config_read(heft_settings **out, const char *path, const char *name, bool warns)
{
    char *config;
    *out = NULL;
    int code = model_find_beside(&config, path, name);
    if (!code && path_exists(config))
        code = parse(out, config, warns);
    free(config);
    return code;
}

int model_config_open(heft_settings **out, const heft_file *f, const char *path, const char *name,
                      bool warns)
{
    bool is_folder;
    *out = NULL;
    int code = path_find_folder(&is_folder, path);
    if (code || (!is_folder && !heft_shard_file_count(f)))
        return code;
    return model_config_read(out, path, name, warns);
}
