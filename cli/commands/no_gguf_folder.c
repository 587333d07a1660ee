/* no_gguf_folder.c - `--map` to and from GGUF in a build without the module 'gguf_texts'. */
#include "models/gguf_folder.h"
#include "options/command.h"

int gguf_folder_open(gguf_folder *g, const session *s, const heft_file *f, const char *path)
{
    (void)g, (void)s, (void)f, (void)path;
    return command_say_left_out("--map to GGUF", "gguf_texts");
}

void gguf_folder_close(gguf_folder *g)
{
    *g = (gguf_folder){ .metadata = NULL };
}

int gguf_folder_make(gguf_folder *g, const session *s, const heft_file *f, const char *path)
{
    (void)g, (void)s, (void)f, (void)path;
    return command_say_left_out("a folder of texts from a GGUF file", "gguf_texts");
}

int gguf_folder_check(const char *folder, bool force)
{
    (void)folder, (void)force;
    return CODE_DONE;
}

int gguf_folder_write(const gguf_folder *g, const session *s, const char *folder, bool force,
                      bool no_sync)
{
    (void)g, (void)s, (void)folder, (void)force, (void)no_sync;
    return CODE_DONE;
}
