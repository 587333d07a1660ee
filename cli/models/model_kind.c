#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/companions.h"
#include "models/pipeline.h"
#include "models/quantised_model.h"
#include "process/textfile.h"

static const char index_name[] = "model_index.json";

bool pipeline_is(const heft_file *f)
{
    return str_same(heft_file_name(f), str_of(index_name));
}

static int parse(pipeline *out, const char *path)
{
    heft_error err;
    heft_str text;
    heft_value v;
    int code = text_read(&text, path, TEXT_FOUND);
    if (code)
        return code;
    heft_status st = heft_settings_parse_json(&out->settings, text, NULL, &err);
    text_free(text);
    if (!st)
        st = heft_settings_pipeline(out->component, &out->count, out->settings, &err);
    if (!st && heft_settings_find(&v, out->settings, str_of("_class_name")) &&
        v.kind == HEFT_KIND_STR)
        out->class_name = v.as.s;
    return st ? say_error(path, &err) : CODE_DONE;
}

int pipeline_read(pipeline *out, const heft_file *f, const char *path)
{
    *out = (pipeline){ .settings = NULL };
    if (!pipeline_is(f))
        return CODE_DONE;
    char *index;
    int code = model_find_beside(&index, path, index_name);
    if (!code)
        code = parse(out, index);
    free(index);
    return code;
}

void pipeline_free(pipeline *p)
{
    heft_settings_close(p->settings);
    p->settings = NULL;
}

/* ---- output ---- */

/* A component that could not be opened is a shard with the name of the folder. */
static bool is_missing(const heft_file *f, heft_str name)
{
    for (uint32_t i = 0; i < heft_shard_file_count(f); i++) {
        heft_shard_file s = heft_shard_file_at(f, i);
        if (s.status && str_same(s.name, name))
            return true;
    }
    return false;
}

static const char *state_of(const heft_pipeline_component *c, const heft_file *f)
{
    if (!c->is_present)
        return "none";
    return !c->has_weights ? "no weights" : is_missing(f, c->name) ? "missing" : "present";
}

void pipeline_print(outbuf *o, const pipeline *p, const heft_file *f)
{
    for (uint32_t i = 0; p->settings && i < p->count; i++) {
        const heft_pipeline_component *c = &p->component[i];
        out_format(o, "%-11s ", i ? "" : "Components");
        out_name(o, c->name);
        out_text(o, ": ");
        if (c->is_present) {
            out_name(o, c->class_name);
            out_text(o, ", ");
        }
        out_text(o, state_of(c, f));
        out_char(o, '\n');
    }
}

