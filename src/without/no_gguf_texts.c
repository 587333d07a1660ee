/* no_gguf_texts.c - what src/map asks about metadata of GGUF in a build without the module
 * 'gguf_texts'.  No program can make the objects that the functions take. */
#include <heft/gguf_texts.h>

const heft_value *heft_gguf_metadata_values(size_t *count, const heft_gguf_metadata *m)
{
    (void)m;
    *count = 0;
    return NULL;
}

heft_gguf_extra heft_gguf_metadata_extra(const heft_gguf_metadata *m, uint32_t i)
{
    (void)m, (void)i;
    return (heft_gguf_extra){ .name = NULL };
}

bool heft_gguf_texts_has(const heft_gguf_texts *t, heft_str key)
{
    (void)t, (void)key;
    return false;
}
