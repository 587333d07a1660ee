/* no_move.c - options about external data in a build without the module 'move'. */
#include "commands/job.h"

int job_move(job *j, const char *in)
{
    (void)in;
    return command_say_left_out(j->external_data ? "--external-data" : "--inline", "move");
}
