/* api_examples.c - an example for each section of the public headers; tools/gen_api.py copies the
 * examples into docs/api.md. Usage: api_examples DIR, an empty directory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/all.h>

/* heft.h: version, status, errors */
static int print_error(const char *path)
{
    heft_file *file;
    heft_error err;
    if (heft_file_open(&file, path, NULL, &err)) {
        fprintf(stderr, "%s: %s: %s\n", path, heft_status_name(err.status), err.message);
        return 1;
    }
    heft_file_close(file);
    return 0;
}

/* heft.h: opening */
static heft_status open_state_dict(heft_file **out, const char *path, heft_error *err)
{
    heft_open_options options = HEFT_OPEN_OPTIONS_INIT;
    options.key = "state_dict"; /* of a nested PyTorch checkpoint */
    options.check_parts = true; /* compare the digest of each part that is read */
    return heft_file_open(out, path, &options, err);
}

/* heft.h: tensors and parts */
static void list_tensors(const heft_file *file)
{
    for (uint32_t id = 0; id < heft_tensor_count(file); id++) {
        heft_tensor t = heft_tensor_at(file, id);
        printf("%.*s: rank %u, %" PRIu64 " bytes\n", (int)t.name.len, t.name.ptr, t.rank,
               heft_tensor_bytes(file, id));
    }
}

/* heft.h: reading whole tensors */
static heft_status first_value(float *out, const heft_file *file, heft_error *err)
{
    heft_array a;
    heft_status st = heft_array_read(&a, file, HEFT_STR("wte.weight"), HEFT_F32, NULL, 0, err);
    if (st)
        return st;
    memcpy(out, a.data, sizeof *out);
    heft_array_free(&a);
    return HEFT_OK;
}

/* heft.h: reading parts */
static heft_status read_in_chunks(uint64_t *sum, const heft_file *file, uint32_t part,
                                  heft_error *err)
{
    uint8_t buffer[4096];
    uint64_t left = heft_part_at(file, part).length;
    heft_stream *stream;
    heft_status st = heft_stream_open_checked(&stream, file, part, err);
    while (!st && left) {
        size_t n = left < sizeof buffer ? (size_t)left : sizeof buffer;
        st = heft_stream_read(buffer, stream, n, err);
        for (size_t i = 0; !st && i < n; i++)
            *sum += buffer[i];
        left -= n;
    }
    heft_stream_close(stream);
    return st;
}

/* heft.h: element types */
static bool to_bf16(uint16_t *out, const float *values, size_t count)
{
    const heft_dtype_info *type = heft_dtype_get(HEFT_BF16);
    printf("%s: %u bytes for each element\n", type->name, type->block_bytes);
    return heft_dtype_cast(out, HEFT_BF16, values, HEFT_F32, count);
}

/* heft.h: metadata */
static void print_license(const heft_file *file)
{
    heft_value v;
    if (heft_meta_find(&v, file, HEFT_STR("license")) && v.kind == HEFT_KIND_STR)
        printf("license: %.*s\n", (int)v.as.s.len, v.as.s.ptr);
}

/* ids.h: finding tensors */
static void print_name_of_parameter(const heft_file *file, uint64_t burn_id)
{
    heft_id id = { .kind = HEFT_ID_BURN, .burn = burn_id };
    uint32_t tensor = heft_tensor_find_id(file, &id, NULL);
    heft_str name = heft_tensor_at(file, tensor).name; /* empty if there is none */
    printf("%" PRIu64 ": %.*s\n", burn_id, (int)name.len, name.ptr);
}

/* heft.h: facts of the file */
static void print_facts(const heft_file *file)
{
    heft_str version = heft_file_version(file);
    printf("%s %.*s, %" PRIu64 " bytes, %u shards\n", heft_format_name(heft_file_format(file)),
           (int)version.len, version.ptr, heft_file_size(file), heft_shard_file_count(file));
}

/* heft.h: formats */
static void list_writable_formats(void)
{
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *format = heft_format_at(i);
        if (heft_format_caps(format) & HEFT_CAN_WRITE)
            printf("%s: %s\n", heft_format_name(format), heft_format_suffixes(format));
    }
}

