/* server.h - the state of a server, and the steps of an answer.
 *
 * This room serves a list of files to a browser on this machine: server.c has the socket, the
 * secrets and the end, request.c decides who may ask, send_answer.c sends bytes, far_file.c reads
 * files of other servers. */
#ifndef HEFT_SERVER_H
#define HEFT_SERVER_H
#include <heft/private.h>
#include <heft/remote.h>
#include <pthread.h>
#include <stdatomic.h>

#include "port/serve/http_library.h"

enum {
    SECRET_BYTES = 32,
    SECRET_TEXT = 2 * SECRET_BYTES + 1,
    HOST_TEXT = 32 /* "127.0.0.1:65535" */
};

/* A file on another server, which several requests read; heft_server.opening guards `users`, and no
 * other file that was opened has the version. */
typedef struct far_file {
    heft_server *server;
    heft_source *source;
    uint32_t number; /* its place in the set */
    uint32_t version, users;
} far_file;

struct heft_server {
    const heft_http *http;
    struct MHD_Daemon *daemon;
    int listener; /* -1: none */
    uint16_t port;
    char token[SECRET_TEXT], cookie[SECRET_TEXT], cookie_name[HOST_TEXT];
    char address[SECRET_TEXT + 64];
    atomic_bool token_is_used;
    const heft_served_set *set;
    pthread_mutex_t opening; /* guards `far` and `versions`, while files are opened, too */
    far_file **far;          /* by the number of the file; NULL: not open */
    uint32_t versions;
    pthread_mutex_t lock;   /* guards the rest, and calls of set->failed */
    pthread_cond_t changed; /* holders */
    uint32_t holders;       /* requests for /alive that are open */
    bool was_held;
};

/* Decide who may ask; then answer. Called by libmicrohttpd, on a thread of the connection. */
enum MHD_Result heft_server_answer(void *server, struct MHD_Connection *c, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_bytes, void **state);

/* Answer with a sentence. */
enum MHD_Result heft_answer_text(heft_server *s, struct MHD_Connection *c, unsigned status,
                                 const char *text);
/* Send the browser to the page, with the cookie. */
enum MHD_Result heft_answer_start(heft_server *s, struct MHD_Connection *c);
/* Answer with a file, or the range that was asked for. */
enum MHD_Result heft_answer_file(heft_server *s, struct MHD_Connection *c, uint32_t file);
/* Answer without an end; the server runs as long as somebody listens. */
enum MHD_Result heft_answer_alive(heft_server *s, struct MHD_Connection *c);

/* Tell the user of the command what happened to a file of the set. */
void heft_server_say(heft_server *s, uint32_t file, const heft_error *err);

/* ---- far_file.c ---- */

/* Open a file of the set that has an address, unless it is open; release with heft_far_let_go(). */
heft_status heft_far_use(far_file **out, heft_server *s, uint32_t number, heft_error *err);
void heft_far_let_go(far_file *f);
/* Make an answer with a range of the file, whose first bytes are read now.  A failure is said. */
heft_status heft_far_answer(struct MHD_Response **out, far_file *take, uint64_t from,
                            uint64_t length, heft_error *err);
/* Close the files that are open, when no request runs. */
void heft_far_close_all(heft_server *s);

/* ---- byte_range.c ---- */

typedef enum byte_range_kind {
    RANGE_NONE, /* no range, several, or a text that is none: the whole file is sent */
    RANGE_ONE,
    RANGE_OUTSIDE /* the file ends before */
} byte_range_kind;

/* Read a header "Range" about a file of `size` bytes; text may be NULL. */
byte_range_kind heft_byte_range_read(uint64_t *from, uint64_t *length, const char *text,
                                     uint64_t size);

#endif
