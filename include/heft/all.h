/* all.h - all public headers. */
#ifndef HEFT_ALL_H
#define HEFT_ALL_H

#include <heft/blend.h>
#include <heft/block_rows.h>
#include <heft/check.h>
#include <heft/companion.h>
#include <heft/delta.h>
#include <heft/doctor.h>
#include <heft/dtypes.h>
#include <heft/editing.h>
#include <heft/gguf_texts.h>
#include <heft/heft.h>
#include <heft/heft_ext.h>
#include <heft/ids.h>
#include <heft/lora.h>
#include <heft/map.h>
#include <heft/memory_limits.h>
#include <heft/mix.h>
#include <heft/params.h>
#include <heft/quantise.h>
#include <heft/remote.h>
#include <heft/scheme.h>
#include <heft/share.h>
#include <heft/sign.h>
#include <heft/source.h>
#include <heft/split.h>
#include <heft/vocabulary.h>
#include <heft/write.h>

#endif