/* block_rows.h: rows of blocks */
static void print_loss_of_q4_k(const float row[256])
{
    uint8_t block[144]; /* heft_dtype_get(HEFT_Q4_K)->block_bytes */
    float decoded[256];
    heft_error err;
    if (heft_block_encode(block, sizeof block, HEFT_Q4_K, row, 256, NULL, &err) ||
        heft_block_decode(decoded, HEFT_Q4_K, block, sizeof block, 256, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return;
    }
    printf("%g became %g\n", (double)row[0], (double)decoded[0]);
}

/* source.h: sources */
static heft_status open_bytes(heft_file **out, const void *data, size_t len, heft_error *err)
{
    heft_source *source;
    heft_status st = heft_source_open_memory(&source, data, len, err);
    return st ? st : heft_file_open_source(out, source, NULL, err);
}

/* source.h: feeding */
static heft_status open_fed(heft_file **out, const uint8_t *data, size_t len, heft_error *err)
{
    heft_status st = heft_file_begin(out, len, NULL, err);
    while (!st && (st = heft_file_step(*out, err)) == HEFT_AGAIN) {
        const heft_range *need;
        size_t count = heft_file_needs(*out, &need);
        st = HEFT_OK;
        for (size_t i = 0; !st && i < count; i++) /* a program would fetch the range here */
            st = heft_file_feed(*out, need[i].offset, data + need[i].offset, (size_t)need[i].length,
                                err);
    }
    return st;
}

/* source.h: joining files */
static heft_status join_with_lora(heft_file **out, const heft_file *base, const heft_file *lora,
                                  heft_error *err)
{
    const heft_file *files[] = { base, lora };
    heft_join_options options = HEFT_JOIN_OPTIONS_INIT;
    options.duplicates = HEFT_DUPLICATES_LAST;
    return heft_file_join(out, files, 2, &options, err);
}

/* check.h: findings */
static void print_notices(const heft_file *file)
{
    heft_finding finding;
    for (uint32_t i = 0, n = heft_notice_count(file); i < n; i++) {
        finding = heft_notice_at(file, i);
        printf("%s: %s\n", finding.rule, finding.text);
    }
}

/* check.h: checksums and rules */
static heft_status is_sound(bool *out, const heft_file *file, heft_error *err)
{
    heft_verify_result result;
    heft_status st = heft_file_verify(&result, file, NULL, err);
    *out = !st && !result.faults;
    return st;
}

/* check.h: pickles */
static heft_status may_be_loaded(bool *out, const char *path, heft_error *err)
{
    heft_source *source;
    heft_scan_result result;
    heft_scan_options options = HEFT_SCAN_OPTIONS_INIT;
    options.name = path;
    heft_status st = heft_source_open_file(&source, path, HEFT_ACCESS_AUTO, err);
    if (st)
        return st;
    st = heft_source_scan(&result, source, &options, err);
    heft_source_close(source);
    *out = !st && !result.findings;
    return st;
}

/* doctor.h: intact tensors */
static void list_intact(const heft_doctor *doctor)
{
    const heft_file *file = heft_doctor_file(doctor);
    for (uint32_t i = 0; file && i < heft_tensor_count(file); i++)
        if (!heft_doctor_is_lost(doctor, i))
            printf("%.*s\n", (int)heft_tensor_at(file, i).name.len,
                   heft_tensor_at(file, i).name.ptr);
}

/* doctor.h: diagnoses */
static heft_status print_damage(const char *path, heft_error *err)
{
    heft_source *source;
    heft_doctor *doctor;
    heft_diagnosis damage;
    heft_status st = heft_source_open_file(&source, path, HEFT_ACCESS_AUTO, err);
    if (!st)
        st = heft_doctor_open(&doctor, source, NULL, err);
    if (st)
        return st;
    for (uint32_t i = 0, n = heft_diagnosis_count(doctor); i < n; i++) {
        damage = heft_diagnosis_at(doctor, i);
        printf("%s: %s; %s\n", damage.kind, damage.text, damage.advice ? damage.advice : "");
    }
    list_intact(doctor);
    heft_doctor_close(doctor);
    return HEFT_OK;
}

/* sign.h: digests of files */
static heft_status digest_file(heft_resource *out, const char *path, heft_error *err)
{
    heft_source *source;
    heft_status st = heft_source_open_file(&source, path, HEFT_ACCESS_READ, err);
    if (st)
        return st;
    *out = (heft_resource){ .name = HEFT_STR("."),
                            .algorithm = HEFT_STR("sha256"),
                            .to = HEFT_UNKNOWN_LENGTH };
    st = heft_source_digest(&out->digest, source, "sha256", 0, source->size, NULL, NULL, err);
    heft_source_close(source);
    return st;
}

/* sign.h: keys and certificates, by libcrypto */
static heft_status sign_file(heft_blob *out, const char *path, heft_str key, heft_error *err)
{
    heft_resource file;
    heft_signature *signature = NULL;
    heft_sink *sink;
    heft_signature_options options = {
        .size = sizeof options, .model = HEFT_STR("model"), .resources = &file, .resource_count = 1
    };
    heft_status st = digest_file(&file, path, err);
    if (!st)
        st = heft_signature_new(&signature, &options, err);
    if (!st)
        st = heft_signature_sign(signature, key, HEFT_STR(""), err);
    if (!st)
        st = heft_sink_open_memory(&sink, out, NULL, err);
    if (!st)
        st = heft_signature_write(signature, sink, err);
    heft_signature_close(signature);
    return st;
}

/* sign.h: signatures */
static heft_status is_signed(bool *out, const char *path, heft_str text, heft_str key,
                             heft_error *err)
{
    heft_signature *signature;
    heft_resource file, stated;
    heft_status st = heft_signature_read(&signature, text, NULL, err);
    if (st)
        return st;
    st = heft_signature_check_key(signature, key, err);
    if (!st)
        st = digest_file(&file, path, err);
    stated = heft_resource_at(signature, 0);
    *out = !st && stated.name.len == 1 &&
           !memcmp(stated.digest.bytes, file.digest.bytes, file.digest.length);
    heft_signature_close(signature);
    return st;
}

/* check.h: checked reads */
static heft_status read_checked(void *buf, const heft_file *file, uint32_t part, size_t bytes,
                                heft_error *err)
{
    heft_checked_read *read;
    heft_stream *stream;
    heft_status st = heft_checked_read_open(&read, file, &part, 1, err);
    if (st)
        return st;
    st = heft_checked_read_stream(&stream, read, part, err);
    if (!st) {
        st = heft_stream_read(buf, stream, bytes, err);
        heft_stream_close(stream);
    }
    if (!st)
        st = heft_checked_read_end(read, err);
    heft_checked_read_close(read);
    return st;
}

/* check.h: hashes */
static heft_status same_tensors(bool *out, const heft_file *a, const heft_file *b, heft_error *err)
{
    heft_hash models[2];
    heft_hash *hashes = malloc((heft_tensor_count(a) + heft_tensor_count(b)) * sizeof *hashes);
    heft_status st = hashes ? HEFT_OK : HEFT_E_NOMEM;
    if (!st)
        st = heft_file_hash(&models[0], hashes, a, NULL, NULL, err);
    if (!st)
        st = heft_file_hash(&models[1], hashes + heft_tensor_count(a), b, NULL, NULL, err);
    *out = !st && !memcmp(&models[0], &models[1], sizeof *models);
    free(hashes);
    return st;
}

/* vocabulary.h: vocabulary */
static heft_status find_token(uint32_t *id, heft_str lines, const char *token, heft_error *err)
{
    heft_vocab *vocab;
    heft_status st = heft_vocab_parse_lines(&vocab, lines, NULL, err);
    if (st)
        return st;
    *id = heft_vocab_find(vocab, heft_str_from(token));
    heft_vocab_close(vocab);
    return HEFT_OK;
}

/* companion.h: settings */
static heft_status hidden_size(int64_t *out, heft_str config, heft_error *err)
{
    heft_settings *settings;
    heft_value v;
    heft_status st = heft_settings_parse_json(&settings, config, NULL, err);
    if (st)
        return st;
    bool found = heft_settings_find(&v, settings, HEFT_STR("hidden_size"));
    *out = found && v.kind == HEFT_KIND_INT ? v.as.i : 0;
    heft_settings_close(settings);
    return HEFT_OK;
}

/* companion.h: pipelines */
static heft_status count_models(uint32_t *out, heft_str model_index, heft_error *err)
{
    heft_pipeline_component component[HEFT_PIPELINE_COMPONENTS];
    heft_settings *settings;
    uint32_t count;
    heft_status st = heft_settings_parse_json(&settings, model_index, NULL, err);
    if (st)
        return st;
    *out = 0;
    st = heft_settings_pipeline(component, &count, settings, err);
    for (uint32_t i = 0; i < count; i++)
        *out += component[i].has_weights;
    heft_settings_close(settings);
    return st;
}

/* companion.h: profiles */
static heft_status fits_profile(bool *out, const heft_file *file, heft_str json, heft_error *err)
{
    heft_profile *profile;
    heft_verify_result result = { .faults = 0 };
    heft_status st = heft_profile_parse_json(&profile, json, NULL, err);
    if (st)
        return st;
    st = heft_profile_check(&result, profile, file, NULL, NULL, err);
    *out = !st && !result.faults;
    heft_profile_close(profile);
    return st;
}

/* scheme.h: quantised tensors */
static heft_status is_quantised(bool *out, const heft_file *file, heft_str tensor, heft_error *err)
{
    heft_schemes *schemes;
    heft_status st = heft_schemes_open(&schemes, file, NULL, err);
    if (st)
        return st;
    *out = heft_schemes_find(schemes, heft_tensor_find(file, tensor)) != HEFT_NONE;
    heft_schemes_close(schemes);
    return HEFT_OK;
}

/* mix.h: importance */
static heft_status read_importance(heft_importance **out, const heft_file *imatrix, heft_error *err)
{
    return heft_importance_open(out, imatrix, err);
}

/* mix.h: mixes */
static heft_status print_types(const heft_file *file, const heft_importance *importance,
                               heft_error *err)
{
    heft_mix_options opt = HEFT_MIX_OPTIONS_INIT;
    heft_mix *mix;
    opt.mix = "q8_0";
    opt.importance = importance;
    heft_status st = heft_mix_open(&mix, file, &opt, err);
    for (uint32_t i = 0; !st && i < heft_tensor_count(file); i++)
        puts(heft_dtype_get(heft_mix_at(mix, i).to)->name);
    heft_mix_close(mix);
    return st;
}

/* lora.h: merged models */
static heft_status print_merged(const heft_file *base, const heft_file *adapter, heft_error *err)
{
    heft_lora *lora;
    heft_lora_adapter half = { .f = adapter, .config = NULL, .scale = 0.5 };
    heft_status st = heft_lora_open(&lora, base, &half, 1, NULL, err);
    for (uint32_t i = 0; !st && i < heft_lora_count(lora); i++)
        puts(heft_lora_at(lora, i).how); /* heft_lora_file(lora) is read or converted */
    heft_lora_close(st ? NULL : lora);
    return st;
}

/* lora.h: adapters made of two models */
static heft_status print_remainders(const heft_file *base, const heft_file *tuned, heft_sink *take,
                                    heft_error *err)
{
    heft_extraction *x = NULL;
    const heft_format *to = heft_format_find(HEFT_STR("safetensors"));
    heft_status st = heft_extraction_open(&x, base, tuned, NULL, err);
    if (st)
        heft_sink_discard(take);
    else
        st = heft_file_convert(heft_extraction_file(x), to, take, NULL, err);
    for (uint32_t i = 0; !st && i < heft_extraction_count(x); i++)
        printf("%g\n", heft_extraction_at(x, i).remainder);
    heft_extraction_close(x);
    return st;
}

/* gguf_texts.h: texts */
static void print_text_files(void)
{
    for (uint32_t i = 0; heft_gguf_text_file(i); i++)
        puts(heft_gguf_text_file(i));
}

/* gguf_texts.h: to GGUF */
static heft_status map_to_run(heft_file **out, const heft_map *map, const heft_file *file,
                              const heft_gguf_options *texts, heft_error *err)
{
    heft_gguf_metadata *metadata; /* must outlive *out */
    heft_map_options opt = HEFT_MAP_OPTIONS_INIT;
    heft_status st = heft_gguf_metadata_open(&metadata, texts, NULL, err);
    opt.gguf = st ? NULL : metadata;
    return st ? st : heft_map_apply(out, map, file, &opt, err);
}

/* gguf_texts.h: from GGUF */
static heft_status print_config(const heft_file *gguf, heft_error *err)
{
    heft_gguf_texts *texts;
    heft_status st = heft_gguf_texts_open(&texts, gguf, err);
    if (st)
        return st;
    heft_str config = heft_gguf_texts_get(texts, HEFT_GGUF_CONFIG);
    fwrite(config.ptr, 1, config.len, stdout);
    heft_gguf_texts_close(texts);
    return HEFT_OK;
}

/* map.h: maps */
static void list_maps(void)
{
    for (uint32_t i = 0; heft_map_shipped(i).ptr; i++) {
        heft_map *map;
        if (heft_map_parse(&map, heft_map_shipped(i), NULL, NULL))
            return;
        heft_map_info info = heft_map_describe(map);
        printf("%.*s: %.*s\n", (int)info.name.len, info.name.ptr, (int)info.title.len,
               info.title.ptr);
        heft_map_close(map);
    }
}

/* map.h: mapped models */
static heft_status print_mapped(const heft_file *file, heft_str rules, heft_error *err)
{
    heft_map_options options = HEFT_MAP_OPTIONS_INIT;
    heft_map *map;
    heft_file *mapped;
    heft_status st = heft_map_parse(&map, rules, NULL, err);
    if (st)
        return st;
    options.allow_unmatched = true;
    st = heft_map_apply(&mapped, map, file, &options, err);
    heft_map_close(map);
    for (uint32_t i = 0; !st && i < heft_tensor_count(mapped); i++)
        printf("%.*s\n", (int)heft_tensor_at(mapped, i).name.len,
               heft_tensor_at(mapped, i).name.ptr);
    heft_file_close(st ? NULL : mapped);
    return st;
}

/* quantise.h: quantised models */
static heft_status save_fp8(const heft_file *file, const char *path, heft_error *err)
{
    heft_quantise_options options = HEFT_QUANTISE_OPTIONS_INIT;
    heft_quantisation *q;
    heft_sink *sink;
    options.method = "fp8";
    heft_status st = heft_quantisation_open(&q, file, &options, err);
    if (st)
        return st;
    st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_file_convert(heft_quantisation_file(q), heft_format_for_path(path), sink, NULL,
                               err);
    heft_quantisation_close(q);
    return st;
}

/* blend.h: settings */
static heft_status print_models(const char *settings, heft_error *err)
{
    heft_blend_settings *s;
    heft_status st = heft_blend_settings_read(&s, heft_str_from(settings), NULL, err);
    for (uint32_t i = 0; !st && i < heft_blend_settings_models(s); i++) {
        heft_str name = heft_blend_settings_model(s, i);
        printf("%.*s%s\n", (int)name.len, name.ptr,
               i == heft_blend_settings_base(s) ? " (base)" : "");
    }
    heft_blend_settings_close(st ? NULL : s);
    return st;
}

/* blend.h: blending */
static heft_status save_mean(const heft_file *a, const heft_file *b, const char *path,
                             heft_error *err)
{
    static const char settings[] = "{\"method\": \"linear\", \"models\": [{\"model\": \"a\"}, "
                                   "{\"model\": \"b\", \"parameters\": {\"weight\": 2}}]}";
    const heft_file *files[] = { a, b };
    heft_blend_settings *s;
    heft_blend *blend = NULL;
    heft_sink *sink;
    heft_status st = heft_blend_settings_read(&s, heft_str_from(settings), NULL, err);
    if (st)
        return st;
    st = heft_blend_open(&blend, s, files, NULL, err);
    if (!st)
        st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_file_convert(heft_blend_file(blend), heft_format_for_path(path), sink, NULL, err);
    heft_blend_close(blend);
    heft_blend_settings_close(s);
    return st;
}

/* quantise.h: the quality of what is written */
static heft_status save_and_measure(const heft_file *file, const char *path, heft_error *err)
{
    heft_quantise_options how = HEFT_QUANTISE_OPTIONS_INIT;
    heft_convert_options options = HEFT_CONVERT_OPTIONS_INIT;
    heft_quantisation *q = NULL;
    heft_sink *sink;
    heft_status st = heft_quality_open(&how.quality, NULL, err);
    how.method = "fp8";
    options.quality = how.quality;
    if (!st)
        st = heft_quantisation_open(&q, file, &how, err);
    if (!st)
        st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_file_convert(heft_quantisation_file(q), heft_format_for_path(path), sink,
                               &options, err);
    for (uint32_t i = 0; !st && i < heft_quality_count(how.quality); i++) {
        heft_quality_item item = heft_quality_at(how.quality, i);
        printf("%.*s: mean of the squared differences %g\n", (int)item.name.len, item.name.ptr,
               item.sum_squares / (double)item.finite);
    }
    heft_quantisation_close(q);
    heft_quality_close(how.quality);
    return st;
}

/* write.h: writing */
static heft_status write_one(const char *path, const float *values, uint64_t count, heft_error *err)
{
    uint32_t part;
    heft_sink *sink;
    heft_writer *w = NULL;
    heft_status st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_writer_open(&w, heft_format_for_path(path), sink, NULL, err);
    if (!st)
        st = heft_writer_add_dense(&part, w, HEFT_STR("bias"), HEFT_F32, &count, 1, err);
    if (!st)
        st = heft_writer_begin(w, err);
    if (!st)
        st = heft_writer_write(w, part, values, (size_t)count * sizeof *values, err);
    if (!st)
        return heft_writer_finish(w, err);
    heft_writer_discard(w);
    return st;
}

/* write.h: saving arrays */
static heft_status save(const char *path, const float *matrix, heft_error *err)
{
    const uint64_t dims[] = { 4, 8 };
    const heft_array array = { .name = HEFT_STR("wte.weight"),
                               .data = matrix,
                               .bytes = 4 * 8 * sizeof *matrix,
                               .dims = dims,
                               .rank = 2,
                               .dtype = HEFT_F32 };
    heft_save_options options = HEFT_SAVE_OPTIONS_INIT;
    options.flags = HEFT_SINK_REPLACE;
    return heft_array_save(path, &array, 1, &options, err);
}

/* write.h: converting */
static heft_dtype half(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->dtype == HEFT_F32 ? HEFT_F16 : HEFT_UNTYPED; /* HEFT_UNTYPED: not cast */
}

static heft_status convert_to_half(const heft_file *file, const char *path, heft_error *err)
{
    heft_convert_options options = HEFT_CONVERT_OPTIONS_INIT;
    heft_sink *sink;
    heft_status st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    options.cast = half;
    return st ? st : heft_file_convert(file, heft_format_for_path(path), sink, &options, err);
}

/* remote.h: files on servers */
static heft_status open_private(heft_file **out, const char *url, heft_error *err)
{
    heft_source *source;
    heft_url_options options = HEFT_URL_OPTIONS_INIT;
    options.timeout = 5;
    heft_status st = heft_source_url(&source, url, &options, err);
    if (st) {
        char shown[256]; /* without user, password and query */
        heft_url_redact(shown, sizeof shown, url);
        fprintf(stderr, "%s: %s\n", shown, err->message);
        return st;
    }
    return heft_file_open_source(out, source, NULL, err);
}

static heft_status convert_resumably(const char *url, const char *path, heft_error *err)
{
    heft_url_options options = HEFT_URL_OPTIONS_INIT;
    heft_file *file;
    options.resume = path; /* a process that is killed continues where it stopped */
    heft_status st = heft_file_open_url(&file, url, NULL, &options, err);
    if (st)
        return st;
    st = convert_to_half(file, path, err);
    heft_file_close(file);
    return st ? st : heft_url_remove_kept(path, err);
}

/* delta.h: making */
static heft_status write_delta(const char *path, const heft_file *old, const heft_file *new,
                               heft_error *err)
{
    heft_sink *sink;
    heft_delta_sums sums;
    heft_status st = heft_sink_open_file(&sink, path, 0, err);
    if (!st)
        st = heft_delta_make(&sums, old, new, sink, NULL, err);
    if (!st)
        printf("%u tensors have some new values\n", sums.tensors[HEFT_CHANGE_SPARSE]);
    return st;
}

/* delta.h: for other programs */
static heft_status open_in_set(heft_sink **out, void *set, const char *name, heft_error *err)
{
    return heft_sink_dir_add(out, set, name, err);
}

static heft_status write_disk_delta(const char *folder, const heft_file *old, const heft_file *new,
                                    heft_error *err)
{
    heft_sink_dir *set;
    heft_disk_delta_options options = HEFT_DISK_DELTA_OPTIONS_INIT;
    heft_status st = heft_sink_dir_open(&set, folder, 0, err);
    if (st)
        return st;
    options.encoding = "overwrite";
    options.open = open_in_set;
    options.open_ctx = set;
    st = heft_delta_make_disk(NULL, old, new, &options, err);
    if (st)
        heft_sink_dir_discard(set);
    else
        st = heft_sink_dir_finish(set, err);
    return st;
}

/* delta.h: reading and applying */
static heft_status write_result(const char *path, const heft_file *base, const heft_file *changes,
                                heft_error *err)
{
    heft_delta *delta;
    heft_file *result = NULL;
    heft_sink *sink;
    heft_status st = heft_delta_open(&delta, changes, err);
    for (uint32_t i = 0; !st && i < heft_delta_count(delta); i++)
        printf("%s\n", heft_change_name(heft_delta_at(delta, i).change));
    if (!st)
        st = heft_delta_apply(&result, base, delta, NULL, err);
    if (!st)
        st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_file_convert(result, heft_format_for_path(path), sink, NULL, err);
    heft_file_close(result);
    heft_delta_close(delta);
    return st;
}

/* share.h: beside the output */
static heft_status convert_two_shares(const heft_file *file, const char *path, heft_error *err)
{
    const char *const texts[] = { "2/2", "1/2" }; /* each by a process of its own, or "auto" */
    heft_share_result result = { .missing = 2 };
    heft_status st = HEFT_OK;
    for (int i = 0; i < 2 && !st; i++) {
        heft_share share;
        st = heft_share_find(&share, texts[i], err);
        if (!st)
            st = heft_share_convert(&result, file, heft_format_for_path(path), path, share,
                                    HEFT_SINK_REPLACE, NULL, err);
    }
    return !st && result.missing ? HEFT_E_IO : st; /* the last share completes the file */
}

/* share.h: with sinks of your own */
static heft_status write_a_share(heft_blob *record, const heft_file *file, uint32_t number,
                                 uint32_t count, heft_sink *take, heft_error *err)
{
    heft_share_plan *plan;
    heft_status st = heft_share_open(&plan, file, heft_file_format(file), count, NULL, err);
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    heft_range range = heft_share_range(plan, number);
    printf("share %u: %" PRIu64 " bytes at %" PRIu64 " of %" PRIu64 "\n", number, range.length,
           range.offset, heft_share_size(plan));
    st = heft_share_write(record, plan, number, take,
                          err); /* heft_share_join() needs all records */
    heft_share_close(plan);
    return st;
}

/* editing.h: editing */
static heft_status set_license(const char *path, heft_error *err)
{
    const heft_value license = { .kind = HEFT_KIND_STR,
                                 .key = HEFT_STR("license"),
                                 .as.s = HEFT_STR("MIT") };
    heft_edit_options options = HEFT_EDIT_OPTIONS_INIT;
    options.set = &license;
    options.set_count = 1;
    return heft_file_edit(NULL, path, &options, err);
}

/* editing.h: appending */
static heft_status append(const char *path, const heft_file *more, heft_error *err)
{
    heft_append_options options = HEFT_APPEND_OPTIONS_INIT;
    options.duplicates = HEFT_DUPLICATES_FIRST; /* tensors that the file has are left out */
    return heft_file_append(NULL, path, more, &options, err);
}

/* split.h: sets of files */
static heft_status recover_folder(heft_recovery *done, const char *folder, heft_error *err)
{
    return heft_sink_dir_recover(done, folder, err); /* after a program was killed */
}

/* split.h: splitting */
static heft_status add_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    return heft_sink_dir_add(out, ctx, name, err);
}