void pipeline_json(json *j, const pipeline *p, const heft_file *f)
{
    if (!p->settings)
        return;
    json_member_begin(j, "pipeline", '{');
    json_member_str(j, "class", p->class_name);
    json_member_begin(j, "components", '[');
    for (uint32_t i = 0; i < p->count; i++) {
        const heft_pipeline_component *c = &p->component[i];
        json_begin(j, '{');
        json_member_str(j, "name", c->name);
        json_member_text(j, "class", c->class_name);
        json_member_text(j, "library", c->library);
        json_member_str(j, "state", str_of(state_of(c, f)));
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}

/* Names that only one family of models has; the first row that matches a tensor counts. Adapters
 * and parts of pipelines come first, since their names contain the names of the changed models. */
static const struct {
    const char *glob, *kind;
} families[] = {
    { "*lora_{A,B}*", "LoRA adapter" },
    { "*lora_{down,up}*", "LoRA adapter" },
    { "*.hada_w1_a", "LoHa adapter" },
    { "*.lokr_w1*", "LoKr adapter" },
    { "*ia3_l*", "IA3 adapter" },
    { "control_model.*", "ControlNet" },
    { "controlnet_*", "ControlNet" },
    { "model.diffusion_model.joint_blocks.*", "Stable Diffusion 3" },
    { "model.diffusion_model.*", "Stable Diffusion checkpoint" },
    { "*double_blocks.[0-9]*.img_attn.*", "Flux transformer" },
    { "*down_blocks.[0-9]*.attentions.*transformer_blocks.*", "diffusion U-Net (diffusers)" },
    { "unet.*", "diffusion U-Net" },
    { "*decoder.up_blocks.[0-9]*.resnets.*", "autoencoder (diffusers)" },
    { "first_stage_model.*", "autoencoder" },
    { "*transformer_blocks.[0-9]*.attn.add_q_proj.*", "diffusion transformer (diffusers)" },
    { "*visual.transformer.resblocks.*", "CLIP (OpenAI)" },
    { "*{text,vision}_model.encoder.layers.[0-9]*.self_attn.*", "CLIP or SigLIP" },
    { "*encoder.layers.[0-9]*.self_attn.*_codebook*", "audio codec" },
    { "*wav2vec2.*", "wav2vec 2.0" },
    { "*decoder.layers.[0-9]*.encoder_attn.*", "encoder-decoder (BART, Whisper)" },
    { "*block.[0-9]*.layer.[0-9]*.SelfAttention.*", "T5" },
    { "*blocks.[0-9]*.att.time_*", "RWKV" },
    { "*layers.[0-9]*.mixer.A_log", "Mamba" },
    { "*layers.[0-9]*.mlp.experts.*", "mixture of experts, Llama-style" },
    { "*layers.[0-9]*.block_sparse_moe.experts.*", "mixture of experts (Mixtral)" },
    { "*layers.[0-9]*.self_attn.q_proj.*", "decoder, Llama-style" },
    { "*layers.[0-9]*.self_attn.qkv_proj.*", "decoder (Phi-3)" },
    { "*layers.[0-9]*.attention.wq.*", "Llama (original)" },
    { "*layers.[0-9]*.attention.query_key_value.*", "GPT-NeoX" },
    { "*h.[0-9]*.self_attention.query_key_value.*", "BLOOM or Falcon" },
    { "*h.[0-9]*.attn.c_attn.*", "GPT-2" },
    { "*h.[0-9]*.attn.*q_proj.*", "GPT-J or GPT-Neo" },
    { "*transformer.h.[0-9]*.*", "GPT" },
    { "*embeddings.patch_embedding*", "vision transformer" },
    { "*encoder.layer.[0-9]*.attention.self.query.*", "BERT" },
    { "*transformer.layer.[0-9]*.attention.q_lin.*", "DistilBERT" },
    { "*blocks.[0-9]*.attn.qkv.*", "vision transformer" },
    { "blk.[0-9]*.attn_*", "transformer (llama.cpp names)" },
    { "*layers.[0-9]*.{attention,attn,self_attn}.*", "transformer" },
    { "*blocks.[0-9]*.{attention,attn}.*", "transformer" },
    { "*layer1.0.conv1.weight", "ResNet" },
    { "*features.[0-9]*.weight", "convolutional network" },
};

static void set(model_kind *out, const char *source, heft_str kind, heft_str evidence)
{
    snprintf(out->kind, sizeof out->kind, "%.*s", (int)kind.len, kind.ptr);
    snprintf(out->evidence, sizeof out->evidence, "%.*s", (int)evidence.len, evidence.ptr);
    out->source = source;
}

static heft_str shortened(heft_str s, size_t most)
{
    return (heft_str){ s.ptr, s.len < most ? s.len : most };
}

/* ---- metadata ---- */

static bool find_in_metadata(model_kind *out, const heft_file *f)
{
    static const char *const keys[] = { "general.architecture", "modelspec.architecture",
                                        "ss_network_module", "model_type", "architecture" };
    heft_value v;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (heft_meta_find(&v, f, heft_str_from(keys[i])) && v.kind == HEFT_KIND_STR &&
            v.as.s.len) {
            set(out, "metadata", shortened(v.as.s, sizeof out->kind), heft_str_from(keys[i]));
            return true;
        }
    return false;
}

/* ---- config.json ---- */

static bool find_in_settings(model_kind *out, const heft_settings *s)
{
    static const char *const paths[] = { "architectures.0", "model_type", "_class_name",
                                         "peft_type" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        uint32_t at = heft_settings_find_path(s, heft_str_from(paths[i]));
        heft_value v = { .kind = HEFT_KIND_NULL };
        if (at != HEFT_NONE)
            v = heft_settings_value_at(s, at);
        if (v.kind == HEFT_KIND_STR && v.as.s.len) {
            set(out, "config", shortened(v.as.s, sizeof out->kind), heft_str_from(paths[i]));
            return true;
        }
    }
    return false;
}

static int find_in_folder(model_kind *out, const heft_file *f, const char *path)
{
    heft_settings *settings;
    int code = model_config_open(&settings, f, path, "config.json", true);
    if (settings)
        (void)find_in_settings(out, settings);
    heft_settings_close(settings);
    return code;
}

/* ---- names ---- */

/* A model of one family shows a typical name early, so a part of a large file is enough. */
enum { NAMES_TESTED = 10000 };

static int find_in_names(model_kind *out, const heft_file *f, const char *path)
{
    bool no_memory = false;
    uint32_t count = heft_tensor_count(f);
    count = count < NAMES_TESTED ? count : NAMES_TESTED;
    for (size_t k = 0; k < sizeof families / sizeof *families && !*out->kind; k++)
        for (uint32_t i = 0; i < count && !*out->kind && !no_memory; i++) {
            heft_str name = heft_tensor_at(f, i).name;
            if (name_matches(&no_memory, name, families[k].glob))
                set(out, "names", heft_str_from(families[k].kind),
                    shortened(name, sizeof out->evidence));
        }
    return no_memory ? say_status(HEFT_E_NOMEM, path, "no memory to match tensor names")
                     : CODE_DONE;
}

/* ---- adapters ---- */

static void copy_setting(char *to, size_t capacity, const heft_settings *s, const char *key)
{
    heft_value v;
    if (heft_settings_find(&v, s, heft_str_from(key)) && v.kind == HEFT_KIND_STR)
        snprintf(to, capacity, "%.*s", (int)shortened(v.as.s, capacity).len, v.as.s.ptr);
}

/* PEFT writes adapter_config.json beside adapter_model.safetensors or adapter_model.bin. */
static int find_adapter(model_kind *out, const heft_file *f, const char *path)
{
    static const char prefix[] = "adapter_model.";
    heft_str name = heft_file_name(f);
    if (name.len < sizeof prefix || memcmp(name.ptr, prefix, sizeof prefix - 1) != 0)
        return CODE_DONE;
    heft_settings *settings;
    int code = model_config_read(&settings, path, "adapter_config.json", true);
    if (settings) {
        copy_setting(out->adapter_type, sizeof out->adapter_type, settings, "peft_type");
        copy_setting(out->adapter_base, sizeof out->adapter_base, settings,
                     "base_model_name_or_path");
    }
    heft_settings_close(settings);
    return code;
}

/* ---- pipelines ---- */

/* The index of a pipeline is the opened file, so it has been read before. */
static int find_pipeline(model_kind *out, const heft_file *f, const char *path)
{
    pipeline p;
    int code = pipeline_read(&p, f, path);
    if (!code && p.class_name.len)
        set(out, "pipeline", shortened(p.class_name, sizeof out->kind), str_of("_class_name"));
    pipeline_free(&p);
    return code;
}

/* ---- the kind ---- */

/* Return the name of the mix that the metadata of a GGUF file state, or NULL. */
static const char *find_mix(const heft_file *f)
{
    heft_value v;
    if (strcmp(heft_format_name(heft_file_format(f)), "gguf") != 0 ||
        !heft_meta_find(&v, f, str_of("general.file_type")) || v.kind != HEFT_KIND_UINT)
        return NULL;
    return quantise_mix_name(v.as.u);
}

int model_kind_find(model_kind *out, const heft_file *f, const char *path)
{
    *out = (model_kind){ .mix = find_mix(f) };
    int code = find_adapter(out, f, path);
    if (!code)
        code = find_pipeline(out, f, path);
    if (code || *out->kind || find_in_metadata(out, f))
        return code;
    code = find_in_folder(out, f, path);
    return code || *out->kind ? code : find_in_names(out, f, path);
}

void model_kind_print(outbuf *o, const model_kind *m)
{
    static const struct {
        const char *source, *text;
    } by[] = { { "metadata", "metadata" },
               { "config", "config.json" },
               { "names", "the name of tensor" },
               { "pipeline", "model_index.json" } };
    size_t i = 0;
    if (*m->adapter_base) {
        out_format(o, "%-11s ", "Adapter");
        out_escaped(o, str_of(m->adapter_type));
        out_text(o, *m->adapter_type ? " of " : "of ");
        out_escaped(o, str_of(m->adapter_base));
        out_char(o, '\n');
    }
    if (m->mix)
        out_format(o, "%-11s %s, by metadata general.file_type\n", "Mix", m->mix);
    if (!*m->kind)
        return;
    while (strcmp(by[i].source, m->source) != 0)
        i++;
    out_format(o, "%-11s ", "Model");
    out_escaped(o, str_of(m->kind));
    out_format(o, ", by %s ", by[i].text);
    out_name(o, str_of(m->evidence));
    out_char(o, '\n');
}

void model_kind_json(json *j, const model_kind *m)
{
    if (*m->adapter_base) {
        json_member_begin(j, "adapter", '{');
        json_member_text(j, "type", str_of(m->adapter_type));
        json_member_str(j, "base", str_of(m->adapter_base));
        json_end(j, '}');
    }
    if (m->mix)
        json_member_str(j, "mix", str_of(m->mix));
    if (!*m->kind)
        return;
    json_member_begin(j, "model", '{');
    json_member_str(j, "kind", str_of(m->kind));
    json_member_str(j, "source", str_of(m->source));
    json_member_str(j, "evidence", str_of(m->evidence));
    json_end(j, '}');
}
