#include "recover.h"

#include <heft/split.h>

int recover_set(bool *recovered, const char *path)
{
    heft_recovery how;
    heft_error err;
    *recovered = false;
    if (heft_sink_dir_recover(&how, path, &err))
        return say_error(path, &err);
    *recovered = how != HEFT_RECOVERY_NONE;
    if (how == HEFT_RECOVERY_COMPLETED)
        say(MESSAGE_NOTE, path, "completed an interrupted split");
    if (how == HEFT_RECOVERY_ROLLED_BACK)
        say(MESSAGE_NOTE, path, "rolled back an interrupted split: the old files are restored");
    return CODE_DONE;
}