static heft_status split(const heft_file *file, const char *folder, heft_error *err)
{
    heft_split_options options = HEFT_SPLIT_OPTIONS_INIT;
    heft_sink_dir *dir;
    heft_status st = heft_sink_dir_open(&dir, folder, HEFT_SINK_REPLACE, err);
    if (st)
        return st;
    options.max_bytes = 5000000000;
    options.open = add_file;
    options.ctx = dir;
    st = heft_file_split(file, heft_format_find(HEFT_STR("safetensors")), &options, err);
    if (!st)
        return heft_sink_dir_finish(dir, err);
    heft_sink_dir_discard(dir);
    return st;
}

/* split.h: the index of shards that exist */
static heft_status repair_index(heft_index_result *done, const char *folder, heft_error *err)
{
    return heft_index_folder(done, folder, NULL, err); /* after files were copied without it */
}

/* ids.h: identities */
static void print_base_id(const char *name)
{
    heft_id128 base;
    char text[33];
    if (!heft_param_base_id(&base, heft_str_from(name)))
        return; /* not ASCII */
    heft_id128_text(text, base);
    printf("%s: %s\n", name, text);
}

/* params.h: keys */
static void print_key(heft_id128 model, const char *name)
{
    heft_id128 base;
    char text[33];
    if (!heft_param_base_id(&base, heft_str_from(name)))
        return; /* not ASCII */
    heft_id128_text(text, heft_param_key(model, base));
    printf("%s: %s\n", name, text);
}

