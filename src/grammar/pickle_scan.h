/* pickle_scan.h - reports the names that a pickle would import, without loading the pickle.
 *
 * Python calls only what a pickle has imported, so that the imports show every possible call.
 * Each import outside of a list of harmless names is a finding.  Hostile pickles are expected: the
 * time and the memory of a scan are proportional to the bytes of the pickle.
 */
#ifndef HEFT_PICKLE_SCAN_H
#define HEFT_PICKLE_SCAN_H
#include "base/arena.h"

typedef enum heft_pickle_danger {
    HEFT_PICKLE_IMPORT,     /* a name outside of the list: module, name */
    HEFT_PICKLE_HIDDEN,     /* an import with a name that only loading would compute */
    HEFT_PICKLE_EXTENSION,  /* an import by a number of the extension registry */
    HEFT_PICKLE_FOREIGN_ID, /* a persistent id that is not the id of a PyTorch storage */
    HEFT_PICKLE_BROKEN      /* Python would fail here, after all opcodes before have run */
} heft_pickle_danger;

typedef struct heft_pickle_finding {
    heft_pickle_danger danger;
    uint64_t at;           /* offset of the opcode in the pickle */
    uint8_t opcode;        /* 0 if the pickle ends before an opcode */
    heft_str module, name; /* borrowed from the pickle; not always UTF-8 */
} heft_pickle_finding;

typedef struct heft_pickle_scanner {
    heft_memory *memory;
    void (*found)(void *context, const heft_pickle_finding *finding);
    void *context;
    bool is_script; /* TorchScript resolves the modules below __torch__ in the archive */
} heft_pickle_scanner;

/* Scan one pickle at the start of the bytes and set *end to the offset after the last opcode read;
 * more pickles may follow.  HEFT_E_NOMEM is the only failure: damage is a finding. */
heft_status heft_pickle_scan(const heft_pickle_scanner *s, const void *bytes, uint64_t size,
                             uint64_t *end);

/* Return true if loading the exact name runs no code that the author of the pickle can choose. */
bool heft_pickle_is_harmless(heft_str module, heft_str name, bool is_script);
/* Return true if the name is known as a way to run programs or code, or to reach files and
 * networks.  Names outside of both lists are unknown. */
bool heft_pickle_is_dangerous(heft_str module, heft_str name);

#endif
