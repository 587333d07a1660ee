// What every page of the test does: open a model, read values, verify and hash it in the worker.
export async function run({ HeftError, open }) {
    const answer = await fetch('model.safetensors')
    const file = new File([await answer.arrayBuffer()], 'model.safetensors')
    const model = await open(file)
    const values = await model.find('odd').f32()
    const report = await model.verify()
    const { model: digest } = await model.hash()
    const failure = await open(new Uint8Array(100)).catch(e => e)
    await model.close()
    const remote = await open(new URL('model.safetensors', location.href))
    return { tensors: model.tensorCount, values: [...values].map(String), ok: report.ok, digest, remote: remote.tensorCount,
        fails: failure instanceof HeftError && failure.status }
}

export function show(work) {
    return work.then(result => { window.result = result }, e => { window.result = { error: `${e.name}: ${e.message}`, cause: String(e.cause) } })
}