/* params.h: the store */
static heft_status use_under_budget(heft_file *take, heft_error *err)
{
    heft_params_options options = HEFT_PARAMS_OPTIONS_INIT;
    heft_params *store;
    heft_param weight;
    heft_id128 model, key;
    options.budget = 64 << 20;
    heft_status st = heft_params_open(&store, &options, err);
    if (st) {
        heft_file_close(take);
        return st;
    }
    st = heft_params_add(&model, store, take, err);
    if (!st && heft_params_find(&key, store, model, HEFT_STR("wte.weight"))) {
        st = heft_params_acquire(&weight, store, key, err);
        if (!st) { /* weight.data stays in memory until it is released */
            heft_params_release(store, key);
        }
    }
    heft_params_close(store);
    return st;
}

/* params.h: derived forms */
static heft_status acquire_as_f32(heft_param *out, heft_params *store, heft_id128 key,
                                  heft_error *err)
{
    heft_derivation f32 = heft_derivation_f32();
    return heft_params_resolve(out, store, key, &f32, err); /* heft_params_release_form() */
}

/* heft_ext.h: sources */
static bool bring_into_memory(const heft_file *file, uint32_t part, heft_error *err)
{
    return heft_file_is_mapped(file) && !heft_part_populate(file, part, err);
}

