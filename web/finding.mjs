/** Findings of the core as objects. */
import { NONE } from "./core.mjs";

const SEVERITIES = ["note", "warning", "fault"];

export function readFinding(core, tensorName, shardName) {
    const offset = core.number(1), tensor = core.number(3), shard = core.number(4);
    const finding = {
        severity: SEVERITIES[core.number(0)], rule: core.string(0),
        offset: Number.isNaN(offset) ? null : offset, length: core.number(2),
        tensor: null, text: core.string(1),
    };
    if (tensor !== NONE)
        finding.tensor = tensorName(tensor);
    if (shard)
        finding.shard = shardName(shard);
    return finding;
}
