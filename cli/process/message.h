/* message.h - the lines on stderr: errors, warnings, notes, losses, progress and results, as text
 * or, with --messages json, as one JSON object per line.
 *
 * This room has what concerns the process: messages, the session, terminal, pager, signals,
 * threads, files of text, what the kernel allows. It knows no models beyond their paths. */
#ifndef HEFT_CLI_MESSAGE_H
#define HEFT_CLI_MESSAGE_H
#include <heft/check.h>

#include "text/jsonout.h"
#include "text/outbuf.h"

typedef enum message_kind {
    MESSAGE_NOTE = HEFT_NOTE,
    MESSAGE_WARNING = HEFT_WARNING,
    MESSAGE_FAULT = HEFT_FAULT,
    MESSAGE_LOSS,  /* a target format cannot represent something */
    MESSAGE_ERROR, /* why the command fails */
    MESSAGE_INFO   /* a summary or a hint */
} message_kind;

/* Further messages of the same rule that a message stands for. */
typedef struct message_more {
    uint64_t count;   /* number of messages in total; 0: a single message */
    const char *text; /* text of the second message */
    heft_str tensor;  /* tensor of the second message; ptr NULL: none */
} message_more;

typedef struct message {
    message_kind kind;
    heft_severity severity; /* severity of a loss; HEFT_FAULT ends the conversion */
    heft_status status;     /* the status of an error */
    int os;                 /* errno of an error, or 0 */
    const char *file, *text;
    const char *rule;       /* NULL: none */
    heft_str tensor, shard; /* ptr NULL: none */
    uint64_t offset;        /* or HEFT_NOWHERE */
    message_more more;
} message;

enum { MESSAGE_LINE = 4096 }; /* a longer line is written in pieces */

typedef struct result_line { /* a message of the kind "result" */
    json json;
    outbuf o;
    char buf[MESSAGE_LINE];
} result_line;

typedef struct message_style {
    bool is_json;      /* --messages json */
    bool is_quiet;     /* --quiet: neither notes nor warnings; errors remain */
    bool can_list_all; /* say that -v lists all messages of a rule: the command has this option */
} message_style;

/* Set the style of all messages from now on. */
void message_set_style(const message_style *given);
/* Use JSON if the command line asks for it, even in words that are never parsed because an earlier
 * word is wrong; otherwise text. */
void message_find_format(int argc, char **argv);
bool message_is_json(void);

/* Print a message. Text has the form "heft: FILE: KIND: RULE: text (tensor "w", at byte N)". */
void message_print(const message *m);
/* Write " (tensor "w", at byte 10 of SHARD)", or nothing if both tensor and offset are missing. */
void out_place(outbuf *o, heft_str tensor, uint64_t offset, heft_str shard);
/* Print that an interrupt ended the command before it wrote anything. Safe in a signal handler. */
void message_announce_interrupt(void);
/* Print a message and exit on SIGBUS: another program truncated a memory-mapped file. The library
 * guards its own reads; the command also touches mapped bytes directly. */
void message_announce_bus_errors(void);
/* Print the progress of a long operation, in bytes; for --messages json only. */
void message_progress(uint64_t done, uint64_t total);

/* Begin the last message of a successful command that writes `file`; the caller adds members.
 * Return false, without anything to add, unless messages are JSON. */
bool result_begin(result_line *r, const char *file);
void result_end(result_line *r);

/* Print "heft: FILE: KIND: text", or "heft: KIND: text" if file is NULL. */
void say(message_kind kind, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print a loss, which is an error with is_error. */
void say_lost(bool is_error, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print an error line; return the exit code for the status. */
int say_status(heft_status status, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print the error of a system call; return CODE_SYSTEM. */
int say_system(int os, const char *file);
/* Print the error of a library call; return its exit code. */
int say_error(const char *file, const heft_error *err);
/* Print an error in a command's usage and refer to its --help; return CODE_USAGE. */
int say_usage(const char *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- collect messages ---- */

typedef struct message_group message_group;

typedef struct message_groups {
    message_group *items; /* by rule and severity, in the order of the first message */
    size_t count, capacity;
    bool lists_all; /* print every message at once, as --verbose asks */
} message_groups;

/* Add a message of the kind note, warning, fault or loss; everything is copied. A message that
 * cannot be kept is printed. */
void message_groups_add(message_groups *g, const message *m);
/* Print the messages added since the last call, and forget them. */
void message_groups_print(message_groups *g);

/* Print the warnings about an open file and, if `notes`, its notes; without `left_out`, none about
 * content that is left out, which is reported as a loss. */
void notices_say(const heft_file *f, const char *path, bool notes, bool left_out);

#endif