/* heft_ext.h: shards */
static heft_status open_mapped_in(heft_source **out, const char *folder, heft_error *err)
{
    return heft_source_open_in_folder(out, folder, "bias.mag", HEFT_ACCESS_MAP, err);
}

/* heft_ext.h: pipelines */
static heft_status join_as_vae(heft_file **out, heft_source *take_index, heft_file *take_vae,
                               heft_error *err)
{
    heft_pipeline_file files[] = { { HEFT_STR("vae"), take_vae, NULL } };
    return heft_file_join_pipeline(out, take_index, "model_index.json", files, 1, NULL, err);
}

/* heft_ext.h: the Hugging Face cache */
static heft_status locate_gpt2(char *out, size_t capacity, heft_error *err)
{
    return heft_hub_path(out, capacity, "hub:openai-community/gpt2/model.safetensors", err);
}

/* editing.h: plans of edits */
static heft_status planned_size(uint64_t *out, const heft_file *file, heft_error *err)
{
    heft_edit *edit;
    heft_status st = heft_edit_plan(&edit, file, NULL, err);
    if (st)
        return st;
    *out = heft_edit_size(edit); /* heft_edit_extents() lists the bytes */
    heft_edit_close(edit);
    return HEFT_OK;
}

/* heft_ext.h: threads */
static heft_status open_with_threads(heft_file **out, const char *path, uint32_t count,
                                     heft_executor *threads, heft_host *host, heft_error *err)
{
    heft_open_options options = HEFT_OPEN_OPTIONS_INIT;
    *threads = heft_executor_threads(count); /* both outlive the file */
    heft_host_copy(host, NULL, sizeof *host);
    host->executor = threads;
    options.host = host;
    return heft_file_open(out, path, &options, err);
}

