/* gguf_folder.h - metadata for a GGUF file from the texts in a model's folder, and texts from the
 * metadata. */
#ifndef HEFT_CLI_GGUF_FOLDER_H
#define HEFT_CLI_GGUF_FOLDER_H
#include <heft/gguf_texts.h>

#include "process/command_session.h"

typedef struct gguf_folder {
    heft_str texts[HEFT_GGUF_TEXTS];
    heft_gguf_metadata *metadata; /* of a model that becomes GGUF, or NULL */
    heft_gguf_texts *back;        /* of a GGUF file that becomes a folder, or NULL */
} gguf_folder;

/* Read the texts next to the model f, opened from `path`, and make metadata of them. What llama.cpp
 * computes otherwise, and a missing tokenizer, are warnings, or errors under --strict. Return an
 * exit code. */
int gguf_folder_open(gguf_folder *g, const session *s, const heft_file *f, const char *path);
void gguf_folder_close(gguf_folder *g);

/* Make the texts of a GGUF file. A tokenizer that cannot be made is a warning, or an error under
 * --strict. Return an exit code. */
int gguf_folder_make(gguf_folder *g, const session *s, const heft_file *f, const char *path);
/* Refuse to replace a text of the folder without `force`. Return an exit code. */
int gguf_folder_check(const char *folder, bool force);
/* Write the texts to a folder. Return an exit code. */
int gguf_folder_write(const gguf_folder *g, const session *s, const char *folder, bool force,
                      bool no_sync);

#endif
