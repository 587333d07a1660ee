/* embd_types.c - EMBD's element types by code, version names, and rules of the checksums. */
#include "format/embd/embd.h"

const heft_dtype heft_embd_types[HEFT_EMBD_TYPES] = { HEFT_F32, HEFT_F16, HEFT_BF16,
                                                      HEFT_I32, HEFT_I16, HEFT_I8,
                                                      HEFT_U32, HEFT_U16, HEFT_U8 };

const char heft_embd_version[] = "1.0", heft_embd_simple_version[] = "simple";
const char heft_embd_header_crc[] = "embd/header-crc", heft_embd_data_crc[] = "embd/data-crc",
           heft_embd_file_crc[] = "embd/file-crc";