/* heft_ext.h: the host */
static heft_status open_in_buffer(heft_file **out, heft_source *take, heft_arena_memory *memory,
                                  heft_allocator *allocator, heft_host *host, heft_error *err)
{
    heft_open_options options = HEFT_OPEN_OPTIONS_INIT;
    *allocator = heft_arena_allocator(memory); /* as on a board: no other memory is used */
    heft_host_copy(host, NULL, sizeof *host);
    host->allocator = allocator;
    host->executor = NULL;
    options.host = host;
    return heft_file_open_source(out, take, &options, err);
}

/* ---- run the examples on a small model ---- */

static heft_error err;

static void require(bool holds, const char *call)
{
    if (!holds) {
        fprintf(stderr, "%s: %s\n", call, err.message);
        exit(1);
    }
}

static heft_file *opened(const char *path)
{
    heft_file *file = NULL;
    require(!heft_file_open(&file, path, NULL, &err), path);
    return file;
}

static void read_model(const char *path)
{
    heft_file *file = opened(path);
    float value = 0, values[2] = { 1, 2 };
    uint16_t halves[2];
    uint64_t sum = 0, size;
    heft_file *mapped;
    bool sound = false;
    require(!print_error(path) && print_error("no such file"), "errors");
    list_tensors(file);
    list_writable_formats();
    print_facts(file);
    print_loss_of_q4_k((const float[256]){ 1, 2 });
    print_name_of_parameter(file, 1);
    print_license(file);
    print_notices(file);
    require(!first_value(&value, file, &err) && value == 1, "array");
    require(!read_in_chunks(&sum, file, 0, &err) && sum, "stream");
    require(to_bf16(halves, values, 2), "cast");
    require(!is_sound(&sound, file, &err) && sound, "verify");
    require(!may_be_loaded(&sound, path, &err) && sound, "scan");
    require(!print_damage(path, &err), "doctor");
    require(!same_tensors(&sound, file, file, &err) && sound, "hash");
    require(!planned_size(&size, file, &err) && size, "plan");
    require(bring_into_memory(file, 0, &err), "populate");
    require(!fits_profile(&sound, file, HEFT_STR("{\"name\": \"any\"}"), &err) && sound, "profile");
    require(!is_quantised(&sound, file, heft_tensor_at(file, 0).name, &err) && !sound, "schemes");
    heft_importance *importance;
    require(read_importance(&importance, file, &err) == HEFT_E_FORMAT, "no imatrix");
    require(!print_types(file, importance, &err), "mix");
    heft_sink *adapter;
    require(!heft_sink_open_file(&adapter, "adapter.safetensors", HEFT_SINK_REPLACE, &err), "sink");
    require(print_remainders(file, file, adapter, &err) == HEFT_E_NOTFOUND, "equal models");
    require(print_merged(file, file, &err) == HEFT_OK, "merge a model into itself");
    print_text_files();
    require(print_config(file, &err) == HEFT_E_UNSUPPORTED, "no architecture");
    require(map_to_run(&mapped, NULL, file, NULL, &err) == HEFT_E_FORMAT, "no config.json");
    require(!save_fp8(file, "fp8.safetensors", &err), "quantise");
    require(!print_models("{\"method\": \"linear\", \"models\": [{\"model\": \"a\"}]}", &err),
            "settings");
    require(!save_mean(file, file, "mean.safetensors", &err), "blend");
    require(!save_and_measure(file, "fp8.safetensors", &err), "quality");
    heft_file_close(file);
    file = NULL;
    require(open_state_dict(&file, path, &err) == HEFT_E_UNSUPPORTED, "key");
    heft_file_close(file);
}

