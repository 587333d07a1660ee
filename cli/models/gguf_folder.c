#include "models/gguf_folder.h"

#include <stdlib.h>
#include <string.h>

#include "models/beside.h"
#include "models/model.h"
#include "process/sinkwatch.h"
#include "process/textfile.h"

/* ---- to GGUF ---- */

static int read_text(heft_str *out, const char *path, const char *name)
{
    char *file;
    int code = text_beside(out, &file, path, name);
    free(file);
    return code;
}

/* Return the rows of the token embedding; 0: no tensor has a name of one. */
static uint64_t embedding_rows(const heft_file *f)
{
    static const char *const names[] = { "embed_tokens.weight", "wte.weight",
                                         "word_embeddings.weight" };
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor t = heft_tensor_at(f, i);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            size_t len = strlen(names[k]);
            if (t.rank == 2 && t.name.len >= len &&
                !memcmp(t.name.ptr + t.name.len - len, names[k], len))
                return t.dims[0];
        }
    }
    return 0;
}

static int say_notes(const gguf_folder *g, const session *s, const char *path)
{
    uint32_t count = 0;
    for (heft_str note; (note = heft_gguf_metadata_note(g->metadata, count)).ptr; count++)
        say_lost(s->strict, path, "%.*s", (int)note.len, note.ptr);
    bool has_tokenizer = heft_gguf_metadata_has_tokenizer(g->metadata);
    if (!has_tokenizer)
        say_lost(s->strict, path, "the folder has no tokenizer: llama.cpp does not load the file");
    return s->strict && (count || !has_tokenizer) ? CODE_CANNOT : CODE_DONE;
}

int gguf_folder_open(gguf_folder *g, const session *s, const heft_file *f, const char *path)
{
    heft_error err;
    heft_gguf_options opt = HEFT_GGUF_OPTIONS_INIT;
    int code = CODE_DONE;
    for (uint32_t i = 0; i < HEFT_GGUF_TEXTS && !code; i++)
        code = read_text(&g->texts[i], path, heft_gguf_text_file(i));
    if (code)
        return code;
    memcpy(opt.texts, g->texts, sizeof opt.texts);
    opt.pre = s->pre_tokenizer;
    opt.rows = embedding_rows(f);
    if (heft_gguf_metadata_open(&g->metadata, &opt, NULL, &err))
        return say_error(path, &err);
    return say_notes(g, s, path);
}

void gguf_folder_close(gguf_folder *g)
{
    heft_gguf_metadata_close(g->metadata);
    heft_gguf_texts_close(g->back);
    for (uint32_t i = 0; i < HEFT_GGUF_TEXTS; i++)
        text_free(g->texts[i]);
    *g = (gguf_folder){ .metadata = NULL };
}

/* ---- from GGUF ---- */

static int write_text(const session *s, heft_str text, char *file, bool force, bool no_sync)
{
    heft_error err;
    heft_sink *sink;
    if (!file)
        return CODE_SYSTEM;
    heft_status st = sink_open(&sink, file, force, no_sync, NULL, &err);
    if (!st)
        st = sink_write_whole(sink, text.ptr, text.len, &err);
    int code = st ? say_error(file, &err) : CODE_DONE;
    if (!code && !s->quiet)
        say(MESSAGE_INFO, file, "%llu bytes", (unsigned long long)text.len);
    free(file);
    return code;
}

int gguf_folder_make(gguf_folder *g, const session *s, const heft_file *f, const char *path)
{
    heft_error err;
    if (heft_gguf_texts_open(&g->back, f, &err))
        return say_error(path, &err);
    const char *refusal = heft_gguf_texts_refusal(g->back);
    if (refusal)
        say_lost(s->strict, path, "no tokenizer.json is written: %s", refusal);
    return refusal && s->strict ? CODE_CANNOT : CODE_DONE;
}

int gguf_folder_check(const char *folder, bool force)
{
    static const heft_gguf_text made[] = { HEFT_GGUF_CONFIG, HEFT_GGUF_TOKENIZER,
                                           HEFT_GGUF_TOKENIZER_CONFIG };
    int code = CODE_DONE;
    for (size_t i = 0; i < sizeof made / sizeof *made && !code && !force; i++) {
        char *file = path_in(folder, heft_gguf_text_file(made[i]));
        bool exists = false;
        code = file ? path_find(&exists, file) : CODE_SYSTEM;
        if (exists)
            code = say_status(HEFT_E_ARGUMENT, file, "already exists: --force replaces it");
        free(file);
    }
    return code;
}

int gguf_folder_write(const gguf_folder *g, const session *s, const char *folder, bool force,
                      bool no_sync)
{
    int code = CODE_DONE;
    for (uint32_t i = 0; g->back && i < HEFT_GGUF_TEXTS && !code; i++) {
        heft_str text = heft_gguf_texts_get(g->back, i);
        if (text.ptr)
            code = write_text(s, text, path_in(folder, heft_gguf_text_file(i)), force, no_sync);
    }
    return code;
}
