// Comparisons that yield complaints.
export function* differs(what, got, want) {
    const [a, b] = [JSON.stringify(got), JSON.stringify(want)]
    if (a !== b)
        yield `${what} is ${a}, not ${b}`
}

export function* lacks(what, text, ...parts) {
    for (const part of parts)
        if (!String(text).includes(part))
            yield `${what} lacks ${JSON.stringify(part)}: ${JSON.stringify(text)}`
}

export function* silent(visit) {
    for (const message of visit.messages)
        yield `console: ${message}`
}