static void open_by_every_method(const char *path)
{
    static uint8_t bytes[1 << 16], pool[1 << 20];
    FILE *in = fopen(path, "rb");
    size_t len = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    heft_arena_memory memory = { .base = pool, .size = sizeof pool };
    heft_allocator allocator;
    heft_executor threads;
    heft_host host;
    heft_source *source;
    heft_file *file = NULL;
    require(in && !fclose(in), "read");
    require(!open_bytes(&file, bytes, len, &err), "memory");
    heft_file_close(file);
    require(!open_fed(&file, bytes, len, &err), "fed");
    heft_file_close(file);
    require(!open_with_threads(&file, path, 2, &threads, &host, &err), "threads");
    heft_file_close(file);
    require(!heft_source_open_memory(&source, bytes, len, &err), "source");
    require(!open_in_buffer(&file, source, &memory, &allocator, &host, &err), "arena");
    heft_file_close(file);
}

static void use_store(const char *path)
{
    heft_params *store;
    heft_param values;
    heft_id128 model, key;
    print_base_id("wte.weight");
    print_key(heft_param_namespace_new(), "wte.weight");
    require(!use_under_budget(opened(path), &err), "store");
    require(!heft_params_open(&store, NULL, &err), "open");
    require(!heft_params_add(&model, store, opened(path), &err), "add");
    require(heft_params_find(&key, store, model, HEFT_STR("wte.weight")), "find");
    require(!acquire_as_f32(&values, store, key, &err), "derive");
    heft_params_release_form(store, key, heft_derivation_f32().kind);
    heft_params_close(store);
}

