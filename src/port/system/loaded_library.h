/* loaded_library.h - a shared library that is loaded when it is first needed.
 *
 * Commands that do not need the library start sooner, and Heft runs where it is not installed.  A
 * file that uses a library has a table of the functions that it calls, and says what is missing. */
#ifndef HEFT_PORT_LOADED_LIBRARY_H
#define HEFT_PORT_LOADED_LIBRARY_H
#include <pthread.h>
#include <stddef.h>

typedef struct heft_library_function {
    const char *name;
    size_t offset; /* of the pointer to the function, in `functions` */
} heft_library_function;

typedef struct heft_loaded_library {
    const char *file; /* "libcurl.so.4" */
    void *functions;  /* a struct of pointers to functions */
    const heft_library_function *names;
    size_t count;
    pthread_mutex_t lock;
    void *handle; /* of dlopen(), which keeps the library until the process ends */
} heft_loaded_library;
#define HEFT_LOADED_LIBRARY(file, functions, names)                                            \
    {                                                                                          \
        file, &(functions), names, sizeof(names) / sizeof *(names), PTHREAD_MUTEX_INITIALIZER, \
            NULL                                                                               \
    }

typedef enum heft_library_state {
    HEFT_LIBRARY_LOADED,
    HEFT_LIBRARY_MISSING, /* cannot be opened */
    HEFT_LIBRARY_OTHER,   /* lacks a function: another version */
    HEFT_LIBRARY_NO_MEMORY
} heft_library_state;

/* Load the library, unless it is loaded already.  Threads may call this at the same time. */
heft_library_state heft_library_load(heft_loaded_library *l);

#endif