static const char private_key[] =
    "-----BEGIN EC PRIVATE KEY-----\n"
    "MHcCAQEEIPocIuIJN7C2EH8mn/tqgJmH4mt4od2yv8SvmEOie7XkoAoGCCqGSM49\n"
    "AwEHoUQDQgAEaAyhSLkJuFNhtoHO3GHGu+iIawwvOyw47FSoZ6c/x7NWRG+uG91J\n"
    "B4WTbd+TERqIqscfbOwC0uQUYAoAx5tzKQ==\n"
    "-----END EC PRIVATE KEY-----\n";
static const char public_key[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaAyhSLkJuFNhtoHO3GHGu+iIawwv\n"
    "Oyw47FSoZ6c/x7NWRG+uG91JB4WTbd+TERqIqscfbOwC0uQUYAoAx5tzKQ==\n"
    "-----END PUBLIC KEY-----\n";

static void sign_and_check(const char *path)
{
    heft_blob text = { 0 };
    bool is_sound = false;
    heft_status st = sign_file(&text, path, heft_str_from(private_key), &err);
    if (st == HEFT_E_UNSUPPORTED)
        return; /* without libcrypto */
    require(!st, "sign");
    require(!is_signed(&is_sound, path, (heft_str){ (const char *)text.data, text.size },
                       heft_str_from(public_key), &err) &&
                is_sound,
            "signature");
    heft_blob_free(&text);
}

int main(int argc, char **argv)
{
    static const float matrix[32] = { 1, 2, 3 };
    uint32_t id;
    int64_t hidden;
    heft_file *file, *more, *both;
    heft_source *source;
    if (argc != 2 || chdir(argv[1]))
        return 2;
    require(!save("model.safetensors", matrix, &err), "save");
    require(!set_license("model.safetensors", &err), "edit");
    read_model("model.safetensors");
    open_by_every_method("model.safetensors");
    use_store("model.safetensors");
    sign_and_check("model.safetensors");
    require(!write_one("bias.mag", matrix, 32, &err), "write");
    require(!open_mapped_in(&source, ".", &err), "folder");
    char cached[4096];
    require(locate_gpt2(cached, sizeof cached, &err) != HEFT_OK || *cached, "cache");
    heft_source_close(source);
    file = opened("model.safetensors");
    more = opened("bias.mag");
    list_maps();
    require(!print_mapped(file, HEFT_STR("map first\nothers keep\nx -> y"), &err), "map");
    require(!join_with_lora(&both, file, more, &err), "join");
    require(!split(both, "shards", &err), "split");
    heft_recovery done;
    require(!recover_folder(&done, "shards", &err) && !done, "recover");
    heft_index_result index;
    require(repair_index(&index, "shards", &err) == HEFT_E_IO || !index.changed, "index");
    float first[32];
    require(!read_checked(first, file, 0, sizeof first, &err) && *first == 1, "checked");
    heft_file_close(both);
    require(!write_delta("step.zt", more, file, &err), "delta");
    heft_status written = write_disk_delta("weight_v000001", file, file, &err);
    require(!written || written == HEFT_E_UNSUPPORTED, "disk delta"); /* without zstd */
    both = opened("step.zt");
    require(!write_result("next.safetensors", more, both, &err), "apply");
    heft_file_close(both);
    require(!convert_to_half(file, "half.zt", &err), "convert");
    require(!convert_two_shares(file, "shares.zt", &err), "shares");
    heft_blob to, record;
    heft_sink *sink;
    require(!heft_sink_open_memory(&sink, &to, NULL, &err), "memory");
    require(!write_a_share(&record, file, 1, 2, sink, &err), "share");
    heft_blob_free(&record);
    heft_blob_free(&to);
    require(!append("half.zt", more, &err), "append");
    heft_file_close(file);
    heft_file_close(more);
    require(!find_token(&id, HEFT_STR("a\nb\n"), "b", &err) && id == 1, "vocabulary");
    require(!hidden_size(&hidden, HEFT_STR("{\"hidden_size\": 8}"), &err) && hidden == 8,
            "settings");
    require(
        !count_models(&id, HEFT_STR("{\"_class_name\": \"P\", \"vae\": [\"l\", \"C\"]}"), &err) &&
            id == 1,
        "components");
    require(!heft_source_open_memory(&source, "{}", 2, &err), "index");
    require(!join_as_vae(&both, source, opened("model.safetensors"), &err), "pipeline");
    require(!heft_file_is_complete(both, &err), "pipeline");
    heft_file_close(both);
    require(heft_is_url("https://127.0.0.1:1/a") && open_private(&both, "model.mag", &err), "URL");
    require(convert_resumably("model.mag", "half.bpk", &err), "URL");
    puts("ok");
    return 0;
}
